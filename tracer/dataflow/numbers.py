"""Index expressions as numbers: loop bounds, tile numbers and mask conditions for a concrete problem size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tracer.dataflow.ir import Formula, Loop, Storage, Value
from tracer.dataflow.names import fold, plain


class Unseen(Exception):
    """An index expression that holds something whose value is not known."""


class Numbers:
    """Values of leaves, and what follows from them.

    Attributes:
        leaves: values of scalars that the host passes, of template parameters and of built-in variables, by name.
        counters: values of the loops' counters, by (loop, storage).
        after: values of counters behind their loops, by the same keys.
        flags: compile-time flags; what is not named is off.
    """

    def __init__(self, leaves: Mapping[str, int], flags: Mapping[str, bool]) -> None:
        """Begin outside of all loops."""
        self.leaves, self.flags = dict(leaves), dict(flags)
        self.counters: dict[tuple[int, Storage], int] = {}
        self.after: dict[tuple[int, Storage], int] = {}

    def number(self, value: Value) -> int:
        """Return the value of an index expression.

        Raises:
            Unseen: something in it is not known.
        """
        value = plain(value)
        op = value.op
        if op == "const":
            if isinstance(value.constant, int | float):
                return int(value.constant)
            raise Unseen(str(value.constant))
        if op == "input":
            if value.storage is not None and value.storage.space == "global":
                return 0  # an optional tensor that is not there
            return self._leaf(value.text)
        if op in ("param", "symbol"):
            if value.text in self.flags:
                return int(self.flags[value.text])
            return self._leaf(value.text)
        if op == "index":
            return self._counter(self.counters, value)
        if op == "after":
            return self._counter(self.after, value)
        if op == "select":
            return self.number(value.args[0 if self.holds(value.condition) else 1])
        if op == "opaque" and value.text in ("nullptr", "null"):
            return 0
        if op == "element":
            if len(value.args) == 1:
                return self.number(value.args[0])  # the pointer itself
            raise Unseen("an element")
        if op in ("eq", "ne") and any(_is_null(argument) for argument in value.args):
            return int(op == "eq")
        if op in ("and", "or"):
            left = self.number(value.args[0])
            if bool(left) == (op == "or"):
                return int(bool(left))
            return int(bool(self.number(value.args[1])))
        if op == "not":
            return int(not self.number(value.args[0]))
        if value.args and op not in ("phi", "call", "shape"):
            result = fold(op, [self.number(argument) for argument in value.args])
            if result is not None:
                return int(result)
        raise Unseen(op)

    def _leaf(self, name: str) -> int:
        if name not in self.leaves:
            raise Unseen(name)
        return self.leaves[name]

    def _counter(self, table: Mapping[tuple[int, Storage], int], value: Value) -> int:
        assert value.loop is not None and value.storage is not None
        key = (value.loop.number, value.storage)
        if key not in table:
            raise Unseen(f"the counter {value.storage.name}")
        return table[key]

    def holds(self, formula: Formula) -> bool:
        """Tell whether a condition holds.

        Raises:
            Unseen: something in it is not known.
        """
        if isinstance(formula, bool):
            return formula
        if formula[0] == "flag":
            return self.flags.get(formula[1], False)
        if formula[0] == "test":
            return bool(self.number(formula[1]))
        if formula[0] == "not":
            return not self.holds(formula[1])
        first = self._maybe(formula[1])
        if first is not None and first == (formula[0] == "or"):
            return first
        second = self._maybe(formula[2])
        if second is not None and second == (formula[0] == "or"):
            return second
        if first is None or second is None:
            raise Unseen("a condition")
        return second

    def _maybe(self, formula: Formula) -> bool | None:
        try:
            return self.holds(formula)
        except Unseen:
            return None

    def steps(self, loop: Loop, limit: int) -> Iterator[None]:
        """Count a loop through, stopping in each step.

        Raises:
            Unseen: its start, condition or step is not known, or it does not end within ``limit`` steps.
        """
        state = {storage: self.number(start) for storage, start, _, _ in loop.counters}
        for _ in range(limit):
            self.counters.update({(loop.number, storage): number for storage, number in state.items()})
            if not self.holds(loop.condition):
                break
            yield
            left = self._left(loop)
            if left is not None:
                state = left
                break
            state = {storage: self.number(after) for storage, _, _, after in loop.counters}
        else:
            raise Unseen("a loop that does not end")
        self.after.update({(loop.number, storage): number for storage, number in state.items()})

    def _left(self, loop: Loop) -> dict[Storage, int] | None:
        """Return the counters where a ``break`` is taken in this step; None where none is."""
        for path, counters in loop.breaks:
            if all(self.holds(formula) for formula in path):
                return {storage: self.number(value) for storage, value in counters.items()}
        return None


def _is_null(value: Value) -> bool:
    inner = plain(value)
    return inner.op == "opaque" and inner.text in ("nullptr", "null")
