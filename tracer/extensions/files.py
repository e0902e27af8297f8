"""From the paths that a build lists to the files that a checkout has."""

from __future__ import annotations

import glob
import os
import posixpath
from collections.abc import Iterable

from tracer.checkout import Checkout
from tracer.records import dataclass

#: Suffixes of translation units, as compilers know them.
UNIT_SUFFIXES = (".cu", ".cpp", ".cc", ".cxx", ".c", ".hip")


@dataclass(frozen=True, slots=True)
class Listed:
    """What became of the paths that a build lists.

    Attributes:
        found: the files that exist, relative to the root, each once, in the order of the list.
        made: path as listed and existing file, where the build makes the one from the other by renaming its suffix.
        missing: paths without a file; a pattern that matches nothing is one.
        unknown: how many entries are computed by the build and say nothing of a file.
    """

    found: tuple[str, ...]
    made: tuple[tuple[str, str], ...] = ()
    missing: tuple[str, ...] = ()
    unknown: int = 0


def find_files(checkout: Checkout, paths: Iterable[str]) -> Listed:
    """Return the translation units among the paths, which are relative to the root and may hold ``*``."""
    folders = _Folders(checkout)
    found: dict[str, None] = {}
    made: dict[str, str] = {}
    missing: dict[str, None] = {}
    unknown = 0
    for path in paths:
        if not path.strip("*/."):
            unknown += 1
        elif "*" in path or "?" in path:
            matches = _matches(checkout, path)
            found.update(dict.fromkeys(matches))
            if not matches:
                missing[path] = None
        elif folders.have(path):
            found[path] = None
        else:
            original = _before_renaming(folders, path)
            if original is None:
                missing[path] = None
            else:
                found[original] = None
                made[path] = original
    return Listed(tuple(found), tuple(made.items()), tuple(missing), unknown)


def find_folders(checkout: Checkout, paths: Iterable[str]) -> tuple[str, ...]:
    """Return those of the paths that are folders of the checkout, each once; the root itself is ``.``."""
    found = {path: None for path in paths if "*" not in path and checkout.root.joinpath(*path.split("/")).is_dir()}
    return tuple(found)


def describe(listed: Listed) -> tuple[str, ...]:
    """Return one sentence per thing that a reader of the list should know; none where every path is a file."""
    messages: list[str] = []
    if listed.made:
        made = ", ".join(f"{path} from {original}" for path, original in listed.made[:3])
        messages.append(f"{len(listed.made)} listed sources are made by the build: {made}{_more(listed.made)}")
    if listed.missing:
        missing = ", ".join(listed.missing[:3])
        messages.append(f"{len(listed.missing)} listed sources do not exist: {missing}{_more(listed.missing)}")
    if listed.unknown:
        messages.append(
            f"{listed.unknown} entries of the source list are computed by the build and were not understood"
        )
    return tuple(messages)


def _more(items: tuple[object, ...]) -> str:
    return f" and {len(items) - 3} more" if len(items) > 3 else ""


def inside(base: str, path: str) -> str | None:
    """Return ``path``, written relative to ``base``, relative to the root; None where it leads out of the checkout."""
    whole = posixpath.normpath(posixpath.join(base, path.replace("\\", "/")))
    return None if whole.startswith(("../", "/")) or whole == ".." else whole


class _Folders:
    """Answers which files exist with one listing per folder; a build lists hundreds of files in a few of them."""

    def __init__(self, checkout: Checkout) -> None:
        self._checkout = checkout
        self._files: dict[str, dict[str, bool]] = {}

    def have(self, path: str) -> bool:
        folder, _, name = path.rpartition("/")
        if folder not in self._files:
            self._files[folder] = self._listing(folder)
        # A name that is not certain may be a folder, or a link that leads out.
        return name in self._files[folder] and (self._files[folder][name] or self._checkout.exists(path))

    def _listing(self, folder: str) -> dict[str, bool]:
        """Return the names in a folder, each with whether it certainly is a file of the checkout."""
        whole = self._checkout.root / folder
        try:
            with os.scandir(whole) as entries:
                real = os.path.join(os.path.realpath(self._checkout.root), *folder.split("/"))
                inside = os.path.realpath(whole) == os.path.normpath(real)
                return {entry.name: inside and entry.is_file(follow_symlinks=False) for entry in entries}
        except OSError:
            return {}


def _matches(checkout: Checkout, pattern: str) -> list[str]:
    names = glob.glob(pattern, root_dir=checkout.root, recursive=True)
    files = sorted(name.replace("\\", "/") for name in names)
    return [file for file in files if file.endswith(UNIT_SUFFIXES) and checkout.exists(file)]


def _before_renaming(folders: _Folders, path: str) -> str | None:
    """Return the file that a build copies to ``path``: same name, other suffix of a translation unit.

    Compilers for GPUs go by the suffix, so builds for ROCm rename ``.cpp`` to ``.cu`` before they start.
    """
    stem, suffix = posixpath.splitext(path)
    if suffix in UNIT_SUFFIXES:
        for other in UNIT_SUFFIXES:
            if other != suffix and folders.have(stem + other):
                return stem + other
    return None
