"""FlashAttention-2 (Dao 2023, arXiv 2307.08691): outer loop over Q, inner loop over K and V, and its backward pass.

A block keeps its O_i in registers and writes it once, with LSE_i = m_i + log l_i. Many texts print this loop and call
it FlashAttention-1; that one is :mod:`tracer.traffic.flash1`.
"""

from __future__ import annotations

from tracer.traffic.counting import Convention
from tracer.traffic.counts import Access, Kind, Reuse
from tracer.traffic.flash1 import reached_rows
from tracer.traffic.shapes import FLOAT_BYTES, Shape, Tile, key_tiles, query_tiles, rows_in


def forward(shape: Shape, tile: Tile, convention: Convention) -> list[Access]:
    """Count Algorithm 1 of section 3.1. Without a mask: 2Nd + 2 T_r Nd elements and N row statistics per head.

    Line 4 reads Q_i, line 7 K_j and V_j, lines 14 and 15 write O_i and LSE_i. T_r = ⌈N / B_r⌉.
    """
    walked, reached = _key_rows(shape, tile, 1)[:2]
    rows, width = shape.heads * shape.rows_q, shape.element_bytes
    d = shape.head_dim
    found = [
        Access("attention", "Q", Kind.INPUT, Reuse.ONCE, width, read=rows * d, distinct_read=rows * d),
        *_walked_keys(shape, "attention", walked, reached),
        *_output(shape, "attention", convention),
    ]
    return [access for access in found if access.width]


def split_forward(shape: Shape, tile: Tile, convention: Convention) -> list[Access]:
    """Count the forward pass with the keys split into ``tile.num_splits`` parts, and the launch that combines them.

    Each part is worked on by blocks of its own, which write an O and an LSE of their own in fp32; the second launch
    weighs them by exp(LSE_s − LSE): section 2.3.1's rescaling once more. A part in which a row tile sees nothing reads
    nothing, but writes. With one part it is the plain forward pass.
    """
    if tile.num_splits == 1:
        return forward(shape, tile, convention)
    walked, reached, queries = _key_rows(shape, tile, tile.num_splits)
    rows, width, d = shape.heads * shape.rows_q, shape.element_bytes, shape.head_dim
    parts = rows * tile.num_splits
    found = [
        Access(
            "attention", "Q", Kind.INPUT, Reuse.OWN, width,
            read=shape.heads * queries[0] * d, distinct_read=shape.heads * queries[1] * d,
        ),
        *_walked_keys(shape, "attention", walked, reached),
    ]  # fmt: skip
    for launch in ("attention", "combine"):
        for name, elements in (("O_parts", parts * d), ("LSE_parts", parts)):
            count = (elements, 0) if launch == "combine" else (0, elements)
            found.append(Access(launch, name, Kind.WORKSPACE, Reuse.PARTIAL, FLOAT_BYTES, *count, *count))
    found += _output(shape, "combine", convention)
    return [access for access in found if access.width]


def backward(shape: Shape, tile: Tile, convention: Convention) -> list[Access]:
    """Count Algorithm 2 of section 3.1. Without a mask: per head, the launch for D reads O and dO, 2Nd, and writes N;
    the other reads K and V, 2Nd, then T_c times Q, dO and dQ, 3Nd, and LSE and D, 2N, and writes dQ T_c times and dK
    and dV once, 2Nd.

    Line 4 prepares D; line 6 reads K_j and V_j, line 8 Q_i, dO_i, dQ_i, LSE_i and D_i; the loop's body has no use for
    O_i. dQ_i is summed up in memory, by atomic additions where blocks run at the same time: each reads and writes.
    """  # noqa: D205
    walked = reached = 0
    for seqlen_q, seqlen_k, count in shape.sequences:
        ranges = query_tiles(shape, seqlen_q, seqlen_k, tile)
        walked += count * sum(rows_in(pair, tile.block_m, seqlen_q) for pair in ranges)
        reached += count * reached_rows(ranges, tile.block_m, seqlen_q)
    d, heads, width = shape.head_dim, shape.heads, shape.element_bytes
    rows, statistic = heads * shape.rows_q, convention.vector_bytes
    walked, reached = heads * walked, heads * reached

    found = [
        Access("D", "O", Kind.INPUT, Reuse.ONCE, width, read=rows * d, distinct_read=rows * d),
        Access("D", "dO", Kind.INPUT, Reuse.REWALKED, width, read=rows * d, distinct_read=rows * d),
        Access("D", "D", Kind.OUTPUT, Reuse.SUM, statistic, written=rows, distinct_written=rows),
    ]
    for name in ("K", "V"):
        read, distinct = heads * shape.rows_k * d, shape.heads_k * shape.rows_k * d
        found.append(Access("gradients", name, Kind.INPUT, Reuse.OWN, width, read=read, distinct_read=distinct))
    for name, columns, bytes_ in (("Q", d, width), ("dO", d, width), ("LSE", 1, statistic)):
        found.append(
            Access(
                "gradients", name, Kind.INPUT, Reuse.REWALKED if name == "dO" else Reuse.WALKED, bytes_,
                read=walked * columns, distinct_read=reached * columns,
            )
        )  # fmt: skip
    found.append(
        Access("gradients", "D", Kind.OUTPUT, Reuse.SUM, statistic, read=walked, distinct_read=reached)
    )  # fmt: skip
    found += _query_gradient(shape, convention, walked, reached)
    found += _key_gradients(shape, convention)
    return [access for access in found if access.width]


