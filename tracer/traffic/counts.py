"""What an algorithm moves of one tensor in one launch: the unit that every total is a sum of."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from tracer.records import dataclass


class Kind(str, Enum):
    """What a tensor is to a pass, which decides what of it is compulsory.

    ``input``: there before; must be read once. ``output``: there after; must be written once. ``workspace``: only in
    between, so an algorithm with enough memory on chip would never move it. The N × N matrices are always workspace:
    there are algorithms that need none.
    """

    INPUT = "input"
    OUTPUT = "output"
    WORKSPACE = "workspace"


class Reuse(str, Enum):
    """Who asks for the same piece of a tensor again, which decides what a cache can do.

    ``once``: nobody. ``own``: blocks that own the same tile, such as the query heads that share a key head.
    ``walked``: every block that walks through the tensor. ``rewalked``: the same, after an earlier launch read it once.
    ``sum``: every step that adds to it. ``partial``: written by one launch and read by the next. ``operand``: the
    operators of naive attention, tensor by tensor.
    """

    ONCE = "once"
    OWN = "own"
    WALKED = "walked"
    REWALKED = "rewalked"
    SUM = "sum"
    PARTIAL = "partial"
    OPERAND = "operand"


@dataclass(frozen=True, slots=True)
class Access:
    """What one launch asks of one tensor. All counts are elements, over all heads and sequences.

    Attributes:
        launch: which launch, by what it does.
        tensor: by its name in the paper.
        kind: what the tensor is to the whole pass.
        reuse: who asks again.
        width: bytes of one element.
        read: elements read, as often as they are.
        written: elements written, as often as they are.
        distinct_read: elements that are read at all.
        distinct_written: elements that are written at all.
    """

    launch: str
    tensor: str
    kind: Kind
    reuse: Reuse
    width: int
    read: int = 0
    written: int = 0
    distinct_read: int = 0
    distinct_written: int = 0

    @property
    def tile_bytes(self) -> int:
        """Bytes that the launch asks for."""
        return (self.read + self.written) * self.width

    @property
    def cold_bytes(self) -> int:
        """Bytes that the launch must move when it runs by itself and nothing is in a cache."""
        return (self.distinct_read + self.distinct_written) * self.width


@dataclass(frozen=True, slots=True)
class Again:
    """Of the bytes beyond the compulsory ones, which share reaches DRAM: 0 for none, 1 for all."""

    read: float = 1.0
    written: float = 1.0


@dataclass(frozen=True, slots=True)
class TensorBytes:
    """One tensor's bytes in a whole pass, on the three levels.

    Attributes:
        tensor: by its name in the paper.
        kind: what it is to the pass.
        element_bytes: bytes of one element.
        read_bytes: requested, as often as they are.
        written_bytes: likewise.
        compulsory_bytes: moved by any algorithm of this kind.
        dram_read_bytes: expected to come from DRAM; None where no cache was simulated.
        dram_written_bytes: expected to reach DRAM; likewise.
    """

    tensor: str
    kind: Kind
    element_bytes: int
    read_bytes: int
    written_bytes: int
    compulsory_bytes: int
    dram_read_bytes: int | None = None
    dram_written_bytes: int | None = None

    @property
    def tile_bytes(self) -> int:
        """Requested bytes, both ways."""
        return self.read_bytes + self.written_bytes

    @property
    def dram_bytes(self) -> int | None:
        """Expected at DRAM, both ways."""
        if self.dram_read_bytes is None or self.dram_written_bytes is None:
            return None
        return self.dram_read_bytes + self.dram_written_bytes


@dataclass(frozen=True, slots=True)
class LaunchBytes:
    """One launch's bytes, profiled by itself with a cold cache, as Nsight Compute does by default.

    Attributes:
        launch: by what it does.
        compulsory_bytes: each tensor that it touches once each way.
        tile_bytes: requested.
        dram_bytes: expected at DRAM; None where no cache was simulated.
    """

    launch: str
    compulsory_bytes: int
    tile_bytes: int
    dram_bytes: int | None = None


def per_tensor(accesses: Iterable[Access], again: dict[str, Again] | None = None) -> tuple[TensorBytes, ...]:
    """Add up accesses by tensor.

    Args:
        accesses: of all launches of one pass.
        again: by reuse, or by tensor where the reuse is ``operand``, what reaches DRAM; None for no cache simulated.
    """
    found: dict[str, list[Access]] = {}
    for access in accesses:
        found.setdefault(access.tensor, []).append(access)
    return tuple(_tensor(tensor, parts, again) for tensor, parts in found.items())


def per_launch(accesses: Iterable[Access], again: dict[str, Again] | None = None) -> tuple[LaunchBytes, ...]:
    """Add up accesses by launch; arguments as in ``per_tensor``."""
    found: dict[str, list[Access]] = {}
    for access in accesses:
        found.setdefault(access.launch, []).append(access)
    result = []
    for launch, parts in found.items():
        cold, requested = sum(part.cold_bytes for part in parts), sum(part.tile_bytes for part in parts)
        dram = None
        if again is not None:
            dram = sum(
                _between(part.distinct_read, part.read, part.width, _again(part, again).read)
                + _between(part.distinct_written, part.written, part.width, _again(part, again).written)
                for part in parts
            )
        result.append(LaunchBytes(launch, cold, requested, dram))
    return tuple(result)


def _tensor(tensor: str, parts: list[Access], again: dict[str, Again] | None) -> TensorBytes:
    kind, width = parts[0].kind, parts[0].width
    read, written = sum(part.read for part in parts), sum(part.written for part in parts)
    must_read = max(part.distinct_read for part in parts) if kind is Kind.INPUT else 0
    must_write = max(part.distinct_written for part in parts) if kind is Kind.OUTPUT else 0
    dram: tuple[int | None, int | None] = (None, None)
    if again is not None:
        # The part that is asked for again decides: the others are asked for once.
        share = _again(max(parts, key=lambda part: part.read + part.written), again)
        dram = _between(must_read, read, width, share.read), _between(must_write, written, width, share.written)
    return TensorBytes(tensor, kind, width, read * width, written * width, (must_read + must_write) * width, *dram)


def _again(part: Access, again: dict[str, Again]) -> Again:
    key = part.tensor if part.reuse is Reuse.OPERAND else part.reuse.value
    return again.get(key, Again())


def _between(least: int, most: int, width: int, share: float) -> int:
    return round((least + (most - least) * share) * width) if most > least else most * width
