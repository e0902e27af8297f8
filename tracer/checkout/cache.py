"""Where unpacked copies are kept, and how one gets there whole or not at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from tracer.errors import CheckoutError

#: Environment variable that moves the cache, for a build machine or a test.
CACHE_VARIABLE = "FLASHTRACER_CACHE"


def cache_folder() -> Path:
    """Return the folder that holds everything flashtracer keeps between runs; it need not exist yet."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen).expanduser().absolute()
    if sys.platform == "linux":
        # What platformdirs would answer; importing it takes longer than opening a cached release.
        base = os.environ.get("XDG_CACHE_HOME", "").strip() or os.path.expanduser("~/.cache")
        return Path(base) / "flashtracer"
    import platformdirs

    return Path(platformdirs.user_cache_dir("flashtracer", appauthor=False))


def was_read(spec: str) -> bool:
    """Tell whether an earlier run kept what it read of a checkout, named as the user names it."""
    return _mark_of(spec).exists()


def note_read(spec: str) -> None:
    """Note that what was read of a checkout is kept. Failing to costs the next run some time, nothing more."""
    mark = _mark_of(spec)
    with suppress(OSError):
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()


def _mark_of(spec: str) -> Path:
    path = os.path.realpath(spec) if os.path.exists(spec) else spec
    return cache_folder() / "read" / sha256(path.encode("utf-8", "surrogateescape")).hexdigest()


def kept_copy(shelf: str, name: str) -> Path | None:
    """Return the cached copy ``shelf/name``, or None where there is none."""
    folder = cache_folder() / shelf / name
    return folder if folder.is_dir() else None


def kept_names(shelf: str) -> tuple[str, ...]:
    """Return the names of all cached copies of a shelf, sorted."""
    try:
        entries = list(os.scandir(cache_folder() / shelf))
    except OSError:
        return ()
    return tuple(sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith(".")))


def place(
    shelf: str,
    name: str,
    fill: Callable[[Path], None],
    *,
    keep: bool = True,
    progress: Callable[[str], None] | None = None,
) -> Path:
    """Return a folder filled by ``fill``, made once and kept in the cache.

    ``fill`` writes into a folder beside the final one, which is then renamed: a reader never sees half a copy, and a
    failing ``fill`` leaves nothing. Processes that want the same copy wait for the first one instead of making it
    again. Where the cache cannot be written, or with ``keep`` false, the copy lives in a temporary folder that is
    removed when the process ends.
    """
    import tempfile

    parent = cache_folder() / shelf
    if keep:
        try:
            parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=parent):
                pass
        except OSError as error:
            if progress is not None:
                progress(
                    f"the cache folder {parent} cannot be written ({error.strerror}); working in a temporary "
                    f"folder instead, set {CACHE_VARIABLE} to keep copies elsewhere"
                )
            keep = False
    if not keep:
        folder = _temporary_folder() / name
        folder.mkdir(parents=True)
        fill(folder)
        return folder

    final = parent / name
    with _locked(parent / f".{name}.lock"):
        if final.is_dir():
            return final
        import shutil

        beside = Path(tempfile.mkdtemp(prefix=f".{name}.", dir=parent))
        try:
            # One level deeper, because mkdtemp's own folder is private to the user and a cache may be shared.
            copy = beside / name
            copy.mkdir()
            fill(copy)
            os.rename(copy, final)
        except OSError as error:
            if final.is_dir():
                return final
            raise CheckoutError(
                f"cannot write the unpacked copy {final}: {error.strerror or error}; free some space or set "
                f"{CACHE_VARIABLE} to another folder"
            ) from error
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    return final


def write_file(folder: Path, file: str, content: bytes) -> None:
    """Write one file of a copy, with the folders it needs."""
    path = folder.joinpath(*file.split("/"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _temporary_folder() -> Path:
    import atexit
    import shutil
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="flashtracer-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock that ends with the process, so a crash never leaves the next run waiting."""
    try:
        import fcntl
    except ImportError:
        # Without advisory locks two processes may both make the copy; the rename still lets only a whole one in.
        yield
        return
    with path.open("wb") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
