"""Which rows and columns of a tile are loaded and stored, and which are cleared, for a concrete problem.

A tile at the end of a sequence has rows that do not exist, and a head dimension may be narrower than the tile. A copy
asks for each piece of it whether it exists: by the coordinate of its first element, which a tensor of coordinates
gives, against the length that is left. Here that is asked for rows and columns around the last one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tracer.dataflow.diagnose import Finding
from tracer.dataflow.graph import Graph
from tracer.dataflow.ir import Formula, Storage, Value, flags_of, tests_of
from tracer.dataflow.names import plain
from tracer.dataflow.numbers import Condition, Numbers, Unseen
from tracer.dataflow.pieces import COLUMNS, PIECES, ROWS, Pieces, Unset
from tracer.dataflow.roles import live_leaves
from tracer.records import dataclass

if TYPE_CHECKING:
    from tracer.dataflow.tiles import Access

_WIDTH = COLUMNS * PIECES
#: The head dimension, and what follows for whatever else a column is compared with.
_FIRST_WIDTH, _WIDTH_STEP = 72, 4
#: Of which tensors the rows that do not exist meet zeros in a product, where anything that is no number would stay.
_ROWS_CLEARED = {False: frozenset("V"), True: frozenset(("Q", "K", "V", "dO"))}
#: And of which the columns: a product is summed over them.
_COLUMNS_CLEARED = {False: frozenset("QK"), True: frozenset(("Q", "K", "V", "dO"))}


@dataclass(frozen=True, slots=True)
class _Put:
    """An assignment to a piece of a tile: a copy of it, or zero.

    Attributes:
        value: the assignment.
        pieces: which piece along the rows and along the columns; None for all of them.
    """

    value: Value
    pieces: tuple[Value | None, Value | None]


@dataclass(frozen=True, slots=True)
class _Copy:
    """A copy of a tile, piece by piece.

    Attributes:
        put: of one piece.
        source: the piece that is copied, along the rows and along the columns.
        clears: the assignments of zero to the same tile.
    """

    put: _Put
    source: tuple[Value, Value]
    clears: tuple[_Put, ...]


@dataclass(frozen=True, slots=True)
class Seen:
    """What was asked of one access in one step.

    Attributes:
        rows: of some rows of the tile: whether they are copied, and whether they are cleared.
        unset: a predicate was asked that nothing was written to.
        moved: a piece is copied to the place of another.
    """

    rows: Mapping[int, tuple[bool, bool]]
    unset: bool = False
    moved: bool = False


class Copies:
    """The copies of tiles in one kernel, whatever its flags are.

    Attributes:
        graph: the kernel.
        widths: the leaves that a column is compared with, each with a number of its own.
        is_backward: its products are those of the backward.
        by_number: the copies, by the number of the access's value.
    """

    def __init__(
        self, graph: Graph, accesses: Sequence[Access], flags: Mapping[str, bool], known: Set[str], *, is_backward: bool
    ) -> None:
        """Find them.

        Args:
            graph: the kernel.
            accesses: its loads and stores of tiles.
            flags: compile-time flags of the match.
            known: leaves that are no width.
            is_backward: its products are those of the backward.
        """
        self.graph, self.is_backward = graph, is_backward
        self.widths = _widths(graph.values, flags, known)
        self.by_number = _copies(graph.values, {access.value.number: access for access in accesses})


def _copies(values: Sequence[Value], wanted: Mapping[int, Access]) -> dict[int, _Copy]:
    """Return the copies of accesses, by the number of the access's value."""
    puts: dict[int, Value] = {}
    clears: dict[Storage, list[Value]] = {}
    for value in values:
        if value.op != "set" or value.is_view or value.storage is None:
            continue
        inner = _copied(value)
        if inner.op == "element" and value.number in wanted:
            puts[value.number] = value
        elif inner.op == "element" and inner.number in wanted:
            puts[inner.number] = value
        elif inner.op == "const" and inner.constant == 0:
            clears.setdefault(value.storage, []).append(value)
    found: dict[int, _Copy] = {}
    for number, put in puts.items():
        target, source = _pieces(put), _pieces(_copied(put))
        if target is None or source is None or any(p is None or plain(p).op != "index" for p in target):
            continue
        rows, columns = source
        if rows is None or columns is None:
            continue
        assert put.storage is not None
        loop, zeros = wanted[number].loop, clears.get(put.storage, [])
        if loop is not None:
            zeros = [zero for zero in zeros if loop.first <= zero.number < loop.last]
        cleared = [_Put(zero, pieces) for zero in zeros if (pieces := _pieces(zero)) is not None]
        found[number] = _Copy(_Put(put, target), (rows, columns), tuple(cleared))
    return found


