"""One kernel against one listing: the match, a verdict for each step, and everything found wrong."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from functools import lru_cache

from tracer.dataflow.algebra import Term
from tracer.dataflow.diagnose import Diagnosis, Finding
from tracer.dataflow.graph import Graph, TooLarge
from tracer.dataflow.ir import Loop, Site, Storage, Value
from tracer.dataflow.lanes import COMPLETE, SHARE, Lanes
from tracer.dataflow.listing import Listing, listing
from tracer.dataflow.match import BUDGET, Match, Matcher, main_loops
from tracer.dataflow.names import plain
from tracer.dataflow.steps import Step, Steps
from tracer.dataflow.terms import Terms
from tracer.records import dataclass

AGREES, DIFFERS, NOT_REACHED = "agrees", "differs", "not reached"


@dataclass(slots=True)
class Comparison:
    """What came of comparing a kernel with a listing.

    Attributes:
        paper: the listing's terms.
        kernel: the kernel's.
        steps: the listing's steps.
        match: what corresponds to what.
        findings: what is wrong, the cause before its consequences.
        lanes: how much of a row each value of the kernel knows.
        unjudged: what the checks of index sets could not judge, in words.
        is_whole: exact terms are needed of all values, not only of what is stored.
    """

    paper: Terms
    kernel: Terms
    steps: Steps
    match: Match
    findings: list[Finding] = field(default_factory=list)
    lanes: Lanes | None = None
    unjudged: list[str] = field(default_factory=list)
    is_whole: bool = False
    _exact: Terms | None = None
    _masks: dict[frozenset[str], list[Value]] = field(default_factory=dict)

    @property
    def exact(self) -> Terms:
        """The kernel's terms with all factors and conditions, computed once; see ``is_whole``."""
        if self._exact is None:
            only_outputs = not self.is_whole
            self._exact = Terms(self.kernel.graph, exact=True, flags=self.kernel.flags, only_outputs=only_outputs)
        return self._exact

    def masks(self, flags: Mapping[str, bool]) -> list[Value]:
        """Return the choices that put minus infinity in the place of a score; flags that are not named are off."""
        key = frozenset(flag for flag, value in flags.items() if value)
        if key not in self._masks:
            self._masks[key] = self._find_masks(flags)
        return self._masks[key]

    def _find_masks(self, flags: Mapping[str, bool]) -> list[Value]:
        found: dict[int, Value] = {}
        waiting = [self.exact.outputs[k] for k in self.match.outputs.values() if k in self.exact.outputs]
        seen: set[int] = set()
        while waiting:
            term = waiting.pop()
            if term.number in seen:
                continue
            seen.add(term.number)
            if term.op == "flag":
                waiting.append(term.args[0 if flags.get(str(term.detail), False) else 1])
                continue
            if term.op == "guarded" and term.origin is not None:
                if any(self.exact.is_constant(argument, -math.inf) for argument in term.args):
                    found[term.origin.number] = term.origin
            waiting += [*term.args, *(x for x in (term.step, term.start) if x is not None)]
        return [found[number] for number in sorted(found)]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return self.match.ok and not self.findings

    @property
    def listing(self) -> Listing:
        """The listing."""
        graph = self.paper.graph
        assert isinstance(graph, Listing)
        return graph

    def verdict(self, step: Step) -> str:
        """Return what is known of a step: ``agrees``, ``differs``, or ``not reached`` behind a step that differs."""
        if any(finding.step == step.key for finding in self.findings):
            return DIFFERS
        if self.match.ok:
            return AGREES
        return AGREES if any(p == step.key[0] for p, _ in self.match.pairs) else NOT_REACHED

    def agreeing(self) -> int:
        """Return the number of steps that agree."""
        return sum(self.verdict(step) == AGREES for step in self.steps.all)

    def partners(self, term: Term) -> list[Term]:
        """Return the kernel's terms that correspond to a listing's term."""
        return [k for (p, _), (_, k) in self.match.pairs.items() if p == term.number]


_PAPERS: dict[str, tuple[Terms, Steps]] = {}


