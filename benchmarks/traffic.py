"""How long byte counts take: the L2 simulation of a long call, and a sweep. Run ``python -m benchmarks traffic``."""

from __future__ import annotations

import time

from tracer.dispatch import device
from tracer.traffic import Shape, Tile, algorithms, rows


def main() -> None:
    gpu = device("H100")
    print("L2 simulation, 16,384 tokens, 64 heads, d 128, seconds (asked for: less than 1)")
    for one in algorithms():
        for causal in (False, True):
            shape = Shape(16384, 16384, 128, heads=64, causal=causal)
            tiles = [Tile(128, 128), Tile(64, 64), Tile(32, 32)] if one.tiled else [Tile(128, 128)]
            for tile in tiles:
                start = time.perf_counter()
                (row,) = rows([shape], algorithms=[one.name], tiles=[tile], gpu=gpu)
                seconds = time.perf_counter() - start
                share = row.dram_bytes / row.tile_bytes if row.dram_bytes else 0.0
                mask = "causal" if causal else "no mask"
                which = f"{one.name:18} {tile.block_m:4} × {tile.block_n:<4} {mask:8}"
                print(f"  {which} {seconds:6.3f}   DRAM {share:.1%} of tile traffic")
    start = time.perf_counter()
    shapes = [Shape(2**power, 2**power, d, heads=16) for power in range(10, 15) for d in (64, 128)]
    found = rows(shapes, tiles=[Tile(n, n) for n in (32, 64, 128)])
    print(f"sweep of {len(found)} rows without a cache: {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
