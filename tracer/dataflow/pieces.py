"""Numbers for one element of a tile that is copied piece by piece: what its predicates say of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tracer.dataflow.ir import Loop, Storage, Value
from tracer.dataflow.names import plain
from tracer.dataflow.numbers import Numbers, Unseen

#: How far the pieces that one thread copies are apart, in rows and in columns, and how many there are along a row.
ROWS, COLUMNS, PIECES = 16, 32, 3


class Unset(Exception):
    """A predicate that nothing was written to."""


class Pieces(Numbers):
    """Numbers for one element of a tile: its coordinates are known, and how many pieces there are.

    Attributes:
        row, column: of the element in its piece.
        extents: how many pieces there are, by the number of the dimension; of an array of predicates by -1.
        is_asked: something that differs from piece to piece was asked for.
    """

    def __init__(self, numbers: Numbers, widths: Mapping[str, int]) -> None:
        """Take the leaves and counters of ``numbers``, and numbers for the leaves that a column is compared with."""
        super().__init__({}, numbers.flags)
        self.base, self.widths = numbers, widths
        self.counters, self.after = numbers.counters, numbers.after
        self.row = self.column = 0
        self.extents: dict[int, int] = {}
        self.is_asked = False
        self._reached: set[tuple[int, Storage]] = set()
        self._has_extent = False

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
        self._reached.add(key)
        try:
            start, after = self.number(row[1]), self.number(row[3])
            if after == number or (number - start) % (after - number) or (number - start) * (after - number) < 0:
                return False
            self._has_extent = False
            return self.holds(loop.condition) or not self._has_extent  # a number of pieces as a literal is another one
        except Unseen:
            return True  # how far it goes is the extent of something else

    def _counter(self, table: Mapping[tuple[int, Storage], int], value: Value) -> int:
        assert value.loop is not None and value.storage is not None
        if (value.loop.number, value.storage) in self._reached:
            self.is_asked = True
        return super()._counter(table, value)

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
        self._has_extent = True
        return self.extents[dimension]

    def _coordinate(self, value: Value) -> Callable[[], int]:
        """Return the reader of a coordinate of a piece's first element."""
        chosen = value.indices[1 + int(value.text)] if value.text in ("0", "1") and len(value.indices) == 3 else None

        def read() -> int:
            self.is_asked = True
            if chosen is None:
                raise Unseen("a coordinate")
            piece = self.number(chosen)
            return piece * ROWS + self.row if value.text == "0" else piece * COLUMNS + self.column

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
            self.extents[-1] = PIECES
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
