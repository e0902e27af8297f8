"""Conditions at run time as sets of facts, so that it can be told whether one follows from others.

A comparison of whole numbers becomes a sum that is not negative. So ``i > n`` and ``i - 1 >= n`` are the same fact, and
``i > n + 1`` implies both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tracer.dataflow.ir import Formula, Loop, Value, negated, plain
from tracer.records import dataclass

_PURE = frozenset(("div", "mod", "ceil_div", "max", "min", "eq", "ne", "lt", "gt", "le", "ge", "and", "or", "not"))
_COMPARISONS = frozenset(("lt", "gt", "le", "ge"))
_OPPOSITE = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}
#: Leaves that are the same for all threads of a block; of others that is not known.
_UNIFORM = frozenset(("const", "input", "param", "symbol", "index", "after"))

Flags = Mapping[str, bool]
#: Terms of a sum with their factors, and the constant.
Sum = tuple[dict[Any, int], int]


@dataclass(frozen=True, slots=True, eq=False)
class Fact:
    """Something that holds at run time; equal facts are the same object.

    Attributes:
        subject: what it is about.
        bound: of a sum: it is not negative after this is added; else 1 where the subject holds and 0 where it does not.
        is_sum: the subject is a sum.
        loops: the loops over tiles in each step of which it is another fact.
        is_of_thread: it may hold for some threads of a block and not for others.
    """

    subject: Any
    bound: int
    is_sum: bool
    loops: frozenset[int]
    is_of_thread: bool

    def follows(self, known: Mapping[Any, int]) -> bool:
        """Tell whether it follows from facts, which are given as bounds by their subjects."""
        bound = known.get(self.subject)
        return bound is not None and (bound <= self.bound if self.is_sum else bound == self.bound)

    def or_else(self, other: Fact) -> bool:
        """Tell whether it or another fact holds in every case."""
        if self.is_sum and other.is_sum:
            return _turned(self.subject) == other.subject and self.bound + other.bound >= -1
        return self.subject == other.subject and self.bound != other.bound


def known_together(facts: Iterable[Fact]) -> dict[Any, int] | None:
    """Return facts as bounds by their subjects; None where they contradict each other."""
    known: dict[Any, int] = {}
    for fact in facts:
        bound = known.setdefault(fact.subject, fact.bound)
        if bound != fact.bound and not fact.is_sum:
            return None
        known[fact.subject] = min(bound, fact.bound)
        if fact.is_sum and known.get(_turned(fact.subject), -fact.bound) + fact.bound < 0:
            return None
    return known


def _turned(subject: Any) -> Any:
    """Return the subject of the sum with the opposite sign."""
    return (subject[0], frozenset([(key, -factor) for key, factor in subject[1]]), *subject[2:])


class Conditions:
    """The facts that formulas come to, where compile-time flags are known: what is not named is off."""

    def __init__(self, loops: Iterable[Loop]) -> None:
        """Prepare for the loops over tiles, whose steps are told apart."""
        self.loops = {loop.number: loop for loop in loops}
        self._facts: dict[Any, Fact] = {}
        self._keys: dict[int, Any] = {}
        self._loops_of: dict[Any, frozenset[int]] = {}
        self._of_thread: dict[Any, bool] = {}

    # -- formulas -----------------------------------------------------------------------------------------------------
    def facts(self, formula: Formula, flags: Flags) -> frozenset[Fact] | None:
        """Return what holds where a formula does; None where it cannot hold."""
        if isinstance(formula, bool):
            return frozenset() if formula else None
        kind = formula[0]
        if kind == "flag":
            return frozenset() if flags.get(formula[1], False) else None
        if kind == "test":
            return self._tested(plain(formula[1]), True, flags)
        if kind == "not":
            inner = formula[1]
            if isinstance(inner, bool) or inner[0] == "not":
                return self.facts(negated(inner), flags)
            if inner[0] == "flag":
                return None if flags.get(inner[1], False) else frozenset()
            if inner[0] == "test":
                return self._tested(plain(inner[1]), False, flags)
            sides = [self.facts(negated(part), flags) for part in inner[1:]]
            return _both(*sides) if inner[0] == "or" else self._either(*sides)
        sides = [self.facts(part, flags) for part in formula[1:]]
        return _both(*sides) if kind == "and" else self._either(*sides)

    def _tested(self, value: Value, holds: bool, flags: Flags) -> frozenset[Fact] | None:
        """Return what holds where a value is true, or where it is false."""
        op = value.op
        if op in ("const", "param"):  # a flag that is kept in a constant of the compiler
            is_true = bool(value.constant) if op == "const" else flags.get(value.text, False)
            return frozenset() if is_true is holds else None
        if op == "not":
            return self._tested(plain(value.args[0]), not holds, flags)
        if op in ("and", "or"):
            sides = [self._tested(plain(argument), holds, flags) for argument in value.args]
            if (op == "and") is holds:
                return _both(*sides)
            return self._either(*sides)
        if op in _COMPARISONS:
            return self._compared(self.sum(value.args[0]), self.sum(value.args[1]), op if holds else _OPPOSITE[op])
        key = self.key(value)
        if op == "ne":
            key, holds = ("eq", *key[1:]), not holds
        return frozenset((self._fact(key, int(holds), False, (key,)),))

    def _compared(self, left: Sum, right: Sum, op: str) -> frozenset[Fact] | None:
        if op in ("lt", "le"):
            left, right = right, left
        terms, constant = _added(left, right, -1)
        bound = constant - (op in ("lt", "gt"))
        if not terms:
            return frozenset() if bound >= 0 else None
        return frozenset((self._fact(("sum", frozenset(terms.items())), bound, True, terms),))

    def _either(self, left: frozenset[Fact] | None, right: frozenset[Fact] | None) -> frozenset[Fact] | None:
        if left is None or right is None:
            return right if left is None else left
        if not left or not right or left == right:
            return left & right
        if any(one.or_else(other) for one in left for other in right) and len(left) == len(right) == 1:
            return frozenset()
        subject = ("either", frozenset((left, right)))
        fact = self._facts.get((subject, 1))
        if fact is None:
            both = [*left, *right]
            loops = frozenset().union(*[one.loops for one in both])
            fact = self._facts[subject, 1] = Fact(subject, 1, False, loops, any(one.is_of_thread for one in both))
        return frozenset((fact,))

    def _fact(self, subject: Any, bound: int, is_sum: bool, keys: Iterable[Any]) -> Fact:
        found = self._facts.get((subject, bound))
        if found is None:
            loops = frozenset().union(*[self._loops_of[key] for key in keys])
            of_thread = any(self._of_thread[key] for key in keys)
            found = self._facts[subject, bound] = Fact(subject, bound, is_sum, loops, of_thread)
        return found

    def in_step(self, fact: Fact, steps: Mapping[int, int]) -> Fact:
        """Return the fact about one step of the loops over tiles, which are counted in ``steps``."""
        if not fact.loops:
            return fact
        when = tuple([(loop, steps.get(loop, 0)) for loop in sorted(fact.loops)])
        subject = (*fact.subject, when) if fact.is_sum else ("in step", fact.subject, when)
        found = self._facts.get((subject, fact.bound))
        if found is None:
            found = Fact(subject, fact.bound, fact.is_sum, frozenset(), fact.is_of_thread)
            self._facts[subject, fact.bound] = found
        return found

    def goes_on(self, loop: Loop, flags: Flags, holds: bool) -> frozenset[Fact]:
        """Return what is known in a step behind which the loop goes on, or behind which it ends."""
        condition = loop.condition if holds else negated(loop.condition)
        if isinstance(condition, bool) or (loop.breaks and not holds):
            return frozenset()
        tests = condition[1] if condition[0] == "not" else condition
        if tests[0] != "test" or plain(tests[1]).op not in _COMPARISONS:
            return frozenset()
        value = plain(tests[1])
        following = {counter.number: after for _, _, counter, after in loop.counters}
        sides = []
        for argument in value.args:
            terms, constant = self.sum(argument)
            result: Sum = ({}, constant)
            for key, factor in terms.items():
                after = following.get(key[1]) if key[0] == "value" else None
                if after is None and loop.number in self._loops_of[key]:
                    return frozenset()
                result = _added(result, self.sum(after) if after is not None else ({key: 1}, 0), factor)
            sides.append(result)
        return (
            self._compared(sides[0], sides[1], value.op if tests is condition else _OPPOSITE[value.op]) or frozenset()
        )

    # -- values -------------------------------------------------------------------------------------------------------
    def sum(self, value: Value) -> Sum:
        """Return a value as a sum of terms with whole factors."""
        value = plain(value)
        if value.op == "const" and isinstance(value.constant, int):
            return {}, int(value.constant)
        if value.op in ("add", "sub") and len(value.args) == 2:
            return _added(self.sum(value.args[0]), self.sum(value.args[1]), 1 if value.op == "add" else -1)
        if value.op == "neg":
            return _added(({}, 0), self.sum(value.args[0]), -1)
        if value.op == "mul" and len(value.args) == 2:
            left, right = self.sum(value.args[0]), self.sum(value.args[1])
            result: Sum = ({}, left[1] * right[1])
            result = _added(result, (right[0], 0), left[1])
            result = _added(result, (left[0], 0), right[1])
            products = {self._product(a, b): m * n for a, m in left[0].items() for b, n in right[0].items()}
            return _added(result, (products, 0), 1)
        return {self.key(value): 1}, 0

    def _product(self, left: Any, right: Any) -> Any:
        key = ("mul", frozenset((left, right)))
        return self._note(key, (left, right))

    def _note(self, key: Any, parts: Iterable[Any]) -> Any:
        if key not in self._of_thread:
            parts = tuple(parts)
            self._loops_of[key] = frozenset().union(*[self._loops_of[part] for part in parts])
            self._of_thread[key] = any(self._of_thread[part] for part in parts)
        return key

    def key(self, value: Value) -> Any:
        """Return something that is equal for values that are written alike."""
        value = plain(value)
        key = self._keys.get(value.number)
        if key is None:
            key = self._keys[value.number] = self._key(value)
        return key

    def _key(self, value: Value) -> Any:
        key: Any
        if value.op in _PURE:
            sums = [self.sum(argument) for argument in value.args]
            key = (value.op, value.text, *[(frozenset(terms.items()), constant) for terms, constant in sums])
            return self._note(key, [key for terms, _ in sums for key in terms])
        if value.op in ("input", "param", "symbol"):
            key = ("name", value.text)
            self._loops_of[key], self._of_thread[key] = frozenset(), value.text.startswith("threadIdx")
            return key
        key = ("value", value.number)
        self._loops_of[key] = frozenset(
            [
                loop.number
                for loop in self.loops.values()
                if value.op != "after" and loop.first <= value.number < loop.last
            ]
        )
        self._of_thread[key] = value.op not in _UNIFORM
        if value.op in ("element", "select"):
            self._keys[value.number] = key
            self._of_thread[key] = any(
                self.is_of_thread(argument) for argument in value.args if plain(argument).op != "undefined"
            )
        return key

    def is_of_thread(self, value: Value) -> bool:
        """Tell whether a value may differ between the threads of a block."""
        return any(self._of_thread[key] for key in self.sum(value)[0])

    def of_warp(self, value: Value) -> frozenset[Any]:
        """Return the terms of an index that tell warps apart, but not the lanes of one."""
        terms, _ = self.sum(value)
        return frozenset(
            [(key, factor) for key, factor in terms.items() if self._of_thread[key] and not _takes_rest(key)]
        )


def _takes_rest(key: Any) -> bool:
    """Tell whether the rest of a division is taken somewhere in a term, as for the number of a lane."""
    if isinstance(key, tuple | frozenset):
        return (isinstance(key, tuple) and key[:1] == ("mod",)) or any(_takes_rest(part) for part in key)
    return False


def _both(left: frozenset[Fact] | None, right: frozenset[Fact] | None) -> frozenset[Fact] | None:
    return None if left is None or right is None else left | right


def _added(left: Sum, right: Sum, factor: int) -> Sum:
    terms = dict(left[0])
    for key, number in right[0].items():
        total = terms.get(key, 0) + factor * number
        if total:
            terms[key] = total
        else:
            terms.pop(key, None)
    return terms, left[1] + factor * right[1]


def flags_tested(formula: Formula) -> frozenset[str]:
    """Return the compile-time flags that a formula depends on, also those that are kept in a constant."""
    if isinstance(formula, bool):
        return frozenset()
    if formula[0] == "flag":
        return frozenset((formula[1],))
    if formula[0] != "test":
        return frozenset().union(*[flags_tested(part) for part in formula[1:]])
    value = plain(formula[1])
    if value.op == "param":
        return frozenset((value.text,))
    if value.op in ("not", "and", "or"):
        return frozenset().union(*[flags_tested(("test", argument)) for argument in value.args])
    return frozenset()
