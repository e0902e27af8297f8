"""The call of Figure 2 of the paper (Dao et al. 2022, arXiv 2205.14135), counted by every named convention.

The paper's figures were measured with Nsight Compute, so no count equals them; a count can only be consistent with one.
Two versions of the figure circulate.
"""

from __future__ import annotations

from tracer.records import dataclass
from tracer.traffic.answer import rows
from tracer.traffic.shapes import Shape, Tile

#: GPT-2 medium: batch 64, 16 heads, 1,024 tokens, head dimension 64; forward and backward pass.
SHAPE = Shape(1024, 1024, 64, batch=64, heads=16)

#: What is printed, in GB: standard attention and FlashAttention, by version.
PRINTED = {"arXiv version 2": (40.3, 4.4), "another version": (35.3, 4.4)}

#: GFLOPs as printed, in the same order. They do not follow from the call.
PRINTED_GFLOPS = (66.6, 75.2)

#: A count within this of a printed figure is called consistent with it.
TOLERANCE = 0.02


@dataclass(frozen=True, slots=True)
class Figure2Row:
    """One count.

    Attributes:
        algorithms: forward and backward.
        block_n: B_c; None for naive attention.
        convention: how it was counted.
        gigabytes: 10⁹ bytes, forward and backward.
        gigaflops: 10⁹ operations.
        consistent_with: printed figures within ``TOLERANCE``, as text; empty for none.
    """

    algorithms: tuple[str, str]
    block_n: int | None
    convention: str
    gigabytes: float
    gigaflops: float
    consistent_with: str


def figure2() -> tuple[Figure2Row, ...]:
    """Count the figure's call by each convention that says something about it."""
    naive, flash = ("naive-forward", "naive-backward"), ("fa1-forward", "fa1-backward")
    wanted: list[tuple[tuple[str, str], int | None, str]] = [
        (naive, None, "algorithm"),
        (naive, None, "mask"),
        (naive, None, "dropout"),
        (naive, None, "mask-and-dropout"),
        (flash, 256, "algorithm"),
        (flash, 384, "algorithm"),
        (flash, 256, "first-read-skipped"),
    ]
    return tuple(_count(*one) for one in wanted)


def _count(algorithms: tuple[str, str], block_n: int | None, convention: str) -> Figure2Row:
    tiles = (Tile(64, block_n),) if block_n else ()
    both = rows([SHAPE], algorithms=algorithms, tiles=tiles, convention_name=convention)
    gigabytes = sum(row.tile_bytes for row in both) / 1e9
    column = 1 if block_n else 0
    near = dict.fromkeys(
        f"{printed[column]} GB ({version})"
        for version, printed in PRINTED.items()
        if abs(gigabytes / printed[column] - 1) <= TOLERANCE
    )
    return Figure2Row(algorithms, block_n, convention, gigabytes, sum(row.flops for row in both) / 1e9, ", ".join(near))
