"""Which rows and columns of a tile are loaded and stored, and which are cleared, for a concrete problem.

A tile at the end of a sequence has rows that do not exist, and a head dimension may be narrower than the tile. A copy
asks for each piece of it whether it exists: by the coordinate of its first element, which a tensor of coordinates
gives, against the length that is left. Here that is asked for rows and columns around the last one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from tracer.dataflow.diagnose import Finding
from tracer.dataflow.graph import Graph
from tracer.dataflow.ir import Loop, Storage, Value
from tracer.dataflow.names import plain
from tracer.dataflow.numbers import Condition, Numbers, Unseen
from tracer.dataflow.roles import live_leaves
from tracer.records import dataclass

if TYPE_CHECKING:
    from tracer.dataflow.tiles import Access

_Key: TypeAlias = tuple[int, Storage]
#: How far the pieces that one thread copies are apart, in rows and in columns, and how many there are along a row.
_ROWS, _COLUMNS, _PIECES = 16, 32, 3
_WIDTH = _COLUMNS * _PIECES
#: The head dimension, and what follows for whatever else a column is compared with.
_FIRST_WIDTH, _WIDTH_STEP = 72, 4
#: Of which tensors the rows that do not exist meet zeros in a product, where anything that is no number would stay.
_ROWS_CLEARED = {False: frozenset("V"), True: frozenset(("Q", "K", "V", "dO"))}
#: And of which the columns: a product is summed over them.
_COLUMNS_CLEARED = {False: frozenset("QK"), True: frozenset(("Q", "K", "V", "dO"))}


class Unset(Exception):
    """A predicate that nothing was written to."""


@dataclass(frozen=True, slots=True)
class _Put:
    """An assignment to a piece of a tile: a copy of it, or zero.

    Attributes:
        value: the assignment.
        pieces: which piece along the rows and along the columns; None for all of them.
        conditions: when it happens.
    """

    value: Value
    pieces: tuple[Value | None, Value | None]
    conditions: tuple[Condition, ...]


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


class Predicates:
    """The predicates of one kernel's accesses under some flags."""

    def __init__(
        self, graph: Graph, accesses: Sequence[Access], numbers: Numbers, known: frozenset[str], *, is_backward: bool
    ) -> None:
        """Prepare; the counters and leaves of ``numbers`` are used as they are, ``known`` are leaves that it gives."""
        self.graph, self.is_backward = graph, is_backward
        self.widths = _widths(graph.values, numbers.flags, known) if accesses else {}
        self.numbers = _Pieces(numbers, self.widths)
        self.unseen: dict[str, str] = {}
        self.columns: dict[int, tuple[Access, dict[int, tuple[bool, bool]]]] = {}
        self._copies = self._found(accesses)
        self.sizes = self.lengths = (0, 0)

    # -- finding ------------------------------------------------------------------------------------------------------
    def _found(self, accesses: Sequence[Access]) -> dict[int, _Copy]:
        """Return the copies of accesses, by the number of the access's value."""
        wanted = {access.value.number: access for access in accesses}
        puts: dict[int, Value] = {}
        clears: dict[Storage, list[Value]] = {}
        for value in self.graph.values if wanted else ():
            if value.op != "set" or value.is_view or value.storage is None:
                continue
            inner = value.args[0]
            while inner.op in ("copy", "convert"):
                inner = inner.args[0]
            if inner.op == "element" and value.number in wanted:
                puts[value.number] = value
            elif inner.op == "element" and inner.number in wanted:
                puts[inner.number] = value
            elif inner.op == "const" and inner.constant == 0:
                clears.setdefault(value.storage, []).append(value)
        found: dict[int, _Copy] = {}
        for number, put in puts.items():
            loop, zeros = wanted[number].loop, clears.get(put.storage, []) if put.storage is not None else []
            if loop is not None:
                zeros = [zero for zero in zeros if loop.first <= zero.number < loop.last]
            copy = self._copy(put, zeros)
            if copy is not None:
                found[number] = copy
        return found

    def _copy(self, value: Value, clears: Sequence[Value]) -> _Copy | None:
        source = value.args[0]
        while source.op in ("copy", "convert"):
            source = source.args[0]
        target = _pieces(value)
        taken = _pieces(source)
        if target is None or taken is None:
            return None
        rows, columns = taken
        if rows is None or columns is None or any(p is None or plain(p).op != "index" for p in target):
            return None
        put = _Put(value, target, self._conditions(value))
        zeros = [_Put(zero, p, self._conditions(zero)) for zero in clears if (p := _pieces(zero)) is not None]
        return _Copy(put, (rows, columns), tuple(zeros))

    def _conditions(self, value: Value) -> tuple[Condition, ...]:
        try:
            return tuple([self.numbers.condition(formula) for formula in value.guards])
        except Unset:
            return (_unset,)

    # -- asking -------------------------------------------------------------------------------------------------------
    def begin(self, sizes: tuple[int, int], lengths: tuple[int, int]) -> None:
        """Begin with a problem: rows of a tile, and lengths, along the queries and along the keys."""
        self.sizes, self.lengths = sizes, lengths

    def ask(self, access: Access) -> Seen | None:
        """Ask which rows an access copies now; None where that is not known."""
        copy = self._copies.get(access.value.number)
        if copy is None or access.symbol in self.unseen:
            return None
        size, length = self.sizes[access.is_along_keys], self.lengths[access.is_along_keys]
        self.numbers.extents = {1: size // _ROWS, 2: _PIECES}
        before = dict(self.numbers.counters)
        try:
            left = length % size
            rows = {row: self._asked(copy, row, 0) for row in sorted({0, left - 1, left, size - 1})}
            if access.value.number not in self.columns:
                sample = {0, _WIDTH - 1, *self.widths.values(), *[width - 1 for width in self.widths.values()]}
                columns = {column: self._asked(copy, 0, column) for column in sorted(sample)}
                if any(is_copied for is_copied, _ in columns.values()):
                    self.columns[access.value.number] = access, columns
            return Seen(rows, moved=self._is_moved(copy))
        except Unset:
            return Seen({}, unset=True)
        except Unseen as unseen:
            self.unseen[access.symbol] = str(unseen)
            return None
        finally:
            self.numbers.counters.clear()
            self.numbers.counters.update(before)

    def _asked(self, copy: _Copy, row: int, column: int) -> tuple[bool, bool]:
        """Return whether an element of the tile is copied, and whether it is cleared."""
        numbers = self.numbers
        pieces = (row // _ROWS, column // _COLUMNS)
        numbers.row, numbers.column = row % _ROWS, column % _COLUMNS
        is_copied = self._happens(copy.put, pieces)
        return is_copied, not is_copied and any(self._happens(zero, pieces) for zero in copy.clears)

    def _happens(self, put: _Put, pieces: tuple[int, int]) -> bool:
        for value, piece in zip(put.pieces, pieces, strict=True):
            if value is not None and not self.numbers.reach(plain(value), piece):
                return False
        for condition in put.conditions:
            if isinstance(condition, bool):
                if not condition:
                    return False
                continue
            self.numbers.is_asked = False
            try:
                if not condition():
                    return False
            except Unseen:
                if self.numbers.is_asked:
                    raise
        return True

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
        size, length = self.sizes[access.is_along_keys], self.lengths[access.is_along_keys]
        done = "stored" if access.is_store else "loaded"
        if seen.moved:
            yield self._finding(access, f"a piece of a tile of {access.symbol} is {done} to the place of another")
        if seen.unset:
            what = f"whether {access.symbol} is {done} depends on a predicate that nothing was written to"
            yield self._finding(access, what)
        where = f"tile {tile} of {size} rows"
        for row, (is_copied, is_cleared) in seen.rows.items():
            number = tile * size + row
            if number < length and not is_copied:
                yield self._finding(access, f"row {number} of {length} of {access.symbol} is not {done} ({where})")
            elif number >= length and is_copied:
                what = f"row {number} of {access.symbol} is {done}, which has {length} rows ({where})"
                yield self._finding(access, what)
            elif number >= length and not is_cleared and access.symbol in _ROWS_CLEARED[self.is_backward]:
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
                yield self._finding(access, f"not the columns up to the last are {done} of {access.symbol}")
            elif limit != usual and usual is not None:
                what = f"{access.symbol} is {done} up to column {limit}, other tensors up to {usual}"
                yield self._finding(access, what)
            elif not access.is_store and access.symbol in _COLUMNS_CLEARED[self.is_backward]:
                width = self.widths.get(limit, _WIDTH)
                if not all(is_cleared for column, (_, is_cleared) in columns.items() if column >= width):
                    what = f"columns of {access.symbol} behind {limit} are not cleared: a product is summed over them"
                    yield self._finding(access, what)

    def _limit(self, columns: Mapping[int, tuple[bool, bool]]) -> str | None:
        """Return the name of what limits the columns that are copied; None where nothing does so rightly."""
        for name, width in (*self.widths.items(), ("that of the tile", _WIDTH)):
            if all(is_copied == (column < width) for column, (is_copied, _) in columns.items()):
                return name
        return None

    def _finding(self, access: Access, message: str) -> Finding:
        put = self._copies[access.value.number].put.value
        return Finding("bounds", message, None, self.graph.location(put.site), self.graph.calls(put.chain))


class _Pieces(Numbers):
    """Numbers for one element of a tile: its coordinates are known, and how many pieces there are."""

    def __init__(self, numbers: Numbers, widths: Mapping[str, int]) -> None:
        super().__init__({}, numbers.flags)
        self.base, self.widths = numbers, widths
        self.counters, self.after = numbers.counters, numbers.after
        self.row = self.column = 0
        self.extents: dict[int, int] = {}
        self.is_asked = False

    def leaf(self, name: str) -> int:
        """Return the value of a scalar by its name."""
        return self.widths[name] if name in self.widths else self.base.leaf(name)

    def reach(self, index: Value, number: int) -> bool:
        """Make a counter have a value; tell whether its loop comes there."""
        if index.op != "index" or index.loop is None or index.storage is None:
            return self.number(index) == number
        loop: Loop = index.loop
        key = (loop.number, index.storage)
        row = next(row for row in loop.counters if row[0] is index.storage)
        self.counters[key] = number
        try:
            start, after = self.number(row[1]), self.number(row[3])
            if after == number or (number - start) % (after - number) or (number - start) * (after - number) < 0:
                return False
            return self.holds(loop.condition)
        except Unseen:
            return True  # how far it goes is the extent of something

    def _read(self, value: Value) -> Callable[[], int]:
        if value.op == "shape" and value.text.startswith("size<"):
            dimension = int(value.text[5:-1] or -1) if value.text[5:-1].isdigit() or value.text == "size<>" else -2
            return lambda: self._extent(dimension)
        if value.op == "element" and value.storage is not None:
            if value.storage.is_identity:
                return self._coordinate(value)
            if value.storage.space == "registers" and len(value.args) == 2 and len(value.indices) == 1:
                return self._predicate(value)
        return super()._read(value)

    def _extent(self, dimension: int) -> int:
        if dimension not in self.extents:
            raise Unseen("an extent")
        return self.extents[dimension]

    def _coordinate(self, value: Value) -> Callable[[], int]:
        """Return the reader of a coordinate of a piece's first element."""
        chosen = value.indices[1 + int(value.text)] if value.text in ("0", "1") and len(value.indices) == 3 else None

        def read() -> int:
            self.is_asked = True
            if chosen is None:
                raise Unseen("a coordinate")
            piece = self.number(chosen)
            return piece * _ROWS + self.row if value.text == "0" else piece * _COLUMNS + self.column

        return read

    def _predicate(self, value: Value) -> Callable[[], int]:
        """Return the reader of an element of an array that a loop filled."""
        chosen = value.indices[0]
        assert chosen is not None

        def read() -> int:
            self.is_asked = True
            put = self._written(value.args[0])
            where = put.indices[0] if len(put.indices) == 1 else None
            if where is None or plain(where).op != "index":
                raise Unseen("an array of predicates")
            number = self.number(chosen)
            self.extents[-1] = _PIECES
            try:
                if not self.reach(plain(where), number):
                    raise Unset
            finally:
                del self.extents[-1]
            return self.number(put.args[0])

        return read

    def _written(self, value: Value) -> Value:
        """Return the assignment that left what an array holds."""
        while True:
            if value.forward is not None:
                value = value.forward
            elif value.op == "select":
                try:
                    value = value.args[0 if self.holds(value.condition) else 1]
                except Unseen:
                    left, right = [self._written(side) for side in value.args]
                    if left is not right:
                        raise
                    return left
            elif value.op in ("copy", "convert") or (value.op == "set" and value.is_view):
                value = value.args[0]
            elif value.op == "undefined":
                raise Unset
            elif value.op == "set":
                return value
            else:
                raise Unseen(value.op)


def _pieces(value: Value) -> tuple[Value | None, Value | None] | None:
    """Return which piece of a tile an element or an assignment is, or None; (None, None) for all of it."""
    if not value.indices:
        return (None, None) if value.op == "set" else None
    indices = value.indices[-3:]
    return (indices[1], indices[2]) if len(indices) == 3 and indices[0] is None else None


def _widths(values: Sequence[Value], flags: Mapping[str, bool], known: frozenset[str]) -> dict[str, int]:
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


def _unset() -> bool:
    raise Unset
