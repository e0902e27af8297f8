"""What a checkout seems to build, where no build description could be understood."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from tracer.checkout import Checkout
from tracer.errors import SourceError
from tracer.extensions.files import UNIT_SUFFIXES
from tracer.extensions.model import Extension
from tracer.model import Diagnostic, Location

_BINDING = re.compile(r"^[ \t]*(?:PYBIND11_MODULE|TORCH_LIBRARY|STABLE_TORCH_LIBRARY)\s*\(\s*(\w+)", re.MULTILINE)
#: Folders below the root; what lies deeper is the tests and examples of a vendored library.
_DEPTH = 4


def group_by_folder(checkout: Checkout) -> tuple[Extension, ...]:
    """Return one extension per folder that holds a module's binding, with every translation unit in and below it.

    A guess, and each extension's diagnostics say so: files that no build lists any more are taken as well.
    """
    units = list(_units(checkout, "", _DEPTH))
    bindings: dict[str, tuple[str, Location]] = {}
    for file in units:
        try:
            text = checkout.read_text(file)
        except SourceError:
            # Whoever needs this file will meet the error; a guess about folders need not fail over it.
            continue
        found = _BINDING.search(text)
        if found:
            line = text.count("\n", 0, found.start(1)) + 1
            column = found.start(1) - (text.rfind("\n", 0, found.start(1)) + 1) + 1
            folder = posixpath.dirname(file)
            # The name of the module is left to the build, as a rule: then the folder's name has to do.
            name = found[1] if found[1] != "TORCH_EXTENSION_NAME" else posixpath.basename(folder)
            bindings.setdefault(folder, (name, Location(file, line, column, line)))
    message = "no setup.py or CMakeLists.txt that lists this module's sources was understood; taken by folder"
    return tuple(
        Extension(
            name=name,
            backend="cuda" if any(file.endswith(".cu") for file in units if file.startswith(folder + "/")) else "rocm",
            location=location,
            sources=tuple(file for file in units if _nearest(file, bindings) == folder),
            include_dirs=(folder,),
            diagnostics=(Diagnostic(location, message),),
        )
        for folder, (name, location) in sorted(bindings.items())
    )


def _nearest(file: str, folders: dict[str, tuple[str, Location]]) -> str | None:
    folder = posixpath.dirname(file)
    while folder and folder not in folders:
        folder = posixpath.dirname(folder)
    return folder or None


def _units(checkout: Checkout, folder: str, depth: int) -> Iterator[str]:
    import os

    try:
        entries = sorted(os.scandir(checkout.root / folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        path = posixpath.join(folder, entry.name)
        if entry.is_dir(follow_symlinks=False):
            if depth > 1 and not entry.name.startswith("."):
                yield from _units(checkout, path, depth - 1)
        elif entry.name.endswith(UNIT_SUFFIXES) and checkout.exists(path):
            yield path
