"""Loops over the elements of a fragment: whether they reach all elements, each once, and the right ones.

What a loop counts is read from the value flow: which dimension of which tensor its counter indexes, and of which
dimension its bound is the size. Dimensions that one counter goes along together have the same extent.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracer.dataflow.counting import Counting, Extent, Run, Use, alike, asks, behind
from tracer.dataflow.diagnose import Finding
from tracer.dataflow.graph import Graph
from tracer.dataflow.ir import Dimension, Layout, Loop, Value, plain
from tracer.dataflow.names import Names
from tracer.dataflow.places import place_faults
from tracer.dataflow.starts import start_fault
from tracer.model import Location


def element_findings(graph: Graph) -> list[Finding]:
    """Return the loops over the elements of a fragment that miss elements, go too far, or take wrong ones."""
    if not isinstance(graph, Names):
        return []  # a listing
    counting = Counting(graph)
    found: dict[Location, Finding] = {}

    def report(message: str, at: Value | Loop) -> None:
        location = graph.location(at.site)
        found.setdefault(location, Finding("bounds", message, None, location, graph.calls(at.chain)))

    for message, use in _fixed(counting):
        report(message, use.access.value)
    for run in counting.runs.values():
        fault = _bound_fault(counting, run) or _step_fault(counting, run) or start_fault(counting, run)
        if fault:
            report(f"the loop over {run.storage.name} {fault}", run.loop)
        for message, use in _faults_of_indices(counting, run):
            report(message, use.access.value)
    for message, use in _other_dimensions(counting):
        report(message, use.access.value)
    for message, value in place_faults(counting):
        report(message, value)
    return list(found.values())


# -- bounds and steps -------------------------------------------------------------------------------------------------
def _bound_fault(counting: Counting, run: Run) -> str:
    """Say what is wrong with where a loop ends."""
    last = run.bound
    whole = counting.bound_of(last)
    if last.op == "sub" and any(plain(part).op in ("shape", "input") for part in last.args):
        is_one_less = plain(last.args[1]).constant == 1
        return "" if run.test == "le" and is_one_less else f"leaves elements out: {_range(run)}"
    if run.test == "le" and last.op in ("shape", "input"):
        return f"goes beyond the last element: {_range(run)}"
    uses = [use for use in counting.used(run) if use.offset == 0]
    if not uses or run.counter.number in counting.otherwise:
        return ""
    if whole is None:
        if run.step == 1 and run.begins == 0 and _is_part(counting, run, {use.extent for use in uses}):
            return f"leaves elements out: {_range(run)}"
        return ""
    if any(use.extent == whole for use in uses):
        return ""
    for use in uses:
        if use.extent[0] is whole[0]:
            return f"goes along {_words(use.extent[1])} of {use.name}, but as far as {_words(whole[1])} ({_range(run)})"
    is_fixed = any(use.extent == whole and run.holds(use.access.value) for use in counting.fixed)
    if not is_fixed and all(counting.group(use.extent) != counting.group(whole) for use in uses):
        along = f"{_words(uses[0].extent[1])} of {uses[0].name}"
        return f"goes along {along}, but as far as another tensor goes ({_range(run)})"
    return ""


def _is_part(counting: Counting, run: Run, extents: set[Extent]) -> bool:
    """Tell whether a bound is a part of an extent, or one where that counts all elements."""
    last = run.bound
    if last.op in ("div", "shift_right"):
        return counting.bound_of(last.args[0]) in extents
    return last.op == "const" and last.constant == (1 if run.test == "lt" else 0)


def _step_fault(counting: Counting, run: Run) -> str:
    """Say which elements a loop steps over."""
    if run.step < 2 or run.counter.number in counting.otherwise:
        return ""
    reached: dict[Extent, set[int]] = {}
    for use in counting.used(run):
        reached.setdefault(use.extent, set()).add(use.offset)
    if all(set(range(run.step)) <= offsets for offsets in reached.values()):
        return ""
    return f"steps over elements: it counts by {run.step}, and not each of them is used"


def _range(run: Run) -> str:
    return f"it runs from {run.begins} to {_shown(run.bound)}"


def _shown(value: Value) -> str:
    if value.op in ("sub", "div"):
        return {"sub": " - ", "div": " / "}[value.op].join(_shown(plain(argument)) for argument in value.args)
    return value.text.replace("<>", "") or str(value.constant if value.constant is not None else value.op)


def _words(dimension: Dimension) -> str:
    return f"dimension {'.'.join(map(str, dimension))}" if dimension else "all elements"


# -- indices ----------------------------------------------------------------------------------------------------------
def _faults_of_indices(counting: Counting, run: Run) -> Iterator[tuple[str, Use]]:
    """Yield the indices that are a neighbour of the counter where that goes too far, or that it does not count."""
    whole = counting.bound_of(run.bound)
    uses = counting.used(run)
    for use in uses:
        if whole is not None and counting.is_of_another_dimension(run, use):
            here, there = _words(use.extent[1]), _words(whole[1])
            yield f"{use.name} is indexed along {here} by the counter of {there}, {run.storage.name}", use
        if use.offset == 0 or run.step != 1 or asks(use.access.path, run.counter):
            continue
        goes_along = whole is not None and counting.group(use.extent) == counting.group(whole)
        never_first = all(other.offset for other in uses if other.extent == use.extent)
        if run.begins + use.offset < 0 or (use.offset > 0 and run.begins == 0 and (goes_along or never_first)):
            side = "behind" if use.offset > 0 else "before"
            yield f"the element of {use.name} {side} the one of this {run.storage.name} is used", use


def _fixed(counting: Counting) -> Iterator[tuple[str, Use]]:
    """Yield the indices that are a constant where a loop around counts what they index."""
    for use in counting.fixed:
        if _is_no_matter(use):
            continue
        group = counting.group(use.extent)
        for run in counting.around(use.access.value):
            if asks(use.access.path, run.counter):
                continue
            if (
                group in counting.along(run)
                or _is_counted_elsewhere(counting, run, use)
                or _is_only_one(counting, run, use)
            ):
                yield f"element {use.offset} of {use.name} is used for every {run.storage.name}", use


def _is_no_matter(use: Use) -> bool:
    """Tell whether an index is for the dimension along which the wanted component of a coordinate is the same."""
    component, dimension = use.access.ref.component, use.extent[1]
    return component >= 0 and dimension in ((1,), (2,)) and dimension != (1 + component,)


def _is_only_one(counting: Counting, run: Run, use: Use) -> bool:
    """Tell whether elements are made in a loop of one element of a thread's tensor whose others are never read."""
    ref, layout = use.access.ref, use.extent[0]
    is_fragment = ref.storage.space == "registers" and ref.component < 0 and not use.extent[1]
    is_view = isinstance(layout, Layout) and layout.base is None  # and no array, whose elements may be spelt out
    if not (is_fragment and is_view) or use.access.value.op != "element" or layout in counting.moving:
        return False
    if any(other.extent == use.extent and other.offset != use.offset for other in counting.fixed):
        return False
    writes = [other.access.value for other in counting.used(run) if other.access.value.op == "set"]
    return any(inner is use.access.value for value in writes for inner in behind(value, run.loop.first))


