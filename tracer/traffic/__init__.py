"""Bytes: what an attention algorithm must move, what its kernels request, and what reaches DRAM.

Three levels that are never mixed. Compulsory bytes: each input once, each result once. Tile traffic: what the kernels
request, tile by tile. DRAM bytes: what the L2 cache lets through. The program imports nothing but Python.
"""

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
from tracer.traffic.bounds import Bounds, bounds, paper_block_sizes
from tracer.traffic.conventions import Convention, convention, conventions
from tracer.traffic.counts import Kind, LaunchBytes, TensorBytes
from tracer.traffic.shapes import InvalidShape, Shape, Tile
from tracer.traffic.tile_source import CheckoutTiles, NoTile, tile_of

__all__ = [
    "DEFAULT_ALGORITHMS",
    "Algorithm",
    "Bounds",
    "CheckoutTiles",
    "Convention",
    "Gpu",
    "InvalidShape",
    "IoRow",
    "Kind",
    "LaunchBytes",
    "NoTile",
    "Shape",
    "TensorBytes",
    "Tile",
    "TileSource",
    "algorithm",
    "algorithms",
    "blocks_at_once",
    "bounds",
    "convention",
    "conventions",
    "dram_bytes",
    "paper_block_sizes",
    "rows",
    "tile_of",
]
