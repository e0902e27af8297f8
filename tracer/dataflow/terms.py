"""Value flow as canonical terms: what is computed, without how it is stored, moved, tiled or spread over lanes.

Two values with the same term compute the same thing. Copies, conversions, loads, views and shuffles between lanes
vanish; an inner loop that only accumulates becomes a row maximum, a row sum or a matrix product; the loop of the online
softmax stays a recurrence. In the plain form, factors that no data enters vanish too, and so do constants that a guard
puts in the place of a value; both are checked by carrying the terms out (:mod:`tracer.dataflow.evaluate`), for which
the exact form keeps them.
"""

from __future__ import annotations

from bisect import bisect_left

from tracer.dataflow.algebra import Term
from tracer.dataflow.graph import Graph
from tracer.dataflow.ir import Loop, Value, plain, tests_of
from tracer.dataflow.translation import Translation


class Terms(Translation):
    """The canonical terms of a graph.

    Attributes:
        outputs: of each output, the term that is stored.
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
        super().__init__(exact, dict(flags or {}))
        self.graph = graph
        self.memo: list[Term | None] = [None] * len(graph.values)
        self.recurrences: dict[int, list[Term]] = {}
        self.main_loops: list[Loop] | None = None  # the loops over tiles, once they are asked for
        self.overwritten: list[Value] = []  # phis of which each step leaves nothing
        self.accumulated: set[tuple[int, Term]] = set()  # loops, and what they add up or compare to
        self._added: dict[Term, Value] = {}  # of a reduction in a loop, the value that adds an element to it
        self._compute(_behind_outputs(graph) if only_outputs else set(range(len(graph.values))))
        self.outputs: dict[str, Term] = {}
        self.own_summands: dict[str, int] = {}  # how often an output's old contents are added to what is stored
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
                    self.overwritten.append(phi)
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
                result = self.build(op, [start, *parts])
                self.accumulated.add((loop.number, result))
                self._again(loop, phi, result)
        elif waiting:
            self.recurrences[loop.number] = [self.term(phi) for phi in waiting]

    def _overwritten(self, leaf: Term, start: Term, step: Term) -> Term:
        """Return what a carried value is that does not depend on what it was: what each step puts there."""
        return self.join([start, self.substitute(step, lambda x: self.undefined if x is leaf else x, {})])

    # -- outputs ------------------------------------------------------------------------------------------------------
    def _find_outputs(self) -> None:
        for name, value in self.graph.outputs.items():
            term = self.term(value)
            own = self._table.get(("input", (), name))
            if term is own or not term.is_data:
                continue
            if own is not None:
                self.own_summands[name] = _own_summands(term, own)
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


def _own_summands(term: Term, own: Term) -> int:
    """Return how often a term has another one as a summand, in the alternative that has it most often."""
    if term.op in ("join", "flag", "guarded", "either"):
        return max(_own_summands(argument, own) for argument in term.args)
    return term.args.count(own) if term.op == "add" else 0


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
            waiting += tests_of(value.condition)
        if value.loop is not None:
            waiting += value.loop.phis
    return found


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
