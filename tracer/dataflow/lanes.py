"""Whether a value that belongs to a row is complete, or one thread's share of it.

A row of a tile is spread over the lanes of a warp. A thread that adds up its own columns has a share; only after the
lanes have exchanged their shares does each hold the row's sum. A maximum that is subtracted, and a sum that is divided
by or whose logarithm is taken, must be complete.
"""

from __future__ import annotations

from tracer.dataflow.graph import Graph
from tracer.dataflow.ir import Value
from tracer.dataflow.terms import Terms
from tracer.records import dataclass

#: How much of a row a value knows: nothing that was reduced, one thread's share, the whole row.
ELEMENT, SHARE, COMPLETE = 0, 1, 2
WORDS = {SHARE: "one thread's share", COMPLETE: "complete across the row's lanes"}


@dataclass(frozen=True, slots=True)
class Exchange:
    """An operation that puts the shares of lanes together."""

    value: Value
    op: str


class Lanes:
    """The extent of every value of a kernel, by a fixed point over its loops."""

    def __init__(self, graph: Graph, terms: Terms) -> None:
        """Follow the values in order, again and again until nothing changes."""
        self.graph, self.terms = graph, terms
        self.extents: list[int] = [ELEMENT] * len(graph.values)
        self.exchanges = {value.number: Exchange(value, op) for op, value in terms.lanes}
        self._reducing = self._reducing_phis()
        # Only what a loop carries depends on a later value: without a change there, nothing else changes.
        carried = [phi for loop in graph.loops for phi in loop.phis if phi.forward is None]
        for _ in range(6):
            self._pass()
            if all(self._extent(phi) == self.extents[phi.number] for phi in carried):
                break

    def extent(self, value: Value) -> int:
        """Return how much of a row a value knows."""
        while value.forward is not None:
            value = value.forward
        return self.extents[value.number]

    def _reducing_phis(self) -> set[int]:
        """Return the phis that accumulate over the columns of one thread: their terms are reductions over a row."""
        found = set()
        for loop in self.graph.loops:
            for phi in loop.phis:
                term = self.terms.term(phi)
                if any(part.op in ("rowmax", "rowsum", "rowmin") for part in (term, *term.args)):
                    found.add(phi.number)
        return found

    def _pass(self) -> None:
        for value in self.graph.values:
            forward = value.forward
            self.extents[value.number] = self._extent(value) if forward is None else self.extents[forward.number]

    def _extent(self, value: Value) -> int:
        args = value.args
        if value.number in self.exchanges and value.op != "phi":
            return COMPLETE
        if value.op in ("set", "copy", "convert", "element", "broadcast"):
            return self.extent(args[0])
        if value.op == "phi":
            known = [self.extent(argument) for argument in args if argument.op != "undefined"]
            known = [e for a, e in zip([a for a in args if a.op != "undefined"], known, strict=True) if a.op != "const"]
            inside = max(known, default=ELEMENT)
            if self.lane_loop(value):
                return COMPLETE
            if value.number in self._reducing and inside == ELEMENT:
                return SHARE
            return SHARE if SHARE in known else inside
        if value.op in ("matmul", "input", "const", "param", "index", "after", "undefined"):
            return ELEMENT
        if value.op == "select":
            sides = [self.extent(side) for side in args if side.op not in ("undefined", "const")]
            return SHARE if SHARE in sides else max(sides, default=ELEMENT)
        if value.op in ("exp", "exp2", "log", "log2", "tanh", "neg", "lane"):
            return self.extent(args[0])
        data = [self.extent(argument) for argument in args if self.terms.term(argument).is_data]
        if value.op in ("add", "max", "min"):
            return SHARE if SHARE in data else max(data, default=ELEMENT)
        if value.op in ("mul", "sub", "div"):
            return ELEMENT if ELEMENT in data else SHARE if SHARE in data else max(data, default=ELEMENT)
        return ELEMENT

    def lane_loop(self, phi: Value) -> bool:
        """Tell whether a phi belongs to a loop that exchanges shares between lanes, one distance after the other."""
        loop = phi.loop
        if loop is None or len(phi.args) < 2:
            return False
        following = phi.args[1]
        while following.op in ("set", "copy", "convert"):
            following = following.args[0]
        return following.number in self.exchanges

    @property
    def is_spread(self) -> bool:
        """Tell whether rows are spread over lanes: some exchange shares, or tensor cores leave fragments."""
        return bool(self.exchanges) or any(value.op == "matmul" for value in self.graph.values)
