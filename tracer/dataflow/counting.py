"""What the loops over elements count: from where, how far, by which steps, and which dimensions of which tensors."""

from __future__ import annotations

from collections.abc import Iterable

from tracer.dataflow.ir import Access, Dimension, Formula, Layout, Loop, Place, Storage, Value, plain, tests_of
from tracer.dataflow.names import Names
from tracer.records import dataclass

#: One dimension of one layout.
Extent = tuple[Layout | Storage, Dimension]
_MOST_VALUES = 200


@dataclass(frozen=True, slots=True)
class Run:
    """A loop that counts up from a constant.

    Attributes:
        loop: the loop.
        storage: its counter.
        counter: the counter's value in a step.
        begins: the constant.
        step: by how much it counts; 0 where that is not known.
        bound: what it counts to.
        test: ``lt``, ``le`` or ``ne``: how the counter is compared with that.
    """

    loop: Loop
    storage: Storage
    counter: Value
    begins: int
    step: int
    bound: Value
    test: str

    def holds(self, value: Value) -> bool:
        """Tell whether a value is made in the loop."""
        return self.loop.first <= value.number < self.loop.last


@dataclass(frozen=True, slots=True)
class Use:
    """An index of an element that is a counter plus a constant, or a constant alone.

    Attributes:
        access: of which element.
        place: which of its indices.
        extent: the dimension that it counts.
        counter: the counter; None where it is a constant alone.
        offset: the constant.
    """

    access: Access
    place: Place
    extent: Extent
    counter: Value | None
    offset: int

    @property
    def name(self) -> str:
        """The tensor, as messages call it."""
        ref = self.access.ref
        return ref.name or ref.storage.name or "a tensor"


class Counting:
    """The loops over elements of one kernel, and the elements that they reach.

    Attributes:
        runs: the loops, by the number of their counter's value.
        fixed: the indices that are a constant.
        by_counter: those that are a counter and a constant, by the number of the counter's value.
        moving: the layouts with an index that is no constant.
        otherwise: the counters that enter an index in another way.
    """

    def __init__(self, kernel: Names) -> None:
        """Read them from a kernel."""
        self.kernel = kernel
        self.runs = {run.counter.number: run for run in map(_run, kernel.loops) if run is not None}
        self.fixed: list[Use] = []
        self.by_counter: dict[int, list[Use]] = {number: [] for number in self.runs}
        self.otherwise: set[int] = set()
        self.moving: set[Layout | Storage] = set()
        self._same: dict[Extent, Extent] = {}
        ranks: dict[Layout | Storage, int] = {}
        for access in kernel.accesses:
            for place in access.ref.places:
                if place.dimension:
                    ranks[place.layout] = max(ranks.get(place.layout, 1), place.dimension[0] + 1)
        for layout, dimension in kernel.extents.values():
            if dimension:
                ranks[layout] = max(ranks.get(layout, 1), dimension[0] + 1)
        self._ranks = ranks
        for access in kernel.accesses:
            for place in access.ref.places:
                self._use(access, place)
        for run in self.runs.values():
            used = [use for use in self.used(run) if not self.is_of_another_dimension(run, use)]
            for use in used[1:]:
                self.join(used[0].extent, use.extent)

    def _use(self, access: Access, place: Place) -> None:
        counter, offset = affine(place.index)
        if counter is not None or offset is None:
            self.moving.add(place.layout)
        if offset is None:
            self.otherwise |= counters_in(place.index)
            return
        use = Use(access, place, self.extent(place.layout, place.dimension), counter, offset)
        if counter is None:
            self.fixed.append(use)
        elif counter.number in self.runs:
            self.by_counter[counter.number].append(use)

    # -- dimensions ---------------------------------------------------------------------------------------------------
    def extent(self, layout: Layout | Storage, dimension: Dimension) -> Extent:
        """Return the dimension of a tensor that one of a slice of it is; the only one of a vector is all of it."""
        while isinstance(layout, Layout) and layout.base is not None:
            if dimension and dimension[0] < len(layout.kept):
                dimension = (*layout.kept[dimension[0]], *dimension[1:])
            elif not dimension and len(layout.kept) == 1:
                dimension = layout.kept[0]
            else:
                break
            layout = layout.base
        return layout, () if dimension == (0,) and self._ranks.get(layout, 1) == 1 else dimension

    def bound_of(self, value: Value) -> Extent | None:
        """Return the dimension whose size a value is."""
        found = self.kernel.extents.get(plain(value).number)
        return self.extent(*found) if found is not None else None

    def join(self, left: Extent, right: Extent) -> None:
        """Note that one counter goes along both of two dimensions."""
        left, right = self.group(left), self.group(right)
        if left != right:
            self._same[right] = left

    def group(self, extent: Extent) -> Extent:
        """Return one dimension for all those that some counters go along together."""
        while extent in self._same:
            extent = self._same[extent]
        return extent

    # -- loops --------------------------------------------------------------------------------------------------------
    def around(self, value: Value) -> list[Run]:
        """Return the loops in which a value is made, outermost first."""
        return [run for run in self.runs.values() if run.holds(value)]

    def used(self, run: Run) -> list[Use]:
        """Return the indices that the counter of a loop enters, alone or with a constant."""
        return self.by_counter[run.counter.number]

    def is_of_another_dimension(self, run: Run, use: Use) -> bool:
        """Tell whether an index is for another dimension of its tensor than the one that bounds the loop."""
        whole = self.bound_of(run.bound)
        if whole is None or use.extent[0] is not whole[0] or use.extent[1] == whole[1]:
            return False
        return any(other.extent == whole for other in self.used(run))

    def along(self, run: Run) -> set[Extent]:
        """Return what a loop goes along: the groups of the dimensions that it counts or is bounded by."""
        found = {self.group(use.extent) for use in self.used(run)}
        bound = self.bound_of(run.bound)
        return found | ({self.group(bound)} if bound is not None else set())


