"""With which element a loop over elements begins, and whether what it carries began with the one before."""

from __future__ import annotations

from collections.abc import Iterator

from tracer.dataflow.counting import Counting, Run, alike, behind
from tracer.dataflow.ir import Value, plain


def start_fault(counting: Counting, run: Run) -> str:
    """Say which element a loop leaves out or takes twice at its start; nothing where it begins rightly."""
    if run.begins > 1 or (run.begins == 1 and not _has_first(counting, run)):
        return f"leaves elements out: it begins with element {run.begins}"
    if run.begins == 0 and any(_is_twice(run, phi) for phi in run.loop.phis):
        return "takes element 0 twice: what it adds to begins with it"
    return ""


def _has_first(counting: Counting, run: Run) -> bool:
    """Tell whether what a loop from element 1 on carries was made of element 0 of each tensor that enters it."""
    uses = counting.used(run)
    if not uses:
        return True  # it counts something else
    reads = {use.access.value for use in uses if use.access.value.op == "element" and not use.offset}
    pairs = [
        (value, phi)
        for phi in run.loop.phis
        for value in behind(phi.args[1], run.loop.first)
        if value in reads and plain(value.args[0]) is not phi
    ]
    if not pairs:  # each element is written by itself: somebody else may have written the first
        written = {use.extent for use in uses if use.access.value.op == "set"}
        first = {use.extent for use in counting.fixed if use.access.value.op == "set" and use.offset == 0}
        return bool(written) and written <= first
    return all(
        any(
            inner.op == "element" and alike(value, inner, run.counter, 0)
            for inner in behind(phi.args[0], plain(value.args[0]).number)
        )
        for value, phi in pairs
    )


def _is_twice(run: Run, phi: Value) -> bool:
    """Tell whether a loop from element 0 on adds to what element 0 was added to before."""
    step = _without_place(phi.args[1])
    if step.op != "add" or not any(_without_place(argument) is phi for argument in step.args):
        return False
    added = [argument for argument in step.args if _without_place(argument) is not phi]
    counter_enters = [
        value for value in added if any(inner is run.counter for inner in behind(value, run.loop.first - 1))
    ]
    return any(alike(value, summand, run.counter, 0) for value in counter_enters for summand in _summands(phi.args[0]))


def _without_place(value: Value) -> Value:
    value = plain(value)
    while value.op == "element":
        value = plain(value.args[0])
    return value


def _summands(value: Value) -> Iterator[Value]:
    value = plain(value)
    if value.op == "add":
        for argument in value.args:
            yield from _summands(argument)
    else:
        yield value
