"""What the leaves of a kernel's index expressions are: extents and numbers of tiles, lengths, ranges of a split.

A forward kernel works on one tile of rows and visits the K/V tiles along the keys; a backward kernel works on one K/V
tile and visits the tiles along the queries. The length along the loop is what its start or its mask depends on; the
length across is what lets a thread block leave early.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from tracer.dataflow.compare import Comparison
from tracer.dataflow.ir import Formula, Loop, Storage, Value, decided, flags_of, tests_of
from tracer.dataflow.names import plain
from tracer.dataflow.numbers import Numbers, Unseen
from tracer.records import dataclass


class NotTold(Exception):
    """A kernel does not tell what its index expressions are about; the text says what is missing."""


@dataclass(frozen=True, slots=True)
class Roles:
    """What leaves are, by their names; empty for what a kernel does not have.

    Attributes:
        rows: rows of a Q tile, B_r.
        columns: rows of a K/V tile, B_c.
        tile: number of the tile that the thread block works on.
        keys: length of the keys.
        queries: length of the queries.
        parts: into how many ranges the keys are split.
        part: number of the range.
        along_rows: the loops go over tiles of rows, as in a backward pass.
        divisors: leaves that something is divided by, which therefore are at least one.
    """

    rows: str
    columns: str
    tile: str
    keys: str
    queries: str
    parts: str
    part: str
    along_rows: bool
    divisors: frozenset[str]

    @property
    def known(self) -> frozenset[str]:
        """All of them."""
        return frozenset((self.rows, self.columns, self.tile, self.keys, self.queries, self.parts, self.part))


@dataclass(frozen=True, slots=True)
class Configuration:
    """Flags under which the index sets are looked at.

    Attributes:
        flags: all compile-time flags.
        is_causal: they turn the causal mask on.
        only_equal: its diagonal is known to be the right one only for as many keys as queries.
        has_masks: the masks can be judged.
        is_even: the lengths are multiples of the tiles'.
        by_loops: only the loops tell that the mask should be causal; they may as well be those of a window.
        conflict: the arguments that set the diagonal of the masks and that of the loops, where they are not the same.
    """

    flags: dict[str, bool]
    is_causal: bool
    only_equal: bool
    has_masks: bool = True
    is_even: bool = False
    conflict: tuple[str, str] | None = None
    by_loops: bool = False


class RoleFinder:
    """Finds out what the leaves of one kernel are."""

    def __init__(self, comparison: Comparison, loops: list[Loop]) -> None:
        """Take a comparison whose match succeeded, and its kernel's loops over tiles."""
        self.comparison, self.loops = comparison, loops
        self.graph = comparison.kernel.graph
        self.base = {**dict.fromkeys(comparison.kernel.flag_names(), False), **comparison.match.flags}

    def roles(self) -> Roles:
        """Return what the leaves are.

        Raises:
            NotTold: the kernel does not tell.
        """
        inputs = self.comparison.match.inputs
        along_rows = "dO" in inputs
        queries, keys = self.graph.inputs.get(inputs.get("Q", "")), self.graph.inputs.get(inputs.get("K", ""))
        rows, columns = [_extent(storage) if storage is not None else "" for storage in (queries, keys)]
        if not rows or not columns:
            raise NotTold("it does not cut Q and K into tiles by a layout")
        across = keys if along_rows else queries
        assert across is not None
        stored = [self.graph.inputs.get(name) for name in self.comparison.match.outputs.values() if name is not None]
        beside = [storage for storage in stored if storage is not None and not along_rows]
        chosen = [c[0] for storage in (across, *beside) for _, c, _ in storage.tiles if c and c[0] is not None]
        tile = next((name for name in map(_name, chosen) if name), "")
        if chosen and not tile:
            raise NotTold("the number of the tile that it works on is computed")
        tile = tile or self._multiplied_with(columns if along_rows else rows)
        known = {rows, columns, tile}
        starts = self.leaves_of_loops(self.base) - known
        divisors = self._divisors()
        along = {
            leaf for mask in self.comparison.masks(self.base) for leaf in self.mask_leaves(mask, self.base)
        } - known
        if along_rows or len(along) != 1:
            along = starts - divisors
        parts = starts & divisors
        if len(along) > 1 and len(parts) == 1:
            along -= {leaf for leaf in along if "." not in leaf}
        if len(along) != 1:
            raise NotTold("no single length is found that its loops over tiles depend on")
        length = along.pop()
        part = starts - parts - {length} if len(parts) == 1 else set()
        split = (parts.pop(), part.pop()) if len(parts) == 1 and len(part) == 1 else ("", "")
        other = self._length_across(known | {length, *split})
        lengths = (other, length) if along_rows else (length, other)
        return Roles(rows, columns, tile, *lengths, *split, along_rows, divisors)

    def rows_only(self, symbol: str) -> Roles:
        """Return what the leaves are of a kernel that works on one tile of the rows of a symbol."""
        storage = self.graph.inputs.get(self.comparison.match.inputs.get(symbol, ""))
        rows = _extent(storage) if storage is not None else ""
        chosen = (_name(c[0]) for _, c, _ in (storage.tiles if storage is not None else ()) if c and c[0] is not None)
        tile = next(chosen, "") or self._multiplied_with(rows)
        length = self._length_across({rows, tile})
        return Roles(rows, "", tile, "", length, "", "", False, self._divisors())

    def configurations(self, roles: Roles) -> Iterator[Configuration]:
        """Yield what to look at: the match's flags, each further one that makes the mask causal, and even lengths."""
        found = [Configuration(self.base, False, False)]
        if roles.queries and roles.keys:
            found += self._causal(roles)
        yield from found
        if not roles.along_rows:
            for flag in self._even_flags():
                for one in found:
                    yield replace(one, flags={**one.flags, flag: True}, is_even=True)

    def _even_flags(self) -> list[str]:
        """Return the flags under which nothing is masked: the host sets them for lengths that fill all tiles."""
        loops = self.leaves_of_loops(self.base)
        return [
            flag
            for flag in self._mask_flags()
            if not self.comparison.masks({**self.base, flag: True})
            and self.leaves_of_loops({**self.base, flag: True}) == loops
            and self.comparison.masks(self.base)
        ]

    def _causal(self, roles: Roles) -> Iterator[Configuration]:
        """Yield the configurations in which the scores above a diagonal are hidden."""
        plain_leaves, plain_loops = self._leaves(self.base), self.leaves_of_loops(self.base)
        for flag in self._diagonal_flags():
            flags = {**self.base, flag: True}
            leaves, loops = self._leaves(flags), self.leaves_of_loops(flags)
            across = roles.keys if roles.along_rows else roles.queries
            written = self._written(flags)
            is_diagonal = written >= {roles.queries, roles.keys}
            # A causal mask may be written as a window to the right, whose width the host makes zero.
            width, limit = sorted(leaves - roles.known), sorted(loops - roles.known)
            if across in leaves and len(width) <= 1:
                conflict = (width[0], limit[0]) if len(width) == len(limit) == 1 and width != limit else None
                yield Configuration(flags, True, False, conflict=conflict)
            elif roles.tile in leaves - plain_leaves and leaves <= roles.known:
                yield Configuration(flags, True, not is_diagonal)
            elif roles.tile in loops - plain_loops and len(loops - roles.known) <= 1:
                # The loops end at a diagonal, so there should be a mask along it; one with more arguments may be one
                # for a window, with widths that the host makes endless.
                is_judged = leaves - roles.known <= loops - roles.known
                equal = across not in loops and not is_diagonal
                yield Configuration(flags, True, equal, is_judged, by_loops=True)

    def _leaves(self, flags: Mapping[str, bool]) -> set[str]:
        """Return the leaves of the masks; in a backward pass, whose masks tell less, also of the loops over tiles."""
        masks = self._masks(flags)
        return masks | self.leaves_of_loops(flags) if "dO" in self.comparison.match.inputs else masks

    def _masks(self, flags: Mapping[str, bool]) -> set[str]:
        return {leaf for mask in self.comparison.masks(flags) for leaf in self.mask_leaves(mask, flags)}

    def _multiplied_with(self, extent: str) -> str:
        """Return what is multiplied with an extent and so is the number of its tile.

        An argument of the kernel's function; else the number of the thread block.
        """
        blocks = []
        for value in self.graph.values:
            if value.op == "mul" and len(value.args) == 2:
                names = [plain(argument) for argument in value.args]
                for one, other in (names, names[::-1]):
                    if one.text == extent and other.op == "input" and "." not in other.text:
                        return other.text
                    if one.text == extent and other.op == "symbol" and other.text.startswith("blockIdx."):
                        blocks.append(other.text)
        return blocks[0] if blocks else ""

    def _length_across(self, known: set[str]) -> str:
        """Return the length that lets a thread block leave before it has done anything; empty where none does."""
        for path in self.graph.exits:
            for formula in path:
                more = self._tested(formula, self.base) - known
                if len(more) == 1:
                    return more.pop()
        return ""

    def leaves_of_loops(self, flags: Mapping[str, bool]) -> set[str]:
        """Return the leaves that the loops over tiles begin and end with."""
        found: set[str] = set()
        for loop in self.loops:
            for _, start, _, _ in loop.counters:
                found |= live_leaves(start, flags)
            found |= self._tested(loop.condition, flags)
        return found

    def mask_leaves(self, mask: Value, flags: Mapping[str, bool]) -> set[str]:
        """Return the leaves of a mask's condition."""
        off = dict.fromkeys(flags_of(mask.condition), False)
        return self._tested(decided(mask.condition, {**off, **flags}), flags)

    def _tested(self, formula: Formula, flags: Mapping[str, bool]) -> set[str]:
        return {leaf for test in tests_of(formula) for leaf in live_leaves(test, flags)}

    def _diagonal_flags(self) -> list[str]:
        """Return the flags that may turn a causal mask on: they decide over a mask, or where the loops begin or end."""
        loops = self.leaves_of_loops(self.base)
        others = [flag for flag in self.base if flag not in self.comparison.match.flags]
        return sorted(
            {*self._mask_flags(), *(f for f in others if self.leaves_of_loops({**self.base, f: True}) > loops)}
        )

    def _written(self, flags: Mapping[str, bool]) -> set[str]:
        """Return the arguments that the masks' conditions are written with, whatever decides over them."""
        masks = self.comparison.masks(flags)
        waiting = [test for mask in masks for test in tests_of(mask.condition)]
        found: dict[int, Value] = {}
        while waiting:
            value = plain(waiting.pop())
            if value.number not in found:
                found[value.number] = value
                waiting += value.args
        return {value.text for value in found.values() if value.op == "input"}

    def _mask_flags(self) -> list[str]:
        """Return the flags that decide whether a score is masked, and that the match leaves off."""
        found: set[str] = set()
        for value in self.graph.values:
            inner = plain(value) if value.op == "set" else value
            if inner.op == "const" and inner.constant == -math.inf:
                found |= {flag for formula in value.guards for flag in flags_of(formula)}
        return sorted(flag for flag in found if not self.comparison.match.flags.get(flag, False))

    def _divisors(self) -> frozenset[str]:
        divided = [v for v in self.graph.values if v.op in ("div", "ceil_div", "mod") and len(v.args) == 2]
        below = [plain(value.args[1]) for value in divided]
        return frozenset(value.text for value in below if value.op == "input")


