"""Which file of the checkout an import names, and the parsed files themselves."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from tracer.errors import SourceError
from tracer.model import Diagnostic, Location
from tracer.python.syntax import Module, parse


class Files:
    """The Python files of one checkout, read and parsed when asked for.

    Attributes:
        names: the relative paths, sorted.
        diagnostics: what could not be read, once per file.
    """

    def __init__(self, read_text: Callable[[str], str], names: Sequence[str]) -> None:
        """Remember the files; nothing is read yet."""
        self.names = tuple(sorted(name for name in names if name.endswith(".py")))
        self.diagnostics: dict[str, Diagnostic] = {}
        self._read = read_text
        self._known = frozenset(self.names)
        self._folders = frozenset(
            name[:place] for name in self.names for place, letter in enumerate(name) if letter == "/"
        )
        self._texts: dict[str, str] = {}
        self._modules: dict[str, Module] = {}

    def text(self, file: str) -> str:
        """Return a file's text.

        Raises:
            SourceError: the file cannot be read as text.
        """
        if file not in self._texts:
            self._texts[file] = self._read(file)
        return self._texts[file]

    def module(self, file: str) -> Module:
        """Return a parsed file.

        Raises:
            SourceError: the file cannot be read as Python.
        """
        if file not in self._modules:
            self._modules[file] = parse(file, self.text(file))
        return self._modules[file]

    def try_text(self, file: str) -> str:
        """Return a file's text, or nothing and a diagnostic where it cannot be read."""
        try:
            return self.text(file)
        except SourceError as error:
            self.note(file, error)
            return ""

    def try_module(self, file: str) -> Module | None:
        """Return a parsed file, or nothing and a diagnostic where it cannot be read."""
        if file in self.diagnostics:
            return None
        try:
            return self.module(file)
        except SourceError as error:
            self.note(file, error)
            return None

    def note(self, file: str, error: SourceError) -> None:
        """Keep an error as a diagnostic at the line that its message names."""
        found = re.match(re.escape(file) + r":(\d+)", str(error))
        self.diagnostics[file] = Diagnostic(Location(file, int(found.group(1)) if found else 1), str(error))

    def named(self, package: str, parts: Iterable[str]) -> str | None:
        """Return the file or package folder that dotted parts name below a folder, if there is one."""
        path = "/".join(part for part in (package, *parts) if part)
        for file in (f"{path}.py", f"{path}/__init__.py" if path else "__init__.py"):
            if file in self._known:
                return file
        return path if path in self._folders else None

    def is_file(self, module: str) -> bool:
        """Whether a module is a file; otherwise it is a folder without ``__init__.py``."""
        return module in self._known

    def absolute(self, dotted: str, importer: str) -> str | None:
        """Return the file or folder that an absolute import names, as seen from a file.

        The checkout's root, every folder above the importer that is no package and every one that has a setup.py can
        be on the path; the nearest comes first.
        """
        parts = dotted.split(".")
        folder, roots = importer.rpartition("/")[0], []
        while folder:
            if f"{folder}/__init__.py" not in self._known or f"{folder}/setup.py" in self._known:
                roots.append(folder)
            folder = folder.rpartition("/")[0]
        for root in [*roots, ""]:
            found = self.named(root, parts)
            if found is not None and (self.is_file(found) or len(parts) > 1 or root == ""):
                return found
        return None

    def package_of(self, module: str) -> str:
        """Return the folder in which a module's submodules lie."""
        return module.rpartition("/")[0] if module.endswith("/__init__.py") else module.removesuffix(".py")
