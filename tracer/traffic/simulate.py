"""Predicts what reaches DRAM: which part of the repeated accesses of an algorithm the L2 cache serves.

The answer is one share per kind of reuse, 0 where everything repeated is served, 1 where nothing is; with the counts of
:mod:`tracer.traffic.counts` that gives bytes between the compulsory ones and the tile traffic. An infinite cache gives
the first, no cache the second.

Known simplifications: tiles, not lines; all SMs in step; the L2 as one piece, though on an A100 or H100 it is two
halves that may both hold a tile; no other work on the GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tracer.records import dataclass
from tracer.traffic import naive
from tracer.traffic.cache import ReadCache, SumCache
from tracer.traffic.counting import Convention
from tracer.traffic.counts import Again, Kind, Reuse
from tracer.traffic.flash2 import split_ranges
from tracer.traffic.shapes import FLOAT_BYTES, Shape, Tile, key_tiles, query_tiles
from tracer.traffic.walk import BUDGET, Block, Launch, Sizes, walk

#: Share of the L2 that is set aside for sums that are read again. No vendor says; it matters for FlashAttention-1, the
#: backward pass and split keys only.
SUMS_SHARE = 0.5

_MOST_BLOCKS = 40_000
_FEWEST_PIECES = 16
_FEWEST_STAGES = 16
_MOST_OPERANDS = 512


@dataclass(frozen=True, slots=True)
class Machine:
    """The parts of a GPU that the simulation needs.

    Attributes:
        l2_bytes: size of the L2 cache; 0 for none, infinity for one that forgets nothing.
        slots: thread blocks that run at the same time.
    """

    l2_bytes: float
    slots: int


Simulated = dict[str, Again]


def forward(shape: Shape, tile: Tile, convention: Convention, machine: Machine) -> Simulated:
    """Simulate FlashAttention-2's forward pass: row tiles fastest in the grid, then sequences, then heads; the walk
    through K and V goes from the last tile to the first.
    """  # noqa: D205
    plan = _Plan(shape, tile, machine.slots, by_queries=True)
    width = 2 * shape.head_dim * shape.element_bytes
    sizes = Sizes(tile.block_n * width * plan.piece, tile.block_m * shape.head_dim * shape.element_bytes)
    splits = tile.num_splits > 1
    reads = ReadCache(machine.l2_bytes * (1 - SUMS_SHARE if splits else 1))
    walk(Launch(plan.blocks(), sizes, machine.slots, descending=True), reads, None)
    found = _shares(reads)
    if splits:
        part = tile.block_m * (shape.head_dim + 1) * FLOAT_BYTES
        found[Reuse.PARTIAL.value] = _parts(plan, part, machine)
    return found


def backward(shape: Shape, tile: Tile, convention: Convention, machine: Machine) -> Simulated:
    """Simulate FlashAttention-2's backward pass: column tiles fastest in the grid; the walk goes through Q and dO."""
    plan = _Plan(shape, tile, machine.slots, by_queries=False)
    d, width = shape.head_dim, shape.element_bytes
    statistics = 2 * convention.vector_bytes
    sizes = Sizes(plan.piece * tile.block_m * (2 * d * width + statistics), 2 * tile.block_n * d * width)
    reads = ReadCache(machine.l2_bytes * (1 - SUMS_SHARE))
    sum_bytes = plan.piece * tile.block_m * d * (convention.accumulator_bytes or width)
    sums = SumCache(machine.l2_bytes * SUMS_SHARE, sum_bytes, convention.first_read)
    if convention.first_read or convention.helpers:
        for key in plan.walked_tiles():
            sums.fill(key, convention.helpers)
    walk(Launch(plan.blocks(), sizes, machine.slots, descending=True), reads, sums)
    if convention.helpers:
        for key in plan.walked_tiles():
            sums.read(key)
    found = _shares(reads)
    # The launch for D streams through O and dO: either all of dO is still there for the walk, or nothing.
    streamed = 2 * shape.heads * shape.rows_q * d * width <= reads.capacity
    found[Reuse.REWALKED.value] = Again(reads.all_but_first(Reuse.WALKED.value, streamed), 1.0)
    found[Reuse.SUM.value] = sums.again(kept=not convention.helpers)
    parts = 2 * shape.heads * shape.rows_k * d * width
    kept = 0.0 if parts <= machine.l2_bytes * SUMS_SHARE else 1.0
    found[Reuse.PARTIAL.value] = Again(kept, kept)
    return found


def first_forward(shape: Shape, tile: Tile, convention: Convention, machine: Machine) -> Simulated:
    """Simulate FlashAttention-1's forward pass: one block does a head of a sequence, with its outer loop over K, V."""
    d, width = shape.head_dim, shape.element_bytes
    accumulated = d * (convention.accumulator_bytes or width) + 2 * convention.vector_bytes
    return _first(shape, tile, convention, machine, walked=d * width, summed=accumulated)


