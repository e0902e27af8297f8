"""Loops over the elements of a fragment that leave some of them out, or go beyond the last."""

from __future__ import annotations

from tracer.dataflow.compare import Comparison
from tracer.dataflow.diagnose import Finding
from tracer.dataflow.ir import Loop, Value
from tracer.dataflow.names import plain


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
        has_first = begins == 1 and _reads_first(graph.values[max(0, loop.first - 400) : loop.first], loop)
        ends_early = bounds[1].op == "sub" and any(plain(part).op == "shape" for part in bounds[1].args)
        goes_over = test.op == "le" and bounds[1].op == "shape"
        if (begins > 0 and not has_first) or ends_early or goes_over:
            what = "goes beyond the last element" if goes_over else "leaves elements out"
            location = graph.location(loop.site)
            chain = tuple(graph.location(site) for site in reversed(loop.chain))
            message = f"the loop over {storage.name} {what}: it runs from {begins} to {_shown(bounds[1])}"
            if all(finding.location != location for finding in found):
                found.append(Finding("bounds", message, None, location, chain))
    return found


def _reads_first(values: list[Value], loop: Loop) -> bool:
    """Tell whether element 0 is taken before a loop that begins at element 1, in the same call or below it."""
    return any(
        value.op == "element"
        and value.chain[: len(loop.chain)] == loop.chain
        and any(plain(a).constant == 0 for a in value.args[1:])
        for value in values
    )


def _shown(value: Value) -> str:
    if value.op == "sub":
        return " - ".join(_shown(plain(argument)) for argument in value.args)
    return value.text or str(value.constant if value.constant is not None else value.op)
