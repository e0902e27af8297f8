"""Whether the lanes that share a row exchange their shares completely, and by the operation that the reduction needs.

A butterfly over 2^k lanes exchanges over the distances 1, 2, …, 2^(k-1), each once. A row of an accumulator of the
tensor cores' m16n8 product is shared by four lanes (PTX ISA, "Matrix Fragments for mma.m16n8k16").
"""

from __future__ import annotations

from tracer.dataflow.algebra import Term
from tracer.dataflow.compare import Comparison
from tracer.dataflow.counting import behind
from tracer.dataflow.diagnose import Finding
from tracer.dataflow.graph import Graph
from tracer.dataflow.ir import Formula, Value, tests_of
from tracer.dataflow.names import plain

_LANES_OF_A_ROW = 4
_PASSES = 3
_WORDS = {"add": "sum", "max": "maximum", "min": "minimum"}


def exchange_findings(comparison: Comparison) -> list[Finding]:
    """Return the exchanges between lanes that leave lanes out or combine shares by the wrong operation."""
    graph, kernel = comparison.kernel.graph, comparison.kernel
    exchanges = {value.number: (op, value) for op, value in kernel.lanes}
    uses_tensor_cores = any(value.op == "matmul" for value in graph.values)
    before = [_before(value, exchanges) for _, value in kernel.lanes]
    followed = {value.number for value in before if value is not None}
    found: dict[str, Finding] = {}
    for op, value in exchanges.values():
        reduction = _reduction(kernel.term(value), set())
        message = ""
        if op != "add" and reduction == {"add"}:
            message = f"the lanes' shares of a sum are put together by their {_WORDS[op]}"
        elif op == "add" and reduction == {"max"}:
            message = "the lanes' shares of a maximum are put together by their sum"
        elif value.number not in followed:
            message = _incomplete(_distances(value, exchanges), uses_tensor_cores, _WORDS[op])
        if message:
            location = graph.location(value.site)
            found.setdefault(message, Finding("lanes", message, None, location, graph.calls(value.chain)))
    for value in _of_one_lane(graph):
        location = graph.location(value.site)
        message = "the shares are handed on in one direction, so that one lane has the row's value, but all use it"
        found.setdefault(message, Finding("lanes", message, None, location, graph.calls(value.chain)))
    return list(found.values())


def _reduction(term: Term, seen: set[int]) -> set[str]:
    """Return which operations over the elements of a row a term is a result of: ``add``, ``max``."""
    if term.number in seen:
        return set()
    seen.add(term.number)
    if term.op in ("rowsum", "matmul"):
        return {"add"}
    if term.op == "rowmax":
        return {"max"}
    if term.op == "carried":
        inside = [part for part in (term.start, term.step) if part is not None]
        return set().union(*[_reduction(part, seen) for part in inside])
    if term.op in ("max", "add", "mul", "flag", "join", "guarded", "either"):
        return set().union(*[_reduction(part, seen) for part in term.args])
    return set()


def _of_one_lane(graph: Graph) -> list[Value]:
    """Return the shuffles in one direction whose result is stored by lanes that need not have it."""
    shuffles = [value for value in graph.values if value.op == "lane" and value.constant is not None]
    if not shuffles:
        return []
    known: set[int] = {value.number for value in shuffles}
    for _ in range(_PASSES):  # what a loop carries is known from the second pass on
        for value in graph.values:
            if value.op != "broadcast" and any(plain(argument).number in known for argument in value.args):
                known.add(value.number)
    stores = [v for v in graph.values if v.op == "set" and v.storage is not None and v.storage.space == "global"]
    used = any(value.number in known and not any(map(_is_one_lane, value.guards)) for value in stores)
    return shuffles if used else []


def _is_one_lane(formula: Formula) -> bool:
    """Tell whether a formula holds for one lane of several: the number of the thread is compared with a constant."""
    return any(
        test.op == "eq" and any(plain(part).op == "const" for part in test.args)
        and any(inner.text.startswith("threadIdx") for inner in behind(test))
        for test in tests_of(formula)
    )  # fmt: skip


def _incomplete(distances: list[int] | None, uses_tensor_cores: bool, what: str) -> str:
    """Say which lanes are left out; nothing where none is, or where the distances are not known."""
    if not distances:
        return ""
    if uses_tensor_cores and 2 * max(distances) > _LANES_OF_A_ROW:
        many = f"{2 * max(distances)} lanes put the shares of a row's {what} together"
        return f"{many}, but {_LANES_OF_A_ROW} share a row: other rows get into it"
    expected = [1 << power for power in range(max(distances).bit_length())]
    if sorted(distances) != expected:
        told = ", ".join(map(str, distances))
        return f"the lanes exchange the shares of a row's {what} over the distances {told}, which leaves some out"
    if uses_tensor_cores and 2 * max(distances) < _LANES_OF_A_ROW:
        return f"only {2 * max(distances)} of the {_LANES_OF_A_ROW} lanes that share a row put its {what} together"
    return ""


def _distances(value: Value, exchanges: dict[int, tuple[str, Value]]) -> list[int] | None:
    """Return the distances of a chain of exchanges, the last first; None where one of them is not known."""
    found: list[int] = []
    current: Value | None = value
    while current is not None:
        lane = _lane(current)
        if lane is None or not lane.text.isdigit():
            return None
        found.append(int(lane.text))
        current = _before(current, exchanges)
    return found


def _lane(value: Value) -> Value | None:
    return next((inner for inner in map(plain, value.args) if inner.op == "lane"), None)


def _before(value: Value, exchanges: dict[int, tuple[str, Value]]) -> Value | None:
    """Return the exchange whose result another one exchanges again."""
    for argument in map(plain, value.args):
        if argument.op != "lane" and argument.number in exchanges:
            return argument
    return None