def paper_terms(name: str) -> tuple[Terms, Steps]:
    """Return the terms and the steps of a listing, computed once.

    Raises:
        ListingError: there is no such listing, or it says nothing.
    """
    if name not in _PAPERS:
        terms = Terms(listing(name))
        _PAPERS[name] = (terms, Steps(terms))
    return _PAPERS[name]


@lru_cache(maxsize=16)
def exact_paper(name: str) -> Terms:
    """Return the terms of a listing with all factors and conditions, computed once."""
    return Terms(listing(name), exact=True)


def compare(name: str, graph: Graph, flags: dict[str, bool] | None = None) -> Comparison:
    """Compare a kernel with a listing.

    Args:
        name: of the listing.
        graph: the kernel's value flow.
        flags: compile-time flags that are decided; the others are chosen so that the kernel matches.

    Raises:
        ListingError: there is no such listing, or it says nothing.
    """
    paper, steps = paper_terms(name)
    kernel = Terms(graph, flags=flags)
    match = Matcher(paper, kernel).match() if kernel.outputs else Match()
    result = Comparison(paper, kernel, steps, match)
    result.lanes = Lanes(graph, kernel)
    if not kernel.outputs:
        result.findings.append(
            Finding("store", "the kernel stores nothing that its inputs enter; there is no attention in it", None)
        )
        return result
    if not match.ok:
        diagnosis = Diagnosis(paper, kernel, steps)
        result.match = diagnosis.diagnose()
        result.findings += diagnosis.findings
        if match.exhausted:
            result.findings.append(
                Finding("bound", f"matching stopped after {BUDGET} pairs of terms; what follows is a guess by likeness")
            )
        if not result.findings:
            result.findings.append(Finding("different", "no assignment of the arguments makes the kernel match"))
    result.findings += lane_findings(result)
    if match.ok:
        result.findings += step_findings(result) + whole_findings(result) + unknown_findings(result)
    return result


def unknown_findings(comparison: Comparison) -> list[Finding]:
    """Return where a tensor that holds a symbol is handed to a function that is not known: it may change it."""
    kernel = comparison.kernel
    symbols = {k.number: comparison.steps.symbol(p) for p, k in comparison.match.pairs.values() if p.is_data}
    found: list[Finding] = []
    for value in kernel.graph.handed_away:
        symbol = symbols.get(kernel.term(value.args[0]).number, "")
        if symbol and value.storage is not None:
            message = f"{value.storage.name} holds {symbol} and is handed to {value.text}, a function that is not known"
            place = kernel.graph.location(value.site), kernel.graph.calls(value.chain)
            found.append(Finding("unread", message, None, *place))
    return found


def whole_findings(comparison: Comparison) -> list[Finding]:
    """Return where a symbol is cut to a whole number on the way."""
    kernel, graph = comparison.kernel, comparison.kernel.graph
    paired = {k.number: p for p, k in comparison.match.pairs.values() if p.is_data and k.op != "input"}
    found: dict[int, Finding] = {}
    for number in sorted(graph.whole):
        value = graph.values[number]
        p = paired.get(kernel.term(value).number)
        if p is not None:
            message = f"{comparison.steps.symbol(p)} is cut to a whole number"
            location, chain = graph.location(value.site), graph.calls(value.chain)
            found.setdefault(p.number, Finding("different", message, (p.number, 0), location, chain))
    return list(found.values())