def live_leaves(value: Value, flags: Mapping[str, bool]) -> set[str]:
    """Return the scalars that a condition depends on where the optional tensors are not there."""
    found: set[str] = set()
    numbers = _Recorder(flags, found)
    try:
        numbers.number(value)
    except Unseen:
        return found
    return found


class _Recorder(Numbers):
    """Evaluates an expression with one everywhere, and remembers what it asked for."""

    def __init__(self, flags: Mapping[str, bool], asked: set[str]) -> None:
        super().__init__({}, flags)
        self.asked = asked

    def _read(self, value: Value) -> Callable[[], int]:
        if value.op not in ("max", "min", "add", "sub", "mul", "div", "ceil_div", "lt", "gt", "le", "ge", "and", "or"):
            return super()._read(value)

        def visit() -> int:
            for argument in value.args:
                self.number(argument)
            return 1

        return visit

    def leaf(self, name: str) -> int:
        """Return one, and remember what was asked for."""
        if "." in name and not name.startswith(("threadIdx", "blockIdx", "blockDim")) or name.isidentifier():
            self.asked.add(name)
        return 1

    def _counter(self, table: Mapping[tuple[int, Storage], int], value: Value) -> int:
        return 1


def _name(value: Value | None) -> str:
    inner = plain(value) if value is not None else None
    return inner.text if inner is not None else ""


def _extent(storage: Storage) -> str:
    return next((_name(extents[0]) for extents, _, _ in storage.tiles if extents), "")
