"""Which extension modules a checkout builds, and of which sources: what tells apart functions of the same name."""

from __future__ import annotations

import os
from collections.abc import Callable

from tracer.checkout import Checkout
from tracer.extensions.model import Extension

__all__ = ["Extension", "read_extensions"]


def read_extensions(checkout: Checkout) -> tuple[Extension, ...]:
    """Return every extension module of a checkout, those of the root first.

    Read from the setup.py and CMakeLists.txt in the root, in the folders of the root and in those of ``csrc``. Where
    none of them lists sources in a way that can be understood, the sources are grouped by folder instead, and each
    extension's diagnostics say so.

    Raises:
        SourceError: if a build description cannot be read as text.
    """
    from tracer.extensions.cmake import read_cmake
    from tracer.extensions.setup_py import read_setup

    readers: tuple[tuple[str, Callable[[Checkout, str], tuple[Extension, ...]]], ...] = (
        ("setup.py", read_setup),
        ("CMakeLists.txt", read_cmake),
    )
    found: list[Extension] = []
    for folder in ("", *_folders(checkout, ""), *_folders(checkout, "csrc")):
        for name, read in readers:
            file = f"{folder}/{name}" if folder else name
            if checkout.exists(file):
                try:
                    found.extend(extension for extension in read(checkout, file) if extension.sources)
                except (SyntaxError, ValueError, RecursionError):
                    # As if it were not there: the grouping by folder below says what is missing.
                    continue
    if found:
        return tuple(found)
    from tracer.extensions.by_folder import group_by_folder

    return group_by_folder(checkout)


def _folders(checkout: Checkout, parent: str) -> list[str]:
    try:
        with os.scandir(checkout.root / parent) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []
    return [f"{parent}/{name}" if parent else name for name in names if not name.startswith(".")]