def step_findings(comparison: Comparison) -> list[Finding]:
    """Return what only the last step of a loop over tiles leaves behind, and what only its first step reads."""
    paper, kernel = comparison.paper, comparison.kernel
    loops = {loop.number for loop in main_loops(kernel)}
    paper_loops = {loop.number for loop in main_loops(paper)}
    found: list[Finding] = []
    added = {term.number for number, term in paper.accumulated if number in paper_loops}
    lost = {kernel.term(phi): phi for phi in kernel.overwritten if phi.loop is not None and phi.loop.number in loops}
    for p, k in comparison.match.pairs.values():
        if p.number in added and k in lost:
            graph, symbol = kernel.graph, comparison.steps.symbol(p)
            set_at = _written_at(lost[k].args[1])
            message = f"{symbol} holds what the last step over the tiles gives: each step begins it anew"
            found.append(Finding("missing", message, (p.number, 0), graph.location(set_at)))
    outer = {term.number for number, term in paper.accumulated if number not in paper_loops}
    for mine, stored in comparison.match.outputs.items():
        if stored is None or not loops or paper.outputs[mine].number not in outer:
            continue
        times = kernel.own_summands.get(stored, 0)
        if times != 1:
            how = "added to itself" if times else "stored without adding to what other tiles have left there"
            location, chain = Diagnosis(paper, kernel, comparison.steps).place(kernel.outputs[stored])
            found.append(Finding("store", f"{mine} is {how}", (paper.outputs[mine].number, 0), location, chain))
    for mine, theirs in comparison.match.inputs.items():
        wanted, storage = paper.graph.inputs.get(mine), kernel.graph.inputs.get(theirs)
        if wanted is None or storage is None or not wanted.loaded_in & paper_loops or not loops:
            continue
        if not any(_uses(kernel.graph, storage, loop) for loop in main_loops(kernel)):
            message = f"{mine} is read before the loop over the tiles and never in it, so that each step uses the same"
            found.append(Finding("bounds", message, None, kernel.graph.location(storage.declared)))
    return found


def _uses(graph: Graph, storage: Storage, loop: Loop) -> bool:
    """Tell whether a loop loads an input and does something with it, other than moving the pointer to it."""
    for value in graph.values[loop.first : loop.last]:
        if value.op in ("element", "copy", "convert") or (value.storage is storage and value.op == "set"):
            continue
        for argument in value.args:
            while argument.op in ("copy", "convert") or argument.forward is not None:
                argument = argument.forward if argument.forward is not None else argument.args[0]
            if argument.op == "element" and argument.storage is storage and argument.number >= loop.first:
                return True
    return False


def _written_at(value: Value) -> Site:
    """Return where a value is written, looking through views of it."""
    while value.op == "set" and value.is_view:
        value = value.args[0]
    return value.site


def lane_findings(comparison: Comparison) -> list[Finding]:
    """Return where one thread's share is used in the place of the row's value."""
    lanes = comparison.lanes
    if lanes is None or not lanes.is_spread:
        return []
    found: list[Finding] = []
    diagnosis = Diagnosis(comparison.paper, comparison.kernel, comparison.steps)
    seen: set[tuple[int, int]] = set()
    for (number, _), (p, k) in comparison.match.pairs.items():
        position = {"sub": 1, "div": 1, "log": 0, "max": None}.get(p.op)
        if position is None or p.op != k.op:
            continue
        for value in k.values:
            if value.op not in ("sub", "div", "log", "log2", "mul") or (number, value.number) in seen:
                continue
            seen.add((number, value.number))
            operand = _used(value, k, position, comparison.kernel)
            if operand is None or lanes.extent(operand) != SHARE:
                continue
            symbol = comparison.steps.symbol(p.args[position])
            location, chain = diagnosis.place(k)
            kind = "maximum" if p.op == "sub" else "sum"
            message = (
                f"{symbol} in {comparison.steps.result(p)} is one thread's share of the row's {kind}: "
                "the lanes that share the row never exchange theirs"
            )
            finding = Finding("lanes", message, (p.number, position), location, chain)
            if all(finding.message != other.message for other in found):
                found.append(finding)
    return found


def _used(value: Value, term: Term, position: int, terms: Terms) -> Value | None:
    """Return the operand of a value that plays the part of an operand of its term."""
    wanted = term.args[position]
    for argument in value.args:
        inner = plain(argument)
        if terms.term(argument) is wanted or wanted in terms.alternatives(terms.term(argument)):
            return argument
        if inner.op == "div" and terms.term(inner.args[1]) is wanted:
            return inner.args[1]
        if inner.op in ("select", "mul"):
            for part in inner.args:
                below = plain(part)
                if below.op == "div" and terms.term(below.args[1]) is wanted:
                    return below.args[1]
                if terms.term(part) is wanted:
                    return part
    return None


__all__ = ["AGREES", "COMPLETE", "Comparison", "DIFFERS", "NOT_REACHED", "TooLarge", "compare", "paper_terms"]