def first_backward(shape: Shape, tile: Tile, convention: Convention, machine: Machine) -> Simulated:
    """Simulate FlashAttention-1's backward pass, Algorithm 4, with the same loops."""
    d, width = shape.head_dim, shape.element_bytes
    tensors = 2 if convention.output_once else 3
    walked = tensors * d * width + 2 * convention.vector_bytes
    accumulated = d * (convention.accumulator_bytes or width)
    return _first(shape, tile, convention, machine, walked=walked, summed=accumulated)


def operators(shape: Shape, convention: Convention, machine: Machine, *, backward: bool) -> Simulated:
    """Simulate naive attention: each operator runs through all heads before the next one starts."""
    steps = naive.backward_operators(convention) if backward else naive.forward_operators(convention)
    tensors = naive.operands(shape, steps)
    heads = shape.batch * shape.heads
    pieces = min(heads, _MOST_OPERANDS)
    numbers = {name: number for number, name in enumerate(tensors)}
    cache = _OperandCache(machine.l2_bytes)

    def size(name: str) -> int:
        return max(1, tensors[name].elements * tensors[name].width // pieces)

    def piece(name: str, index: int) -> int:
        # K and V have fewer pieces where query heads share a key head.
        shared = max(1, tensors[name].elements // tensors[name].distinct)
        return numbers[name] * (pieces + 1) + index // shared

    for name, tensor in tensors.items():
        for index in range(pieces if tensor.before else 0):
            cache.hold(piece(name, index), name, size(name))
    for step in steps:
        for index in range(pieces):
            for name in step.reads:
                cache.read(piece(name, index), name, size(name))
            for name in step.writes:
                cache.write(piece(name, index), name, size(name))
    return {name: cache.again(name, tensor.kind is Kind.WORKSPACE) for name, tensor in tensors.items()}


class _Plan:
    """The blocks of a launch, in pieces that keep the simulation short."""

    def __init__(self, shape: Shape, tile: Tile, slots: int, *, by_queries: bool) -> None:
        self._shape, self._by_queries = shape, by_queries
        tiles = key_tiles if by_queries else query_tiles
        lengths = shape.lengths or ((shape.seqlen_q, shape.seqlen_k),) * shape.batch
        different = {pair: tiles(shape, *pair, tile) for pair in dict.fromkeys(lengths)}
        self._splits = tile.num_splits if by_queries else 1
        if self._splits > 1:
            parts = {
                pair: split_ranges(different[pair], -(-pair[1] // tile.block_n), self._splits) for pair in different
            }
        else:
            parts = {pair: [ranges] for pair, ranges in different.items()}
        self._lengths = lengths
        per_batch = sum(len(different[pair]) * self._splits for pair in lengths)
        group = shape.heads // shape.heads_k
        self.heads = shape.heads
        counts = dict.fromkeys(lengths, 0)
        for pair in lengths:
            counts[pair] += 1
        if per_batch * shape.heads > _MOST_BLOCKS:
            # The heads do alike: some of them, whole groups, stand for all.
            self.heads = min(shape.heads, max(group, _MOST_BLOCKS // per_batch // group * group))
        most = max((end for part in parts.values() for ranges in part for _, end in ranges), default=1)
        self.piece = 1
        while self._cost(parts, counts, slots) > BUDGET and most // (2 * self.piece) >= _FEWEST_PIECES:
            self.piece *= 2
        self._parts = {
            pair: [[(first // self.piece, -(-end // self.piece)) for first, end in ranges] for ranges in part]
            for pair, part in parts.items()
        }
        self.walked = max(1, -(-most // self.piece))
        self._own = max(len(ranges) for ranges in different.values())

    def _cost(
        self, parts: dict[tuple[int, int], list[list[tuple[int, int]]]], counts: dict[tuple[int, int], int], slots: int
    ) -> int:
        """Estimate accesses: neighbours of one wave that walk the same pieces count once."""
        cost = 0
        for pair, count in counts.items():
            for ranges in parts[pair]:
                last, alike = None, 0
                for first, end in ranges:
                    now = (first // self.piece, -(-end // self.piece))
                    alike = alike + 1 if now == last and alike < slots else 0
                    cost += 0 if alike else count * (now[1] - now[0])
                    last = now
        return cost * self.heads

    def blocks(self) -> Iterator[tuple[Block, ...]]:
        """Row tiles fastest, then splits, then sequences, then heads."""
        group = self._shape.heads // self._shape.heads_k
        own_base = 1 << 40
        for head in range(self.heads):
            for number, pair in enumerate(self._lengths):
                stream = (number * self.heads + (head // group if self._by_queries else head)) * self.walked
                owner = number * self.heads + (head if self._by_queries else head // group)
                for ranges in self._parts[pair]:
                    for index, (first, end) in enumerate(ranges):
                        yield (Block(stream, first, end, own_base + owner * self._own + index),)

    def heads_as_blocks(self, slots: int) -> tuple[list[tuple[Block, ...]], int]:
        """Return one block per head and sequence with a stage per column tile, and how many tiles a stage stands for.

        Two waves of blocks stand for all: the heads do alike. So do the stages of a block, of which neighbours are put
        together where there are many.
        """
        group = self._shape.heads // self._shape.heads_k
        batch = len(self._lengths)
        heads = min(self.heads, -(-max(1, 2 * slots // batch) // group) * group)
        wanted = max(_FEWEST_STAGES, BUDGET // (heads * batch * self.walked))
        together = -(-self._own // wanted)
        own_base = 1 << 40
        found = []
        for head in range(heads):
            for number, pair in enumerate(self._lengths):
                stream = (number * self.heads + head) * self.walked
                owner = own_base + (number * self.heads + head // group) * self._own
                ranges = self._parts[pair][0]
                stages = []
                for index in range(0, len(ranges), together):
                    some = [one for one in ranges[index : index + together] if one[0] < one[1]] or [(0, 0)]
                    first, end = min(one[0] for one in some), max(one[1] for one in some)
                    stages.append(Block(stream, first, end, owner + index))
                if stages:
                    found.append(tuple(stages))
        return found, together

    def walked_tiles(self) -> Iterator[int]:
        """Return the numbers of all tiles that are walked through, head after head."""
        for head in range(self.heads):
            for number, pair in enumerate(self._lengths):
                stream = (number * self.heads + head) * self.walked
                for tile in range(max((end for _, end in self._parts[pair][0]), default=0)):
                    yield stream + tile


def _first(
    shape: Shape, tile: Tile, convention: Convention, machine: Machine, *, walked: int, summed: int
) -> Simulated:
    plan = _Plan(shape, tile, 1, by_queries=False)
    blocks, together = plan.heads_as_blocks(machine.slots)
    rows = plan.piece * tile.block_m
    sizes = Sizes(rows * walked, 2 * together * tile.block_n * shape.head_dim * shape.element_bytes)
    reads = ReadCache(machine.l2_bytes * (1 - SUMS_SHARE))
    sums = SumCache(machine.l2_bytes * SUMS_SHARE, rows * summed, convention.first_read)
    fill = convention.initial_write if convention.first_read else None
    walk(Launch(blocks, sizes, machine.slots, descending=False), reads, sums, fill)
    found = _shares(reads)
    found[Reuse.SUM.value] = sums.again(kept=True)
    return found


def _parts(plan: _Plan, size: int, machine: Machine) -> Again:
    """Write what each block of a split adds, then read it all: the launch that combines."""
    cache = SumCache(machine.l2_bytes * SUMS_SHARE, size, first_read=False)
    count = sum(1 for _ in plan.blocks())
    for key in range(count):
        cache.add(key)
    for key in range(count):
        cache.read(key)
    return cache.again(kept=False)


def _shares(reads: ReadCache) -> Simulated:
    return {
        reuse.value: Again(reads.again(reuse.value), 1.0) for reuse in (Reuse.WALKED, Reuse.OWN)
    }  # fmt: skip


class _OperandCache:
    """Pieces of whole tensors, read and written; what was changed is written back when it is forgotten."""

    def __init__(self, capacity: float) -> None:
        from collections import OrderedDict

        self._capacity = capacity
        self._pieces: OrderedDict[int, tuple[str, int, bool]] = OrderedDict()
        self._used = 0
        self._read: dict[str, list[int]] = {}
        self._written: dict[str, list[int]] = {}
        self._different: dict[str, set[int]] = {}

    def hold(self, key: int, name: str, size: int) -> None:
        """Put a piece in that is there from before."""
        self._put(key, name, size, False)

    def read(self, key: int, name: str, size: int) -> None:
        """Read a piece."""
        count = self._read.setdefault(name, [0, 0])
        count[0] += 1
        self._different.setdefault(name, set()).add(key)
        if key not in self._pieces:
            count[1] += 1
            self._put(key, name, size, False)
        else:
            self._pieces.move_to_end(key)

    def write(self, key: int, name: str, size: int) -> None:
        """Write a piece."""
        self._written.setdefault(name, [0, 0])[0] += 1
        self._put(key, name, size, True)

    def again(self, name: str, workspace: bool) -> Again:
        """Return the shares of a tensor's bytes beyond the compulsory ones that reach DRAM."""
        reads, missed = self._read.get(name, [0, 0])
        writes, written_back = self._written.get(name, [0, 0])
        different = 0 if workspace else len(self._different.get(name, ()))
        repeated = reads - different
        return Again(
            (missed - different) / repeated if repeated else 1.0,
            written_back / writes if writes and workspace else 1.0,
        )

    def _put(self, key: int, name: str, size: int, changed: bool) -> None:
        if key in self._pieces:
            self._used -= self._pieces.pop(key)[1]
        self._pieces[key] = (name, size, changed)
        self._used += size
        while self._used > self._capacity:
            _, (owner, old, dirty) = self._pieces.popitem(last=False)
            self._used -= old
            if dirty:
                self._written[owner][1] += 1


#: By algorithm.
SIMULATIONS: dict[str, Callable[[Shape, Tile, Convention, Machine], Simulated]] = {
    "fa1-forward": first_forward,
    "fa1-backward": first_backward,
    "fa2-forward": forward,
    "fa2-backward": backward,
    "fa2-split-forward": forward,
}
