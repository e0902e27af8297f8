"""Small arrays with named axes, in plain Python: enough to carry a kernel's terms out on tiles of a few elements.

An axis has a name, ``i`` for query rows, ``j`` for key rows, ``d`` for the head dimension, ``s`` for ranges of keys, so
a matrix product needs no order and no transpose: it sums over what its operands share.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product

from tracer.records import dataclass

_ORDER = {"s": 0, "i": 1, "j": 2, "d": 3}


@dataclass(frozen=True, slots=True)
class Array:
    """Numbers by their indices.

    Attributes:
        axes: names, in the order s, i, j, d.
        sizes: length of each axis.
        numbers: all of them, the last axis fastest.
    """

    axes: tuple[str, ...]
    sizes: tuple[int, ...]
    numbers: tuple[float, ...]

    def at(self, place: dict[str, int]) -> float:
        """Return the number at an index for each axis; further axes do not matter."""
        offset = 0
        for axis, size in zip(self.axes, self.sizes, strict=True):
            offset = offset * size + place[axis]
        return self.numbers[offset]

    def size(self, axis: str) -> int:
        """Return the length of an axis."""
        return self.sizes[self.axes.index(axis)]


def scalar(number: float) -> Array:
    """Return an array without axes."""
    return Array((), (), (float(number),))


def filled(axes: Sequence[str], sizes: Sequence[int], number_at: Callable[[dict[str, int]], float]) -> Array:
    """Return an array whose numbers a function gives."""
    rows = sorted(zip(axes, sizes, strict=True), key=lambda row: _ORDER[row[0]])
    names = tuple(name for name, _ in rows)
    lengths = tuple(length for _, length in rows)
    numbers = tuple(
        [number_at(dict(zip(names, place, strict=True))) for place in product(*[range(length) for length in lengths])]
    )
    return Array(names, lengths, numbers)


def elementwise(operation: Callable[..., float], *operands: Array) -> Array:
    """Return an operation on each element, operands repeated along the axes that they lack."""
    sizes: dict[str, int] = {}
    for operand in operands:
        sizes.update(zip(operand.axes, operand.sizes, strict=True))

    def number_at(place: dict[str, int]) -> float:
        return operation(*[operand.at(place) for operand in operands])

    return filled(tuple(sizes), tuple(sizes.values()), number_at)


def reduced(operation: Callable[[list[float]], float], operand: Array, over: Sequence[str]) -> Array:
    """Return a reduction over some axes."""
    kept = [axis for axis in operand.axes if axis not in over]
    ranges = [range(operand.size(axis)) for axis in over]

    def number_at(place: dict[str, int]) -> float:
        inner = product(*ranges)
        return operation([operand.at({**place, **dict(zip(over, index, strict=True))}) for index in inner])

    return filled(kept, [operand.size(axis) for axis in kept], number_at)


def row_axes(axes: Sequence[str]) -> list[str]:
    """Return the axes that a reduction over rows sums over: all but that of the rows."""
    return [axis for axis in axes if axis != "i"]


def multiplied(left: Array, right: Array) -> Array:
    """Return the matrix product: summed over what the operands share; rows stay where more than they are shared."""
    shared = [axis for axis in left.axes if axis in right.axes]
    over = row_axes(shared) if len(shared) > 1 else shared
    return reduced(math.fsum, elementwise(_times, left, right), over)


def _times(left: float, right: float) -> float:
    """Return the product; nothing times infinity is nothing, as a masked probability times anything is."""
    return 0.0 if left == 0.0 or right == 0.0 else left * right


def ratio(left: Array, right: Array, tolerance: float = 1e-9) -> float | None:
    """Return by which one factor ``left`` is larger than ``right`` everywhere; None where there is no such factor."""
    if left.axes != right.axes or left.sizes != right.sizes:
        return None
    largest = max((abs(number) for number in right.numbers if math.isfinite(number)), default=0.0)
    if largest == 0.0:
        return None
    at = max(range(len(right.numbers)), key=lambda n: abs(right.numbers[n]) if math.isfinite(right.numbers[n]) else -1)
    factor = left.numbers[at] / right.numbers[at]
    if not math.isfinite(factor) or factor == 0.0:
        return None
    for mine, theirs in zip(left.numbers, right.numbers, strict=True):
        if math.isinf(theirs) or math.isinf(mine) or math.isnan(mine):
            if mine != theirs:
                return None
        elif abs(mine - factor * theirs) > tolerance * abs(factor) * largest:
            return None
    return factor
