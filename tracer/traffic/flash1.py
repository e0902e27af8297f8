"""FlashAttention as first printed (Dao et al. 2022, arXiv 2205.14135): outer loop over K and V, inner loop over Q.

The sums O (forward) and dQ (backward) live in memory and are read and written at every step of the inner loop. Every
kernel of FlashAttention-2 and later has the loops exchanged: see :mod:`tracer.traffic.flash2`.
"""

from __future__ import annotations

from tracer.traffic.counting import Convention
from tracer.traffic.counts import Access, Kind, Reuse
from tracer.traffic.shapes import FLOAT_BYTES, Shape, Tile, query_tiles, rows_in


def forward(shape: Shape, tile: Tile, convention: Convention) -> list[Access]:
    """Count Algorithm 1. Without a mask: 2Nd + T_c (3Nd + 4N) elements per head, T_c = ⌈N / B_c⌉.

    Line 6 reads K_j and V_j, line 8 Q_i, O_i, l_i and m_i; lines 12 and 13 write O_i, l_i and m_i. Line 2, which sets
    O, l and m, counts where the convention says so.
    """
    walked, reached = _query_rows(shape, tile)
    d = shape.head_dim
    found = [
        *_keys_and_values(shape, "attention"),
        _walked(shape, "attention", "Q", walked * d, reached * d, shape.element_bytes),
    ]
    sums = (("O", d, convention.accumulator_bytes or shape.element_bytes), ("l", 1, convention.vector_bytes))
    for name, columns, width in (*sums, ("m", 1, convention.vector_bytes)):
        found.append(_sum(shape, "attention", name, columns, width, walked, reached, convention))
    return [access for access in found if access.width]


def backward(shape: Shape, tile: Tile, convention: Convention) -> list[Access]:
    """Count Algorithm 4. Without a mask: 4Nd + T_c (5Nd + 2N) elements per head.

    Line 7 reads K_j and V_j, line 10 Q_i, O_i, dO_i, dQ_i, l_i and m_i; line 21 writes dQ_i, line 24 dK_j and dV_j.
    """
    walked, reached = _query_rows(shape, tile)
    d, width = shape.head_dim, shape.element_bytes
    output_rows = reached if convention.output_once else walked
    found = [
        *_keys_and_values(shape, "gradients"),
        _walked(shape, "gradients", "Q", walked * d, reached * d, width),
        _walked(shape, "gradients", "O", output_rows * d, reached * d, width),
        _walked(shape, "gradients", "dO", walked * d, reached * d, width),
        _walked(shape, "gradients", "l", walked, reached, convention.vector_bytes),
        _walked(shape, "gradients", "m", walked, reached, convention.vector_bytes),
        _sum(shape, "gradients", "dQ", d, convention.accumulator_bytes or width, walked, reached, convention),
    ]
    gradient = shape.heads * shape.rows_k * d
    for name in ("dK", "dV"):
        found.append(
            Access(
                "gradients", name, Kind.OUTPUT, Reuse.ONCE, width, written=gradient, distinct_written=gradient
            )
        )  # fmt: skip
    return [access for access in found if access.width]


def saved_bytes(shape: Shape) -> int:
    """Return what the forward pass keeps for the backward pass: Q, K, V, O, l and m."""
    rows = 2 * shape.heads * shape.rows_q + 2 * shape.heads_k * shape.rows_k
    return rows * shape.head_dim * shape.element_bytes + 2 * shape.heads * shape.rows_q * FLOAT_BYTES


def reached_rows(ranges: list[tuple[int, int]], block: int, length: int) -> int:
    """Return how many rows lie in at least one of several ranges of tiles.

    The ranges of neighbouring blocks touch or overlap, since a window has no holes: what they cover is one piece.
    """
    filled = [pair for pair in ranges if pair[0] < pair[1]]
    if not filled:
        return 0
    return rows_in((min(first for first, _ in filled), max(end for _, end in filled)), block, length)


def _query_rows(shape: Shape, tile: Tile) -> tuple[int, int]:
    """Return rows of Q that the walks visit, and how many of them differ, of one head over all sequences."""
    walked = reached = 0
    for seqlen_q, seqlen_k, count in shape.sequences:
        ranges = query_tiles(shape, seqlen_q, seqlen_k, tile)
        walked += count * sum(rows_in(pair, tile.block_m, seqlen_q) for pair in ranges)
        reached += count * reached_rows(ranges, tile.block_m, seqlen_q)
    return walked, reached


def _keys_and_values(shape: Shape, launch: str) -> list[Access]:
    rows = shape.rows_k * shape.head_dim
    return [
        Access(
            launch, name, Kind.INPUT, Reuse.OWN, shape.element_bytes,
            read=shape.heads * rows, distinct_read=shape.heads_k * rows,
        )
        for name in ("K", "V")
    ]  # fmt: skip


def _walked(shape: Shape, launch: str, tensor: str, read: int, distinct: int, width: int) -> Access:
    return Access(
        launch, tensor, Kind.INPUT, Reuse.WALKED, width, read=shape.heads * read, distinct_read=shape.heads * distinct
    )


def _sum(
    shape: Shape, launch: str, tensor: str, columns: int, width: int, walked: int, reached: int, convention: Convention
) -> Access:
    rows = shape.rows_q if convention.initial_write else reached
    return Access(
        launch,
        tensor,
        Kind.OUTPUT,
        Reuse.SUM,
        width,
        read=shape.heads * columns * (walked - (0 if convention.first_read else reached)),
        written=shape.heads * columns * (walked + (shape.rows_q if convention.initial_write else 0)),
        distinct_read=0 if convention.initial_write or not convention.first_read else shape.heads * columns * reached,
        distinct_written=shape.heads * columns * rows,
    )
