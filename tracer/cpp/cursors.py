"""What libclang says of the cursors of one unit: where they stand, what they name and which types they have."""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from ctypes import c_void_p

from tracer.cpp import kinds as k
from tracer.cpp.libclang import CXCursor, CXSourceLocation, CXType, LibClang
from tracer.cpp.tree import Class, Declaration, Node, TypeRef

_IN_MACRO = 1 << 31  # set in the number of a location that a macro produced


class SourceFile:
    """The bytes of one file of a unit, and where its lines begin."""

    def __init__(self, path: str, relative: str, data: bytes) -> None:
        """Keep ``data`` and index its lines."""
        self.path, self.relative, self.data = path, relative, data
        self.line_starts = [0, *(match.end() for match in re.finditer(b"\n", data))]

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """Return the 1-based line and column (in characters) of a byte offset."""
        line = bisect_right(self.line_starts, offset)
        start = self.line_starts[line - 1]
        return line, len(self.data[start:offset].decode("utf-8", "replace")) + 1


class CursorReader:
    """Reads the cursors of one unit, and remembers what it has read.

    Attributes:
        files: the checkout's files that the unit reads; nodes refer to them by index.
        declarations: everything that a node's targets can name.
        classes: the checkout's classes, by USR.
        templates: the names of all templates, which say whether a ``<`` opens arguments.
        lambdas: the lambdas read so far, by extent: the copies that macros make of one share its node.
    """

    def __init__(self, clang: LibClang, handle: c_void_p, root: str, own_files: Iterable[str]) -> None:
        """Prepare; nothing is read yet.

        Args:
            clang: the library.
            handle: the parsed unit.
            root: where the checkout lies.
            own_files: the checkout's files that the unit can read, relative to the root; all others are a library's.
        """
        self.clang, self.f, self.handle = clang, clang.f, handle
        self.root = os.path.realpath(root) + os.sep
        self.own_files = frozenset(own_files)
        self.files: list[SourceFile] = []
        self.declarations: dict[str, Declaration] = {}
        self.classes: dict[str, Class] = {}
        self.templates: set[str] = set()
        self.lambdas: dict[tuple[int, int, int], Node] = {}
        self._file_numbers: dict[str, int] = {}
        self._file_ids: dict[int, int] = {}
        self._positions: dict[int, tuple[int, int]] = {}
        self._span_starts: list[int] = []
        self._spans: list[tuple[int, int, int]] = []
        self._references: dict[int, tuple[int, str, str]] = {}
        self._types: dict[tuple[str, str, str, str], TypeRef] = {}

    # -- positions ----------------------------------------------------------------------------------------------------
    def file_number(self, path: str) -> int:
        """Return the index of a file of the checkout; -1 for a file outside of it."""
        known = self._file_numbers.get(path)
        if known is None:
            known = -1
            real = os.path.realpath(path) if path else ""
            relative = real[len(self.root) :].replace(os.sep, "/") if real.startswith(self.root) else ""
            if relative in self.own_files:
                with open(real, "rb") as stream:
                    data = stream.read()
                known = len(self.files)
                self.files.append(SourceFile(real, relative, data))
            self._file_numbers[path] = known
        return known

    def position(self, location: CXSourceLocation) -> tuple[int, int]:
        """Return (file index, byte offset) of where the text of a location stands."""
        return self._positions.get(location.int_data) or self._new_position(location.int_data, lambda: location)

    def _new_position(self, key: int, location: Callable[[], CXSourceLocation]) -> tuple[int, int]:
        """Find a position and remember it.

        A location outside of macros is numbered by its offset in the file plus a number of the file's own. So one
        answer of libclang settles all locations of that file, which are most of a unit's.
        """
        if not key & _IN_MACRO:
            number = bisect_right(self._span_starts, key) - 1
            if number >= 0:
                start, end, file = self._spans[number]
                if key <= end:
                    found = self._positions[key] = (file, key - start)
                    return found
        file_id, _, _, offset = self.clang.file_position(location())
        file = self.file_of(file_id)
        if file >= 0 and not key & _IN_MACRO:
            start = key - offset
            at = bisect_right(self._span_starts, start)
            self._span_starts.insert(at, start)
            self._spans.insert(at, (start, start + len(self.files[file].data), file))
        found = self._positions[key] = (file, offset)
        return found

    def file_of(self, file_id: int) -> int:
        """Return the index of the file that libclang numbers so; -1 for a file outside of the checkout."""
        known = self._file_ids.get(file_id)
        if known is None:
            known = self._file_ids[file_id] = self.file_number(self.clang.file_name(file_id))
        return known

    def extent(self, cursor: CXCursor) -> tuple[int, int, int]:
        """Return (file index, start, end) of a cursor; an empty extent where it has no text of its own."""
        extent = self.f.clang_getCursorExtent(cursor)
        begin = self._positions.get(extent.begin_int_data) or self._new_position(
            extent.begin_int_data, lambda: self.f.clang_getRangeStart(extent)
        )
        end = self._positions.get(extent.end_int_data) or self._new_position(
            extent.end_int_data, lambda: self.f.clang_getRangeEnd(extent)
        )
        if begin[0] != end[0] or end[1] < begin[1]:
            return begin[0], begin[1], begin[1]
        return begin[0], begin[1], end[1]

    def slice(self, file: int, start: int, end: int) -> str:
        """Return the source text between two byte offsets of a file; empty for no file."""
        return self.files[file].data[start:end].decode("utf-8", "replace") if file >= 0 else ""

    # -- references and types -----------------------------------------------------------------------------------------
    def spelling(self, cursor: CXCursor) -> str:
        """Return the name of a cursor, as libclang spells it."""
        return self.clang.text(self.f.clang_getCursorSpelling(cursor))

    def reference(self, cursor: CXCursor) -> tuple[int, str, str]:
        """Return (kind, USR, name) of a declaration; the USR is empty for a local name."""
        address = cursor.data[0] or 0
        known = self._references.get(address)
        if known is not None:
            return known
        kind = cursor.kind
        name = self.spelling(cursor)
        if kind == k.CONSTRUCTOR or (kind == k.FUNCTION_TEMPLATE and "<" in name and "operator" not in name):
            name = name.partition("<")[0]  # of a class template: spelled with the template's own arguments
        usr = "" if self._is_local(cursor) else self.clang.text(self.f.clang_getCursorUSR(cursor))
        known = self._references[address] = (kind, usr, name)
        if usr and usr not in self.declarations:
            self._declare(cursor, usr, name)
        return known

    def _is_local(self, cursor: CXCursor) -> bool:
        if cursor.kind in k.LOCALS:
            return True
        if cursor.kind != k.VAR_DECL:
            return False
        parent = self.f.clang_getCursorSemanticParent(cursor)
        return parent.kind in k.FUNCTIONS or parent.kind not in (k.NAMESPACE, k.LINKAGE_SPEC, 350, *k.CLASSES)

    def _declare(self, cursor: CXCursor, usr: str, name: str) -> None:
        scopes: list[str] = []
        parent_usr = ""
        parent = self.f.clang_getCursorSemanticParent(cursor)
        while parent.kind in k.CLASSES or parent.kind in (k.NAMESPACE, k.ENUM_DECL):
            if parent.kind in k.CLASSES and not parent_usr:
                parent_usr = self.reference(parent)[1]
            scopes.append(self.spelling(parent))
            parent = self.f.clang_getCursorSemanticParent(parent)
        template = self.f.clang_getSpecializedCursorTemplate(cursor)
        primary = self.reference(template)[1] if template.kind >= 1 and not 70 <= template.kind <= 73 else ""
        kind = cursor.kind
        if kind == k.FUNCTION_TEMPLATE and parent_usr:
            kind = k.CXX_METHOD
        location = self.f.clang_getCursorLocation(cursor)
        file, offset = self.position(location)
        line = column = end_line = 0
        if file >= 0:
            line, column = self.files[file].line_and_column(offset)
            end_file, _, end = self.extent(cursor)
            end_line = self.files[file].line_and_column(end)[0] if end_file == file else line
        qualified = "::".join([*reversed([scope for scope in scopes if scope]), name])
        self.declarations[usr] = Declaration(
            usr, name, qualified, k.DECLARATION_NAMES.get(kind, "other"), file >= 0, primary, parent_usr, file, line,
            column, max(end_line, line),
        )  # fmt: skip

    def primary(self, usr: str) -> str:
        """Name the template instead of one instantiation of it, unless the checkout specializes it explicitly here."""
        declaration = self.declarations.get(usr)
        return declaration.primary if declaration is not None and declaration.primary else usr

    def overloads(self, cursor: CXCursor) -> tuple[str, ...]:
        """Return the USRs of the functions that an overloaded name may mean."""
        found: list[str] = []
        for number in range(self.f.clang_getNumOverloadedDecls(cursor)):
            usr = self.primary(self.reference(self.f.clang_getOverloadedDecl(cursor, number))[1])
            if usr and usr not in found:
                found.append(usr)
        return tuple(found)

    def is_template(self, name: str) -> bool:
        """Tell whether a ``<`` behind a name opens template arguments."""
        return name in self.templates

    def type_ref(self, type_: CXType, cursor: CXCursor | None = None) -> TypeRef:
        """Describe a type; ``cursor`` is the declaration that writes it, whose children name the class."""
        spelling = self.clang.text(self.f.clang_getTypeSpelling(type_))
        form, inner = "value", type_
        if type_.kind in (k.TYPE_LVALUE_REFERENCE, k.TYPE_RVALUE_REFERENCE):
            form, inner = "reference", self.f.clang_getPointeeType(type_)
        elif type_.kind == k.TYPE_POINTER:
            form, inner = "pointer", self.f.clang_getPointeeType(type_)
        elif type_.kind in k.TYPE_ARRAYS:
            form = "array"
        canonical = self.clang.text(self.f.clang_getTypeSpelling(self.f.clang_getCanonicalType(inner)))
        class_usr = ""
        declaration = self.f.clang_getTypeDeclaration(inner)
        if declaration.kind in k.CLASSES:
            _, class_usr, _ = self.reference(declaration)
            known = self.declarations.get(class_usr)
            if known is not None and known.primary and class_usr not in self.classes:
                class_usr = known.primary
        elif cursor is not None:
            for child in self.clang.children(cursor):
                if child.kind in (k.TYPE_REF, k.TEMPLATE_REF):
                    target = self.f.clang_getCursorReferenced(child)
                    if target.kind in k.CLASSES:
                        class_usr = self.reference(target)[1]
                        break
                elif child.kind not in k.REFERENCES:
                    break
        key = (spelling, canonical, form, class_usr)
        known_type = self._types.get(key)
        if known_type is None:
            known_type = self._types[key] = TypeRef(*key)
        return known_type

    def alias_type(self, cursor: CXCursor) -> TypeRef:
        """Describe what a type alias stands for."""
        if cursor.kind == k.TYPE_ALIAS_TEMPLATE_DECL:
            inner = [child for child in self.clang.children(cursor) if child.kind == k.TYPE_ALIAS_DECL]
            if not inner:
                return TypeRef("", "", "value")
            cursor = inner[0]
        return self.type_ref(self.f.clang_getTypedefDeclUnderlyingType(cursor), cursor)

    # -- nodes --------------------------------------------------------------------------------------------------------
    def node(self, cursor: CXCursor) -> Node:
        """Convert a statement or an expression; the unit, which derives from this, knows how."""
        raise NotImplementedError

    def parts(self, cursor: CXCursor) -> list[CXCursor]:
        """Return the children of a cursor that are more than a name that it refers to."""
        return [child for child in self.clang.children(cursor) if child.kind not in k.REFERENCES]

    def nodes(self, cursors: list[CXCursor]) -> tuple[Node, ...]:
        """Convert several statements or expressions."""
        return tuple([self.node(cursor) for cursor in cursors])

    def simple(self, kind: str, cursor: CXCursor, text: str = "", text2: str = "") -> Node:
        """Return a node whose children are the parts of the cursor."""
        file, start, end = self.extent(cursor)
        return Node(kind, text, self.nodes(self.parts(cursor)), file, start, end, None, (), text2)

    def raw(self, cursor: CXCursor) -> Node:
        """Return a node that only has its source text, and its parts as children."""
        file, start, end = self.extent(cursor)
        return Node("raw", self.slice(file, start, end), self.nodes(self.parts(cursor)), file, start, end)


Converter = Callable[[CursorReader, CXCursor], Node]


def simple_converter(kind: str) -> Converter:
    """Return the converter of a cursor that is no more than its children."""
    return lambda reader, cursor: reader.simple(kind, cursor)
