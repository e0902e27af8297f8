"""The part of libclang's C interface that the front end uses, as plain ctypes functions.

Only :mod:`tracer.cpp` knows that libclang exists, and inside it only this file knows how to call it. The official
Python wrapper builds an object with a dozen methods for each cursor; a conversion touches tens of thousands of cursors,
so the few functions needed are declared here without that layer.
"""

from __future__ import annotations

import ctypes
import importlib.util
import sys
from collections.abc import Callable
from ctypes import POINTER, Structure, byref, c_char_p, c_int, c_longlong, c_uint, c_ulong, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

from tracer.errors import MissingTool


class CXString(Structure):
    """A string owned by libclang."""

    _fields_ = [("data", c_void_p), ("private_flags", c_uint)]


class CXCursor(Structure):
    """A place in libclang's tree; ``kind`` and ``data[0]`` (the node's address) are read without a call."""

    _fields_ = [("kind", c_int), ("xdata", c_int), ("data", c_void_p * 3)]


class CXSourceLocation(Structure):
    """A position; ``int_data`` serves as an opaque key that is unique within one unit."""

    _fields_ = [("ptr_data", c_void_p * 2), ("int_data", c_uint)]


class CXSourceRange(Structure):
    """A range; its two numbers are opaque keys like :attr:`CXSourceLocation.int_data`."""

    _fields_ = [("ptr_data", c_void_p * 2), ("begin_int_data", c_uint), ("end_int_data", c_uint)]


class CXType(Structure):
    """A type; ``kind`` is read without a call."""

    _fields_ = [("kind", c_int), ("data", c_void_p * 2)]


class CXUnsavedFile(Structure):
    """A file that exists in memory only."""

    _fields_ = [("filename", c_char_p), ("contents", c_char_p), ("length", c_ulong)]


VISITOR = ctypes.CFUNCTYPE(c_int, CXCursor, CXCursor, c_void_p)
INCLUSION_VISITOR = ctypes.CFUNCTYPE(None, c_void_p, POINTER(CXSourceLocation), c_uint, c_void_p)

# Options of clang_parseTranslationUnit2: go on after a fatal error such as a missing header, and accept an incomplete
# unit, so that one unknown name does not silence what follows.
KEEP_GOING = 0x200
INCOMPLETE = 0x02

SEVERITY_ERROR = 3
SEVERITY_FATAL = 4

_SIGNATURES: dict[str, tuple[list[Any], Any]] = {
    "clang_createIndex": ([c_int, c_int], c_void_p),
    "clang_disposeIndex": ([c_void_p], None),
    "clang_parseTranslationUnit2": (
        [c_void_p, c_char_p, POINTER(c_char_p), c_int, POINTER(CXUnsavedFile), c_uint, c_uint, POINTER(c_void_p)],
        c_int,
    ),
    "clang_disposeTranslationUnit": ([c_void_p], None),
    "clang_getTranslationUnitCursor": ([c_void_p], CXCursor),
    "clang_getClangVersion": ([], CXString),
    "clang_getCString": ([CXString], c_char_p),
    "clang_disposeString": ([CXString], None),
    "clang_visitChildren": ([CXCursor, VISITOR, c_void_p], c_uint),
    "clang_getCursorSpelling": ([CXCursor], CXString),
    "clang_getCursorDisplayName": ([CXCursor], CXString),
    "clang_getCursorUSR": ([CXCursor], CXString),
    "clang_getCursorLocation": ([CXCursor], CXSourceLocation),
    "clang_getCursorExtent": ([CXCursor], CXSourceRange),
    "clang_getRangeStart": ([CXSourceRange], CXSourceLocation),
    "clang_getRangeEnd": ([CXSourceRange], CXSourceLocation),
    "clang_getFileLocation": (
        [CXSourceLocation, POINTER(c_void_p), POINTER(c_uint), POINTER(c_uint), POINTER(c_uint)],
        None,
    ),
    "clang_getFileName": ([c_void_p], CXString),
    "clang_getCursorReferenced": ([CXCursor], CXCursor),
    "clang_getCursorDefinition": ([CXCursor], CXCursor),
    "clang_getCursorSemanticParent": ([CXCursor], CXCursor),
    "clang_getSpecializedCursorTemplate": ([CXCursor], CXCursor),
    "clang_isCursorDefinition": ([CXCursor], c_uint),
    "clang_getTemplateCursorKind": ([CXCursor], c_int),
    "clang_getNumOverloadedDecls": ([CXCursor], c_uint),
    "clang_getOverloadedDecl": ([CXCursor, c_uint], CXCursor),
    "clang_Cursor_getNumArguments": ([CXCursor], c_int),
    "clang_getCursorBinaryOperatorKind": ([CXCursor], c_int),
    "clang_getCursorUnaryOperatorKind": ([CXCursor], c_int),
    "clang_getCursorType": ([CXCursor], CXType),
    "clang_getCursorResultType": ([CXCursor], CXType),
    "clang_getTypedefDeclUnderlyingType": ([CXCursor], CXType),
    "clang_getTypeSpelling": ([CXType], CXString),
    "clang_getCanonicalType": ([CXType], CXType),
    "clang_getPointeeType": ([CXType], CXType),
    "clang_getTypeDeclaration": ([CXType], CXCursor),
    "clang_getEnumConstantDeclValue": ([CXCursor], c_longlong),
    "clang_Cursor_getStorageClass": ([CXCursor], c_int),
    "clang_CXXMethod_isStatic": ([CXCursor], c_uint),
    "clang_Cursor_Evaluate": ([CXCursor], c_void_p),
    "clang_EvalResult_getKind": ([c_void_p], c_int),
    "clang_EvalResult_getAsLongLong": ([c_void_p], c_longlong),
    "clang_EvalResult_getAsDouble": ([c_void_p], ctypes.c_double),
    "clang_EvalResult_dispose": ([c_void_p], None),
    "clang_getNumDiagnostics": ([c_void_p], c_uint),
    "clang_getDiagnostic": ([c_void_p, c_uint], c_void_p),
    "clang_disposeDiagnostic": ([c_void_p], None),
    "clang_getDiagnosticSeverity": ([c_void_p], c_int),
    "clang_getDiagnosticSpelling": ([c_void_p], CXString),
    "clang_getDiagnosticLocation": ([c_void_p], CXSourceLocation),
    "clang_getInclusions": ([c_void_p, INCLUSION_VISITOR, c_void_p], None),
}


