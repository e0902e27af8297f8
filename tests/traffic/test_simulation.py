"""The cache simulation against a second one that is slow and plain: one access at a time, a list for the cache."""

from __future__ import annotations

import pytest

from tracer.traffic import Shape, Tile, dram_bytes
from tracer.traffic.cache import ReadCache, SumCache
from tracer.traffic.shapes import key_tiles


class PlainCache:
    """The most recently used names with their sizes, as many as fit."""

    def __init__(self, capacity: int) -> None:
        self.capacity, self.content, self.read_bytes = capacity, list[tuple[object, int]](), 0

    def read(self, name: object, size: int, counted: int) -> None:
        if (name, size) in self.content:
            self.content.remove((name, size))
        else:
            self.read_bytes += counted
        self.content.append((name, size))
        while sum(size for _, size in self.content) > self.capacity:
            self.content.pop(0)


def plain_forward(shape: Shape, tile: Tile, l2_bytes: int, slots: int) -> int:
    """Bytes of K and V that come from DRAM: row tiles fastest in the grid, the last column tile first."""
    cache, row = PlainCache(l2_bytes), shape.head_dim * shape.element_bytes
    grid = [
        (batch, head, list(reversed(range(*visited))), i)
        for head in range(shape.heads)
        for batch in range(shape.batch)
        for i, visited in enumerate(key_tiles(shape, shape.seqlen_q, shape.seqlen_k, tile))
    ]
    running: list[tuple[int, int, list[int], int]] = []
    while grid or running:
        while grid and len(running) < slots:
            block = grid.pop(0)
            cache.read(("Q", block[0], block[1], block[3]), tile.block_m * row, 0)
            if block[2]:
                running.append(block)
        for batch, head, left, _ in running:
            j = left.pop(0)
            rows = min(tile.block_n, shape.seqlen_k - j * tile.block_n)
            name = ("KV", batch, head // (shape.heads // shape.heads_k), j)
            cache.read(name, 2 * tile.block_n * row, 2 * rows * row)
        running = [block for block in running if block[2]]
    return cache.read_bytes


@pytest.mark.parametrize(
    "shape",
    [
        Shape(512, 512, 32, heads=3),
        Shape(512, 512, 32, heads=2, causal=True),
        Shape(384, 768, 32, heads=4, heads_k=2, batch=2, causal=True),
        Shape(640, 640, 32, window=(130, 60)),
    ],
)
@pytest.mark.parametrize("slots", [1, 3, 7, 100])
@pytest.mark.parametrize("kilobytes", [6, 10, 20, 34, 50, 200])
def test_forward_is_what_the_plain_simulation_says(shape: Shape, slots: int, kilobytes: int) -> None:
    """Sizes are whole tiles, so the shares of the model are exact, but for rounding to whole bytes."""
    tile = Tile(32, 32)
    once = shape.batch * shape.heads * shape.seqlen_q
    others = 2 * once * shape.head_dim * shape.element_bytes + 4 * once
    found = dram_bytes(shape, "fa2-forward", tile, l2_bytes=kilobytes * 1000, slots=slots)
    assert found - others == pytest.approx(plain_forward(shape, tile, kilobytes * 1000, slots), abs=2)


def test_what_was_used_last_stays() -> None:
    cache = ReadCache(20)
    for key in (1, 2, 1, 3, 1, 2):  # 2 is forgotten for 3, since 1 was used after it
        cache.touch("a", key, 10)
    assert (cache.requested["a"], cache.missed["a"]) == (6, 4)
    assert cache.again("a") == pytest.approx(1 / 3)


def test_a_tile_larger_than_the_cache_sweeps_it_empty() -> None:
    cache = ReadCache(20)
    for key, size in ((1, 10), (2, 30), (1, 10)):
        cache.touch("a", key, size)
    assert cache.missed["a"] == 3


def test_changed_sums_are_written_back_when_they_are_forgotten() -> None:
    sums = SumCache(20, 10, first_read=True)
    for key in (1, 2, 1, 3):
        sums.add(key)
    assert (sums.missed, sums.written_back) == (3, 1)  # 2, since 1 was used after it
    sums.add(1)
    assert (sums.missed, sums.written_back) == (3, 1)
    # Three tiles of results reach DRAM once each, which they must: of the two writes beyond, none did.
    assert sums.again(kept=True).written == pytest.approx((3 - 3) / 2)
    sums.add(2)
    assert (sums.missed, sums.written_back) == (4, 2)
    assert sums.again(kept=True).written == pytest.approx((4 - 3) / 3)


def test_zeros_that_were_never_changed_cost_no_write() -> None:
    sums = SumCache(10, 10, first_read=True)
    for key in (1, 2, 3):
        sums.fill(key, counted=False)
    sums.add(3)
    assert (sums.missed, sums.written_back, sums.reads) == (0, 0, 1)
