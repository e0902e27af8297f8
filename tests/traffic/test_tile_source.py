"""The tile of a call out of what a checkout launches."""

from __future__ import annotations

import pytest

from tests.releases import release
from tracer.dispatch import Call, Device, Launch, Prediction, Refusal, device
from tracer.model import Location
from tracer.traffic import CheckoutTiles, NoTile, Shape, rows, tile_of

PLACE = Location("launch.h", 12)
GPU = Device("a GPU", 8, 0, 108, 164 * 1024, 163 * 1024)


def prediction(
    traits: dict[str, int], *, grid: tuple[int, int, int] = (8, 1, 16), num_splits: int | None = 1,
    error: Refusal | None = None,
) -> Prediction:  # fmt: skip
    launch = Launch(
        "walk", "void walk<>()", "_Z4walkv", (), tuple(traits.items()), grid, (128, 1, 1), 65536, PLACE, PLACE
    )
    helper = Launch("prepare", "prepare()", "_Z7preparev", (), (), grid, (64, 1, 1), 0, PLACE, PLACE)
    launches = () if error else (helper, launch)
    return Prediction(Call("fwd", {}), GPU, error, num_splits, launches)


def test_the_first_launch_that_has_a_tile_gives_it() -> None:
    tile = tile_of(prediction({"kBlockM": 64, "kBlockN": 256}, num_splits=2), Shape(512, 512, 64, heads=16))
    assert (tile.block_m, tile.block_n, tile.warps, tile.shared_memory_bytes) == (64, 256, 4, 65536)
    assert (tile.num_splits, tile.packed, tile.source) == (2, 1, "walk at launch.h:12")


def test_packed_query_heads_show_in_the_grid() -> None:
    """One query row of 32 heads on 8: a grid of 4 splits and 8 heads has 4 query heads side by side."""
    shape = Shape(1, 8192, 128, heads=32, heads_k=8)
    found = tile_of(prediction({"kBlockM": 64, "kBlockN": 128}, grid=(1, 4, 8), num_splits=4), shape)
    assert (found.packed, found.num_splits) == (4, 4)
    assert tile_of(prediction({"kBlockM": 64, "kBlockN": 128}, grid=(1, 1, 32)), shape).packed == 1


def test_a_call_without_a_tile_is_refused() -> None:
    with pytest.raises(NoTile, match="launch.h:12: head dim"):
        tile_of(prediction({}, error=Refusal("head dim too large", PLACE)), Shape(64, 64, 64))
    with pytest.raises(NoTile, match="prepare, walk"):
        tile_of(prediction({"kHeadDim": 64}), Shape(64, 64, 64))


def test_the_tile_of_a_release() -> None:
    """Tiles from the notes on dispatch: 64 × 256 in two splits, and for head dim 128 on an A100 128 × 64."""
    from tracer.checkout import open_checkout
    from tracer.graph import Program

    program = Program(open_checkout(str(release("2.8.3"))))
    shapes = [Shape(512, 512, 64, heads=12), Shape(4096, 4096, 128, heads=32)]
    with CheckoutTiles(program, device("A100")) as tiles:
        found = rows(shapes, algorithms=["fa2-forward"], tile_source=tiles, gpu=device("A100"))
    program.close()
    assert [row.algorithm for row in found] == ["fa2-split-forward", "fa2-forward"]
    sizes = [(row.tile.block_m, row.tile.block_n, row.tile.num_splits) for row in found if row.tile]
    assert sizes == [(64, 256, 2), (128, 64, 1)]
    assert all(row.dram_bytes == row.compulsory_bytes for row in found)