def _copied(value: Value) -> Value:
    """Return what an assignment copies."""
    inner = value.args[0]
    while inner.op in ("copy", "convert"):
        inner = inner.args[0]
    return inner


class Predicates:
    """The predicates of one kernel's copies under some flags."""

    def __init__(self, copies: Copies, numbers: Numbers, before: Predicates | None = None) -> None:
        """Prepare.

        Args:
            copies: of the kernel.
            numbers: what the loops are counted through with; its leaves and counters are used as they are.
            before: those under other flags; what was asked then is not asked again.
        """
        self.copies, self.graph, self.widths = copies, copies.graph, copies.widths
        self.numbers = Pieces(numbers, copies.widths)
        self.asked: set[tuple[int, bool]] = set() if before is None else before.asked
        self.unseen: dict[str, str] = {}
        self.columns: dict[int, tuple[Access, dict[int, tuple[bool, bool]]]] = {} if before is None else before.columns
        self.sizes = self.lengths = (0, 0)
        self._compiled: dict[Formula, Condition] = {}
        self._conditions: dict[int, list[Callable[[], bool]] | None] = {}
        self._same: dict[Callable[[], bool], bool] = {}

    # -- asking -------------------------------------------------------------------------------------------------------
    def begin(self, sizes: tuple[int, int], lengths: tuple[int, int]) -> None:
        """Begin with a problem: rows of a tile, and lengths, along the queries and along the keys."""
        self.sizes, self.lengths = sizes, lengths

    def ask(self, access: Access, tile: int) -> Seen | None:
        """Ask which rows of a tile an access copies now; None where that is not known, or not worth asking."""
        size, length = self._extents(access)
        key = (access.value.number, tile * size + size > length)
        copy = self.copies.by_number.get(access.value.number)
        if copy is None or key in self.asked or access.symbol in self.unseen:
            return None
        self.asked.add(key)
        left = length % size
        with self._asking(access):
            try:
                sample = {left - 1, left, size - 1} if key[1] else {size - 1}
                rows = {row: self._asked(copy, row, 0) for row in sorted(sample)}
                self._ask_columns(access, copy)
                return Seen(rows, moved=self._is_moved(copy))
            except Unset:
                return Seen({}, unset=True)
        return None

    @contextmanager
    def _asking(self, access: Access) -> Iterator[None]:
        """Leave the counters as they are, and note what is not known."""
        self.numbers.extents = {1: self._extents(access)[0] // ROWS, 2: PIECES}
        before = dict(self.numbers.counters)
        self._same = {}
        try:
            yield
        except Unseen as unseen:
            self.unseen[access.symbol] = str(unseen)
        finally:
            self.numbers.counters.clear()
            self.numbers.counters.update(before)

    def _extents(self, access: Access) -> tuple[int, int]:
        """Return how many rows a tile of an access has, and the tensor."""
        return self.sizes[access.is_along_keys], self.lengths[access.is_along_keys]

    def _ask_columns(self, access: Access, copy: _Copy) -> None:
        if access.value.number not in self.columns and self.widths and self._asked(copy, 0, 0)[0]:
            sample = {0, _WIDTH - 1, *self.widths.values(), *[width - 1 for width in self.widths.values()]}
            self.columns[access.value.number] = access, {c: self._asked(copy, 0, c) for c in sorted(sample)}

    def _asked(self, copy: _Copy, row: int, column: int) -> tuple[bool, bool]:
        """Return whether an element of the tile is copied, and whether it is cleared."""
        numbers = self.numbers
        pieces = (row // ROWS, column // COLUMNS)
        numbers.row, numbers.column = row % ROWS, column % COLUMNS
        is_copied = self._happens(copy.put, pieces)
        return is_copied, not is_copied and any(self._happens(zero, pieces) for zero in copy.clears)

    def _happens(self, put: _Put, pieces: tuple[int, int]) -> bool:
        conditions = self._open(put.value)
        if conditions is None:
            return False
        for value, piece in zip(put.pieces, pieces, strict=True):
            if value is not None and not self.numbers.reach(plain(value), piece):
                return False
        return all(self._holds(condition) for condition in conditions)

    def _holds(self, condition: Callable[[], bool]) -> bool:
        """Tell whether a condition holds, as far as that is known; what is the same for all pieces is kept."""
        known = self._same.get(condition)
        if known is not None:
            return known
        self.numbers.is_asked = False
        try:
            holds = condition()
        except Unseen:
            if self.numbers.is_asked:
                raise
            holds = True
        if not self.numbers.is_asked:
            self._same[condition] = holds
        return holds

    def _open(self, value: Value) -> list[Callable[[], bool]] | None:
        """Return the conditions of an assignment that the flags do not decide; None where they exclude it."""
        if value.number not in self._conditions:
            conditions = [self._condition(formula) for formula in value.guards]
            decided = None if False in conditions else [c for c in conditions if not isinstance(c, bool)]
            self._conditions[value.number] = decided
        return self._conditions[value.number]

    def _condition(self, formula: Formula) -> Condition:
        if formula not in self._compiled:
            self._compiled[formula] = self.numbers.condition(formula)
        return self._compiled[formula]

    def _is_moved(self, copy: _Copy) -> bool:
        """Tell whether a piece is copied to the place of another."""
        for pieces in ((0, 1), (1, 0)):
            for value, piece in zip(copy.put.pieces, pieces, strict=True):
                assert value is not None
                self.numbers.reach(plain(value), piece)
            if tuple([self.numbers.number(value) for value in copy.source]) != pieces:
                return True
        return False

    # -- judging ------------------------------------------------------------------------------------------------------
    def row_findings(self, access: Access, seen: Seen, tile: int) -> Iterator[Finding]:
        """Yield what is wrong with the rows that an access of a tile copies."""
        size, length = self._extents(access)
        done = "stored" if access.is_store else "loaded"
        if seen.moved:
            yield self._finding(access, f"a piece of a tile of {access.symbol} is {done} to the place of another")
        if seen.unset:
            yield self._unset_finding(access)
        where = f"tile {tile} of {size} rows"
        for row, (is_copied, is_cleared) in seen.rows.items():
            number = tile * size + row
            if number < length and not is_copied:
                yield self._finding(access, f"row {number} of {length} of {access.symbol} is not {done} ({where})")
            elif number >= length and is_copied:
                what = f"row {number} of {access.symbol} is {done}, which has {length} rows ({where})"
                yield self._finding(access, what)
            elif number >= length and not is_cleared and access.symbol in _ROWS_CLEARED[self.copies.is_backward]:
                what = f"row {number} of {access.symbol}, which has {length} rows, is not cleared ({where})"
                yield self._finding(access, f"{what}: it meets zeros in a product")

    def column_findings(self) -> Iterator[Finding]:
        """Yield what is wrong with the columns that are copied, once all accesses were asked."""
        if not self.widths:
            return
        limits = {number: self._limit(columns) for number, (_, columns) in self.columns.items()}
        usual = Counter(limits.values()).most_common(1)[0][0] if limits else None
        for number, (access, columns) in self.columns.items():
            done = "stored" if access.is_store else "loaded"
            limit = limits[number]
            if limit is None:
                names = " or ".join(self.widths)
                yield self._finding(
                    access, f"the columns of {access.symbol} that are {done} are not those below {names}"
                )
            elif limit != usual and usual is not None:
                what = f"{access.symbol} is {done} up to {limit}, other tensors up to {usual}"
                yield self._finding(access, what)
            elif not access.is_store and access.symbol in _COLUMNS_CLEARED[self.copies.is_backward]:
                width = self.widths.get(limit, _WIDTH)
                if not all(is_cleared for column, (_, is_cleared) in columns.items() if column >= width):
                    what = f"columns of {access.symbol} behind {limit} are not cleared: a product is summed over them"
                    yield self._finding(access, what)

    def _limit(self, columns: Mapping[int, tuple[bool, bool]]) -> str | None:
        """Return the name of what limits the columns that are copied; None where nothing does so rightly."""
        for name, width in (*self.widths.items(), ("the tile's width", _WIDTH)):
            if all(is_copied == (column < width) for column, (is_copied, _) in columns.items()):
                return name
        return None

    def _unset_finding(self, access: Access) -> Finding:
        done = "stored" if access.is_store else "loaded"
        what = f"whether {access.symbol} is {done} depends on a predicate that nothing was written to"
        return self._finding(access, what)

    def _finding(self, access: Access, message: str) -> Finding:
        put = self.copies.by_number[access.value.number].put.value
        return Finding("bounds", message, None, self.graph.location(put.site), self.graph.calls(put.chain))


def flag_findings(graph: Graph, accesses: Sequence[Access]) -> Iterator[Finding]:
    """Yield the copies in which a flag stands for all rows that stands for all columns in others, or the reverse."""
    sides = {access.value.number: _flags_beside_predicates(access) for access in accesses}
    for side, other in ((0, 1), (1, 0)):
        for flag in sorted({flag for both in sides.values() for flag in both[side]}):
            here = [access for access in accesses if flag in sides[access.value.number][side]]
            there = [access for access in accesses if flag in sides[access.value.number][other]]
            if there and len(here) <= len(there):
                words = [("rows", "columns")[number] for number in (side, other)]
                what = f"{flag} decides whether all {words[0]} of {here[0].symbol} are copied without a question"
                message = f"{what}, and elsewhere whether all {words[1]} of {there[0].symbol} are"
                value = here[0].value
                yield Finding("bounds", message, None, graph.location(value.site), graph.calls(value.chain))


def _flags_beside_predicates(access: Access) -> tuple[set[str], set[str]]:
    """Return the flags that an access is asked for beside a predicate of its rows, and beside one of its columns."""
    found: tuple[set[str], set[str]] = (set(), set())
    for formula in access.guards:
        if isinstance(formula, tuple) and formula[0] == "or":
            for test in tests_of(formula):
                side = _asked_about(plain(test))
                if side is not None:
                    found[side].update(flags_of(formula))
    return found


def _asked_about(test: Value) -> int | None:
    """Return what a test is about: 0 for a row, 1 for a column, None for something else."""
    for value in (test, *[plain(argument) for argument in test.args]):
        if value.op == "element" and value.storage is not None:
            if value.storage.is_identity:
                return int(value.text) if value.text in ("0", "1") else None
            if value is test and value.storage.space == "registers":
                return 1
    return None


def _pieces(value: Value) -> tuple[Value | None, Value | None] | None:
    """Return which piece of a tile an element or an assignment is, or None; (None, None) for all of it."""
    if not value.indices:
        return (None, None) if value.op == "set" else None
    indices = value.indices[-3:]
    return (indices[1], indices[2]) if len(indices) == 3 and indices[0] is None else None


def _widths(values: Sequence[Value], flags: Mapping[str, bool], known: Set[str]) -> dict[str, int]:
    """Return the leaves that a column is compared with, each with a number of its own."""
    found: set[str] = set()
    for value in values:
        if value.op in ("lt", "le", "gt", "ge") and len(value.args) == 2:
            sides = [plain(argument) for argument in value.args]
            for side, other in (sides, sides[::-1]):
                if side.op == "element" and side.text == "1" and side.storage is not None and side.storage.is_identity:
                    found |= live_leaves(other, flags)
    names = sorted(found - known)
    return {name: _FIRST_WIDTH + number * _WIDTH_STEP for number, name in enumerate(names[:5])}
