"""What is wrong with a kernel that does not match: the second pass, which pairs operands by likeness.

It never searches. Operands are paired by how alike they are, and each discrepancy is named: the step of the listing
that is missing, swapped or superfluous, the place in the kernel, and the calls through which that place was reached.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

from tracer.dataflow.algebra import COMMUTATIVE, Term
from tracer.dataflow.match import Match, Matcher
from tracer.dataflow.steps import Steps
from tracer.dataflow.terms import Terms
from tracer.model import Location
from tracer.records import dataclass

_SILENT = frozenset(("set", "select", "phi", "copy", "convert", "input"))
_STRICT_BUDGET = 3000
_MAX_PERMUTED = 5


@dataclass(frozen=True, slots=True)
class Finding:
    """One discrepancy.

    Attributes:
        kind: ``missing``, ``extra``, ``swapped``, ``different``; of the side checks ``mask``, ``lanes``, ``scale``,
            ``bounds``, ``barrier``, ``value``, ``store``.
        message: what is wrong, in one line.
        step: the key of the listing's step that it concerns, or None.
        location: where in the kernel.
        chain: the call sites through which that place is reached, innermost first.
    """

    kind: str
    message: str
    step: tuple[int, int] | None = None
    location: Location | None = None
    chain: tuple[Location, ...] = ()


class Diagnosis(Matcher):
    """Pairs the terms of a listing and of a kernel that does not match it, and lists what is wrong."""

    def __init__(self, paper: Terms, kernel: Terms, steps: Steps) -> None:
        """Prepare."""
        super().__init__(paper, kernel)
        self.steps = steps
        self.findings: list[Finding] = []
        self._likeness: dict[tuple[int, int, int], float] = {}
        self._seen: set[tuple[int, int]] = set()

    # -- saying it ----------------------------------------------------------------------------------------------------
    def place(self, term: Term) -> tuple[Location | None, tuple[Location, ...]]:
        """Return where the kernel computes a term, and the call sites on the way there, innermost first."""
        graph = self.kernel.graph
        for wanted in (lambda op: op not in _SILENT, lambda op: op != "input"):
            for value in term.values:
                if value.site is not None and wanted(value.op):
                    return graph.location(value.site), graph.calls(value.chain)
        if term.loop is not None:
            return graph.location(term.loop.site), graph.calls(term.loop.chain)
        for argument in term.args:
            location, chain = self.place(argument)
            if location is not None:
                return location, chain
        return None, ()

    def say(self, kind: str, message: str, step: tuple[int, int] | None, term: Term, fallback: Term | None) -> None:
        """Add a finding, once."""
        anchor = fallback if fallback is not None and term.op in ("carried", "input", "constant", "undefined") else term
        location, chain = self.place(anchor)
        finding = Finding(kind, message, step, location, chain)
        if finding not in self.findings:
            self.findings.append(finding)

    def shown(self, term: Term, depth: int = 2) -> str:
        """Return a kernel's term as a short formula of its variables."""
        return self.kernel.show(term, depth)

    # -- likeness -----------------------------------------------------------------------------------------------------
    def like(self, p: Term, k: Term, depth: int = 4) -> float:
        """Return how alike two terms are, looking ``depth`` operations deep."""
        if k.op in ("flag", "join") and p.op not in ("flag", "join"):
            return max(self.like(p, argument, depth) for argument in k.args)
        if p.op == "input" and k.op == "input":
            if self.inputs.get(p.number) == k.number:
                return 3.0
            if p.number in self.inputs or k.number in self.inverse:
                return 0.2
            return 1.0 + (self.in_main_loop(self.paper, p) == self.in_main_loop(self.kernel, k))
        key = (p.number, k.number, depth)
        known = self._likeness.get(key)
        if known is not None:
            return known
        self._likeness[key] = 0.0
        result = self._like(p, k, depth)
        self._likeness[key] = result
        return result

    def _like(self, p: Term, k: Term, depth: int) -> float:
        if p.op != k.op:
            if depth < 2:
                return 0.0
            inner = [self.like(argument, k, depth - 2) for argument in p.args]
            inner += [self.like(p, argument, depth - 2) for argument in k.args[:_MAX_PERMUTED]]
            return 0.3 * max([*inner, 0.0])
        if p.op == "carried":
            if depth <= 1 or p.step is None or k.step is None:
                return 1.0
            return 1.0 + self.like(p.step, k.step, depth - 2)
        if depth == 0 or not p.args:
            return 1.0
        if p.op in COMMUTATIVE and len(k.args) <= _MAX_PERMUTED:
            return 1.0 + max(
                sum(self.like(a, b, depth - 1) for a, b in zip(p.args, order, strict=False))
                for order in permutations(k.args)
            )
        return 1.0 + sum(self.like(a, b, depth - 1) for a, b in zip(p.args, k.args, strict=False))

    def strictly(self, p: Term, k: Term) -> bool:
        """Tell whether two terms match strictly under what is bound so far; nothing is kept of it."""
        mark, budget = len(self._trail), self.budget
        pairs, self.pairs, self.budget = self.pairs, {}, _STRICT_BUDGET
        result = self.same(p, k)
        self._back_to(mark)
        self.pairs, self.budget = pairs, budget
        return result

    # -- the pass -----------------------------------------------------------------------------------------------------
    def diagnose(self) -> Match:
        """Pair everything and return the pairs; what is wrong is in ``findings``."""
        names = list(self.paper.outputs)
        best = max(self.assignments(names), key=self._assignment_likeness(names))
        outputs = dict(zip(names, best, strict=True))
        for name, k in outputs.items():
            if k is None:
                self.findings.append(Finding("store", f"nothing is stored that could be {name}", None))
            else:
                self.pair(self.paper.outputs[name], self.kernel.outputs[k], None, None)
        return self.result(outputs, False)

    def _assignment_likeness(self, names: list[str]) -> Callable[[tuple[str | None, ...]], float]:
        def likeness(assignment: tuple[str | None, ...]) -> float:
            return sum(
                self.like(self.paper.outputs[name], self.kernel.outputs[k])
                for name, k in zip(names, assignment, strict=True)
                if k is not None
            )

        return likeness

    def pair(self, p: Term, k: Term, parent: tuple[Term, int] | None, above: Term | None) -> None:
        """Pair two terms and what is below them.

        Args:
            p: the listing's.
            k: the kernel's.
            parent: the listing's term that ``p`` is an operand of, and its position.
            above: the kernel's term that ``k`` is an operand of.
        """
        key = (p.number, k.number)
        if key in self._seen:
            return
        self._seen.add(key)
        mark = len(self._trail)
        if self.same(p, k):
            return
        self._back_to(mark)
        self.pairs[key] = (p, k)
        if k.op == "flag":
            self._pair_flag(p, k, parent, above)
        elif k.op == "join" and p.op != "join":
            self._pair_join(p, k, parent, above)
        elif p.op == "input":
            self._pair_input(p, k, parent, above)
        elif p.op in ("constant", "scalar") or (p.op == "carried" and k.op != "carried"):
            self._different(p, k, parent, above)
        elif p.op == "carried":
            self._pair_carried(p, k, above)
        elif p.op != k.op:
            self._pair_operations(p, k, parent, above)
        else:
            self._pair_operands(p, k, parent, above)

    def _pair_flag(self, p: Term, k: Term, parent: tuple[Term, int] | None, above: Term | None) -> None:
        name = str(k.detail)
        choice = self.flags.get(name)
        if choice is None:
            if self.strictly(p, k.args[1]):
                choice = False
            elif self.strictly(p, k.args[0]):
                choice = True
            else:
                choice = self.like(p, k.args[0]) > self.like(p, k.args[1])
            self.flags[name] = choice
        self.pair(p, k.args[0 if choice else 1], parent, above)

    def _pair_join(self, p: Term, k: Term, parent: tuple[Term, int] | None, above: Term | None) -> None:
        for alternative in k.args:
            first_p, first_k = self.paper.first(p), self.kernel.first(alternative)
            is_other = first_p is not p or first_k is not alternative
            if is_other and not self.strictly(p, alternative):
                if self.strictly(first_p, first_k) or self.like(first_p, first_k) > self.like(p, alternative):
                    self.pair(first_p, first_k, parent, above)
                    continue
            self.pair(p, alternative, parent, above)

    def _pair_input(self, p: Term, k: Term, parent: tuple[Term, int] | None, above: Term | None) -> None:
        step = (parent[0].number, parent[1]) if parent is not None else None
        symbol = self.steps.symbol(p)
        into = f" in {self.steps.result(parent[0])}" if parent is not None else ""
        if k.op != "input":
            message = f"{symbol}{into}: a tile loaded from an argument is expected, found {self.shown(k)}"
            return self.say("different", message, step, k, above)
        found = str(k.detail)
        bound = self.inputs.get(p.number)
        taken = self.inverse.get(k.number)
        if bound is not None and bound != k.number:
            other = self.kernel.nodes[bound].detail
            message = f"{symbol}{into}: {other} is expected, found {found}"
        elif taken is not None and taken != p.number:
            message = f"{symbol}{into}: found {found}, which is {self.steps.symbol(self.paper.nodes[taken])}"
        else:
            expected = self.in_main_loop(self.paper, p)
            word = "loaded again in each step of the inner loop over tiles"
            message = f"{symbol}{into}: {found} is {'not ' if expected else ''}{word}"
        return self.say("different", message, step, k, above)

    def _different(self, p: Term, k: Term, parent: tuple[Term, int] | None, above: Term | None) -> None:
        step = (parent[0].number, parent[1]) if parent is not None else None
        what = "what it was before this step" if p.op == "carried" else self.steps.symbol(p)
        if parent is not None and parent[1] == -1:
            message = f"{self.steps.symbol(parent[0])} starts at {self.shown(k)} in the place of {what}"
        else:
            into = f" in {self.steps.result(parent[0])}" if parent is not None else ""
            message = f"{self.steps.symbol(p)}{into}: {what} is expected, found {self.shown(k)}"
        self.say("different", message, step, k, above)

    def _pair_carried(self, p: Term, k: Term, above: Term | None) -> None:
        assert p.step is not None and k.step is not None and p.start is not None and k.start is not None
        self.pair(p.step, k.step, None, k)
        if k.start.op == "carried":
            return self.pair(p, k.start, None, above)
        if k.start.op == "undefined":
            if k.step.op != "join":
                symbol = self.steps.symbol(p)
                self.say("missing", f"{symbol} never gets the value that it starts with", (p.number, -1), k, k)
            return None
        return self.pair(p.start, k.start, (p, -1), k)

    def _pair_operations(self, p: Term, k: Term, parent: tuple[Term, int] | None, above: Term | None) -> None:
        """The operations differ: one of the listing is missing, or the kernel has one more."""
        result = self.steps.result(p)
        formula = f"{result} <- {self.steps.formula(p)}"
        positions = [n for n, a in enumerate(p.args) if a.op not in ("constant", "scalar") and self.strictly(a, k)]
        positions.sort(key=lambda n: -self.like(p.args[n], k))
        if positions:
            return self._missing(p, positions[0], k, above, formula)
        extra = [n for n, b in enumerate(k.args) if self.strictly(p, b)]
        if extra:
            others = [self.shown(b, 1) for n, b in enumerate(k.args) if n != extra[0]]
            with_what = f" with {', '.join(others)}" if others else ""
            message = f"{self.steps.symbol(p)} goes through {k.op}{with_what}, which the algorithm does not have"
            step = (parent[0].number, parent[1]) if parent is not None else (p.number, 0)
            return self.say("extra", message, step, k, above)
        ranked = [(self.like(a, k), 0, n) for n, a in enumerate(p.args)]
        ranked += [(self.like(p, b), 1, n) for n, b in enumerate(k.args)]
        best = max([*ranked, (0.0, 2, 0)])
        if best[0] > 1 and best[1] == 0:
            self._missing(p, best[2], k, above, formula)
            return self.pair(p.args[best[2]], k, (p, best[2]), above)
        into = f" in {self.steps.result(parent[0])}" if parent is not None else ""
        message = f"{self.steps.symbol(p)}{into}: {self.steps.formula(p)} is expected, found {self.shown(k)}"
        return self.say("different", message, (p.number, 0), k, above)

    def _missing(self, p: Term, position: int, k: Term, above: Term | None, formula: str) -> None:
        others = [n for n in range(len(p.args)) if n != position]
        step = (p.number, others[0] if others else position)
        title = self.steps.by_key[step].title if step in self.steps.by_key else formula
        self.say("missing", f"{title}: missing {formula}; found {self.shown(k)}", step, k, above)

    def _pair_operands(self, p: Term, k: Term, parent: tuple[Term, int] | None, above: Term | None) -> None:
        result = self.steps.result(p)
        formula = f"{result} <- {self.steps.formula(p)}"
        if p.op not in COMMUTATIVE:
            if len(p.args) == 2 and not (self.strictly(p.args[0], k.args[0]) and self.strictly(p.args[1], k.args[1])):
                if self.strictly(p.args[0], k.args[1]) and self.strictly(p.args[1], k.args[0]):
                    message = f"the operands of {p.op} are swapped: {formula} is expected, found {self.shown(k)}"
                    return self.say("swapped", message, (p.number, 0), k, above)
            for position, (a, b) in enumerate(zip(p.args, k.args, strict=False)):
                self.pair(a, b, (p, position), k)
            return None
        length = max(len(p.args), len(k.args))
        mine: list[Term | None] = [*p.args, *[None] * (length - len(p.args))]
        theirs: list[Term | None] = [*k.args, *[None] * (length - len(k.args))]
        if length <= _MAX_PERMUTED:
            theirs = list(
                max(
                    permutations(theirs),
                    key=lambda order: sum(
                        self.like(a, b, 5) + 10 * self.strictly(a, b)
                        for a, b in zip(mine, order, strict=True)
                        if a is not None and b is not None
                    ),
                )
            )
        rows = sorted(enumerate(zip(mine, theirs, strict=True)), key=lambda row: None in row[1])
        for position, (left, right) in rows:
            if left is None and right is not None:
                message = f"{self.shown(right, 1)} is a further operand of {p.op} in {result}; {formula} is expected"
                self.say("extra", message, (p.number, 0), right, k)
            elif right is None and left is not None:
                title = self.steps.by_key[p.number, position].title
                self.say(
                    "missing", f"{title}: missing {formula}; found {self.shown(k)}", (p.number, position), k, above
                )
            elif left is not None and right is not None:
                self.pair(left, right, (p, position), k)
        return None
