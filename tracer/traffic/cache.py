"""A cache of whole tiles that forgets the least recently used: one part for what is read, one set aside for sums."""

from __future__ import annotations

from collections import OrderedDict

from tracer.traffic.counts import Again


class ReadCache:
    """Tiles that are only read.

    The content is always the most recently used tiles, so a larger cache holds all that a smaller one holds: it never
    misses more. A tile larger than the cache sweeps it empty, as its lines would.

    Attributes:
        requested: accesses, by group of tiles.
        missed: those that went to DRAM.
    """

    def __init__(self, capacity: float) -> None:
        """Start empty.

        Args:
            capacity: in bytes; infinity for a cache that forgets nothing.
        """
        self.capacity = capacity
        self.requested: dict[str, int] = {}
        self.missed: dict[str, int] = {}
        self._tiles: OrderedDict[int, int] = OrderedDict()
        self._used = 0
        self._seen: dict[str, set[int]] = {}
        self._bytes = 0  # of all different tiles

    def touch(self, group: str, key: int, size: int, times: int = 1) -> None:
        """Read a tile of ``size`` bytes, ``times`` times in a row."""
        self.requested[group] = self.requested.get(group, 0) + times
        tiles = self._tiles
        if key in tiles:
            tiles.move_to_end(key)
            return
        self.missed[group] = self.missed.get(group, 0) + (1 if size <= self.capacity else times)
        seen = self._seen.setdefault(group, set())
        if key not in seen:
            seen.add(key)
            self._bytes += size
        tiles[key] = size
        self._used += size
        while self._used > self.capacity:
            self._used -= tiles.popitem(last=False)[1]

    def again(self, group: str) -> float:
        """Return the share of the repeated accesses to a group that missed.

        Where nothing was repeated, as when a simulation in large pieces has put repetitions together: all of them if
        not everything fits, else none.
        """
        different = len(self._seen.get(group, ()))
        repeated = self.requested.get(group, 0) - different
        if not repeated:
            return float(self._bytes > self.capacity)
        return (self.missed.get(group, 0) - different) / repeated

    def all_but_first(self, group: str, first_hit: bool) -> float:
        """Return the share of all accesses to a group that missed; first ones hit where ``first_hit``."""
        missed = self.missed.get(group, 0) - (len(self._seen.get(group, ())) if first_hit else 0)
        return missed / self.requested[group] if self.requested.get(group) else float(self._bytes > self.capacity)


class SumCache:
    """Tiles of sums: each access reads and writes. What is forgotten must be written back if it was changed."""

    def __init__(self, capacity: float, size: int, first_read: bool) -> None:
        """Start empty.

        Args:
            capacity: in bytes; infinity for a cache that forgets nothing.
            size: bytes of every tile.
            first_read: the first access to a tile reads it too.
        """
        self._fitting = float("inf") if capacity == float("inf") else capacity // size if size else 0
        self._first_read = first_read
        self._changed: OrderedDict[int, bool] = OrderedDict()
        self._seen: set[int] = set()
        self._written: set[int] = set()
        self.reads = self.missed = self.writes = self.written_back = 0

    def fill(self, key: int, counted: bool) -> None:
        """Set a tile to zero before anything is added to it; ``counted`` says whether that is a write of its own."""
        self._seen.add(key)
        if counted:
            self.writes += 1
            self._written.add(key)
        self._changed[key] = counted
        self._changed.move_to_end(key)
        self._shrink()

    def add(self, key: int, times: int = 1) -> None:
        """Read and write a tile, ``times`` times in a row."""
        reads = times
        if not self._first_read and key not in self._seen:
            reads -= 1
        self._seen.add(key)
        self._written.add(key)
        self.reads += reads
        self.writes += times
        if not self._fitting:
            self.missed += reads
            self.written_back += times
            return
        if key in self._changed:
            self._changed.move_to_end(key)
        else:
            self.missed += 1 if reads == times else 0
        self._changed[key] = True
        self._shrink()

    def read(self, key: int) -> None:
        """Read a tile."""
        self.reads += 1
        if key in self._changed:
            self._changed.move_to_end(key)
            return
        self.missed += 1
        self._changed[key] = False
        self._shrink()

    def again(self, kept: bool) -> Again:
        """Return which share of reads missed, and which share of the writes beyond the last ones went to DRAM.

        Args:
            kept: the sums are a result, so the last write of each tile must reach DRAM too.
        """
        written_back, different = self.written_back, 0
        if kept:
            written_back += sum(self._changed.values())
            different = len(self._written)
        repeated = self.writes - different
        otherwise = float(len(self._seen) > self._fitting)
        return Again(
            self.missed / self.reads if self.reads else otherwise,
            (written_back - different) / repeated if repeated else otherwise,
        )

    def _shrink(self) -> None:
        while len(self._changed) > self._fitting:
            if self._changed.popitem(last=False)[1]:
                self.written_back += 1
