"""Where in global memory a tensor's part is: what was added to the pointer, by which layout, by which moves of it.

An address is a sum of indices, each times the stride of its dimension. It is kept as written, since it is a number only
for a concrete problem; :mod:`tracer.dataflow.tiles` puts numbers in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tracer.dataflow.ir import Formula, Loop, Value
from tracer.records import dataclass


@dataclass(frozen=True, slots=True)
class Mode:
    """One dimension of a layout: what one more along it adds to an address.

    Attributes:
        strides: the tuple of strides, or a choice between such tuples.
        number: which of them.
        extents: by which extents that is multiplied, as a dimension over tiles is.
    """

    strides: Value
    number: int
    extents: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One summand of an address.

    Attributes:
        index: how many.
        mode: of what; None for elements.
        sign: 1, or -1 where it is subtracted.
        guards: the formulas under which it is added.
        is_inside: it chooses an element of a tile, for the first of which it is nothing.
    """

    index: Value
    mode: Mode | None = None
    sign: int = 1
    guards: tuple[Formula, ...] = ()
    is_inside: bool = False


class Walk:
    """All moves of one pointer in one loop; they are found while the loop is followed."""

    __slots__ = ("loop", "moves")

    def __init__(self, loop: Loop) -> None:
        """Begin with none."""
        self.loop = loop
        self.moves: list[Step] = []


@dataclass(frozen=True, slots=True)
class Address:
    """A part of a tensor in global memory.

    Attributes:
        steps: what was added to the pointer that the host passes.
        modes: the dimensions that an index may still be given for; None for those inside of a tile.
        is_tile: it is a tile, or a part of one.
        rows: the dimension along the rows of the tile; None where it is not known.
        walks: the moves of the pointer in loops, with how many of them come before in the step of the loop that is
            under way; for a loop behind, all of them.
        is_known: nothing was done to it that is not understood.
    """

    steps: tuple[Step, ...] = ()
    modes: tuple[Mode | None, ...] = ()
    is_tile: bool = False
    rows: Mode | None = None
    walks: tuple[tuple[Walk, int], ...] = ()
    is_known: bool = True

    def moved(self, *steps: Step) -> Address:
        """Return the address behind some more steps."""
        return replace(self, steps=(*self.steps, *steps))

    def walking(self, walk: Walk, behind: int) -> Address:
        """Return the address of a pointer that moves in a loop, behind some of the moves of a step."""
        others = tuple([(other, count) for other, count in self.walks if other is not walk])
        return replace(self, walks=(*others, (walk, behind)))

    def laid_out(self, strides: Value | None, count: int, *, is_tile: bool) -> Address:
        """Return the address as a tensor with a layout; one whose strides are not known is not followed further."""
        if strides is None or not count:
            return replace(self, modes=(), is_tile=is_tile, rows=None, is_known=False)
        modes = tuple([Mode(strides, number) for number in range(count)])
        return replace(self, modes=modes, is_tile=is_tile, rows=modes[0] if is_tile else None)

    def indexed(self, indices: Sequence[Value | None]) -> Address:
        """Return the part that some indices choose; None keeps a whole dimension."""
        steps, modes = list(self.steps), []
        known = self.is_known
        for place, index in enumerate(indices):
            mode = self.modes[place] if place < len(self.modes) else None
            if index is None:
                modes.append(mode)
            elif mode is not None:
                steps.append(Step(index, mode, is_inside=self.is_tile and not mode.extents))
            elif not self.is_tile:
                known = False
        return replace(self, steps=tuple(steps), modes=tuple(modes), is_known=known)

    def tiled(self, extents: Sequence[Value], coordinates: Sequence[Value | None]) -> Address:
        """Return one tile, or where a coordinate is None all tiles along a dimension, as a dimension of its own."""
        if not self.is_known or not extents or len(self.modes) < max(len(extents), len(coordinates)):
            return replace(self, modes=(), is_tile=True, rows=None, is_known=False)
        steps: list[Step] = []
        over: list[Mode | None] = []
        for mode, extent, coordinate in zip(self.modes, extents, coordinates, strict=False):
            wide = Mode(mode.strides, mode.number, (*mode.extents, extent)) if mode is not None else None
            if coordinate is None:
                over.append(wide)
            elif wide is not None:
                steps.append(Step(coordinate, wide))
        inside = self.modes[: len(extents)]
        return replace(self, steps=(*self.steps, *steps), modes=(*inside, *over), is_tile=True, rows=inside[0])

    def partitioned(self) -> Address:
        """Return what one thread has of a tile: its elements in three dimensions, then the dimensions over tiles."""
        over = [mode for mode in self.modes if mode is not None and mode.extents]
        return replace(self, modes=(None, None, None, *over))

    def either(self, other: Address, choose: Callable[[Value, Value], Value]) -> Address:
        """Return the address that is this one or another: one whose summands are chosen between, where they are alike.

        Args:
            other: the other one.
            choose: makes a value of this one's and of the other's.
        """
        if len(self.steps) != len(other.steps):
            return UNKNOWN
        pairs = list(zip(self.steps, other.steps, strict=True))
        is_alike = all((a.mode, a.sign, a.guards) == (b.mode, b.sign, b.guards) for a, b in pairs)
        if not is_alike or replace(self, steps=()) != replace(other, steps=()):
            return UNKNOWN
        chosen = [a if a == b else replace(a, index=choose(a.index, b.index)) for a, b in pairs]
        return replace(self, steps=tuple(chosen))


UNKNOWN = Address(is_known=False)
