"""Value flow as canonical terms: what is computed, without how it is stored, moved, tiled or spread over lanes.

Two values with the same term compute the same thing. Copies, conversions, loads, views and shuffles between lanes
vanish; an inner loop that only accumulates becomes a row maximum, a row sum or a matrix product; the loop of the online
softmax stays a recurrence. In the plain form, factors that no data enters vanish too, and so do constants that a guard
puts in the place of a value; both are checked by carrying the terms out (:mod:`tracer.dataflow.evaluate`), for which
the exact form keeps them.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable

from tracer.dataflow.graph import Graph
from tracer.dataflow.ir import Formula, Loop, Value, decided, plain

COMMUTATIVE = frozenset(("add", "mul", "max", "min", "matmul", "join"))
_ROW = {"add": "rowsum", "max": "rowmax", "min": "rowmin"}
_REDUCTION = {name: kind for kind, name in _ROW.items()}
_SIDEWAYS = frozenset(("set", "element", "copy", "convert", "broadcast"))


class Term:
    """One canonical term.

    Attributes:
        number: identity.
        op: ``input``, ``carried``, ``constant``, ``scalar``, ``undefined``, ``join`` of run-time alternatives, ``flag``
            of compile-time alternatives, ``masked``, ``guarded``, or an operation.
        args: the operands; of commutative operations sorted.
        detail: the input's name, the constant, the flag, the number of the carried value.
        is_data: tensors enter it.
        carried: the loop-carried values that it depends on.
        values: the values of the graph that have this term.
        start, step: of a ``carried``: what it is before the first step, and after a step.
        loop: of a ``carried``.
        origin: of a ``carried``: its phi; of a ``masked`` or ``guarded``: its select.
    """

    __slots__ = (
        "args", "carried", "detail", "is_data", "loop", "number", "op", "origin", "start", "step", "values",
    )  # fmt: skip

    def __init__(self, number: int, op: str, args: tuple[Term, ...], detail: object) -> None:
        """Make a term; :meth:`Terms.make` does, and makes it unique."""
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


class Terms:
    """The canonical terms of a graph.

    Attributes:
        outputs: of each output, the term that is stored.
        masked: the terms that minus infinity replaces where a run-time condition says so.
        lanes: the reductions over lanes: (operation, the value that does it).
        recurrences: by loop number, the carried terms.
    """

    def __init__(
        self, graph: Graph, *, exact: bool = False, flags: dict[str, bool] | None = None, only_outputs: bool = False
    ) -> None:
        """Compute them all.

        Args:
            graph: the value flow.
            exact: keep the factors that no data enters, and the conditions.
            flags: compile-time flags that are decided.
            only_outputs: compute only those that an output depends on, and ask for no others.
        """
        self.graph, self.exact, self.flags = graph, exact, dict(flags or {})
        self.nodes: list[Term] = []
        self._table: dict[tuple[object, ...], Term] = {}
        self.memo: list[Term | None] = [None] * len(graph.values)
        self.lanes: list[tuple[str, Value]] = []
        self.masked: set[Term] = set()
        self.recurrences: dict[int, list[Term]] = {}
        self._current: Value | None = None
        self.main_loops: list[Loop] | None = None  # the loops over tiles, once they are asked for
        self._first: dict[Term, Term] = {}
        self._factors: dict[Term, tuple[Term, Term]] = {}  # of a product, the two that were multiplied last
        self._added: dict[Term, Value] = {}  # of a reduction in a loop, the value that adds an element to it
        self.scalar = self.make("scalar")
        self.undefined = self.make("undefined")
        self._compute(_behind_outputs(graph) if only_outputs else set(range(len(graph.values))))
        self.outputs: dict[str, Term] = {}
        self._find_outputs()
        for value in () if only_outputs else graph.values:
            if value.site is not None and value.op not in ("element", "const"):
                self.term(value).values.append(value)
        for term, value in self._added.items():  # of a sum with more in it than the reduction, no value is the part
            if not term.values:
                term.values.append(value)

    # -- order of work ------------------------------------------------------------------------------------------------
    def _compute(self, wanted: set[int]) -> None:
        order = sorted(wanted)
        done = 0
        for loop in sorted(self.graph.loops, key=lambda loop: (loop.last, -loop.number)):
            end = bisect_left(order, loop.last, done)
            self._fill(order[done:end])
            done = end
            if any(phi.number in wanted for phi in loop.phis):
                self._collapse(loop)
        self._fill(order[done:])
        for carried in self.recurrences.values():
            for leaf in carried:
                assert leaf.origin is not None
                leaf.start, leaf.step = self.term(leaf.origin.args[0]), self.term(leaf.origin.args[1])

    def _fill(self, numbers: list[int]) -> None:
        values, memo = self.graph.values, self.memo
        for number in numbers:
            if memo[number] is None:
                value = values[number]
                self._current = value
                memo[number] = self.term(value.forward) if value.forward is not None else self._term(value)

    def term(self, value: Value) -> Term:
        """Return the term of a value."""
        while value.forward is not None:
            value = value.forward
        found = self.memo[value.number]
        if found is None:
            found = self.memo[value.number] = self._term(value)
        return found

    def _again(self, loop: Loop, phi: Value, result: Term) -> None:
        """Give a phi its meaning, and compute again what depends on it."""
        self.memo[phi.number] = result
        values, memo = self.graph.values, self.memo
        for number in range(loop.first, loop.last):
            known = memo[number]
            if known is None or phi.number not in known.carried or number == phi.number:
                continue
            value = values[number]
            if value.op == "phi" and value.forward is None and known.op != "carried":
                memo[number] = self.replaced(known, phi.number, result)
            elif value.op != "phi" or value.forward is not None:
                self._current = value
                memo[number] = self.term(value.forward) if value.forward is not None else self._term(value)

    # -- one value ----------------------------------------------------------------------------------------------------
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
        if op in _BUILDERS:
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
        return _BUILDERS[op](self, args)

    def _flat(self, op: str, args: Iterable[Term]) -> list[Term]:
        return [inner for argument in args for inner in (argument.args if argument.op == op else (argument,))]

    def _unary(self, op: str, args: list[Term]) -> Term:
        if op == "neg" and args[0].op == "constant":
            assert isinstance(args[0].detail, float)
            return self.constant(-args[0].detail)
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
        return self.make("sub", (left, right)) if left.is_data or right.is_data or self.exact else self.scalar

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

    # -- loops --------------------------------------------------------------------------------------------------------
    def _collapse(self, loop: Loop) -> None:
        """Find out what a loop's carried values are: unchanged, a reduction, or a recurrence that stays."""
        waiting = list(loop.phis)
        again = True
        candidates: dict[Value, tuple[str, Term, list[Term]]] = {}
        while again:
            again, candidates, kept = False, {}, []
            numbers = {phi.number for phi in waiting}
            for phi in waiting:
                leaf = self.term(phi)
                if leaf.op != "carried" or leaf.origin is not phi:
                    continue
                start, step = self.term(phi.args[0]), self.term(phi.args[1])
                others = [x for x in self.alternatives(step, True) if x is not leaf]
                if not any(phi.number in x.carried for x in others):
                    self._again(loop, phi, self._overwritten(leaf, start, step))
                    again = True
                    continue
                if step.op in ("add", "max", "min") and leaf in step.args:
                    rest = [x for x in step.args if x is not leaf]
                    if len(rest) > 1 and _writes_several_elements(phi):
                        rest = list(dict.fromkeys(rest))  # each of the elements gains one of them
                    if step.args.count(leaf) == 1 and not any(x.carried & numbers for x in rest):
                        candidates[phi] = (step.op, start, rest)
                kept.append(phi)
            waiting = kept
        if waiting and len(candidates) == len(waiting):
            for phi, (op, start, rest) in candidates.items():
                self._current = phi
                parts = [self.reduced(op, x) for x in rest]
                self._added.update(dict.fromkeys(parts, plain(phi.args[1])))
                self._again(loop, phi, self.build(op, [start, *parts]))
        elif waiting:
            self.recurrences[loop.number] = [self.term(phi) for phi in waiting]

    def _overwritten(self, leaf: Term, start: Term, step: Term) -> Term:
        """Return what a carried value is that does not depend on what it was: what each step puts there."""
        return self.join([start, self.substitute(step, lambda x: self.undefined if x is leaf else x, {})])

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
        if term.op in _BUILDERS:
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

    # -- outputs ------------------------------------------------------------------------------------------------------
    def _find_outputs(self) -> None:
        for name, value in self.graph.outputs.items():
            term = self.term(value)
            own = self._table.get(("input", (), name))
            if term is own or not term.is_data:
                continue
            term = self._without(term, own, {})
            if term.is_data:
                self.outputs[name] = term

    def _without(self, term: Term, own: Term | None, memo: dict[Term, Term]) -> Term:
        """Drop the old contents of an output: a predicated store keeps them, an accumulation adds to them."""
        if own is None:
            return term
        if term in memo:
            return memo[term]
        memo[term] = term
        if term.op in ("join", "flag", "guarded", "either"):
            args = [self.undefined if x is own else self._without(x, own, memo) for x in term.args]
            if term.op == "join":
                memo[term] = self.join(args)
            elif term.op == "flag":
                memo[term] = self.flag(args[0], args[1], str(term.detail))
            else:
                data = [x for x in args if x.op != "undefined"]
                memo[term] = data[0] if len(data) == 1 else self._rebuilt(term, args)
        elif term.op == "add":
            memo[term] = self.build("add", [self._zeroed(x, own) for x in term.args])
        return memo[term]

    def _zeroed(self, term: Term, own: Term) -> Term:
        if term is own:
            return self.constant(0.0)
        if term.op == "flag":
            args = [self._zeroed(argument, own) for argument in term.args]
            return self.flag(args[0], args[1], str(term.detail))
        return term

    def flag_names(self) -> list[str]:
        """Return the compile-time flags that are left open in some term."""
        return list(dict.fromkeys(str(term.detail) for term in self.nodes if term.op == "flag"))

    # -- names --------------------------------------------------------------------------------------------------------
    def names(self, term: Term) -> list[str]:
        """Return the variables that hold a term, in the order of their assignments."""
        return list(dict.fromkeys(value.name for value in term.values if value.name))

    def show(self, term: Term, depth: int = 3) -> str:
        """Return a term as a short formula."""
        names = self.names(term)
        if term.op == "input":
            return str(term.detail)
        if term.op == "carried":
            storage = term.origin.storage if term.origin is not None else None
            return storage.name if storage is not None and storage.name else "carried"
        if term.op == "constant":
            return f"{term.detail:g}"
        if term.op in ("scalar", "undefined"):
            return str(term.detail or term.op)
        if depth <= 0 and names:
            return names[-1]
        if depth <= -2:
            return "…"
        inner = ", ".join(self.show(argument, depth - 1) for argument in term.args)
        return f"{term.op}({inner})"


