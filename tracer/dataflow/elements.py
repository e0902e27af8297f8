"""Loops over the elements of a fragment that leave some of them out, or go beyond the last."""

from __future__ import annotations

from tracer.dataflow.compare import Comparison
from tracer.dataflow.diagnose import Finding
from tracer.dataflow.ir import Loop, Value
from tracer.dataflow.names import plain

_MOST_VALUES = 200


def element_findings(comparison: Comparison) -> list[Finding]:
    """Return the loops over the elements of a fragment that leave some of them out."""
    graph, kernel = comparison.kernel.graph, comparison.kernel
    paired = {term.number for _, term in comparison.match.pairs.values() if term.is_data}
    found: list[Finding] = []
    for loop in graph.loops:
        if len(loop.counters) != 1 or not isinstance(loop.condition, tuple) or loop.condition[0] != "test":
            continue
        storage, start, counter, _ = loop.counters[0]
        test = plain(loop.condition[1])
        bounds = [plain(argument) for argument in test.args]
        if test.op not in ("lt", "le") or plain(bounds[0]) is not counter:
            continue
        if not any(kernel.term(v).number in paired for v in graph.values[loop.first : loop.last] if v.op != "phi"):
            continue
        first = plain(start)
        begins = first.constant if first.op == "const" and isinstance(first.constant, int) else 0
        has_first = begins == 1 and _starts_with_first(loop)
        last = bounds[1]
        is_one_less = last.op == "sub" and plain(last.args[1]).constant == 1
        is_part = last.op == "sub" and any(plain(part).op in ("shape", "input") for part in last.args)
        ends_early = is_part and not (test.op == "le" and is_one_less)
        goes_over = test.op == "le" and last.op in ("shape", "input")
        if (begins > 0 and not has_first) or ends_early or goes_over:
            what = "goes beyond the last element" if goes_over else "leaves elements out"
            location = graph.location(loop.site)
            message = f"the loop over {storage.name} {what}: it runs from {begins} to {_shown(bounds[1])}"
            if all(finding.location != location for finding in found):
                found.append(Finding("bounds", message, None, location, graph.calls(loop.chain)))
        for value in _of_one_row(graph.values[loop.first : loop.last], counter):
            name = value.storage.name if value.storage is not None else ""
            message = f"element 0 of {name} is used for every {storage.name}"
            location = graph.location(value.site)
            if all(finding.location != location for finding in found):
                found.append(Finding("bounds", message, None, location))
    return found


def _of_one_row(values: list[Value], counter: Value) -> list[Value]:
    """Return the reads of element 0 of a vector in a loop over rows: one that reads other vectors by its counter."""
    reads = [value for value in values if value.op == "element" and len(value.args) == 2]
    if not any(plain(value.args[1]) is counter for value in reads):
        return []
    return [value for value in reads if plain(value.args[1]).constant == 0]


def _starts_with_first(loop: Loop) -> bool:
    """Tell whether what a loop carries began with element 0, so that it rightly begins at element 1."""
    return bool(loop.phis) and all(_holds_first(phi.args[0]) for phi in loop.phis)


def _holds_first(value: Value) -> bool:
    """Tell whether a value was made of an element 0."""
    seen: set[int] = set()
    waiting = [value]
    while waiting and len(seen) < _MOST_VALUES:
        value = plain(waiting.pop(0))
        if value.number in seen:
            continue
        seen.add(value.number)
        if value.op == "element" and any(plain(index).constant == 0 for index in value.args[1:]):
            return True
        waiting += value.args
    return False


def _shown(value: Value) -> str:
    if value.op == "sub":
        return " - ".join(_shown(plain(argument)) for argument in value.args)
    return value.text or str(value.constant if value.constant is not None else value.op)
