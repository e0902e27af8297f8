"""The answer of ``flashtracer io`` as plain data for JSON, in the shape that ``tracer/schemas/io.schema.json`` has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracer.traffic import Comparison, Figure2Row, IoRow, TensorBytes, convention

IO = "flashtracer/io/1"

Data = dict[str, Any]


def rows(found: Sequence[IoRow], measured: Sequence[Comparison] = (), figure2: Sequence[Figure2Row] = ()) -> Data:
    """Return the answer as ``flashtracer/io/1``.

    Args:
        found: the rows, at least one unless ``figure2`` is given.
        measured: a profile's kernels against the last row.
        figure2: counts of the paper's figure.
    """  # fmt: skip
    how = convention(found[0].convention if found else figure2[0].convention)
    return {
        "schema": IO,
        "convention": {"name": how.name, "meaning": how.meaning},
        "rows": [_row(row) for row in found],
        "measured": [_comparison(one) for one in measured],
        "figure2": [_figure2(one) for one in figure2],
    }


def _row(row: IoRow) -> Data:
    shape, tile = row.shape, row.tile
    return {
        "N": shape.seqlen_q,
        "d": shape.head_dim,
        "block_m": tile.block_m if tile else None,
        "block_n": tile.block_n if tile else None,
        "algorithm": row.algorithm,
        "convention": row.convention,
        "batch": shape.batch,
        "heads": shape.heads,
        "heads_k": shape.heads_k,
        "seqlen_q": shape.seqlen_q,
        "seqlen_k": shape.seqlen_k,
        "lengths": [list(pair) for pair in shape.lengths],
        "dtype": shape.dtype,
        "causal": shape.causal,
        "window": list(shape.window),
        "num_splits": tile.num_splits if tile else None,
        "warps": tile.warps if tile else None,
        "shared_memory_bytes": tile.shared_memory_bytes or None if tile else None,
        "tile_source": tile.source if tile else None,
        "per_tensor": {tensor.tensor: _tensor(tensor) for tensor in row.tensors},
        "per_launch": {
            launch.launch: {
                "compulsory_bytes": launch.compulsory_bytes,
                "tile_bytes": launch.tile_bytes,
                "dram_bytes": launch.dram_bytes,
            }
            for launch in row.launches
        },
        "compulsory_bytes": row.compulsory_bytes,
        "tile_bytes": row.tile_bytes,
        "dram_bytes": row.dram_bytes,
        "elements": row.elements,
        "flops": row.flops,
        "flops_per_byte": row.intensity,
        "ridge_flops_per_byte": row.ridge or None,
        "saved_bytes": row.saved_bytes,
        "workspace_bytes": row.workspace_bytes,
        "gpu": row.gpu or None,
        "l2_bytes": row.l2_bytes,
        "bounds": _bounds(row),
    }


def _tensor(tensor: TensorBytes) -> Data:
    return {
        "kind": tensor.kind.value,
        "element_bytes": tensor.element_bytes,
        "compulsory_bytes": tensor.compulsory_bytes,
        "read_bytes": tensor.read_bytes,
        "written_bytes": tensor.written_bytes,
        "dram_read_bytes": tensor.dram_read_bytes,
        "dram_written_bytes": tensor.dram_written_bytes,
    }


def _bounds(row: IoRow) -> Data | None:
    found = row.bounds
    if found is None:
        return None
    return {
        "on_chip_elements": found.on_chip,
        "naive_elements": found.naive,
        "flash_elements": found.flash,
        "lower_elements": found.lower,
        "theorem_applies": found.applies,
        "paper_block_m": found.block_m,
        "paper_block_n": found.block_n,
    }


def _comparison(one: Comparison) -> Data:
    return {
        "kernel": one.kernel,
        "times": one.times,
        "launch": one.launch.launch,
        "compulsory_bytes": one.launch.compulsory_bytes,
        "tile_bytes": one.launch.tile_bytes,
        "dram_bytes": one.launch.dram_bytes,
        "measured_dram_bytes": one.dram_bytes,
        "measured_l2_bytes": one.l2_bytes,
        "dram_ratio": one.dram_ratio,
        "l2_ratio": one.l2_ratio,
        "level": one.level,
        "verdict": one.verdict,
    }


def _figure2(one: Figure2Row) -> Data:
    return {
        "algorithms": list(one.algorithms),
        "block_n": one.block_n,
        "convention": one.convention,
        "gigabytes": one.gigabytes,
        "gigaflops": one.gigaflops,
        "consistent_with": one.consistent_with or None,
    }
