"""The model against the reference kernels' own counters: what is counted on paper is what a running kernel asks for.

The kernels run on the CPU, where every access to memory is counted. Needs a C++ compiler.
"""

from __future__ import annotations

from typing import Any

import pytest

from tracer.traffic import Shape, Tile, rows

refkernel = pytest.importorskip("refkernel")

try:
    from refkernel.build import find_cxx

    find_cxx()
except refkernel.RefkernelError as error:
    pytest.skip(str(error), allow_module_level=True)


KERNELS = {
    "fa1-forward": refkernel.FORWARD_1,
    "fa2-forward": refkernel.FORWARD_2,
    "fa2-backward": refkernel.BACKWARD_2,
}

SHAPES: dict[str, Any] = {
    "whole tiles": Shape(128, 128, 64),
    "ragged": Shape(113, 203, 40, heads=2),
    "one row": Shape(1, 130, 64, causal=True),
    "causal": Shape(200, 200, 64, batch=2, causal=True),
    "causal, more keys": Shape(70, 190, 64, causal=True),
    "causal, more queries": Shape(190, 70, 64, causal=True),
    "shared key heads": Shape(90, 110, 64, batch=2, heads=6, heads_k=2),
    "window": Shape(180, 190, 64, window=(70, 20)),
    "window, left only": Shape(150, 400, 64, window=(30, -1)),
    "window and causal": Shape(300, 120, 64, causal=True, window=(10, -1)),
    "lengths": Shape(0, 0, 64, heads=2, lengths=((70, 130), (0, 40), (129, 64), (1, 0)), causal=True),
}

TILES = (Tile(32, 64), Tile(64, 32), Tile(64, 64), Tile(128, 64))


def counted(algorithm: str, shape: Shape, tile: Tile) -> dict[str, tuple[int, int]]:
    """Run the kernel; bytes loaded and stored by tensor, without the arrays of lengths."""
    lengths = {}
    if shape.lengths:
        starts_q, starts_k = [0], [0]
        for q, k in shape.lengths:
            starts_q.append(starts_q[-1] + q)
            starts_k.append(starts_k[-1] + k)
        lengths = {"cu_seqlens_q": starts_q, "cu_seqlens_k": starts_k}
    found = refkernel.count_bytes(
        KERNELS[algorithm],
        seqlen_q=shape.seqlen_q,
        seqlen_k=shape.seqlen_k,
        batch=shape.batch,
        heads_q=shape.heads,
        heads_k=shape.heads_k,
        head_dim=shape.head_dim,
        dtype=shape.dtype,
        block_m=tile.block_m,
        block_n=tile.block_n,
        causal=shape.causal,
        window_size=shape.window,
        **lengths,
    )
    return {
        name: (bytes_.loaded, bytes_.stored)
        for name, bytes_ in found.items()
        if not name.startswith("cu_seqlens") and bytes_.loaded + bytes_.stored
    }


def modelled(algorithm: str, shape: Shape, tile: Tile) -> dict[str, tuple[int, int]]:
    """Count by the model, as the reference kernels do things."""
    (row,) = rows([shape], algorithms=[algorithm], tiles=[tile], convention_name="kernel")
    return {tensor.tensor: (tensor.read_bytes, tensor.written_bytes) for tensor in row.tensors if tensor.tile_bytes}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("algorithm", KERNELS)
def test_model_equals_counters(algorithm: str, name: str) -> None:
    for tile in TILES if name in ("ragged", "causal") else TILES[2:3]:
        assert modelled(algorithm, SHAPES[name], tile) == counted(algorithm, SHAPES[name], tile), (name, tile)


@pytest.mark.parametrize("algorithm", KERNELS)
def test_model_equals_counters_in_single_precision(algorithm: str) -> None:
    shape = Shape(100, 150, 64, heads=4, heads_k=2, dtype="fp32", causal=True)
    assert modelled(algorithm, shape, Tile(64, 64)) == counted(algorithm, shape, Tile(64, 64))
