"""The steps of a listing: which value enters which operation, one for each edge of its graph of terms."""

from __future__ import annotations

from tracer.dataflow.algebra import Term
from tracer.dataflow.terms import Terms
from tracer.model import Location
from tracer.records import dataclass

_SIGNS = {"add": " + ", "mul": " · ", "sub": " − ", "div": " / ", "matmul": " @ "}


@dataclass(frozen=True, slots=True)
class Step:
    """One edge of a listing's graph.

    Attributes:
        number: in the order in which the listing computes.
        title: what happens, in a few words: ``alpha multiplies l_i``.
        formula: the operation as a formula: ``l_i <- alpha · l_i``.
        operand: the symbol that enters; empty for what has no name.
        result: the symbol that comes out.
        location: where the listing has it.
        key: (number of the resulting term, position of the operand; -1 for the start, -2 for the mask).
    """

    number: int
    title: str
    formula: str
    operand: str
    result: str
    location: Location
    key: tuple[int, int]


class Steps:
    """The steps of a listing, and names for its terms."""

    def __init__(self, paper: Terms) -> None:
        """List the steps of a listing's terms."""
        self.paper = paper
        self._labels: dict[int, str] = {}
        self._parents: dict[int, Term] = {}
        self.order = self._reachable()
        self.all = tuple(self._list())
        self.by_key = {step.key: step for step in self.all}

    def _reachable(self) -> list[Term]:
        found: dict[int, Term] = {}
        waiting = list(reversed(list(self.paper.outputs.values())))
        while waiting:
            term = waiting.pop()
            if term.number in found:
                continue
            found[term.number] = term
            below = [*term.args, *(x for x in (term.step, term.start) if x is not None)]
            for inner in below:
                if not self.paper.names(inner):
                    self._parents.setdefault(inner.number, term)
            waiting.extend(below)
        return sorted(found.values(), key=lambda term: term.number)

    def symbol(self, term: Term) -> str:
        """Return what the listing calls a term: its symbol, or a formula of symbols."""
        if term.op == "constant":
            return self.formula(term)
        names = self.paper.names(term)
        if not names and term.op == "carried" and term.origin is not None and term.origin.storage is not None:
            return term.origin.storage.name
        return names[-1] if names else self.formula(term)

    def result(self, term: Term) -> str:
        """Return the symbol that a term is part of: its own, or that of what it enters."""
        while not self.paper.names(term) and term.number in self._parents:
            term = self._parents[term.number]
        return self.symbol(term)

    def formula(self, term: Term) -> str:
        """Return the operation of a term on symbols."""
        if term.op == "constant":
            return f"{term.detail:g}"
        if term.op in ("input", "carried", "scalar", "undefined"):
            return str(term.detail or term.op)
        parts = [self._inner(argument) for argument in term.args]
        if term.op in _SIGNS:
            return _SIGNS[term.op].join(parts)
        return f"{term.op}({', '.join(parts)})"

    def _inner(self, term: Term) -> str:
        symbol = self.symbol(term)
        return f"({symbol})" if " + " in symbol or " − " in symbol else symbol

    # -- the list -----------------------------------------------------------------------------------------------------
    def _list(self) -> list[Step]:
        found: list[Step] = []

        def add(title: str, formula: str, operand: str, term: Term, position: int) -> None:
            result = self.result(term)
            found.append(
                Step(len(found) + 1, title, formula, operand, result, self._place(term), (term.number, position))
            )

        for term in self.order:
            result = self.result(term)
            if term in self.paper.masked:
                add(f"{result} is masked", f"{result} <- -inf outside of the mask", "-inf", term, -2)
            for position, argument in enumerate(term.args):
                operand = self.symbol(argument)
                formula = f"{result} <- {self.formula(term)}"
                add(self._title(term, position, operand, result), formula, operand, term, position)
            if term.op == "carried" and term.start is not None:
                start = self.symbol(term.start)
                add(f"{result} starts at {start}", f"{result} <- {start}", start, term, -1)
        return found

    def _title(self, term: Term, position: int, operand: str, result: str) -> str:
        others = [self.symbol(argument) for number, argument in enumerate(term.args) if number != position]
        other = ", ".join(others)
        if term.op == "mul":
            return f"{operand} multiplies {other}"
        if term.op == "div":
            return f"{operand} is divided by {other}" if position == 0 else f"{operand} divides {other}"
        if term.op == "sub":
            return f"{operand} less {other}" if position == 0 else f"{operand} is subtracted from {other}"
        if term.op == "add":
            return f"{operand} is a summand of {result}"
        if term.op == "matmul":
            return f"{operand} is multiplied with the matrix {other}"
        if term.op in ("max", "min"):
            return f"{operand} enters the {term.op}imum {result}"
        words = {
            "exp": "the exponential is taken of", "log": "the logarithm is taken of",
            "rowmax": "the row maximum is taken of", "rowsum": "the row sum is taken of",
        }  # fmt: skip
        return f"{words.get(term.op, term.op + ' is applied to')} {operand}"

    def _place(self, term: Term) -> Location:
        for value in term.values:
            if value.op not in ("set", "phi", "input"):
                return self.paper.graph.location(value.site)
        for value in term.values:
            return self.paper.graph.location(value.site)
        parent = self._parents.get(term.number)
        return self._place(parent) if parent is not None else self.paper.graph.location(None)