def _behind_outputs(graph: Graph) -> set[int]:
    """Return the numbers of the values that the outputs depend on; of a loop's carried values all, where one is."""
    found: set[int] = set()
    waiting = list(graph.outputs.values())
    while waiting:
        value = waiting.pop()
        if value.number in found:
            continue
        found.add(value.number)
        waiting += value.args
        if value.forward is not None:
            waiting.append(value.forward)
        if value.condition is not True:
            waiting += _tested(value.condition)
        if value.loop is not None:
            waiting += value.loop.phis
    return found


def _tested(formula: Formula) -> list[Value]:
    """Return the values that a condition tests."""
    if isinstance(formula, bool) or formula[0] == "flag":
        return []
    if formula[0] == "test":
        return [formula[1]]
    return [value for part in formula[1:] for value in _tested(part)]


def _writes_several_elements(phi: Value) -> bool:
    """Tell whether a step adds to several elements of what it carries, one after the other, and to each but once."""
    places: list[tuple[int, ...]] = []
    value = phi.args[1]
    for _ in range(64):
        while value.forward is not None or value.op in ("copy", "convert", "element"):
            value = value.forward if value.forward is not None else value.args[0]
        if value is phi or value.op == "phi":
            break
        if value.op == "set":
            if len(value.args) > 1:
                places.append(tuple([plain(index).number for index in value.args[1:]]))
            value = value.args[0]
        elif value.op == "add":
            value = value.args[0]
        else:
            break
    return len(places) > 1 and len(set(places)) == len(places)


_BUILDERS: dict[str, Callable[[Terms, list[Term]], Term]] = {
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

__all__ = ["COMMUTATIVE", "Formula", "Term", "Terms"]
