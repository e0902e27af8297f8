"""The reference kernels of this repository, opened as sources for the same front end as a checkout's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tracer.checkout import Checkout
from tracer.cpp.source import CppSource
from tracer.cpp.store import Store
from tracer.errors import TracerError
from tracer.extensions import Extension
from tracer.model import Definition, Location

_FOLDER = "kernels"


class ReferenceMissing(TracerError):
    """The reference kernels are not where the package should have them."""


class Reference:
    """The reference kernels, read on demand. Close it when done, or use it in a ``with`` statement."""

    def __init__(self, root: Path | None = None, *, cache: bool = True) -> None:
        """Open the sources of the package ``refkernel``, or those of another folder that is laid out alike.

        Args:
            root: the folder that holds ``kernels``.
            cache: keep what was read for the next run.

        Raises:
            ReferenceMissing: the package or its sources are missing.
        """
        root = root or Path(__file__).resolve().parents[2] / "refkernel"
        self._store = Store(cache)
        self.rungs = tuple(
            sorted(path.stem for path in root.glob(f"{_FOLDER}/*.cu") if path.with_suffix(".cuh").is_file())
        )
        if not self.rungs:
            raise ReferenceMissing(f"the reference kernels are not in {root}; install flashtracer again")
        self.checkout = Checkout("refkernel", root, "refkernel", None, "folder")
        self._sources: dict[str, CppSource] = {}

    def __enter__(self) -> Reference:
        """Return the reference itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Keep what was read and end the parser processes."""
        for source in self._sources.values():
            source.close()

    def files(self) -> list[Path]:
        """Return all files that the rungs are made of."""
        folder = self.checkout.root / _FOLDER
        return sorted(path for path in folder.iterdir() if path.suffix in (".cu", ".cuh"))

    def source(self, rung: str) -> CppSource:
        """Return the C++ side of one rung of the ladder, named as its file is; it begins to parse in the background."""
        if rung not in self._sources:
            extension = Extension(
                f"refkernel.{rung}",
                "cuda",
                Location(_FOLDER, 1),
                (f"{_FOLDER}/{rung}.cuh",),
                (_FOLDER,),
                ("__CUDACC__",),
            )
            self._sources[rung] = CppSource(self.checkout, extension, self._store)
        return self._sources[rung]

    def kernels(self, rung: str) -> tuple[Definition, ...]:
        """Return the kernels of one rung, in the order of its file."""
        return tuple(d for d in self.source(rung).definitions() if d.kind == "kernel")


@contextmanager
def lend(reference: Reference | None) -> Iterator[Reference]:
    """Lend the reference that a caller holds, which stays open, or this package's, which is closed at the end.

    Raises:
        ReferenceMissing: none is given, and the package or its sources are missing.
    """
    if reference is not None:
        yield reference
        return
    with Reference() as own:
        yield own
