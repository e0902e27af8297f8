"""Does a kernel compute what a listing says? Co-inductive matching of two sets of terms, anchored at the outputs.

Nothing is matched by name. That an argument is Q is a result: it is the one whose tile the loop over j does not load
again, and that meets K in a product whose exponential is taken. Which compile-time flags are on is chosen so that the
match succeeds, and reported. Alternatives at run time must all match; an alternative may be the form that the listing's
step has in its first iteration.
"""

from __future__ import annotations

from dataclasses import field
from itertools import permutations

from tracer.dataflow.algebra import COMMUTATIVE, Term
from tracer.dataflow.ir import Loop, Value
from tracer.dataflow.terms import Terms
from tracer.records import dataclass

#: Pairs of terms that one matching may look at.
BUDGET = 200_000
#: How many outputs may be permuted; a kernel with more is matched in their order.
_MAX_PERMUTED = 6


@dataclass(slots=True)
class Match:
    """What was found to correspond.

    Attributes:
        pairs: (listing's term, kernel's term), by their numbers.
        inputs: of each input of the listing, the kernel's.
        outputs: of each output of the listing, the kernel's; None where nothing is stored.
        flags: the compile-time flags that the match assumes.
        first_forms: the listing's terms that an alternative realises in their first-iteration form.
        ok: everything matched.
        exhausted: the bound on work was reached.
        looked_at: how many pairs were looked at.
    """

    pairs: dict[tuple[int, int], tuple[Term, Term]] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str | None] = field(default_factory=dict)
    flags: dict[str, bool] = field(default_factory=dict)
    first_forms: list[Term] = field(default_factory=list)
    ok: bool = False
    exhausted: bool = False
    looked_at: int = 0


def main_loops(terms: Terms) -> list[Loop]:
    """Return the loops over tiles: those that carry data and load inputs, and hold no other such loop."""
    if terms.main_loops is None:
        terms.main_loops = _main_loops(terms)
    return terms.main_loops


def _main_loops(terms: Terms) -> list[Loop]:
    loaded: set[int] = set()
    for storage in terms.graph.inputs.values():
        if storage.space == "global":
            loaded |= storage.loaded_in
    loading = [loop for loop in terms.graph.loops if loop.number in loaded and _multiplies(terms, loop)]
    recurrent = {number for number, leaves in terms.recurrences.items() if any(_is_softmax(leaf) for leaf in leaves)}
    carrying = [loop for loop in loading if loop.number in recurrent]
    if not carrying:
        carrying = [loop for loop in loading if any(terms.term(phi.args[1]).is_data for phi in loop.phis)]
    return [
        loop for loop in carrying
        if not any(loop.first < other.first and other.last <= loop.last for other in carrying)
    ]  # fmt: skip


def _multiplies(terms: Terms, loop: Loop) -> bool:
    """Tell whether a matrix product is computed inside of a loop."""
    values = terms.graph.values[loop.first : loop.last]
    return any(value.op == "matmul" or (len(value.args) == 2 and _is_product(terms, value)) for value in values)


def _is_product(terms: Terms, value: Value) -> bool:
    """Tell whether a loop accumulates a matrix product element by element."""
    return value.op == "phi" and value.forward is None and terms.term(value).op == "matmul"


def _is_softmax(leaf: Term) -> bool:
    """Tell whether a carried value takes part in a recurrence over data, not only in a counter's."""
    return leaf.step is not None and leaf.step.op in ("add", "max", "min", "div", "join", "mul", "flag")


