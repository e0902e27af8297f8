"""What the papers prove about any size of on-chip memory, beside the exact counts: orders of growth, without constants.

All in elements of one head, as the papers have them; multiply by bytes per element, heads and sequences.
"""

from __future__ import annotations

from tracer.records import dataclass
from tracer.traffic.shapes import InvalidShape, Shape


@dataclass(frozen=True, slots=True)
class Bounds:
    """Orders of growth at one size of on-chip memory. Elements of one head, constants left out.

    Attributes:
        on_chip: M, elements.
        naive: Nd + N², Theorem 2 of Dao et al. 2022 (arXiv 2205.14135, section 3.2).
        flash: N²d² / M, the same theorem; it holds for d ≤ M ≤ Nd.
        lower: what no exact algorithm gets below in order: N²d² / M where M ≥ d² (Saha & Ye 2024, arXiv 2402.07443),
            and Nd at any M; None where M < d², which that bound does not cover.
        applies: M lies between d and Nd.
        block_m: B_r = min(⌈M / 4d⌉, d), line 1 of Algorithm 1.
        block_n: B_c = ⌈M / 4d⌉.
    """

    on_chip: int
    naive: int
    flash: float
    lower: float | None
    applies: bool
    block_m: int
    block_n: int

    def block_sparse(self, length: int, head_dim: int, density: float) -> float:
        """Return Nd + N²d²s / M, Proposition 4 of the paper, for the share ``density`` of tiles that are not zero."""
        return length * head_dim + self.flash * density


def paper_block_sizes(on_chip: int, head_dim: int) -> tuple[int, int]:
    """Return B_r and B_c of Algorithm 1, line 1 (arXiv 2205.14135).

    B_r is at most d so that a tile of scores, B_r × B_c, takes about M / 4 too.

    Args:
        on_chip: M, elements of on-chip memory.
        head_dim: d.

    Raises:
        InvalidShape: not even one row of Q, K, V and O fits.
    """
    if on_chip < head_dim:
        raise InvalidShape(
            f"{on_chip} elements of on-chip memory hold no row of head dim {head_dim}; M must be at least d"
        )
    columns = -(-on_chip // (4 * head_dim))
    return min(columns, head_dim), columns


def bounds(shape: Shape, on_chip: int) -> Bounds:
    """Return the orders of growth for a call.

    Args:
        shape: the call; N² stands for seqlen_q · seqlen_k, and N for the longer one.
        on_chip: M, elements.

    Raises:
        InvalidShape: not even one row of Q, K, V and O fits.
    """
    block_m, block_n = paper_block_sizes(on_chip, shape.head_dim)
    length, d = max(shape.seqlen_q, shape.seqlen_k), shape.head_dim
    scores = shape.seqlen_q * shape.seqlen_k
    flash = scores * d * d / on_chip
    lower = max(flash, float(length * d)) if on_chip >= d * d else None
    return Bounds(
        on_chip, length * d + scores, flash, lower, d <= on_chip <= length * d, block_m, block_n
    )  # fmt: skip