def _is_counted_elsewhere(counting: Counting, run: Run, use: Use) -> bool:
    """Tell whether a loop uses its counter for nothing, while others as long as it count what an index is for."""
    if counting.used(run) or run.bound.op == "const":
        return False
    others = [other for other in counting.runs.values() if other is not run and alike(run.bound, other.bound)]
    return any(other_use.extent == use.extent for other in others for other_use in counting.used(other))


def _other_dimensions(counting: Counting) -> Iterator[tuple[str, Use]]:
    """Yield where a vector goes along with one dimension of a tensor, though elsewhere with another one of it."""
    together: dict[tuple[Extent, object], dict[Dimension, list[Use]]] = {}
    for run in counting.runs.values():
        uses = counting.used(run)
        for vector in [use for use in uses if use.extent[1] == ()]:
            for use in uses:
                if use.extent[0] is not vector.extent[0] and isinstance(use.extent[0], Layout) and use.extent[1]:
                    seen = together.setdefault((vector.extent, use.extent[0]), {})
                    seen.setdefault(use.extent[1], []).append(vector)
    for seen in together.values():
        if len(seen) > 1:
            dimension, uses = min(seen.items(), key=lambda item: (len(item[1]), -item[1][0].access.value.number))
            others = ", ".join(_words(other) for other in seen if other != dimension)
            yield f"{uses[0].name} is indexed along {_words(dimension)} of a tensor, elsewhere along {others}", uses[0]
