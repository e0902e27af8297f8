"""A checkout as every other room sees it: files to read, and what is known of where they come from."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Iterator
from dataclasses import field
from functools import cache
from pathlib import Path

from tracer.errors import SourceError
from tracer.model import Location
from tracer.records import dataclass

#: Largest source file that is read, in bytes; the largest real one measured so far has a tenth of it.
MAX_FILE_BYTES = 8 * 1024 * 1024

_SKIPPED_FOLDERS = frozenset(("build", "dist", "test", "tests", "benchmarks", "docs", "examples", "__pycache__"))
_SKIPPED_FILES = re.compile(r"setup|conftest|test_.*|.*_test|benchmark_.*|bench_.*")


@dataclass(frozen=True, slots=True)
class Provenance:
    """What is known of a checkout's origin.

    Attributes:
        commit: 40 hex digits, or None.
        changed: files that differ from the commit, relative to the root.
        repository: the public repository's URL, without ``.git`` or credentials, or None.
        ref: commit or release tag under which the public repository shows these files, or None where that is not sure.
    """

    commit: str | None = None
    changed: frozenset[str] = frozenset()
    repository: str | None = None
    ref: str | None = None


class AskedOnce:
    """Finds a checkout's provenance out when it is first asked for, and remembers it."""

    def __init__(self, find_out: Callable[[], Provenance]) -> None:
        """Remember how to find out."""
        self._find_out = find_out
        self._found: Provenance | None = None

    def __call__(self) -> Provenance:
        """Return the provenance."""
        if self._found is None:
            self._found = self._find_out()
        return self._found


@dataclass(frozen=True, slots=True)
class Checkout:
    """The files of one state of a flash-attention repository. Open one with :func:`tracer.checkout.open_checkout`.

    Attributes:
        spec: what was asked for, as typed.
        root: the folder that holds the files: the one that was named, or an unpacked copy in the cache.
        flavour: which project this is, such as ``flash-attention``; from the name that its build gives the package.
        version: the package's version as its own files state it, or None.
        source: ``folder``, ``git`` or ``pypi``.
    """

    spec: str
    root: Path
    flavour: str
    version: str | None
    source: str
    # Asking git costs more than opening the folder, and most commands never need the answer.
    provenance_of: Callable[[], Provenance] = field(default=Provenance, repr=False, compare=False)

    @property
    def commit(self) -> str | None:
        """The commit, 40 hex digits, or None for a release and for a folder that is no repository of its own."""
        return self.provenance_of().commit

    @property
    def dirty(self) -> bool:
        """Whether files that git tracks differ from the commit."""
        return bool(self.provenance_of().changed)

    @property
    def repository(self) -> str | None:
        """URL of the public repository, as the checkout's own metadata or its git remote states it."""
        return self.provenance_of().repository

    @property
    def ref(self) -> str | None:
        """Commit or release tag for permalinks; None where the public repository may not have it."""
        return self.provenance_of().ref

    def exists(self, file: str) -> bool:
        """Tell whether ``file`` is a regular file inside the checkout."""
        try:
            return self._inside(file).is_file()
        except (SourceError, OSError):
            return False

    def read_text(self, file: str) -> str:
        """Return the text of a source file, line ends as they stand in the file.

        Args:
            file: path relative to the root, with forward slashes.

        Raises:
            SourceError: if the file is missing, a directory, unreadable, a symlink loop, outside of the checkout,
                larger than :data:`MAX_FILE_BYTES`, binary, or not in its encoding (UTF-8, or for Python files the
                one that its coding line names).
        """
        path = self._inside(file)
        try:
            size = path.stat().st_size
            if not path.is_file():
                kind = "a directory" if path.is_dir() else "no regular file"
                raise SourceError(f"{file}: is {kind}, expected a source file in {self.root}")
            if size > MAX_FILE_BYTES:
                raise SourceError(
                    f"{file}: {size / 2**20:.1f} MiB, larger than the {MAX_FILE_BYTES / 2**20:.0f} MiB that a source "
                    "file may have; is it generated? Remove it from the checkout"
                )
            content = path.read_bytes()
        except OSError as error:
            raise SourceError(f"{file}: cannot be read in {self.root}: {_reason(error)}") from error
        return _decode(file, content)

    def python_files(self) -> tuple[str, ...]:
        """Return the files of the checkout's importable Python modules, relative to the root, sorted.

        Taken: the packages that stand directly in the root, whole, and the modules and packages of every folder in
        the root that has a setup.py of its own. Left out: hidden and build folders, tests, benchmarks, examples and
        documentation — which call the library but are no part of a call through it — and whatever a symbolic link
        to a folder leads to, so there are no loops and nothing from outside.
        """
        files: list[str] = []
        for top in _folders(self.root, ""):
            is_package = (self.root / top / "__init__.py").is_file()
            has_setup = (self.root / top / "setup.py").is_file()
            if is_package or has_setup:
                files.extend(self._modules(top))
        files.extend(name for name in _python_modules(self.root, ""))
        return tuple(sorted(files))

    def permalink(self, location: Location) -> str | None:
        """Return the URL of a place in the public repository, or None where it is not sure that it exists there."""
        provenance = self.provenance_of()
        if not provenance.repository or not provenance.ref or location.file in provenance.changed:
            return None
        host = provenance.repository.partition("://")[2].partition("/")[0]
        if host.split(".")[-2:-1] != ["github"]:
            # Other forges spell their links differently; a guessed form would be a dead link.
            return None
        from urllib.parse import quote

        return f"{provenance.repository}/blob/{quote(provenance.ref)}/{quote(location.file)}#L{location.line}"

    def _modules(self, folder: str) -> Iterator[str]:
        yield from _python_modules(self.root, folder)
        for child in _folders(self.root, folder):
            yield from self._modules(child)

    def _inside(self, file: str) -> Path:
        path = self.root.joinpath(*posixpath.normpath(file).split("/"))
        try:
            real = os.path.realpath(path, strict=True)
        except OSError as error:
            raise SourceError(f"{file}: cannot be read in {self.root}: {_reason(error)}") from error
        root = _real(self.root)
        if real != root and not real.startswith(root.rstrip(os.sep) + os.sep):
            raise SourceError(f"{file}: leads out of the checkout {self.root}, to {real}; only its own files are read")
        return path


