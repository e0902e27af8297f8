"""What was read of a unit, kept between runs under a hash of everything that decides it."""

from __future__ import annotations

import hashlib
import marshal
import os
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

from tracer.checkout.cache import cache_folder
from tracer.cpp.sources import STUBS

_SHELF = "units"
_KEEP_FILES = 400
_PARTS = {"outline", "bodies", "trees", "tables", "complete", "primitives"}


@lru_cache(maxsize=1)
def reader_version() -> str:
    """Return a hash that changes whenever this package's reading of a source may change."""
    here = Path(__file__).parent
    digest = hashlib.sha256()
    for file in [*sorted(here.glob("*.py")), *sorted(path for path in STUBS.rglob("*") if path.is_file())]:
        status = file.stat()
        digest.update(f"{file.name}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    return digest.hexdigest()


class Store:
    """The cache of units. Failing to read or write it never fails a command: it is only ever faster."""

    def __init__(self, enabled: bool) -> None:
        """Use the cache folder, or nothing."""
        self.enabled = enabled

    def _path(self, key: str) -> Path:
        name = hashlib.sha256(f"{reader_version()}{key}".encode()).hexdigest()
        return cache_folder() / _SHELF / f"{name}.unit"

    def load(self, key: str) -> dict[str, Any] | None:
        """Return what is known of a unit, or None."""
        if not self.enabled:
            return None
        try:
            data = marshal.loads(self._path(key).read_bytes())
        except (OSError, ValueError, EOFError, TypeError):
            return None
        return data if isinstance(data, dict) and _PARTS <= data.keys() else None

    def save(self, key: str, data: dict[str, Any]) -> None:
        """Keep what is known of a unit; the file appears whole or not at all."""
        if not self.enabled:
            return
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".writing-")
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(marshal.dumps(data))
            os.replace(name, path)
            self._forget_oldest(path.parent)
        except OSError:
            return

    def _forget_oldest(self, folder: Path) -> None:
        kept = sorted(folder.glob("*.unit"), key=lambda file: file.stat().st_mtime)
        for file in kept[: max(0, len(kept) - _KEEP_FILES)]:
            file.unlink(missing_ok=True)