def _run(loop: Loop) -> Run | None:
    if len(loop.counters) != 1 or not isinstance(loop.condition, tuple) or loop.condition[0] != "test":
        return None
    storage, start, counter, after = loop.counters[0]
    test, first = plain(loop.condition[1]), plain(start)
    if test.op not in ("lt", "le", "ne") or plain(test.args[0]) is not counter:
        return None
    if first.op != "const" or not isinstance(first.constant, int):
        return None
    moved, offset = affine(after)
    step = offset if moved is counter and offset is not None else 0
    return Run(loop, storage, counter, first.constant, step, plain(test.args[1]), test.op)


def affine(value: Value) -> tuple[Value | None, int | None]:
    """Return the counter and the constant that a value is the sum of; (None, None) for any other value."""
    value, offset = plain(value), 0
    for _ in range(_MOST_VALUES):
        if value.op == "index":
            return value, offset
        if value.op == "const":
            return (None, offset + value.constant) if isinstance(value.constant, int) else (None, None)
        if value.op not in ("add", "sub") or len(value.args) != 2:
            break
        left, right = plain(value.args[0]), plain(value.args[1])
        if value.op == "add" and left.op == "const":
            left, right = right, left
        if right.op != "const" or not isinstance(right.constant, int):
            break
        offset += right.constant if value.op == "add" else -right.constant
        value = left
    return None, None


def counters_in(value: Value) -> set[int]:
    """Return the numbers of the counters that a value is computed from, other than as the index of an element."""
    return {inner.number for inner in behind(value, through_elements=False) if inner.op == "index"}


def behind(value: Value, first: int = 0, *, through_elements: bool = True) -> Iterable[Value]:
    """Yield what a value is made of, the nearest first; only values from a number on, and not too many."""
    seen: set[int] = set()
    waiting = [value]
    while waiting and len(seen) < _MOST_VALUES:
        value = plain(waiting.pop(0))
        if value.number not in seen and value.number >= first:
            seen.add(value.number)
            yield value
            if through_elements or value.op != "element":
                waiting += value.args


def alike(left: Value, right: Value, counter: Value | None = None, first: int = 0, depth: int = 12) -> bool:
    """Tell whether two values are computed alike; where a counter is given, with a constant in its place at the right.

    Args:
        left: one value.
        right: the other.
        counter: a counter in the first one.
        first: the constant in the second.
        depth: how many operations deep they are compared.
    """
    left, right = plain(left), plain(right)
    if left is right:
        return True
    if left is counter:
        return right.op == "const" and right.constant == first
    if depth == 0 or (left.op, left.text, left.constant) != (right.op, right.text, right.constant):
        return False
    if left.op in ("phi", "index", "after", "opaque", "call", "undefined") or len(left.args) != len(right.args):
        return False
    if left.condition is not right.condition and left.condition != right.condition:
        return False
    return all(alike(a, b, counter, first, depth - 1) for a, b in zip(left.args, right.args, strict=True))


def asks(path: Iterable[Formula], counter: Value) -> bool:
    """Tell whether a condition on a path compares a counter with something."""
    tests = [test for formula in path for test in tests_of(formula)]
    return any(affine(argument)[0] is counter for test in tests for argument in test.args)