@cache
def _real(root: Path) -> str:
    return os.path.realpath(root)


def _entries(root: Path, folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(root / folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        raise SourceError(f"{folder or '.'}: cannot be listed in {root}: {_reason(error)}") from error


def _folders(root: Path, folder: str) -> Iterator[str]:
    for entry in _entries(root, folder):
        hidden = entry.name.startswith(".") or entry.name.endswith(".egg-info")
        if not hidden and entry.name not in _SKIPPED_FOLDERS and entry.is_dir(follow_symlinks=False):
            yield posixpath.join(folder, entry.name)


def _python_modules(root: Path, folder: str) -> Iterator[str]:
    for entry in _entries(root, folder):
        stem, suffix = os.path.splitext(entry.name)
        if suffix == ".py" and not _SKIPPED_FILES.fullmatch(stem) and not entry.name.startswith("."):
            yield posixpath.join(folder, entry.name)


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _decode(file: str, content: bytes) -> str:
    encoding = "utf-8-sig"
    if file.endswith(".py"):
        encoding = _python_encoding(file, content)
    zero = content.find(b"\0")
    if zero >= 0:
        line = content.count(b"\n", 0, zero) + 1
        raise SourceError(f"{file}:{line}: binary, not source text: byte {zero} is zero; replace or remove the file")
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SourceError(
            f"{file}:{line}: not {encoding.removesuffix('-sig')}: byte {error.start} is 0x{content[error.start]:02x}; "
            "save the file as UTF-8"
        ) from error


def _python_encoding(file: str, content: bytes) -> str:
    """Return the encoding that a Python file states for itself in a coding line or a byte order mark."""
    head = content[:512]
    if b"coding" not in b"\n".join(head.split(b"\n", 2)[:2]):
        return "utf-8-sig"
    import io
    import tokenize

    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
    except SyntaxError as error:
        raise SourceError(f"{file}:1: {error.msg}; expected UTF-8 or a known encoding in the coding line") from error
    return encoding