def saved_bytes(shape: Shape) -> int:
    """Return what the forward pass keeps for the backward pass: Q, K, V, O and LSE. It grows with the length only."""
    rows = 2 * shape.heads * shape.rows_q + 2 * shape.heads_k * shape.rows_k
    return rows * shape.head_dim * shape.element_bytes + shape.heads * shape.rows_q * FLOAT_BYTES


def split_ranges(ranges: list[tuple[int, int]], tiles: int, num_splits: int) -> list[list[tuple[int, int]]]:
    """Cut each row tile's range of column tiles at the borders of the splits, which all have ⌈tiles / splits⌉ tiles.

    Args:
        ranges: of each row tile, from ``key_tiles``.
        tiles: column tiles of the whole sequence.
        num_splits: how many parts.

    Returns:
        By split, then by row tile; (0, 0) where a row tile sees nothing of a part.
    """  # fmt: skip
    width = -(-tiles // num_splits)
    found = []
    for split in range(num_splits):
        low, high = split * width, (split + 1) * width
        cut = [(max(first, low), min(end, high)) for first, end in ranges]
        found.append([pair if pair[0] < pair[1] else (0, 0) for pair in cut])
    return found


def _key_rows(shape: Shape, tile: Tile, num_splits: int) -> tuple[int, int, tuple[int, int]]:
    """Return key rows walked and those that differ, then query rows read and those that differ, of one head."""
    walked = reached = queries = different = 0
    for seqlen_q, seqlen_k, count in shape.sequences:
        ranges = key_tiles(shape, seqlen_q, seqlen_k, tile)
        walked += count * sum(rows_in(pair, tile.block_n, seqlen_k) for pair in ranges)
        reached += count * reached_rows(ranges, tile.block_n, seqlen_k)
        if num_splits > 1:
            own = [min(tile.block_m, seqlen_q - i * tile.block_m) for i in range(len(ranges))]
            parts = split_ranges(ranges, -(-seqlen_k // tile.block_n), num_splits)
            queries += count * sum(
                rows for part in parts for rows, pair in zip(own, part, strict=True) if pair[0] < pair[1]
            )
            different += count * sum(rows for rows, pair in zip(own, ranges, strict=True) if pair[0] < pair[1])
    return walked, reached, (queries, different)


def _walked_keys(shape: Shape, launch: str, walked: int, reached: int) -> list[Access]:
    d = shape.head_dim
    return [
        Access(
            launch, name, Kind.INPUT, Reuse.WALKED, shape.element_bytes,
            read=shape.heads * walked * d, distinct_read=shape.heads_k * reached * d,
        )
        for name in ("K", "V")
    ]  # fmt: skip


def _output(shape: Shape, launch: str, convention: Convention) -> list[Access]:
    rows = shape.heads * shape.rows_q
    sizes = (("O", rows * shape.head_dim, shape.element_bytes), ("LSE", rows, convention.vector_bytes))
    return [
        Access(launch, name, Kind.OUTPUT, Reuse.ONCE, width, written=count, distinct_written=count)
        for name, count, width in sizes
    ]


def _query_gradient(shape: Shape, convention: Convention, walked: int, reached: int) -> list[Access]:
    d, rows = shape.head_dim, shape.heads * shape.rows_q
    width = convention.accumulator_bytes or shape.element_bytes
    read = (walked - (0 if convention.first_read else reached)) * d
    seen = reached * d if convention.first_read else 0
    if not convention.helpers:
        return [
            Access(
                "gradients", "dQ", Kind.OUTPUT, Reuse.SUM, width,
                read=read, written=walked * d, distinct_read=seen, distinct_written=reached * d,
            )
        ]  # fmt: skip
    every = rows * d
    return [
        Access("D", "dQ_sum", Kind.WORKSPACE, Reuse.SUM, width, written=every, distinct_written=every),
        Access(
            "gradients", "dQ_sum", Kind.WORKSPACE, Reuse.SUM, width,
            read=read, written=walked * d, distinct_read=seen, distinct_written=reached * d,
        ),
        Access("convert", "dQ_sum", Kind.WORKSPACE, Reuse.SUM, width, read=every, distinct_read=every),
        Access(
            "convert", "dQ", Kind.OUTPUT, Reuse.ONCE, shape.element_bytes, written=every, distinct_written=every
        ),
    ]  # fmt: skip


def _key_gradients(shape: Shape, convention: Convention) -> list[Access]:
    per_query_head = shape.heads * shape.rows_k * shape.head_dim
    per_key_head = shape.heads_k * shape.rows_k * shape.head_dim
    width = shape.element_bytes
    found = []
    for name in ("dK", "dV"):
        if not convention.helpers or shape.heads == shape.heads_k:
            count = (0, per_query_head, 0, per_query_head)
            found.append(Access("gradients", name, Kind.OUTPUT, Reuse.ONCE, width, *count))
            continue
        heads = f"{name}_heads"
        written, read = (0, per_query_head, 0, per_query_head), (per_query_head, 0, per_query_head, 0)
        found.append(Access("gradients", heads, Kind.WORKSPACE, Reuse.PARTIAL, width, *written))
        found.append(Access("sum heads", heads, Kind.WORKSPACE, Reuse.PARTIAL, width, *read))
        count = (0, per_key_head, 0, per_key_head)
        found.append(Access("sum heads", name, Kind.OUTPUT, Reuse.ONCE, width, *count))
    return found
