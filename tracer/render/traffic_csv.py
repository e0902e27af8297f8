"""The answer of ``flashtracer io`` as CSV: a line per call, algorithm and tile, numbers without units."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from tracer.traffic import IoRow

COLUMNS = (
    "algorithm", "convention", "batch", "heads", "heads_k", "seqlen_q", "seqlen_k", "head_dim", "dtype", "causal",
    "window_left", "window_right", "block_m", "block_n", "num_splits", "compulsory_bytes", "tile_bytes", "dram_bytes",
    "flops", "flops_per_byte", "saved_bytes", "workspace_bytes", "gpu", "l2_bytes",
)  # fmt: skip


def rows(found: Sequence[IoRow]) -> str:
    """Return the table; a field without a value is empty. Bytes are bytes, ``flops_per_byte`` counts DRAM bytes."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in found:
        shape, tile = row.shape, row.tile
        sizes = (tile.block_m, tile.block_n, tile.num_splits) if tile else ("", "", "")
        writer.writerow(
            [
                row.algorithm, row.convention, shape.batch, shape.heads, shape.heads_k, shape.seqlen_q, shape.seqlen_k,
                shape.head_dim, shape.dtype, int(shape.causal), *shape.window, *sizes, row.compulsory_bytes,
                row.tile_bytes, _or_empty(row.dram_bytes), row.flops, f"{row.intensity:.6g}", row.saved_bytes,
                row.workspace_bytes, row.gpu, _or_empty(row.l2_bytes),
            ]
        )  # fmt: skip
    return text.getvalue()


def _or_empty(value: int | None) -> object:
    return "" if value is None else value
