"""The table of canonical terms and their algebra: how an operation on terms is simplified.

Terms that are equal by these rules are one term, made once: sums and products are flat and sorted, the sum of a product
over a row is a matrix product, a choice between equals is none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from tracer.dataflow.ir import Loop, Value

COMMUTATIVE = frozenset(("add", "mul", "max", "min", "matmul", "join"))
_ROW = {"add": "rowsum", "max": "rowmax", "min": "rowmin"}
_REDUCTION = {name: kind for kind, name in _ROW.items()}


class Term:
    """One canonical term.

    Attributes:
        number: identity.
        op: ``input``, ``carried``, ``constant``, ``scalar``, ``undefined``, ``join`` of run-time alternatives, ``flag``
            of compile-time alternatives, ``either``, ``guarded``, or an operation.
        args: the operands; of commutative operations sorted.
        detail: the input's name, the constant, the flag, the number of the carried value.
        is_data: tensors enter it.
        carried: the loop-carried values that it depends on.
        values: the values of the graph that have this term.
        start, step: of a ``carried``: what it is before the first step, and after a step.
        loop: of a ``carried``.
        origin: of a ``carried``: its phi; of an ``either`` or ``guarded``: its select.
    """

    __slots__ = (
        "args", "carried", "detail", "is_data", "loop", "number", "op", "origin", "start", "step", "values",
    )  # fmt: skip

    def __init__(self, number: int, op: str, args: tuple[Term, ...], detail: object) -> None:
        """Make a term; :meth:`Algebra.make` does, and makes it unique."""
        self.number, self.op, self.args, self.detail = number, op, args, detail
        self.is_data: bool = op in ("input", "carried") or any(argument.is_data for argument in args)
        carried: frozenset[int] = frozenset()
        for argument in args:
            if argument.carried:
                carried |= argument.carried
        self.carried: frozenset[int] = carried
        self.values: list[Value] = []
        self.start: Term | None = None
        self.step: Term | None = None
        self.loop: Loop | None = None
        self.origin: Value | None = None

    def __repr__(self) -> str:
        """Return a short form for debugging."""
        return f"<{self.number} {self.op} {self.detail if self.detail is not None else ''}>"


class Algebra:
    """A table of terms, and the rules by which new ones are made.

    Attributes:
        nodes: all terms, in the order in which they were made.
        masked: the terms that minus infinity replaces where a run-time condition says so.
        lanes: the reductions over lanes: (operation, the value that does it).
    """

    def __init__(self, exact: bool, flags: dict[str, bool]) -> None:
        """Start with an empty table.

        Args:
            exact: keep the factors that no data enters, and the conditions.
            flags: compile-time flags that are decided.
        """
        self.exact, self.flags = exact, flags
        self.nodes: list[Term] = []
        self._table: dict[tuple[object, ...], Term] = {}
        self.lanes: list[tuple[str, Value]] = []
        self.masked: set[Term] = set()
        self._current: Value | None = None  # the value whose term is being made
        self._first: dict[Term, Term] = {}
        self._factors: dict[Term, tuple[Term, Term]] = {}  # of a product, the two that were multiplied last
        self.scalar = self.make("scalar")
        self.undefined = self.make("undefined")

    # -- making terms -------------------------------------------------------------------------------------------------
    def make(self, op: str, args: tuple[Term, ...] = (), detail: object = None) -> Term:
        """Return the one term of an operation on operands."""
        key = (op, tuple([argument.number for argument in args]), detail)
        known = self._table.get(key)
        if known is None:
            known = self._table[key] = Term(len(self.nodes), op, args, detail)
            self.nodes.append(known)
        return known

    def constant(self, number: float) -> Term:
        """Return a constant."""
        return self.make("constant", (), number)

    def is_constant(self, term: Term, number: float) -> bool:
        """Tell whether a term is one particular constant."""
        return term.op == "constant" and term.detail == number

    def _sorted(self, op: str, args: Iterable[Term]) -> Term:
        return self.make(op, tuple(sorted(args, key=lambda term: term.number)))

    def build(self, op: str, args: list[Term]) -> Term:
        """Return an operation on terms, simplified."""
        return BUILDERS[op](self, args)

    def _flat(self, op: str, args: Iterable[Term]) -> list[Term]:
        return [inner for argument in args for inner in (argument.args if argument.op == op else (argument,))]

    def _unary(self, op: str, args: list[Term]) -> Term:
        if op == "neg" and args[0].op == "constant":
            assert isinstance(args[0].detail, float)
            return self.constant(-args[0].detail)
        if op == "neg" and args[0].op == "neg":
            return args[0].args[0]
        if op == "neg" and args[0].op == "sub":
            return self._sub([args[0].args[1], args[0].args[0]])
        return self.make(op, tuple(args)) if args[0].is_data or self.exact else self.scalar

    def _lane(self, args: list[Term]) -> Term:
        return self.make("lane", tuple(args)) if args[0].is_data else args[0]

    def _mul(self, args: list[Term]) -> Term:
        args = self._flat("mul", args)
        if any(self.is_constant(argument, 0.0) for argument in args):
            return self.constant(0.0)
        for number, argument in enumerate(args):  # a factor that is compiled in or not
            if argument.op == "flag" and any(x.op in ("constant", "scalar") for x in argument.args):
                rest = args[:number] + args[number + 1 :]
                sides = [self._mul([side, *rest]) for side in argument.args]
                return self.flag(sides[0], sides[1], str(argument.detail))
        negated = [argument for argument in args if argument.op == "neg"]
        if negated and any(argument.is_data for argument in args):
            args = [argument.args[0] if argument.op == "neg" else argument for argument in args]
            product = self._mul(args)
            return self._unary("neg", [product]) if len(negated) % 2 else product
        data = [argument for argument in args if argument.is_data]
        factors = [argument for argument in args if not argument.is_data]
        if not data:
            return self._scalar_product(factors)
        inverses = [argument for argument in data if argument.op == "reciprocal"]
        rest = [argument for argument in data if argument.op != "reciprocal"]
        kept: list[Term] = []
        if self.exact:
            product = self._scalar_product(factors)
            kept = [] if self.is_constant(product, 1.0) else [product]
        numerator: Term | None = None
        if rest or kept:
            together = [*rest, *kept]
            numerator = together[0] if len(together) == 1 else self._sorted("mul", together)
        for inverse in inverses:
            numerator = inverse if numerator is None else self.make("div", (numerator, inverse.args[0]))
        assert numerator is not None
        return numerator

    def _scalar_product(self, factors: list[Term]) -> Term:
        if not self.exact:
            return factors[0] if len(factors) == 1 else self.scalar
        number = 1.0
        rest = []
        for factor in factors:
            if factor.op == "constant" and isinstance(factor.detail, float):
                number *= factor.detail
            else:
                rest.append(factor)
        if number != 1.0 or not rest:
            rest.append(self.constant(number))
        return rest[0] if len(rest) == 1 else self._sorted("mul", rest)

    def _div(self, args: list[Term]) -> Term:
        above, below = args
        if self.exact:
            if above.is_data or not below.is_data:
                return self.make("div", (above, below))
            inverse = self.make("reciprocal", (below,))
            return inverse if self.is_constant(above, 1.0) else self._mul([above, inverse])
        if not below.is_data:
            return above
        return self.make("div", (above, below)) if above.is_data else self.make("reciprocal", (below,))

    def _add(self, args: list[Term]) -> Term:
        if len(args) == 2:
            for left, right in (args, args[::-1]):
                if left.op == "lane" and left.args[0] is right:
                    self._note_lane("add")
                    return right
        args = [argument for argument in self._flat("add", args) if not self.is_constant(argument, 0.0)]
        if not args:
            return self.constant(0.0)
        if not any(argument.is_data for argument in args):
            return args[0] if len(args) == 1 else (self._sorted("add", args) if self.exact else self.scalar)
        taken_away = [argument for argument in args if argument.op == "neg"]
        if taken_away and len(taken_away) < len(args):
            rest = [argument for argument in args if argument.op != "neg"]
            return self._sub([self._add(rest), self._add([argument.args[0] for argument in taken_away])])
        kept = [x for x in args if not any(self._is_sum_of(other, x) for other in args)]
        return kept[0] if len(kept) == 1 else self._sorted("add", kept)

    def _is_sum_of(self, total: Term, term: Term) -> bool:
        """Tell whether a sum over a row begins with a term: ``x = a[0]; for n = 1...: x += a[n]``."""
        if total.op == "rowsum":
            return total.args[0] is term
        return total.op == "matmul" and term.op == "mul" and total.args == term.args

    def _extreme(self, op: str, args: list[Term]) -> Term:
        neutral = -math.inf if op == "max" else math.inf
        if any(argument.op == "lane" for argument in args):
            self._note_lane(op)
        bare = [x.args[0] if x.op == "lane" else x for x in self._flat(op, args)]
        flat = list(dict.fromkeys(x for x in self._flat(op, bare) if not self.is_constant(x, neutral)))
        if not flat:
            return self.constant(neutral)
        kept = [x for x in flat if not any(other.op == f"row{op}" and other.args[0] is x for other in flat)]
        if len(kept) == 1:
            return kept[0]
        return self._sorted(op, kept) if self.exact or any(x.is_data for x in kept) else self.scalar

    def _note_lane(self, op: str) -> None:
        assert self._current is not None
        self.lanes.append((op, self._current))

    def _sub(self, args: list[Term]) -> Term:
        left, right = args
        if self.is_constant(right, 0.0):
            return left
        if right.op == "neg":
            return self._add([left, right.args[0]])
        common = self._common_factor(left, right)
        if common is not None:
            return self._mul(
                [common, self._sub([self._without_factor(left, common), self._without_factor(right, common)])]
            )
        return self.make("sub", (left, right)) if left.is_data or right.is_data or self.exact else self.scalar

    def _common_factor(self, left: Term, right: Term) -> Term | None:
        """Return the tensor that both of two products of tensors have as a factor."""
        if left.op != "mul" or right.op != "mul":
            return None
        shared = [x for x in left.args if x.is_data and x in right.args]
        return shared[0] if len(shared) == 1 and len(left.args) > 1 and len(right.args) > 1 else None

    def _without_factor(self, product: Term, factor: Term) -> Term:
        rest = list(product.args)
        rest.remove(factor)
        return self._mul(rest)

    def _matmul(self, args: list[Term]) -> Term:
        if any(self.is_constant(argument, 0.0) for argument in args):
            return self.constant(0.0)
        return self._sorted("matmul", args)

    def reduced(self, kind: str, term: Term) -> Term:
        """Return the reduction of a term over a row."""
        if not term.is_data:
            return term
        if term.op == _ROW[kind] or (kind == "add" and term.op == "matmul"):
            return term
        if kind == "add" and term.op == "mul":
            data = [x for x in term.args if x.is_data]
            if len(data) > 2 and term in self._factors:
                return self.build("matmul", list(self._factors[term]))
            factors = [x for x in term.args if not x.is_data]
            if len(data) == 1 and factors:
                return self.build("mul", [self.reduced(kind, data[0]), *factors])
            if len(data) == 2:
                product = self.build("matmul", data)
                return self.build("mul", [product, *factors]) if factors else product
        return self.make(_ROW[kind], (term,))

    def alternatives(self, term: Term, flags: bool = False) -> list[Term]:
        """Return what a term can be at run time; with ``flags`` also what it can be compiled to."""
        if term.op == "join" or (flags and term.op in ("flag", "either", "guarded")):
            found: dict[Term, None] = {}
            for argument in term.args:
                found.update(dict.fromkeys(self.alternatives(argument, flags)))
            return list(found)
        return [term]

    def join(self, terms: Iterable[Term]) -> Term:
        """Return the choice at run time between terms."""
        found: dict[Term, None] = {}
        for term in terms:
            found.update(dict.fromkeys(x for x in self.alternatives(term) if x.op != "undefined"))
        data = [term for term in found if term.is_data]
        if data and any(self.is_constant(term, -math.inf) for term in found):
            self.masked.update(data)
        if data:  # a constant in the place of data is a mask or a guard
            found = dict.fromkeys([*data, *(x for x in found if not x.is_data and x.op != "constant")])
        if not found:
            return self.undefined
        if not data and not self.exact:
            return next(iter(found)) if len(found) == 1 else self.scalar
        return next(iter(found)) if len(found) == 1 else self._sorted("join", found)

    def flag(self, then: Term, other: Term, name: str) -> Term:
        """Return the choice at compile time between two terms."""
        if name in self.flags:
            return then if self.flags[name] else other
        if then is other or other.op == "undefined":
            return then
        if then.op == "undefined":
            return other
        if then.op == "flag" and then.detail == name:
            then = then.args[0]
        if other.op == "flag" and other.detail == name:
            other = other.args[1]
        if then is other:
            return then
        return self.make("flag", (then, other), name) if then.is_data or other.is_data or self.exact else self.scalar

    # -- changing terms -----------------------------------------------------------------------------------------------
    def replaced(self, term: Term, number: int, result: Term) -> Term:
        """Put a term in the place of a carried value."""
        return self.substitute(term, lambda leaf: result if leaf.detail == number else leaf, {})

    def substitute(self, term: Term, change: Callable[[Term], Term], memo: dict[Term, Term]) -> Term:
        """Return a term with its carried values changed."""
        if term in memo:
            return memo[term]
        if term.op == "carried":
            result = change(term)
        elif not term.carried:
            result = term
        else:
            args = [self.substitute(argument, change, memo) for argument in term.args]
            result = term if all(a is b for a, b in zip(args, term.args, strict=True)) else self._rebuilt(term, args)
        memo[term] = result
        return result

    def _rebuilt(self, term: Term, args: list[Term]) -> Term:
        if term.op in _REDUCTION:
            return self.reduced(_REDUCTION[term.op], args[0])
        if term.op == "join":
            return self.join(args)
        if term.op == "flag":
            return self.flag(args[0], args[1], str(term.detail))
        if term.op == "reciprocal":
            return self.build("div", [self.constant(1.0) if self.exact else self.scalar, args[0]])
        if term.op in BUILDERS:
            return self.build(term.op, args)
        if term.op in ("either", "guarded"):
            kept = [argument for argument in args if argument.op != "undefined"]
            if len(kept) == 1:
                return kept[0]
        made = self.make(term.op, tuple(args), term.detail)
        made.origin = made.origin or term.origin
        return made

    def first(self, term: Term) -> Term:
        """Return what a term is in the first step of its loop: carried values replaced by what they start with."""
        known = self._first.get(term)
        if known is None:

            def change(leaf: Term) -> Term:
                return leaf.start if leaf.start is not None and leaf.start.op == "constant" else leaf

            known = self._first[term] = self._simplified(self.substitute(term, change, {}), {})
        return known

    def _simplified(self, term: Term, memo: dict[Term, Term]) -> Term:
        """Use that the exponential of minus infinity is zero."""
        if term.op == "exp" and term.args[0].op == "sub" and self.is_constant(term.args[0].args[0], -math.inf):
            return self.constant(0.0)
        if not term.args:
            return term
        if term not in memo:
            args = [self._simplified(argument, memo) for argument in term.args]
            same = all(a is b for a, b in zip(args, term.args, strict=True))
            memo[term] = term if same else self._rebuilt(term, args)
        return memo[term]


#: The operations that :meth:`Algebra.build` makes, each by its rule.
BUILDERS: dict[str, Callable[[Algebra, list[Term]], Term]] = {
    "exp": lambda terms, args: terms._unary("exp", args),
    "log": lambda terms, args: terms._unary("log", args),
    "neg": lambda terms, args: terms._unary("neg", args),
    "tanh": lambda terms, args: terms._unary("tanh", args),
    "lane": lambda terms, args: terms._lane(args),
    "mul": lambda terms, args: terms._mul(args),
    "div": lambda terms, args: terms._div(args),
    "add": lambda terms, args: terms._add(args),
    "sub": lambda terms, args: terms._sub(args),
    "max": lambda terms, args: terms._extreme("max", args),
    "min": lambda terms, args: terms._extreme("min", args),
    "matmul": lambda terms, args: terms._matmul(args),
}
