"""Which elements of a tile a thread holds in its fragment of a tensor-core product.

The layout of the accumulator of the m16n8 product (PTX ISA, "Matrix Fragments for mma.m16n8k16"), with the warps of a
thread block one below the other.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracer.dataflow.ir import Loop, Storage, Value
from tracer.dataflow.names import plain
from tracer.records import dataclass

#: Lanes of the first warp and one of the second. With the lengths that are tried, some of their elements are the last
#: that is shown and the first that is hidden, at the end of the keys and at the diagonal.
LANES = (1, 9, 18, 37)


@dataclass(frozen=True, slots=True)
class Place:
    """An element of a thread's fragment.

    Attributes:
        row: among the thread's rows of the first fragment, 0 or 1.
        column: among the thread's columns.
        counters: of the loops over the fragment, their counters for this element.
    """

    row: int
    column: int
    counters: dict[tuple[int, Storage], int]

    def in_tile(self, lane: int) -> tuple[int, int]:
        """Return the row and the column in the tile that a thread's element is."""
        row = lane // 32 * 16 + self.row * 8 + lane % 32 // 4
        return row, self.column // 2 * 8 + lane % 4 * 2 + self.column % 2


def fragment_counters(loops: list[Loop], mask: Value) -> dict[str, tuple[int, Storage]] | None:
    """Return the counters around a mask by what they count: ``0``, ``0,0``, ``1,1``, …; None where that is not seen."""
    found: dict[str, tuple[int, Storage]] = {}
    for loop in loops:
        if not loop.first <= mask.number < loop.last or len(loop.counters) != 1:
            continue
        condition = loop.condition
        if not isinstance(condition, tuple) or condition[0] != "test":
            continue
        bound = plain(plain(condition[1]).args[-1]) if plain(condition[1]).args else None
        if bound is None or bound.op != "shape" or "<" not in bound.text:
            continue
        key = bound.text.partition("<")[2].rstrip(">").replace(" ", "")
        found[key] = (loop.number, loop.counters[0][0])
    columns = "1" in found or {"1,0", "1,1"} <= found.keys()
    return found if columns else None


def places(counters: dict[str, tuple[int, Storage]], columns: int) -> Iterator[Place]:
    """Yield elements of a thread's fragment of a tile: the first four columns and the last two of both rows."""
    per_thread = columns // 4
    for row in (0, 1):
        for column in dict.fromkeys((0, 1, 2, 3, per_thread - 2, per_thread - 1)):
            bound: dict[tuple[int, Storage], int] = {}
            for key, counter in counters.items():
                bound[counter] = {
                    "0": row, "0,0": row % 2, "0,1": row // 2,
                    "1": column, "1,0": column % 2, "1,1": column // 2,
                }.get(key, 0)  # fmt: skip
            yield Place(row, column, bound)