class LibClang:
    """The loaded library, its functions as attributes, and the three calls that need more than one of them."""

    def __init__(self, path: Path) -> None:
        """Load the library at ``path`` and declare the functions.

        Raises:
            MissingTool: the library cannot be loaded or lacks a function (versions before 17 do).
        """
        try:
            library = ctypes.CDLL(str(path))
            for name, (arguments, result) in _SIGNATURES.items():
                function = getattr(library, name)
                function.argtypes = arguments
                function.restype = result
        except (OSError, AttributeError) as error:
            raise MissingTool(
                f"libclang at {path} cannot be used ({error}); reinstall it with: pip install 'libclang>=18.1.1,<19'"
            ) from None
        self.f: Any = library
        self._children: list[CXCursor] = []
        self._visitor = VISITOR(self._visit)

    def text(self, string: CXString) -> str:
        """Return a libclang string as ``str`` and release it."""
        data: bytes | None = self.f.clang_getCString(string)
        result = data.decode("utf-8", "replace") if data else ""
        self.f.clang_disposeString(string)
        return result

    def children(self, cursor: CXCursor) -> list[CXCursor]:
        """Return the direct children of ``cursor`` in libclang's order."""
        found = self._children = []
        self.f.clang_visitChildren(cursor, self._visitor, None)
        return found

    def _visit(self, child: CXCursor, _parent: CXCursor, _data: object) -> int:
        self._children.append(child)
        return 1  # continue with the next sibling

    def file_position(self, location: CXSourceLocation) -> tuple[int, int, int, int]:
        """Return (file, line, column, byte offset) of where the text of ``location`` stands.

        The file is a number that lasts as long as the unit, 0 for none; :meth:`file_name` tells its path.
        """
        file, line, column, offset = c_void_p(), c_uint(), c_uint(), c_uint()
        self.f.clang_getFileLocation(location, byref(file), byref(line), byref(column), byref(offset))
        return file.value or 0, line.value, column.value, offset.value

    def file_name(self, file: int) -> str:
        """Return the path of a file that :meth:`file_position` told; '' for none."""
        return self.text(self.f.clang_getFileName(c_void_p(file))) if file else ""

    def parse(self, path: str, arguments: list[str], unsaved: dict[str, str]) -> c_void_p | None:
        """Parse one translation unit; None when libclang gave up (it says why only by crashing)."""
        encoded = [argument.encode() for argument in arguments]
        argument_array = (c_char_p * len(encoded))(*encoded)
        files = (CXUnsavedFile * max(1, len(unsaved)))()
        keep_alive = []
        for slot, (name, contents) in zip(files, unsaved.items(), strict=False):
            data = contents.encode()
            keep_alive.append(data)
            slot.filename, slot.contents, slot.length = name.encode(), data, len(data)
        index = self.f.clang_createIndex(0, 0)
        unit = c_void_p()
        code = self.f.clang_parseTranslationUnit2(
            index,
            path.encode(),
            argument_array,
            len(encoded),
            files,
            len(unsaved),
            KEEP_GOING | INCOMPLETE,
            byref(unit),
        )
        return unit if code == 0 and unit.value else None


def visitor(function: Callable[[CXCursor], None]) -> Any:
    """Wrap ``function`` as a callback that visits direct children."""

    def visit(child: CXCursor, _parent: CXCursor, _data: object) -> int:
        function(child)
        return 1

    return VISITOR(visit)


@cache
def load() -> LibClang:
    """Load, once, the libclang that the ``libclang`` package brings.

    Raises:
        MissingTool: the package is not installed or its library cannot be loaded.
    """
    spec = importlib.util.find_spec("clang")
    places = list(spec.submodule_search_locations or ()) if spec else []
    file_name = {"darwin": "libclang.dylib", "win32": "libclang.dll"}.get(sys.platform, "libclang.so")
    for place in places:
        library = Path(place) / "native" / file_name
        if library.exists():
            return LibClang(library)
    raise MissingTool("the C++ parser libclang is not installed; install it with: pip install 'libclang>=18.1.1,<19'")
