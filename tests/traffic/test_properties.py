"""What must hold for every call: the bounds of the cache simulation, monotony, and the claims of the papers."""

from __future__ import annotations

import math
from typing import Any

import pytest

hypothesis = pytest.importorskip("hypothesis")
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from tracer.traffic import (  # noqa: E402
    IoRow,
    Shape,
    Tile,
    algorithms,
    bounds,
    conventions,
    dram_bytes,
    paper_block_sizes,
    rows,
    simulate,  # noqa: E402
)

settings.register_profile("traffic", derandomize=True, deadline=None, database=None)
settings.load_profile("traffic")

NAMES = [one.name for one in algorithms()]
TILED = [one.name for one in algorithms() if one.tiled]
CONVENTIONS = [one.name for one in conventions()]

lengths = st.integers(1, 300)


@st.composite
def shapes(draw: Any) -> Shape:
    heads_k = draw(st.integers(1, 3))
    pairs: tuple[tuple[int, int], ...] = ()
    if draw(st.booleans()):
        pairs = tuple(draw(st.lists(st.tuples(lengths, lengths), min_size=1, max_size=3)))
    return Shape(
        draw(lengths),
        draw(lengths),
        draw(st.sampled_from([8, 64, 72])),
        batch=draw(st.integers(1, 3)),
        heads=heads_k * draw(st.integers(1, 3)),
        heads_k=heads_k,
        dtype=draw(st.sampled_from(["fp16", "fp32"])),
        causal=draw(st.booleans()),
        window=(draw(st.integers(-1, 80)), draw(st.integers(-1, 80))),
        lengths=pairs,
    )


tiles = st.builds(Tile, st.sampled_from([16, 32, 64]), st.sampled_from([16, 32, 64]), num_splits=st.integers(1, 4))
slots = st.integers(1, 40)


def counted(shape: Shape, name: str, tile: Tile, how: str) -> IoRow:
    return rows([shape], algorithms=[name], tiles=[tile], convention_name=how)[0]


@settings(max_examples=300)
@given(shapes(), tiles, st.sampled_from(NAMES), st.sampled_from(CONVENTIONS), slots)
def test_an_infinite_cache_leaves_the_compulsory_bytes(
    shape: Shape, tile: Tile, name: str, how: str, at_once: int
) -> None:
    found = dram_bytes(shape, name, tile, l2_bytes=math.inf, slots=at_once, convention_name=how)
    assert found == counted(shape, name, tile, how).compulsory_bytes


@settings(max_examples=300)
@given(shapes(), tiles, st.sampled_from(NAMES), st.sampled_from(CONVENTIONS), slots)
def test_no_cache_lets_all_tile_traffic_through(shape: Shape, tile: Tile, name: str, how: str, at_once: int) -> None:
    found = dram_bytes(shape, name, tile, l2_bytes=0, slots=at_once, convention_name=how)
    assert found == counted(shape, name, tile, how).tile_bytes


@settings(max_examples=200)
@given(shapes(), tiles, st.sampled_from(NAMES), st.sampled_from(CONVENTIONS), slots)
def test_a_larger_cache_never_lets_more_through(shape: Shape, tile: Tile, name: str, how: str, at_once: int) -> None:
    sizes = [0, 3_000, 10_000, 40_000, 150_000, 600_000, 3_000_000, math.inf]
    found = [dram_bytes(shape, name, tile, l2_bytes=size, slots=at_once, convention_name=how) for size in sizes]
    assert found == sorted(found, reverse=True)
    row = counted(shape, name, tile, how)
    assert row.compulsory_bytes <= found[-1] and found[0] <= row.tile_bytes


@settings(max_examples=300)
@given(shapes(), tiles, st.sampled_from(TILED), st.sampled_from(CONVENTIONS), slots)
def test_a_simulation_in_large_pieces_keeps_the_bounds(
    shape: Shape, tile: Tile, name: str, how: str, at_once: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulate, "BUDGET", 20)
        patch.setattr(simulate, "_MOST_BLOCKS", 6)
        patch.setattr(simulate, "_FEWEST_PIECES", 2)
        patch.setattr(simulate, "_FEWEST_STAGES", 2)
        sizes = [0, 3_000, 10_000, 40_000, 150_000, 600_000, math.inf]
        found = [dram_bytes(shape, name, tile, l2_bytes=size, slots=at_once, convention_name=how) for size in sizes]
    row = counted(shape, name, tile, how)
    assert found == sorted(found, reverse=True)
    assert (found[0], found[-1]) == (row.tile_bytes, row.compulsory_bytes)


@settings(max_examples=200)
@given(shapes(), tiles, st.sampled_from(TILED), st.sampled_from(CONVENTIONS))
def test_a_mask_never_adds_traffic(shape: Shape, tile: Tile, name: str, how: str) -> None:
    masked = counted(shape, name, tile, how)
    open_ = Shape(
        shape.seqlen_q, shape.seqlen_k, shape.head_dim, shape.batch, shape.heads, shape.heads_k, shape.dtype,
        lengths=shape.lengths,
    )  # fmt: skip
    assert masked.tile_bytes <= counted(open_, name, tile, how).tile_bytes


