"""Answers the question of ``flashtracer io``: how many bytes, on which level, for which call, algorithm and tile."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from tracer.errors import NameNotFound
from tracer.records import dataclass
from tracer.traffic import flash1, flash2, naive, simulate
from tracer.traffic.complexity import Bounds, bounds
from tracer.traffic.counting import Convention, convention
from tracer.traffic.counts import Access, Again, Kind, LaunchBytes, TensorBytes, per_launch, per_tensor
from tracer.traffic.shapes import (
    InvalidShape,
    Shape,
    Tile,
    as_launched,
    check_positive,
    check_tile,
    tile_bytes_on_chip,
)


class Gpu(Protocol):
    """What this room needs to know of a GPU; ``tracer.dispatch`` has such objects."""

    @property
    def name(self) -> str:
        """What people call it."""

    @property
    def sm_count(self) -> int:
        """Streaming multiprocessors."""

    @property
    def shared_memory_per_sm(self) -> int:
        """Bytes."""

    @property
    def shared_memory_per_block_optin(self) -> int:
        """Bytes that one thread block can have."""

    @property
    def l2_bytes(self) -> int:
        """Size of the L2 cache; 0 for not known."""

    @property
    def bandwidth_bytes_per_second(self) -> int:
        """Of the device memory; 0 for not known."""


@dataclass(frozen=True, slots=True)
class Algorithm:
    """An algorithm that can be asked for.

    Attributes:
        name: as typed.
        meaning: one sentence.
        backward: it is a backward pass.
        tiled: its counts depend on a tile.
        tensors_m: how many tensors have a tile of B_r rows in shared memory; sums stay in registers.
        tensors_n: how many have one of B_c rows.
        products: floating-point operations per score and element of the head dimension.
    """

    name: str
    meaning: str
    backward: bool
    tiled: bool
    tensors_m: int
    tensors_n: int
    products: int


_ALGORITHMS = (
    Algorithm("naive-forward", "S and P go through memory: Algorithm 0 of arXiv 2205.14135", False, False, 0, 0, 4),
    Algorithm("naive-backward", "P, dP and dS go through memory: Algorithm 3 of the same", True, False, 0, 0, 8),
    Algorithm("fa1-forward", "outer loop K/V, inner Q, O in memory: Algorithm 1 of the same", False, True, 1, 2, 4),
    Algorithm("fa1-backward", "outer loop K/V, inner Q, dQ in memory: Algorithm 4 of the same", True, True, 3, 2, 10),
    Algorithm("fa2-forward", "outer loop Q, inner K/V, O in registers: arXiv 2307.08691, Alg. 1", False, True, 1, 2, 4),
    Algorithm("fa2-backward", "outer loop K/V, inner Q, dQ added up in memory: its Algorithm 2", True, True, 2, 2, 10),
    Algorithm("fa2-split-forward", "fa2-forward with the keys split, and a combining launch", False, True, 1, 2, 4),
)

_COUNTS: dict[str, Callable[[Shape, Tile, Convention], list[Access]]] = {
    "fa1-forward": flash1.forward,
    "fa1-backward": flash1.backward,
    "fa2-forward": flash2.forward,
    "fa2-backward": flash2.backward,
    "fa2-split-forward": flash2.split_forward,
}

#: Registers of an SM, the most threads it holds, and the shared memory it keeps of every block: CUDA C++ Programming
#: Guide, "Compute Capabilities", alike for 8.0 to 12.0 up to the number of threads.
_REGISTERS, _THREADS, _RESERVED = 65536, 1536, 1024
#: Attention kernels are compiled to use nearly all registers that a thread can have, 255.
_REGISTERS_OF_A_THREAD = 256


def algorithms() -> tuple[Algorithm, ...]:
    """Return all algorithms, naive ones first."""
    return _ALGORITHMS


def algorithm(name: str) -> Algorithm:
    """Return an algorithm by its name.

    Raises:
        NameNotFound: there is none of that name.
    """
    for candidate in _ALGORITHMS:
        if candidate.name == name:
            return candidate
    raise NameNotFound("algorithm", name, "tracer.traffic", [known.name for known in _ALGORITHMS])


@dataclass(frozen=True, slots=True)
class IoRow:
    """The bytes of one call by one algorithm with one tile.

    Attributes:
        shape: the call.
        algorithm: by name.
        tile: None for naive attention.
        convention: how it was counted.
        tensors: by tensor.
        launches: by launch, each as if profiled by itself.
        compulsory_bytes: each input read once, each result written once.
        tile_bytes: what the kernels request; for naive attention, what its operators read and write.
        dram_bytes: expected at DRAM after the L2 cache; None without a GPU, and for one whose L2 size is not known.
        flops: floating-point operations of the matrix products, 2 per multiplication and addition; naive attention
            computes the masked scores too, the others do not.
        saved_bytes: what stays in memory between the forward and the backward pass.
        workspace_bytes: of tensors that exist only during the pass.
        gpu: its name; "" without one.
        l2_bytes: of the simulated cache; None without one.
        bandwidth_bytes_per_second: of the GPU's memory; 0 for not known.
        peak_flops_per_second: of its tensor cores with 16-bit operands, dense; 0 for not known.
        bounds: the papers' orders of growth; None where no size of on-chip memory was given.
    """

    shape: Shape
    algorithm: str
    tile: Tile | None
    convention: str
    tensors: tuple[TensorBytes, ...]
    launches: tuple[LaunchBytes, ...]
    compulsory_bytes: int
    tile_bytes: int
    dram_bytes: int | None
    flops: int
    saved_bytes: int
    workspace_bytes: int
    gpu: str = ""
    l2_bytes: int | None = None
    bandwidth_bytes_per_second: int = 0
    peak_flops_per_second: int = 0
    bounds: Bounds | None = None

    @property
    def elements(self) -> int:
        """Requested elements of any width: what the papers count."""
        return sum(tensor.tile_bytes // tensor.element_bytes for tensor in self.tensors)

    @property
    def intensity(self) -> float:
        """FLOP per byte at DRAM where that was simulated, else per byte of tile traffic."""
        return self.flops / (self.tile_bytes if self.dram_bytes is None else self.dram_bytes)

    @property
    def ridge(self) -> float:
        """FLOP per byte from which the GPU computes longer than it moves; 0 where its data are not known."""
        if not self.bandwidth_bytes_per_second:
            return 0.0
        return self.peak_flops_per_second / self.bandwidth_bytes_per_second

    @property
    def least_seconds(self) -> float:
        """Time that the DRAM bytes take at full bandwidth; 0 where it is not known."""
        if self.dram_bytes is None or not self.bandwidth_bytes_per_second:
            return 0.0
        return self.dram_bytes / self.bandwidth_bytes_per_second


def ratio_limit(row: IoRow, naive_row: IoRow) -> float | None:
    """Return what naive tile traffic by this row's tends to as the sequence grows; None where a mask is in the way.

    Both grow with the square of the length: naive attention by its passes over S and P, 4 N² elements and more with a
    mask or dropout, the exchanged loop by K and V, 2 N² d / B_r. So the ratio tends to a constant, 2 B_r / d at least.
    FlashAttention-1's loop reads and writes Q and O once per B_c columns, 3 N² d / B_c, with 2 row statistics each way.
    """
    shape, tile = row.shape, row.tile
    if tile is None or shape.causal or shape.window != (-1, -1) or not row.algorithm.endswith("forward"):
        return None
    quadratic = sum(tensor.tile_bytes for tensor in naive_row.tensors if tensor.kind is Kind.WORKSPACE)
    per_score = quadratic / shape.scores
    if row.algorithm.startswith("fa2"):
        return per_score * tile.block_m / (2 * shape.head_dim * shape.element_bytes)
    per_row = {tensor.tensor: tensor.element_bytes for tensor in row.tensors}
    vectors = 2 * (per_row.get("l", 0) + per_row.get("m", 0))
    step = shape.head_dim * (shape.element_bytes + 2 * per_row["O"]) + vectors
    return per_score * tile.block_n / step


#: Returns the tile that runs for a call by an algorithm.
TileSource = Callable[[Shape, str], Tile]

#: What a sweep compares where nothing else is asked for.
DEFAULT_ALGORITHMS = ("naive-forward", "fa2-forward")


def rows(
    shapes: Iterable[Shape],
    *,
    algorithms: Sequence[str] = DEFAULT_ALGORITHMS,
    tiles: Sequence[Tile] = (),
    tile_source: TileSource | None = None,
    convention_name: str = "algorithm",
    gpu: Gpu | None = None,
    l2_bytes: float | None = None,
    on_chip_bytes: int | None = None,
    shared_memory_limit: int = 0,
) -> tuple[IoRow, ...]:
    """Return a row for every call, algorithm and tile; one without a tile for naive attention.

    Args:
        shapes: the calls.
        algorithms: names, see ``algorithms()``.
        tiles: tiles to try; with none, ``tile_source`` is asked, then the paper's line 1 with ``on_chip_bytes``.
        tile_source: gives the tile that a checkout picks for a call.
        convention_name: see ``conventions()``.
        gpu: simulate its cache, and refuse tiles that do not fit into its shared memory.
        l2_bytes: size of the L2 cache in place of the GPU's; needs ``gpu`` for the number of its SMs.
        on_chip_bytes: M of the papers' bounds, in bytes.
        shared_memory_limit: without a GPU, the most bytes that a thread block has on any; 0 for no check.

    Raises:
        InvalidShape: a size that no call, tile or GPU can have, or no way to know the tile.
        NameNotFound: an unknown algorithm or convention.
    """
    chosen = [algorithm(name) for name in algorithms]
    how = convention(convention_name)
    found = []
    if on_chip_bytes is not None:
        check_positive("sram_bytes", on_chip_bytes)
    for shape in shapes:
        on_chip = None if on_chip_bytes is None else on_chip_bytes // shape.element_bytes
        limits = None if on_chip is None else bounds(shape, on_chip)
        for one in chosen:
            for tile in _tiles(shape, one, tiles, tile_source, limits):
                runs = _runs(one, tile)
                if tile is not None:
                    where, limit = ("any GPU", shared_memory_limit)
                    if gpu is not None:
                        where, limit = gpu.name, gpu.shared_memory_per_block_optin
                    check_tile(tile, shape, one.tensors_m, one.tensors_n, limit, where)
                found.append(_row(shape, runs, tile, how, gpu, l2_bytes, limits))
    return tuple(found)


def dram_bytes(
    shape: Shape,
    algorithm_name: str,
    tile: Tile | None,
    *,
    l2_bytes: float,
    slots: int,
    convention_name: str = "algorithm",
) -> int:
    """Return the bytes expected at DRAM.

    Args:
        shape: the call.
        algorithm_name: see ``algorithms()``.
        tile: the tile; None for naive attention.
        l2_bytes: size of the cache: infinity gives the compulsory bytes, 0 the tile traffic.
        slots: thread blocks that run at the same time, see ``blocks_at_once``.
        convention_name: see ``conventions()``.

    Raises:
        InvalidShape: a tile is missing.
        NameNotFound: an unknown algorithm or convention.
    """
    one, how = _runs(algorithm(algorithm_name), tile), convention(convention_name)
    shape = shape if tile is None else as_launched(shape, tile)
    again = _again(shape, one, tile, how, simulate.Machine(l2_bytes, slots))
    return sum(tensor.dram_bytes or 0 for tensor in per_tensor(_accesses(shape, one, tile, how), again))


def blocks_at_once(shape: Shape, one: Algorithm, tile: Tile | None, gpu: Gpu) -> int:
    """Return how many thread blocks run at the same time on a GPU: limited by shared memory, registers and threads."""
    if tile is None:
        return gpu.sm_count
    threads = 32 * tile.warps
    shared = tile.shared_memory_bytes or tile_bytes_on_chip(tile, shape, one.tensors_m, one.tensors_n)
    limits = [_REGISTERS // (threads * _REGISTERS_OF_A_THREAD), _THREADS // threads]
    if gpu.shared_memory_per_sm:
        limits.append(gpu.shared_memory_per_sm // (shared + _RESERVED))
    return gpu.sm_count * max(1, min(limits))


def _runs(one: Algorithm, tile: Tile | None) -> Algorithm:
    """Return the algorithm that runs with a tile: one that splits the keys needs the launch that combines them."""
    splits = tile is not None and tile.num_splits > 1 and one.name == "fa2-forward"
    return algorithm("fa2-split-forward") if splits else one


def _tiles(
    shape: Shape, one: Algorithm, tiles: Sequence[Tile], tile_source: TileSource | None, limits: Bounds | None
) -> Sequence[Tile | None]:
    if not one.tiled:
        return (None,)
    if tiles:
        return tiles
    if tile_source is not None:
        return (tile_source(shape, one.name),)
    if limits is not None:
        return (Tile(limits.block_m, limits.block_n, source="line 1 of the paper's Algorithm 1"),)
    raise InvalidShape(
        f"{one.name} needs a tile: give --block-m and --block-n, or a checkout and a GPU whose tile to take, or "
        "--sram-bytes"
    )


def _accesses(shape: Shape, one: Algorithm, tile: Tile | None, how: Convention) -> list[Access]:
    if not one.tiled:
        operators = naive.backward_operators(how) if one.backward else naive.forward_operators(how)
        return naive.accesses(shape, operators)
    if tile is None:
        raise InvalidShape(f"{one.name} needs a tile, and none was given")
    return _COUNTS[one.name](shape, tile, how)


def _again(
    shape: Shape, one: Algorithm, tile: Tile | None, how: Convention, machine: simulate.Machine
) -> dict[str, Again]:
    if not one.tiled:
        return simulate.operators(shape, how, machine, backward=one.backward)
    if tile is None:
        raise InvalidShape(f"{one.name} needs a tile, and none was given")
    return simulate.SIMULATIONS[one.name](shape, tile, how, machine)


def _row(
    shape: Shape,
    one: Algorithm,
    tile: Tile | None,
    how: Convention,
    gpu: Gpu | None,
    l2_bytes: float | None,
    limits: Bounds | None,
) -> IoRow:
    asked, shape = shape, shape if tile is None else as_launched(shape, tile)
    accesses = _accesses(shape, one, tile, how)
    again, cache = None, l2_bytes
    if gpu is not None:
        cache = (gpu.l2_bytes or None) if l2_bytes is None else l2_bytes
        if cache is not None and not cache >= 0:
            raise InvalidShape(f"l2_bytes is {cache}; it must not be negative")
        if cache is not None:
            again = _again(shape, one, tile, how, simulate.Machine(cache, blocks_at_once(shape, one, tile, gpu)))
    tensors = per_tensor(accesses, again)
    if one.name.startswith("naive"):
        saved = naive.saved_bytes(shape, how)
    else:
        saved = (flash1 if one.name.startswith("fa1") else flash2).saved_bytes(asked)
    return IoRow(
        shape=asked,
        algorithm=one.name,
        tile=tile,
        convention=how.name,
        tensors=tensors,
        launches=per_launch(accesses, again),
        compulsory_bytes=sum(tensor.compulsory_bytes for tensor in tensors),
        tile_bytes=sum(tensor.tile_bytes for tensor in tensors),
        dram_bytes=None if again is None else sum(tensor.dram_bytes or 0 for tensor in tensors),
        flops=one.products * shape.head_dim * (asked.visible_scores if one.tiled else asked.scores),
        saved_bytes=saved,
        workspace_bytes=_workspace(accesses),
        gpu="" if gpu is None else gpu.name,
        l2_bytes=None if cache is None or math.isinf(cache) else round(cache),
        bandwidth_bytes_per_second=0 if gpu is None else gpu.bandwidth_bytes_per_second,
        peak_flops_per_second=getattr(gpu, "half_flops_per_second", 0),
        bounds=limits,
    )


def _workspace(accesses: list[Access]) -> int:
    sizes: dict[str, int] = {}
    for access in accesses:
        if access.kind.value == "workspace" or access.tensor == "D":
            size = max(access.distinct_read, access.distinct_written) * access.width
            sizes[access.tensor] = max(size, sizes.get(access.tensor, 0))
    return sum(sizes.values())
