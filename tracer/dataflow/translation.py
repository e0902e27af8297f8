"""What one value of a graph is in the algebra of terms: the meaning of each operation of the value flow."""

from __future__ import annotations

import math

from tracer.dataflow.algebra import BUILDERS, Algebra, Term
from tracer.dataflow.ir import Formula, Value, decided, negated, plain

_SIDEWAYS = frozenset(("set", "element", "copy", "convert", "broadcast"))


class Translation(Algebra):
    """The terms of single values, made from those of their operands."""

    def term(self, value: Value) -> Term:
        """Return the term of a value."""
        raise NotImplementedError

    def _term(self, value: Value) -> Term:
        op = value.op
        if op in _SIDEWAYS:
            return self.term(value.args[0])
        if op == "phi":
            leaf = self.make("carried", (), value.number)
            leaf.carried, leaf.origin, leaf.loop = frozenset((value.number,)), value, value.loop
            return leaf
        if op == "const":
            constant = value.constant
            if isinstance(constant, float) or (self.exact and isinstance(constant, int)):
                return self.constant(float(constant))
            return self.constant(float(constant)) if constant == 0 and not isinstance(constant, str) else self.scalar
        if op == "undefined":
            return self.undefined
        if op == "input":
            assert value.storage is not None
            if value.storage.space == "global":
                return self.make("input", (), value.text)
            return self.make("scalar", (), value.text) if self.exact else self.scalar
        if op == "select":
            return self._select(value)
        args = [self.term(argument) for argument in value.args]
        if op == "reduce":
            return self.reduced(value.text, args[0])
        if op in ("exp2", "log2"):
            return self._base_two(op, args[0])
        if op == "add" and args[0] is args[1] and args[0].is_data and plain(value.args[0]) is not plain(value.args[1]):
            return self.reduced("add", args[0])  # two elements of one row
        if op in BUILDERS:
            built = self.build(op, args)
            if op == "mul" and built.op == "mul" and args[0].is_data and args[1].is_data:
                self._factors.setdefault(built, (args[0], args[1]))
            return built
        if any(argument.is_data for argument in args):
            return self.make(f"call {value.text or op}", tuple(args))
        if self.exact and op in ("param", "index", "after", "symbol", "opaque"):
            return self.make("scalar", (), value.text or f"#{value.number}")
        return self.make(op, tuple(args), value.text) if self.exact else self.scalar

    def _base_two(self, op: str, argument: Term) -> Term:
        if not self.exact:
            return self.build(op[:-1], [argument])
        if op == "exp2":
            return self.build("exp", [self.build("mul", [argument, self.constant(math.log(2.0))])])
        return self.build("mul", [self.build("log", [argument]), self.constant(1.0 / math.log(2.0))])

    def _select(self, value: Value) -> Term:
        condition = decided(value.condition, self.flags)
        then, other = self.term(value.args[0]), self.term(value.args[1])
        if condition is True:
            return then
        if condition is False:
            return other
        if then is other or other.op == "undefined":
            return then
        if then.op == "undefined":
            return other
        assert isinstance(condition, tuple)
        if condition[0] == "test":
            extremum = self._extremum(condition[1], then, other)
            if extremum is not None:
                return extremum
        same = self._neutral(condition, then, other) or self._neutral(negated(condition), other, then)
        if same is not None:
            return same
        if condition[0] == "test":
            return self._choice(value, then, other)
        if condition[0] == "flag":
            return self.flag(then, other, condition[1])
        return self._choice(value, then, other)

    def _extremum(self, test: Value, then: Term, other: Term) -> Term | None:
        """Read ``a > b ? a : b`` as the maximum that it is."""
        if test.op not in ("lt", "gt", "le", "ge"):
            return None
        left, right = self.term(test.args[0]), self.term(test.args[1])
        if not (left.is_data or right.is_data) or {left, right} != {then, other}:
            return None
        takes_larger = (then is left) == (test.op in ("gt", "ge"))
        return self.build("max" if takes_larger else "min", [then, other])

    def _neutral(self, condition: Formula, special: Term, general: Term) -> Term | None:
        """Return the general side of a choice whose other side is the same in the case that the condition tests.

        ``alpha == 1 ? l : l * alpha`` is ``l * alpha``; ``l == 0 ? O : O / l`` keeps a division by zero away.
        """
        if isinstance(condition, tuple) and condition[0] == "or":
            first, second = [self._neutral(part, special, general) for part in condition[1:]]
            return first or second
        test, holds = _tested(condition)
        if test is None or test.op not in ("eq", "ne") or len(test.args) != 2:
            return None
        tested, against = [self.term(argument) for argument in test.args]
        is_equal = (test.op == "eq") == holds  # where the special side is taken
        if is_equal and general.op == "mul" and tested in general.args and self.is_constant(against, 1.0):
            rest = list(general.args)
            rest.remove(tested)
            return general if self.build("mul", rest) is special else None
        is_guard = self.is_constant(against, 0.0) if is_equal else tested is against  # x != x: x is not a number
        is_quotient = general.op == "div" and general.args[1] is tested and general.args[0] is special
        return general if is_guard and is_quotient else None

    def _choice(self, value: Value, then: Term, other: Term) -> Term:
        if value.is_view:  # a predicated store: what it leaves alone is out of bounds
            return then if then.op != "undefined" else other
        if not self.exact:
            return self.join([then, other])
        if then.is_data and other.is_data or not (then.is_data or other.is_data):
            made = self.make("either", (then, other), value.number)
        else:
            made = self.make("guarded", (then, other), value.number)
        made.origin = value
        return made


def _tested(condition: Formula) -> tuple[Value | None, bool]:
    """Return the test that a condition is, and whether it or its opposite; None for anything else."""
    if isinstance(condition, tuple) and condition[0] == "test":
        return condition[1], True
    if isinstance(condition, tuple) and condition[0] == "not" and isinstance(condition[1], tuple):
        if condition[1][0] == "test":
            return condition[1][1], False
    return None, True