@settings(max_examples=200)
@given(shapes(), tiles, st.sampled_from(TILED), st.sampled_from(CONVENTIONS))
def test_heads_and_sequences_multiply(shape: Shape, tile: Tile, name: str, how: str) -> None:
    more = Shape(
        shape.seqlen_q, shape.seqlen_k, shape.head_dim, 2 * shape.batch, 3 * shape.heads, 3 * shape.heads_k,
        shape.dtype, shape.causal, shape.window, 2 * shape.lengths,
    )  # fmt: skip
    one, six = counted(shape, name, tile, how), counted(more, name, tile, how)
    assert six.tile_bytes == 6 * one.tile_bytes
    assert six.compulsory_bytes == 6 * one.compulsory_bytes
    assert six.flops == 6 * one.flops


@settings(max_examples=200)
@given(shapes(), tiles)
def test_visited_tiles_are_those_with_a_visible_score(shape: Shape, tile: Tile) -> None:
    """Looks at scores one by one: a row tile reads a column tile if one of its rows sees one of its columns."""
    left, right = shape.limits()
    row = counted(shape, "fa2-forward", Tile(tile.block_m, tile.block_n), "kernel")
    expected = visible = 0
    for seqlen_q, seqlen_k in shape.lengths or ((shape.seqlen_q, shape.seqlen_k),) * shape.batch:
        shift = seqlen_k - seqlen_q
        for i in range(0, seqlen_q, tile.block_m):
            seen = set()
            for r in range(i, min(i + tile.block_m, seqlen_q)):
                first = 0 if left is None else max(0, r + shift - left)
                end = seqlen_k if right is None else min(seqlen_k, r + shift + right + 1)
                visible += max(0, end - first)
                seen.update(range(first // tile.block_n, -(-end // tile.block_n)) if first < end else ())
            expected += sum(min(tile.block_n, seqlen_k - j * tile.block_n) for j in seen)
    (keys,) = [tensor for tensor in row.tensors if tensor.tensor == "K"]
    walked = keys.read_bytes // (shape.heads * shape.head_dim * shape.element_bytes)
    # The last row tile is taken as whole, as kernels do: rows beyond the sequence may bring in more columns.
    ragged = any(q % tile.block_m for q, _ in shape.lengths or ((shape.seqlen_q, 0),))
    assert walked >= expected if ragged and right is not None else walked == expected
    assert shape.visible_scores == visible * shape.heads


@settings(max_examples=200)
@given(st.integers(1, 5), st.integers(3, 256), st.integers(0, 8))
def test_four_times_the_memory_quarters_the_first_algorithms_traffic(factor: int, d: int, power: int) -> None:
    """Theorem 2 of arXiv 2205.14135: N²d² / M. Within 15 % where K and V are many tiles even of the larger size."""
    on_chip = 4 * d * 2**power
    length = 64 * factor * 4 * 2**power
    traffic = []
    for size in (on_chip, 4 * on_chip):
        block_m, block_n = paper_block_sizes(size, d)
        traffic.append(counted(Shape(length, length, d), "fa1-forward", Tile(block_m, block_n), "algorithm").elements)
    assert 4 * 0.85 <= traffic[0] / traffic[1] <= 4 * 1.15


@settings(max_examples=300)
@given(st.integers(1, 3000), st.integers(1, 256), st.floats(0, 1))
def test_the_first_algorithms_traffic_keeps_both_bounds(length: int, d: int, where: float) -> None:
    """For d ≤ M ≤ Nd: between 2.4 and 17 + 20/d times N²d² / M.

    Below, T_c ≥ N / (M/4d + 1) ≥ 4N²d² / 5M / N and each of its steps moves at least 3Nd. Above, T_c ≤ 4Nd/M + 1, a
    step moves 3Nd + 4N, K and V 2Nd, and Nd ≤ N²d²/M.
    """
    on_chip = round(d * length**where)
    limits = bounds(Shape(length, length, d), on_chip)
    assert limits.applies
    row = counted(Shape(length, length, d), "fa1-forward", Tile(limits.block_m, limits.block_n), "algorithm")
    assert 2.4 * limits.flash <= row.elements <= (17 + 20 / d) * limits.flash
    if limits.lower is not None:
        assert row.elements >= limits.lower


@settings(max_examples=200)
@given(shapes(), tiles, st.sampled_from(CONVENTIONS))
def test_one_split_is_the_plain_forward_pass(shape: Shape, tile: Tile, how: str) -> None:
    alone = Tile(tile.block_m, tile.block_n)
    plain, split = (counted(shape, name, alone, how) for name in ("fa2-forward", "fa2-split-forward"))
    assert plain.tensors == split.tensors


@settings(max_examples=100)
@given(shapes(), tiles)
def test_splitting_reads_no_key_twice(shape: Shape, tile: Tile) -> None:
    alone = counted(shape, "fa2-forward", Tile(tile.block_m, tile.block_n), "algorithm")
    split = counted(shape, "fa2-split-forward", tile, "algorithm")
    for name in ("K", "V"):
        assert [t.read_bytes for t in alone.tensors if t.tensor == name] == [
            t.read_bytes for t in split.tensors if t.tensor == name
        ]
    assert split.compulsory_bytes <= alone.compulsory_bytes
