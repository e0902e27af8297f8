"""Runs the thread blocks of a launch through the caches: in grid order, in waves over the SMs, one tile a step.

All blocks that run at the same time take a step at the same time; a block that ends makes room for the next of the
grid. Blocks that start together and walk the same tiles stay together, so they are one cohort and cost one access.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tracer.records import dataclass
from tracer.traffic.cache import ReadCache, SumCache
from tracer.traffic.counts import Reuse

#: Accesses of a simulation, about. A call that would need more is simulated in larger pieces.
BUDGET = 150_000


@dataclass(frozen=True, slots=True)
class Block:
    """One thread block, or one stage of one that has several.

    Attributes:
        base: number of the first tile of the tensor that it walks through.
        first, end: the tiles that it visits, relative to ``base``.
        own: number of the tile that it reads for itself before.
    """

    base: int
    first: int
    end: int
    own: int


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes of the tiles.

    Attributes:
        walked: of one step of the walk, all tensors together.
        own: of what a block reads for itself, all tensors together.
    """

    walked: int
    own: int


class _Cohort:
    __slots__ = ("stages", "times", "base", "first", "position", "number")

    def __init__(self, stages: tuple[Block, ...], times: int) -> None:
        self.stages, self.times, self.number = stages, times, -1
        self.base = self.first = self.position = 0


@dataclass(frozen=True, slots=True)
class Launch:
    """What the simulation runs.

    Attributes:
        blocks: in grid order; each a tuple of stages, one except where a block has an outer loop of its own.
        sizes: of the tiles.
        slots: thread blocks that run at the same time.
        descending: the walk goes from the last tile to the first.
    """

    blocks: Iterable[tuple[Block, ...]]
    sizes: Sizes
    slots: int
    descending: bool


def walk(launch: Launch, reads: ReadCache, sums: SumCache | None, fill: bool | None = None) -> None:
    """Run a launch.

    Args:
        launch: the blocks.
        reads: receives the tiles that are read.
        sums: receives the tiles that are added to, which have the numbers of the walked ones; None for no sums.
        fill: blocks set the sums of their walk to zero before they start; whether those writes count. None for not.
    """
    waiting = _grouped(launch.blocks)
    pending = next(waiting, None)
    running: list[_Cohort] = []
    free = launch.slots
    while running or pending:
        while free and pending:
            blocks, times, owns = pending
            taken = min(free, times)
            cohort = _Cohort(blocks, taken)
            for own in owns[:taken]:
                reads.touch(Reuse.OWN.value, own, launch.sizes.own)
            if fill is not None and sums is not None:
                for tile in range(max(stage.end for stage in blocks)):
                    sums.fill(blocks[0].base + tile, fill)
            pending = (blocks, times - taken, owns[taken:]) if taken < times else next(waiting, None)
            if _next_stage(cohort, launch, reads):
                running.append(cohort)
                free -= taken
        ended = False
        for cohort in running:
            key = cohort.base + cohort.position
            reads.touch(Reuse.WALKED.value, key, launch.sizes.walked, cohort.times)
            if sums is not None:
                sums.add(key, cohort.times)
            if launch.descending:
                cohort.position -= 1
                at_end = cohort.position < cohort.first
            else:
                cohort.position += 1
                at_end = cohort.position >= cohort.stages[cohort.number].end
            if at_end and not _next_stage(cohort, launch, reads):
                cohort.times = -cohort.times
                ended = True
        if ended:
            free += sum(-cohort.times for cohort in running if cohort.times < 0)
            running = [cohort for cohort in running if cohort.times > 0]


def _next_stage(cohort: _Cohort, launch: Launch, reads: ReadCache) -> bool:
    """Go to the next stage that has a tile to visit; False if there is none."""
    while cohort.number + 1 < len(cohort.stages):
        cohort.number += 1
        stage = cohort.stages[cohort.number]
        if cohort.number:
            reads.touch(Reuse.OWN.value, stage.own, launch.sizes.own)
        if stage.first < stage.end:
            cohort.base, cohort.first = stage.base, stage.first
            cohort.position = stage.end - 1 if launch.descending else stage.first
            return True
    return False


def _grouped(blocks: Iterable[tuple[Block, ...]]) -> Iterator[tuple[tuple[Block, ...], int, list[int]]]:
    """Put neighbours of the grid together that walk the same tiles: their stages, how many, and their own tiles."""
    group: tuple[Block, ...] = ()
    owns: list[int] = []
    for stages in blocks:
        alike = len(stages) == len(group) == 1 and _path(stages[0]) == _path(group[0])
        if not alike:
            if group:
                yield group, len(owns), owns
            group, owns = stages, []
        owns.append(stages[0].own)
    if group:
        yield group, len(owns), owns


def _path(block: Block) -> tuple[int, int, int]:
    return block.base, block.first, block.end
