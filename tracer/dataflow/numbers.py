"""Index expressions as numbers: loop bounds, tile numbers and mask conditions for a concrete problem size.

An expression is asked for thousands of elements, so it is turned into a chain of Python functions once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import NoReturn, TypeAlias

from tracer.dataflow.ir import Formula, Loop, Storage, Value
from tracer.dataflow.names import fold, plain

_Reader: TypeAlias = Callable[[], int]
Condition: TypeAlias = bool | Callable[[], bool]
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "lt": lambda left, right: left < right, "gt": lambda left, right: left > right,
    "le": lambda left, right: left <= right, "ge": lambda left, right: left >= right,
    "eq": lambda left, right: left == right, "ne": lambda left, right: left != right,
}  # fmt: skip
#: As C++ divides whole numbers: towards zero.
_DIVISIONS: dict[str, Callable[[int, int], int]] = {
    "div": lambda left, right: int(left / right),
    "mod": lambda left, right: int(math.fmod(left, right)),
    "ceil_div": lambda left, right: -(-left // right),
}


class Unseen(Exception):
    """An index expression that holds something whose value is not known."""


class Numbers:
    """Values of leaves, and what follows from them.

    Attributes:
        leaves: values of scalars that the host passes, of template parameters and of built-in variables, by name.
        counters: values of the loops' counters, by (loop, storage).
        after: values of counters behind their loops, by the same keys.
        flags: compile-time flags, which stay as they are; what is not named is off.
    """

    def __init__(self, leaves: Mapping[str, int], flags: Mapping[str, bool]) -> None:
        """Begin outside of all loops."""
        self.leaves, self.flags = dict(leaves), dict(flags)
        self.counters: dict[tuple[int, Storage], int] = {}
        self.after: dict[tuple[int, Storage], int] = {}
        self._readers: dict[Value, _Reader] = {}

    def number(self, value: Value) -> int:
        """Return the value of an index expression.

        Raises:
            Unseen: something in it is not known.
        """
        return self.reader(value)()

    def reader(self, value: Value) -> _Reader:
        """Return the function that gives the value of an index expression as often as it is called."""
        value = plain(value)
        found = self._readers.get(value)
        if found is None:
            found = self._readers[value] = self._read(value)
        return found

    def _read(self, value: Value) -> _Reader:
        op = value.op
        if op == "const":
            return _always(int(value.constant)) if isinstance(value.constant, int | float) else _never(value.constant)
        if op == "input" and value.storage is not None and value.storage.space == "global":
            return _always(0)  # an optional tensor that is not there
        if op in ("param", "symbol") and value.text in self.flags:
            return _always(int(self.flags[value.text]))
        if op in ("input", "param", "symbol"):
            return lambda: self.leaf(value.text)
        if op in ("index", "after"):
            table = self.counters if op == "index" else self.after
            return lambda: self._counter(table, value)
        if op == "select":
            return self._read_select(value)
        if op == "opaque" and value.text in ("nullptr", "null"):
            return _always(0)
        if op == "element":  # alone, the pointer itself
            return self.reader(value.args[0]) if len(value.args) == 1 else _never("an element")
        if op in ("eq", "ne") and any(_is_null(argument) for argument in value.args):
            return _always(int(op == "eq"))
        if op in ("and", "or"):
            left, right = value.args[:2]
            if op == "and":
                return lambda: int(bool(self.number(left)) and bool(self.number(right)))
            return lambda: int(bool(self.number(left)) or bool(self.number(right)))
        if op == "not":
            inner = self.reader(value.args[0])
            return lambda: int(not inner())
        if value.args and op not in ("phi", "call", "shape"):
            return _operation(op, [self.reader(argument) for argument in value.args])
        return _never(op)

    def _read_select(self, value: Value) -> _Reader:
        """Return the reader of a choice; the side that is not taken is not looked at."""
        condition = self.condition(value.condition)
        then, other = value.args[:2]
        if isinstance(condition, bool):
            return self.reader(then if condition else other)
        return lambda: self.number(then if condition() else other)

    def leaf(self, name: str) -> int:
        """Return the value of a scalar by its name.

        Raises:
            Unseen: it is not known.
        """
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
        condition = self.condition(formula)
        return condition if isinstance(condition, bool) else condition()

    def condition(self, formula: Formula) -> Condition:
        """Return whether a condition holds where the flags tell, else the function that tells."""
        if isinstance(formula, bool):
            return formula
        if formula[0] == "flag":
            return self.flags.get(formula[1], False)
        if formula[0] == "test":
            read = self.reader(formula[1])
            return lambda: bool(read())
        if formula[0] == "not":
            inner = self.condition(formula[1])
            return not inner if isinstance(inner, bool) else lambda: not inner()
        return self._condition_of_two(formula[0] == "or", self.condition(formula[1]), formula[2])

    def _condition_of_two(self, decisive: bool, left: Condition, second: Formula) -> Condition:
        """Return the condition of two of which either decides where it is ``decisive``, also if the other is unseen."""
        if isinstance(left, bool):
            return left if left == decisive else self.condition(second)
        right = self.condition(second)
        if isinstance(right, bool):
            return right if right == decisive else left

        def both() -> bool:
            first = _maybe(left)
            if first == decisive:
                return decisive
            then = right()
            if first is None and then != decisive:
                raise Unseen("a condition")
            return then

        return both

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


def _always(number: int) -> _Reader:
    return lambda: number


def _never(what: object) -> _Reader:
    def unseen() -> NoReturn:
        raise Unseen(str(what))

    return unseen


def _operation(op: str, operands: list[_Reader]) -> _Reader:
    """Return the reader of an operation on numbers."""
    if len(operands) == 2:
        left, right = operands
        if op in _COMPARISONS:
            compare = _COMPARISONS[op]
            return lambda: int(compare(left(), right()))
        if op == "add":
            return lambda: left() + right()
        if op == "sub":
            return lambda: left() - right()
        if op == "mul":
            return lambda: left() * right()
        if op in ("max", "min"):
            choose = max if op == "max" else min
            return lambda: choose(left(), right())
        if op in _DIVISIONS:
            divide = _DIVISIONS[op]

            def divided() -> int:
                above, below = left(), right()
                if below == 0:
                    raise Unseen("a division by zero")
                return divide(above, below)

            return divided

    def folded() -> int:
        result = fold(op, [operand() for operand in operands])
        if result is None:
            raise Unseen(op)
        return int(result)

    return folded


def _maybe(condition: Callable[[], bool]) -> bool | None:
    try:
        return condition()
    except Unseen:
        return None
