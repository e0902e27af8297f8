"""Which slices of its operands enter a product that is taken in pieces, and whether each was copied before.

A product over the head dimension or over a tile's columns is often a loop: slice ``i + 1`` of both operands is copied
from shared memory to registers, then the product of slices ``i`` is added. The terms see one product of two tensors,
whichever slices it takes. Here such a loop is carried out for a few slices, with the copies in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, replace
from typing import TypeAlias

from tracer.dataflow.compare import Comparison
from tracer.dataflow.diagnose import Finding
from tracer.dataflow.graph import Graph
from tracer.dataflow.ir import Formula, Loop, Storage, Value, flags_of
from tracer.dataflow.match import main_loops
from tracer.dataflow.names import plain
from tracer.dataflow.numbers import Numbers, Unseen
from tracer.records import dataclass

#: Extents of a fragment's dimensions, by their number: all different, so that one does not pass for another; there are
#: fewest along the dimensions before the slices, so that a bound by one of them leaves slices out.
_EXTENTS = {0: 2, 1: 3, 2: 4, 3: 5}
_MOST_STEPS = 16
#: In the place of a slice's number: all that have no assignment of their own.
_SAME = -1
#: How often a loop around the products is gone through: what one step leaves in registers, the next may find. That is
#: looked at for the flags of the match only.
_ROUNDS = 2


@dataclass(frozen=True, slots=True)
class _Operand:
    """An operand of a product: registers, and which slice of them.

    Attributes:
        storage: the registers.
        dimension: along which they are sliced; -1 where all of them are read.
        index: which slice; None where all of them are read.
    """

    storage: Storage
    dimension: int
    index: Value | None


@dataclass(frozen=True, slots=True)
class _Product:
    """A product of two fragments, added to an accumulator.

    Attributes:
        value: the product.
        guards: the formulas under which it is taken.
        operands: both.
    """

    value: Value
    guards: tuple[Formula, ...]
    operands: tuple[_Operand, _Operand]


@dataclass(frozen=True, slots=True)
class _Held:
    """What a slice of registers holds.

    Attributes:
        source: the shared tensor that it was copied from; None where it was computed.
        number: which slice of that it is; :data:`_SAME` for the one of the same number.
        version: how often that tensor had been written.
    """

    source: Storage | None
    number: int
    version: int = 0


@dataclass(slots=True)
class _Block:
    """A loop with what matters in it, or the whole kernel."""

    loop: Loop | None
    parts: list[_Part] = field(default_factory=list)


_Part: TypeAlias = "_Block | _Product | Value"
_Steps: TypeAlias = list[dict[tuple[int, Storage], int]]


class _Counted(Numbers):
    """Numbers for the loops over slices: extents of fragments are known, and nothing else."""

    has_extent = False

    def _read(self, value: Value) -> Callable[[], int]:
        if value.op == "shape" and value.text.startswith("size<"):
            extent = _EXTENTS.get(int(value.text[5:-1])) if value.text[5:-1].isdigit() else None
            if extent is not None:
                return lambda: self._extent(extent)
        return super()._read(value)

    def _extent(self, extent: int) -> int:
        self.has_extent = True
        return extent

    def open_conditions(self, guards: Iterable[Formula]) -> list[Callable[[], bool]] | None:
        """Return the conditions that are not decided yet; None where one of them does not hold."""
        conditions = [self.condition(formula) for formula in guards]
        return None if False in conditions else [c for c in conditions if not isinstance(c, bool)]


def _may_hold(conditions: Iterable[Callable[[], bool]]) -> bool:
    """Tell whether conditions hold, as far as they are known."""
    for condition in conditions:
        try:
            if not condition():
                return False
        except Unseen:
            continue
    return True


def slice_findings(comparison: Comparison) -> list[Finding]:
    """Return the products that leave a slice out, or take one that was not copied; what is not judged is noted."""
    graph = comparison.kernel.graph
    products = list(_products(graph.values))
    fragments = {operand.storage for product in products for operand in product.operands}
    copies = [v for v in graph.values if v.op == "set" and v.storage in fragments and not v.is_view]
    sources = {source.storage for copy in copies if (source := _shared(copy)) is not None}
    copied = {copy.storage for copy in copies if copy.storage is not None and _shared(copy) is not None}
    products = [product for product in products if any(operand.storage in copied for operand in product.operands)]
    if not products:
        return []
    fills = [v for v in graph.values if v.op == "set" and v.storage in sources and not v.is_view]
    parts: list[tuple[int, _Product | Value]] = [(value.number, value) for value in (*copies, *fills)]
    parts += [(product.value.number, product) for product in products]
    moved = [copy.number for copy in copies if _shared(copy) is not None] + [p.value.number for p in products]
    around = [loop for loop in graph.loops if any(loop.first <= number < loop.last for number in moved)]
    root = _nested(around, sorted(parts, key=lambda part: part[0]))
    base = {**dict.fromkeys(comparison.kernel.flag_names(), False), **comparison.match.flags}
    main = {loop.number for loop in main_loops(comparison.kernel)}
    guards = [product.guards for product in products] + [c.guards for c in copies if _shared(c) is not None]
    # What lets a thread block come here at all is the same for everything that happens here.
    rows = {id(part.guards): part.guards for _, part in parts}
    common = next((n for n, same in enumerate(zip(*rows.values(), strict=False)) if len(set(same)) > 1), None)
    common = min(map(len, rows.values())) if common is None else common
    found: dict[object, Finding] = {}
    for flags in _configurations(base, comparison.match.flags, guards):
        replay = _Replay(graph, base | flags, main, copied, flags, common)
        replay.run(root)
        for place, finding in replay.found.items():
            found.setdefault(place, finding)
        comparison.unjudged += [note for note in replay.unjudged if note not in comparison.unjudged]
    return list(found.values())


def _configurations(
    base: dict[str, bool], decided: dict[str, bool], guards: Sequence[tuple[Formula, ...]]
) -> Iterator[dict[str, bool]]:
    """Yield the further flags to look at: none, each that decides about a copy or a product, and all of them."""
    yield {}
    common = set(guards[0]).intersection(*guards[1:])
    formulas = {formula for row in guards for formula in row} - common
    free = sorted({flag for formula in formulas for flag in flags_of(formula)} - decided.keys())
    for flag in free:
        yield {flag: True}
    if len(free) > 1:
        yield dict.fromkeys(free, True)


def _products(values: Sequence[Value]) -> Iterator[_Product]:
    """Yield the products of two fragments that are added to a whole accumulator."""
    for value in values:
        if value.op != "matmul":
            continue
        left, right = [_operand(argument) for argument in value.args[:2]]
        # The library adds a product in the two values behind it.
        behind = values[value.number + 1 : value.number + 8]
        put = next((v for v in behind if v.op == "set" and v.args[0].op == "add" and value in v.args[0].args), None)
        if left is not None and right is not None and put is not None and not put.indices:
            yield _Product(value, put.guards, (left, right))


def _operand(value: Value) -> _Operand | None:
    """Return what a product reads; None for what is not in registers, or is a part in more than one way."""
    if value.op != "element":
        storage = _storage(value)
        return _Operand(storage, -1, None) if storage is not None and storage.space == "registers" else None
    if value.storage is None or value.storage.space != "registers":
        return None
    chosen = [number for number, index in enumerate(value.indices) if index is not None]
    return _Operand(value.storage, chosen[0], value.indices[chosen[0]]) if len(chosen) == 1 else None


def _storage(value: Value) -> Storage | None:
    """Return the storage whose contents a value is; None where it is not known."""
    while value.storage is None and value.op == "select":
        value = value.args[0]
    return value.storage if value.op in ("set", "phi", "element", "select") else None


@dataclass(frozen=True, slots=True)
class _Source:
    """The part of a shared tensor that is copied from.

    Attributes:
        storage: the tensor.
        indices: which part; empty for the whole.
    """

    storage: Storage
    indices: tuple[Value | None, ...]


def _shared(copy: Value) -> _Source | None:
    """Return what an assignment copies from shared memory; None where it does something else."""
    if copy.args[0].op != "copy":
        return None
    source = copy.args[0].args[0]
    storage = _storage(source)
    if storage is None or storage.space != "shared":
        return None
    return _Source(storage, source.indices if source.op == "element" else ())


def _nested(loops: Sequence[Loop], parts: Iterable[tuple[int, _Product | Value]]) -> _Block:
    """Put what happens into the loops that it happens in."""
    root = _Block(None)
    blocks = {loop.number: _Block(loop) for loop in loops}
    placed: set[int] = set()
    for number, part in parts:
        outer = root
        for loop in loops:  # an outer loop stands before those in it
            if loop.first <= number < loop.last:
                inner = blocks[loop.number]
                if loop.number not in placed:
                    placed.add(loop.number)
                    outer.parts.append(inner)
                outer = inner
        outer.parts.append(part)
    return root


class _Replay:
    """Carries out the copies and the products of one kernel under some flags."""

    def __init__(
        self,
        graph: Graph,
        flags: dict[str, bool],
        main: set[int],
        copied: set[Storage],
        shown: dict[str, bool],
        common: int,
    ) -> None:
        self.graph, self.main, self.copied, self.shown, self.common = graph, main, copied, shown, common
        self.numbers = _Counted({}, flags)
        self.held: dict[Storage, dict[int, _Held]] = {}
        self.versions: dict[Storage, int] = {}
        self.before: dict[Storage, int] = {}  # versions as this step of the loop around the products began
        self.taken: dict[object, list[tuple[_Product, int, int, bool]]] = {}
        self._known: dict[Value, bool | list[Callable[[], bool]]] = {}
        self._entered: dict[int, bool] = {}
        self._bounded: set[int] = set()  # the loops whose steps are counted by an extent of a fragment
        self.is_counted = False
        self._counts: dict[int, _Steps | None] = {}
        self.found: dict[object, Finding] = {}
        self.unjudged: dict[str, None] = {}

    # -- control flow -------------------------------------------------------------------------------------------------
    def run(self, block: _Block) -> None:
        """Carry out the whole kernel, or one step of a loop around products."""
        outer = self.before, self.taken
        self.before, self.taken = dict(self.versions), {}
        self._follow(block, None)
        self._judge()
        self.before, self.taken = outer

    def _follow(self, block: _Block, guards: tuple[Formula, ...] | None) -> None:
        """Carry out what is in a block; ``guards`` are those of the loop over slices, where it is in one."""
        for part in block.parts:
            if isinstance(part, _Block):
                self._loop(part, guards)
            elif not self._happens(part, guards):
                continue
            elif isinstance(part, _Product):
                self._take(part, part.guards if guards is None else guards)
            else:
                self._put(part)

    def _happens(self, part: _Product | Value, guards: tuple[Formula, ...] | None) -> bool:
        """Tell whether a part happens, as far as that is known.

        Outside of the loops over slices nothing is known that changes; inside of one, what holds for the loop does.
        """
        key = part.value if isinstance(part, _Product) else part
        happens = self._known.get(key)
        if happens is None:
            outside = len(guards) if guards is not None and guards == part.guards[: len(guards)] else self.common
            conditions = self.numbers.open_conditions(part.guards[outside:])
            happens = False if conditions is None else conditions or True
            if guards is None and isinstance(happens, list):
                happens = _may_hold(happens)
            self._known[key] = happens
        return happens if isinstance(happens, bool) else _may_hold(happens)

    def _loop(self, block: _Block, guards: tuple[Formula, ...] | None) -> None:
        assert block.loop is not None
        if not self._may_enter(block.loop, guards):
            return
        steps = self._steps(block.loop, guards) if block.loop.number not in self.main else None
        if steps is not None:
            outer, self.is_counted = self.is_counted, block.loop.number in self._bounded
            for counters in steps:
                self.numbers.counters.update(counters)
                self._follow(block, block.loop.guards if guards is None else guards)
            self.is_counted = outer
        elif block.loop.number in self.main or any(isinstance(part, _Block) for part in block.parts):
            for _ in range(1 if self.shown else _ROUNDS):
                self.run(block)
        else:
            self._follow(block, guards)

    def _may_enter(self, loop: Loop, guards: tuple[Formula, ...] | None) -> bool:
        if guards is not None:
            return True  # in a loop over slices, the guards of what is in it say so
        if loop.number not in self._entered:
            conditions = self.numbers.open_conditions(loop.guards[self.common :])
            self._entered[loop.number] = conditions is not None and _may_hold(conditions)
        return self._entered[loop.number]

    def _steps(self, loop: Loop, guards: tuple[Formula, ...] | None) -> _Steps | None:
        """Return the counters of a loop in each step; None where they are not known."""
        if guards is not None:
            return self._counted(loop)
        if loop.number not in self._counts:
            self._counts[loop.number] = self._counted(loop)
        return self._counts[loop.number]

    def _counted(self, loop: Loop) -> _Steps | None:
        keys = [(loop.number, storage) for storage, *_ in loop.counters]
        try:
            if not keys:
                return None
            self.numbers.has_extent = False
            steps = [{key: self.numbers.counters[key] for key in keys} for _ in self.numbers.steps(loop, _MOST_STEPS)]
            if self.numbers.has_extent:
                self._bounded.add(loop.number)
            return steps
        except Unseen:
            for key in keys:
                self.numbers.counters.pop(key, None)
            return None

    # -- copies -------------------------------------------------------------------------------------------------------
    def _put(self, copy: Value) -> None:
        assert copy.storage is not None
        if copy.storage.space == "shared":
            self.versions[copy.storage] = self.versions.get(copy.storage, 0) + 1
            return
        source, slices = _shared(copy), self.held.setdefault(copy.storage, {})
        target = _last(copy.indices) if source is not None else None
        try:
            number = self.numbers.number(target) if target is not None else _SAME
            taken = _last(source.indices) if source is not None else None
            held = _Held(None, _SAME)
            if source is not None:
                index = self.numbers.number(taken) if taken is not None else number
                held = _Held(source.storage, index, self.versions.get(source.storage, 0))
        except Unseen:
            number, held = _SAME, _Held(None, _SAME)
        if number == _SAME:
            slices.clear()
        slices[number] = held

    # -- products -----------------------------------------------------------------------------------------------------
    def _take(self, product: _Product, guards: tuple[Formula, ...]) -> None:
        try:
            pairs = list(zip(*[self._numbers(operand) for operand in product.operands], strict=False))
        except Unseen as unseen:
            self.unjudged[f"which slices enter a product is not judged: an index depends on {unseen}"] = None
            return
        for numbers in pairs:
            held = [self._slice(product, o, number) for o, number in zip(product.operands, numbers, strict=True)]
            if held[0] is None or held[1] is None:
                return
            # A slice may be peeled off the loop; the other side of a condition is another product.
            key = (product.value.chain, guards, *[operand.storage for operand in product.operands])
            self.taken.setdefault(key, []).append((product, held[0].number, held[1].number, self.is_counted))

    def _numbers(self, operand: _Operand) -> list[int]:
        if operand.index is None:
            slices = self.held.get(operand.storage, {_SAME: None})
            return list(range(_EXTENTS[2])) if _SAME in slices else sorted(slices)
        return [self.numbers.number(operand.index)]

    def _slice(self, product: _Product, operand: _Operand, number: int) -> _Held | None:
        if operand.storage not in self.copied:
            return _Held(None, number)  # it is computed, all of it
        slices, name = self.held.get(operand.storage, {}), operand.storage.name
        held = slices.get(number, slices.get(_SAME))
        if held is None:
            self._say(product, f"the product reads slice {number} of {name}, which nothing was copied to")
        elif held.source is not None and held.version < self.before.get(held.source, 0):
            what = f"was copied before {held.source.name} was written anew"
            self._say(product, f"the product reads slice {number} of {name} as it {what}")
        else:
            return held if held.number != _SAME else replace(held, number=number)
        return None

    def _judge(self) -> None:
        """Judge what the products of one step have taken."""
        for rows in self.taken.values():
            product = rows[0][0]
            names = [operand.storage.name for operand in product.operands]
            dimension = product.operands[0].dimension
            other = next((row for row in rows if row[1] != row[2]), None)
            numbers = [row[1] for row in rows]
            # Where no loop asks how many slices there are, those that are taken are all.
            extent = _EXTENTS.get(dimension, 0) if rows[0][3] or rows[-1][3] else max(numbers) + 1
            if other is not None:
                what = f"the product takes slice {other[1]} of {names[0]} with slice {other[2]} of {names[1]}"
            elif sorted(set(numbers)) != list(range(extent)):
                missing = [number for number in range(extent) if number not in numbers]
                what = f"slice {missing[0]} of {extent}" if missing else f"a slice behind the last of {extent}"
                what = f"{what} of {names[0]} and {names[1]} {'never enters' if missing else 'enters'} the product"
            elif len(numbers) > extent:
                what = f"a slice of {names[0]} and {names[1]} enters the product more than once"
            else:
                continue
            self._say(product, what)
        self.taken.clear()

    def _say(self, product: _Product, message: str) -> None:
        value = product.value
        location = self.graph.location(value.site)
        shown = f" (with {' and '.join(self.shown)})" if self.shown else ""
        self.found.setdefault(
            location, Finding("bounds", message + shown, None, location, self.graph.calls(value.chain))
        )


def _last(indices: tuple[Value | None, ...]) -> Value | None:
    """Return the index of a slice: the last one, as the slices are along the last dimension of a fragment."""
    return plain(indices[-1]) if indices and indices[-1] is not None else None


__all__ = ["slice_findings"]
