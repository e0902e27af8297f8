"""Which element of a tensor in memory belongs to an element of a fragment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tracer.dataflow.counting import Counting, Run, Use, behind
from tracer.dataflow.ir import Access, Layout, Value, plain


def place_faults(counting: Counting) -> Iterator[tuple[str, Value]]:
    """Yield where an element of a fragment gets, or goes to, a place that is not its own."""
    reads = {access.value.number: access for access in counting.kernel.accesses if access.value.op == "element"}
    for access in counting.kernel.accesses:
        ref, value = access.ref, access.value
        if value.op == "set" and ref.storage.space == "global":
            for run in counting.around(value):
                if run.loop.number not in ref.loops and _enters(counting, run, value.args[0]):
                    yield (
                        f"what is stored to {ref.name} is another value for every {run.storage.name}, the place is not",
                        value,
                    )
        for place in ref.places:
            coordinate = _coordinate(reads, plain(place.index))
            if coordinate is not None and _is_wrong_component(counting, coordinate):
                what = ("row", "column")[coordinate.ref.component]
                yield (
                    f"{ref.name} is indexed by a {what} that is the same for all of the elements that are gone along",
                    value,
                )
    for run in counting.runs.values():
        uses = counting.used(run)
        if any(use.access.ref.storage.space == "registers" for use in uses):
            for use in uses:
                if _is_of_block(use):
                    yield (
                        f"{use.name} is indexed by the number of an element in a thread's fragment, {run.storage.name}",
                        use.access.value,
                    )


def _coordinate(reads: Mapping[int, Access], index: Value) -> Access | None:
    """Return the access to a tensor of coordinates whose component an index is."""
    found = reads.get(index.number)
    if found is None and index.op == "element" and index.storage is not None and index.storage.is_identity:
        found = reads.get(plain(index.args[0]).number)
    return found


def _enters(counting: Counting, run: Run, contents: Value) -> bool:
    """Tell whether an element of a fragment that a loop's counter chooses enters a value."""
    if run.loop.number not in contents.loops:
        return False
    used = [use.access for use in counting.used(run)]
    reads = {access.value for access in used if access.ref.storage.space == "registers"}
    return any(inner in reads for inner in behind(contents, run.loop.first))


def _is_of_block(use: Use) -> bool:
    """Tell whether an index counts elements of a tensor in global memory that all threads have in common."""
    ref, layout = use.access.ref, use.place.layout
    if ref.storage.space != "global" or not isinstance(layout, Layout) or layout.is_of_thread or use.extent[1]:
        return False
    steps = ref.address.steps if ref.address is not None else ()
    return not any(inner.text.startswith("threadIdx") for step in steps for inner in behind(step.index))


def _is_wrong_component(counting: Counting, coordinate: Access) -> bool:
    """Tell whether a component of a thread's coordinates is taken along the other dimension of its tile.

    A thread's part of a tile has three dimensions: elements next to each other, along the rows, along the columns.
    """
    component = coordinate.ref.component
    if component not in (0, 1):
        return False
    fixed = set()
    varies = False
    for place in coordinate.ref.places:
        _, dimension = counting.extent(place.layout, place.dimension)
        if plain(place.index).op == "const":
            fixed.add(dimension)
        elif dimension != (0,):
            varies = True
    return varies and (1 + component,) in fixed
