"""Whether the lanes that share a row exchange their shares completely, and by the operation that the reduction needs.

A butterfly over 2^k lanes exchanges over the distances 1, 2, …, 2^(k-1), each once. A row of an accumulator of the
tensor cores' m16n8 product is shared by four lanes (PTX ISA, "Matrix Fragments for mma.m16n8k16").
"""

from __future__ import annotations

from tracer.dataflow.compare import Comparison
from tracer.dataflow.diagnose import Finding
from tracer.dataflow.ir import Value
from tracer.dataflow.names import plain

_LANES_OF_A_ROW = 4
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
        term = kernel.term(value)
        message = ""
        if op != "add" and term.op in ("rowsum", "matmul"):
            message = f"the lanes' shares of a sum are put together by their {_WORDS[op]}"
        elif op == "add" and term.op in ("rowmax", "max"):
            message = "the lanes' shares of a maximum are put together by their sum"
        elif value.number not in followed:
            message = _incomplete(_distances(value, exchanges), uses_tensor_cores, _WORDS[op])
        if message:
            location = graph.location(value.site)
            found.setdefault(message, Finding("lanes", message, None, location, graph.calls(value.chain)))
    return list(found.values())


def _incomplete(distances: list[int] | None, uses_tensor_cores: bool, what: str) -> str:
    """Say which lanes are left out; nothing where none is, or where the distances are not known."""
    if not distances:
        return ""
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