class Matcher:
    """The strict pass. A trail of what was assumed lets it take back an assumption without copying."""

    def __init__(self, paper: Terms, kernel: Terms, budget: int = BUDGET, flags: dict[str, bool] | None = None) -> None:
        """Prepare to match a kernel against a listing, with some compile-time flags decided beforehand."""
        self.paper, self.kernel, self.budget = paper, kernel, budget
        self.paper_loops = {loop.number for loop in main_loops(paper)}
        self.kernel_loops = {loop.number for loop in main_loops(kernel)}
        self.pairs: dict[tuple[int, int], tuple[Term, Term]] = {}
        self.inputs: dict[int, int] = {}
        self.inverse: dict[int, int] = {}
        self.flags: dict[str, bool] = dict(flags or {})
        self.first_forms: dict[int, Term] = {}
        self._trail: list[tuple[dict[object, object], object]] = []

    # -- assumptions --------------------------------------------------------------------------------------------------
    def _assume(self, table: dict[object, object], key: object, what: object) -> None:
        table[key] = what
        self._trail.append((table, key))

    def _back_to(self, mark: int) -> None:
        while len(self._trail) > mark:
            table, key = self._trail.pop()
            table.pop(key, None)

    # -- matching -----------------------------------------------------------------------------------------------------
    def same(self, p: Term, k: Term) -> bool:
        """Tell whether a kernel's term computes a listing's term, under assumptions that are kept if so."""
        key = (p.number, k.number)
        if key in self.pairs:
            return True
        self.budget -= 1
        if self.budget < 0:
            return False
        mark = len(self._trail)
        self._assume(self.pairs, key, (p, k))  # type: ignore[arg-type]
        if self._same(p, k):
            return True
        self._back_to(mark)
        return False

    def _same(self, p: Term, k: Term) -> bool:
        if k.op == "flag":
            name = str(k.detail)
            if name in self.flags:
                return self.same(p, k.args[0 if self.flags[name] else 1])
            for choice in (False, True):
                mark = len(self._trail)
                self._assume(self.flags, name, choice)  # type: ignore[arg-type]
                if self.same(p, k.args[0 if choice else 1]):
                    return True
                self._back_to(mark)
            return False
        if k.op == "join" and p.op != "join":
            return all(self._same_alternative(p, alternative) for alternative in k.args)
        if p.op == "input":
            return k.op == "input" and self._same_input(p, k)
        if p.op == "carried":
            return k.op == "carried" and self._same_carried(p, k)
        if p.op == "constant":
            return (k.op == "constant" and k.detail == p.detail) or k.op == "undefined"
        if p.op == "scalar":
            return not k.is_data
        if p.op != k.op or len(p.args) != len(k.args):
            return False
        if p.op not in COMMUTATIVE:
            return all(self.same(a, b) for a, b in zip(p.args, k.args, strict=True))
        if len(k.args) > 5:
            return False
        for order in permutations(k.args):
            mark = len(self._trail)
            if all(self.same(a, b) for a, b in zip(p.args, order, strict=True)):
                return True
            self._back_to(mark)
            if self.budget < 0:
                return False
        return False

    def _same_alternative(self, p: Term, alternative: Term) -> bool:
        if self.same(p, alternative):
            return True
        first_p, first_k = self.paper.first(p), self.kernel.first(alternative)
        if first_p is p and first_k is alternative:
            return False
        if self.same(first_p, first_k):
            self._assume(self.first_forms, p.number, p)  # type: ignore[arg-type]
            return True
        return False

    def _same_input(self, p: Term, k: Term) -> bool:
        if self.inputs.get(p.number, k.number) != k.number or self.inverse.get(k.number, p.number) != p.number:
            return False
        if self.paper_loops and self.in_main_loop(self.paper, p) != self.in_main_loop(self.kernel, k):
            return False
        if p.number not in self.inputs:
            self._assume(self.inputs, p.number, k.number)  # type: ignore[arg-type]
            self._assume(self.inverse, k.number, p.number)  # type: ignore[arg-type]
        return True

    def in_main_loop(self, terms: Terms, leaf: Term) -> bool:
        """Tell whether an input is loaded again in each step of the innermost loop over tiles."""
        loops = self.paper_loops if terms is self.paper else self.kernel_loops
        return bool(terms.graph.inputs[str(leaf.detail)].loaded_in & loops)

    def _same_carried(self, p: Term, k: Term) -> bool:
        if p.step is None or k.step is None or p.start is None or k.start is None:
            return False
        if not self.same(p.step, k.step):
            return False
        if k.start.op == "carried":  # the loop was split in two
            return self.same(p, k.start)
        if k.start.op == "undefined":
            return k.step.op == "join"
        return self.same(p.start, k.start)

    # -- outputs ------------------------------------------------------------------------------------------------------
    def match(self) -> Match:
        """Match all outputs; the best assignment of outputs is found on the way."""
        names = list(self.paper.outputs)
        for assignment in self.assignments(names):
            mark = len(self._trail)
            if all(
                k is not None and self.same(self.paper.outputs[name], self.kernel.outputs[k])
                for name, k in zip(names, assignment, strict=True)
            ):
                return self.result(dict(zip(names, assignment, strict=True)), True)
            self._back_to(mark)
            if self.budget < 0:
                break
        return self.result({}, False)

    def assignments(self, names: list[str]) -> list[tuple[str | None, ...]]:
        """Return the ways to assign the kernel's outputs to the listing's, the most alike first."""
        stored: list[str | None] = list(self.kernel.outputs)
        stored += [None] * max(0, len(names) - len(stored))
        if len(stored) > _MAX_PERMUTED:
            wanted = {self.paper.outputs[name].op for name in names}
            stored = [k for k in stored if k is not None and self._possible_ops(self.kernel.outputs[k]) & wanted]
            stored += [None] * max(0, len(names) - len(stored))
            stored = stored[:_MAX_PERMUTED]

        def likeness(assignment: tuple[str | None, ...]) -> int:
            return -sum(
                k is not None and self.paper.outputs[name].op in self._possible_ops(self.kernel.outputs[k])
                for name, k in zip(names, assignment, strict=True)
            )

        return sorted(permutations(stored, len(names)), key=likeness)

    def _possible_ops(self, term: Term) -> set[str]:
        return {alternative.op for alternative in self.kernel.alternatives(term, True)}

    def result(self, outputs: dict[str, str | None], ok: bool) -> Match:
        """Return what is assumed now as an answer."""
        paper, kernel = self.paper.nodes, self.kernel.nodes
        return Match(
            dict(self.pairs),
            {str(paper[p].detail): str(kernel[k].detail) for p, k in self.inputs.items()},
            outputs,
            dict(self.flags),
            list(self.first_forms.values()),
            ok,
            self.budget < 0,
            BUDGET - self.budget,
        )
