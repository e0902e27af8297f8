"""Which files of a repository or an archive are worth unpacking."""

from __future__ import annotations

import ast
import posixpath

_SUFFIXES = frozenset(
    ".py .pyi .c .cc .cpp .cxx .cu .cuh .h .hh .hpp .inl .inc .ipp .txt .toml .cfg .cmake .in".split()
)
_NAMES = frozenset(("PKG-INFO", "VERSION"))


def is_source_like(file: str) -> bool:
    """Tell by its name whether a file is source, build description or metadata."""
    name = posixpath.basename(file)
    return name in _NAMES or posixpath.splitext(name)[1].lower() in _SUFFIXES


def submodule_folders(setup_text: str, package_dir: str) -> tuple[str, ...]:
    """Return the folders that a setup.py fetches as git submodules: libraries of others, relative to the root.

    A source archive carries them unpacked — tens of megabytes of templates that no route leads through — and says
    so only here, in the ``git submodule update`` that its own build runs.
    """
    try:
        tree = ast.parse(setup_text)
    except (SyntaxError, ValueError):
        return ()
    folders: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.List):
            words = [item.value for item in node.elts if isinstance(item, ast.Constant) and isinstance(item.value, str)]
            if words[:2] == ["git", "submodule"]:
                paths = [word for word in words[3:] if not word.startswith("-")]
                folders.update(posixpath.normpath(posixpath.join(package_dir, path)) for path in paths)
    return tuple(sorted(folder for folder in folders if not folder.startswith("..") and folder != "."))


def is_inside(file: str, folders: tuple[str, ...]) -> bool:
    """Tell whether a relative path lies in one of the folders."""
    return any(file.startswith(folder + "/") for folder in folders)
