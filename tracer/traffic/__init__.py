"""Bytes: what an attention algorithm must move, what its kernels request, and what reaches DRAM.

Three levels that are never mixed. Compulsory bytes: each input once, each result once. Tile traffic: what the kernels
request, tile by tile. DRAM bytes: what the L2 cache lets through. Nothing but Python's own library is needed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tracer.traffic.answer import (
        DEFAULT_ALGORITHMS,
        Algorithm,
        Gpu,
        IoRow,
        TileSource,
        algorithm,
        algorithms,
        blocks_at_once,
        dram_bytes,
        rows,
    )
    from tracer.traffic.comparison import Comparison, compare
    from tracer.traffic.complexity import Bounds, bounds, paper_block_sizes
    from tracer.traffic.counting import Convention, convention, conventions
    from tracer.traffic.counts import Kind, LaunchBytes, TensorBytes
    from tracer.traffic.measured import Measurement, MeasurementError, read_measurements
    from tracer.traffic.ncu import METRICS, ncu_command
    from tracer.traffic.paper_figure import Figure2Row, figure2
    from tracer.traffic.shapes import InvalidShape, Shape, Tile
    from tracer.traffic.tile_source import CheckoutTiles, NoTile, tile_of

__all__ = [
    "DEFAULT_ALGORITHMS",
    "METRICS",
    "Algorithm",
    "Bounds",
    "CheckoutTiles",
    "Comparison",
    "Convention",
    "Figure2Row",
    "Gpu",
    "InvalidShape",
    "IoRow",
    "Kind",
    "LaunchBytes",
    "Measurement",
    "MeasurementError",
    "NoTile",
    "Shape",
    "TensorBytes",
    "Tile",
    "TileSource",
    "algorithm",
    "algorithms",
    "blocks_at_once",
    "bounds",
    "compare",
    "convention",
    "conventions",
    "dram_bytes",
    "ratio_limit",
    "figure2",
    "ncu_command",
    "paper_block_sizes",
    "read_measurements",
    "rows",
    "tile_of",
]

_ROOMS = {
    "Algorithm": "answer",
    "DEFAULT_ALGORITHMS": "answer",
    "Gpu": "answer",
    "IoRow": "answer",
    "TileSource": "answer",
    "algorithm": "answer",
    "algorithms": "answer",
    "blocks_at_once": "answer",
    "dram_bytes": "answer",
    "ratio_limit": "answer",
    "rows": "answer",
    "Bounds": "complexity",
    "bounds": "complexity",
    "paper_block_sizes": "complexity",
    "Comparison": "comparison",
    "compare": "comparison",
    "Convention": "counting",
    "convention": "counting",
    "conventions": "counting",
    "Kind": "counts",
    "LaunchBytes": "counts",
    "TensorBytes": "counts",
    "Figure2Row": "paper_figure",
    "figure2": "paper_figure",
    "Measurement": "measured",
    "MeasurementError": "measured",
    "read_measurements": "measured",
    "METRICS": "ncu",
    "ncu_command": "ncu",
    "InvalidShape": "shapes",
    "Shape": "shapes",
    "Tile": "shapes",
    "CheckoutTiles": "tile_source",
    "NoTile": "tile_source",
    "tile_of": "tile_source",
}


def __getattr__(name: str) -> Any:
    """Load a name from its module when it is first used."""
    room = _ROOMS.get(name)
    if room is None:
        raise AttributeError(f"module 'tracer.traffic' has no attribute '{name}'")
    return getattr(importlib.import_module(f"tracer.traffic.{room}"), name)
