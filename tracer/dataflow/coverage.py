"""Which tiles a kernel visits, which rows and columns it masks, and which tiles it loads, for concrete problem sizes.

The loops over tiles are counted through, the mask's condition is asked for elements of the fragment, and the tile that
each load names is compared with the tile that is worked on. What the elements of a fragment are is known: the layout of
the accumulator of the tensor cores' m16n8 product (PTX ISA, "Matrix Fragments for mma.m16n8k16"), warps one below the
other. A kernel of another make, or an expression that holds something unknown, is not judged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

from tracer.dataflow.compare import Comparison
from tracer.dataflow.diagnose import Finding
from tracer.dataflow.ir import Formula, Loop, Storage, Value, flags_of
from tracer.dataflow.match import main_loops
from tracer.dataflow.names import plain
from tracer.dataflow.numbers import Numbers, Unseen
from tracer.records import dataclass

#: (rows of a Q tile, rows of a K/V tile) to try.
_TILES = ((64, 64), (64, 32))
#: (query length, key length) to try; not multiples of the tiles, keys more and fewer than queries.
_LENGTHS = ((100, 150), (130, 70))
_LANES = (1, 2, 14, 37)
_MOST_STEPS = 64


@dataclass(slots=True)
class _Roles:
    """What the leaves of the index expressions are."""

    rows: str
    columns: str
    tile: str
    keys: str
    queries: str


class _Coverage:
    """One kernel."""

    def __init__(self, comparison: Comparison) -> None:
        self.comparison, self.kernel = comparison, comparison.kernel
        self.graph = comparison.kernel.graph
        self.loops = sorted(main_loops(comparison.kernel), key=lambda loop: loop.first)
        self.base = {**dict.fromkeys(comparison.kernel.flag_names(), False), **comparison.match.flags}
        self.found: dict[str, Finding] = {}
        self._known_places: dict[tuple[object, ...], list[_Place]] = {}
        self._loaded: dict[str, list[tuple[Value, Value, Loop, bool]]] = {}

    def findings(self) -> list[Finding]:
        if not self.loops or "dO" in self.comparison.match.inputs:
            return []
        roles = self._roles()
        if roles is None:
            return []
        for flags, is_causal in self._configurations(roles):
            masks = self.comparison.masks(flags)
            numbers = _Leaves(roles, flags)
            for tile_sizes in _TILES:
                for lengths in _LENGTHS:
                    try:
                        self._walk(numbers, is_causal, masks, tile_sizes, lengths)
                    except Unseen:
                        break
                    if self.found:
                        return list(self.found.values())
        return list(self.found.values())

    # -- roles --------------------------------------------------------------------------------------------------------
    def _roles(self) -> _Roles | None:
        inputs = self.comparison.match.inputs
        queries, keys = self.graph.inputs.get(inputs.get("Q", "")), self.graph.inputs.get(inputs.get("K", ""))
        if queries is None or keys is None:
            return None
        rows, columns = _extent(queries), _extent(keys)
        tile = next((_name(c[0]) for _, c, _ in queries.tiles if c and c[0] is not None), "")
        masks = self.comparison.masks(self.base)
        if not rows or not columns or len(masks) != 1:
            return None
        tile = tile or self._multiplied_with(rows)
        known = {rows, columns, tile}
        lengths = self._lengths(masks[0], self.base) - known
        if len(lengths) != 1:
            return None
        keys_length = lengths.pop()
        queries_length = ""
        for path in self.graph.exits:
            for formula in path:
                more = self._tested(formula) - known - {keys_length}
                if len(more) == 1 and not queries_length:
                    queries_length = more.pop()
        return _Roles(rows, columns, tile, keys_length, queries_length)

    def _multiplied_with(self, extent: str) -> str:
        """Return the argument of the kernel's function that is multiplied with an extent: the number of its tile."""
        for value in self.graph.values:
            if value.op == "mul" and len(value.args) == 2:
                names = [plain(argument) for argument in value.args]
                for one, other in (names, names[::-1]):
                    if one.text == extent and other.op == "input" and "." not in other.text:
                        return other.text
        return ""

    def _tested(self, formula: Formula) -> set[str]:
        if isinstance(formula, bool) or formula[0] == "flag":
            return set()
        if formula[0] == "test":
            return _live_leaves(formula[1], self.base)
        return {leaf for part in formula[1:] for leaf in self._tested(part)}

    def _flags(self) -> list[str]:
        """Return the flags that decide whether a score is masked, and that the match leaves off."""
        found: set[str] = set()
        for value in self.graph.values:
            inner = plain(value) if value.op == "set" else value
            if inner.op == "const" and inner.constant == -math.inf:
                found |= {flag for formula in value.guards for flag in flags_of(formula)}
        return sorted(flag for flag in found if not self.comparison.match.flags.get(flag, False))

    def _lengths(self, mask: Value, flags: Mapping[str, bool]) -> set[str]:
        condition = mask.condition
        tests = [condition[1]] if isinstance(condition, tuple) and condition[0] == "test" else []
        names: set[str] = set()
        for test in tests:
            for leaf in _live_leaves(test, flags):
                names.add(leaf)
        return names

    def _configurations(self, roles: _Roles) -> Iterator[tuple[dict[str, bool], bool]]:
        yield self.base, False
        if not roles.queries:
            return
        for flag in self._flags():
            flags = {**self.base, flag: True}
            masks = self.comparison.masks(flags)
            leaves = {leaf for mask in masks for leaf in self._lengths(mask, flags)}
            others = leaves - {roles.rows, roles.columns, roles.tile, roles.keys, roles.queries}
            # A causal mask may be written as a window to the right, whose width the host makes zero.
            if roles.queries in leaves and len(others) <= 1:
                yield flags, True

    # -- one problem size ---------------------------------------------------------------------------------------------
    def _walk(
        self,
        numbers: _Leaves,
        is_causal: bool,
        masks: list[Value],
        tile_sizes: tuple[int, int],
        lengths: tuple[int, int],
    ) -> None:
        rows, columns = tile_sizes
        queries, keys = lengths
        for tile in range(math.ceil(queries / rows)):
            numbers.begin(tile, tile_sizes, lengths)
            if self._leaves_early(numbers):
                if any(True for _ in _needed(tile, rows, columns, queries, keys, is_causal)):
                    self._report("bounds", f"rows {tile * rows}… leave before their keys are seen", None)
                continue
            visited: list[tuple[int, Loop]] = []
            for loop in self.loops:
                counter = _tile_counter(loop)

                for _ in numbers.steps(loop, _MOST_STEPS):
                    number = numbers.counters[loop.number, counter]
                    visited.append((number, loop))
                    self._look_at_masks(numbers, loop, masks, number, tile, tile_sizes, lengths, is_causal)
            self._judge(visited, tile, tile_sizes, lengths, is_causal, masks)
            self._look_at_loads(numbers, visited)

    def _leaves_early(self, numbers: Numbers) -> bool:
        for path in self.graph.exits:
            try:
                if all(numbers.holds(formula) for formula in path):
                    return True
            except Unseen:
                continue
        return False

    def _judge(
        self,
        visited: list[tuple[int, Loop]],
        tile: int,
        tile_sizes: tuple[int, int],
        lengths: tuple[int, int],
        is_causal: bool,
        masks: list[Value],
    ) -> None:
        rows, columns = tile_sizes
        queries, keys = lengths
        numbers = [number for number, _ in visited]
        last = min(tile * rows + rows, queries) - 1
        where = f"rows {tile * rows} to {last} of {queries}, {keys} keys, tiles of {columns}"
        site = self.loops[-1].site
        for needed in _needed(tile, rows, columns, queries, keys, is_causal):
            if needed not in numbers:
                self._report("bounds", f"the loop over j leaves out K/V tile {needed} ({where})", site)
        for number, loop in visited:
            if numbers.count(number) > 1:
                self._report("bounds", f"the loop over j visits K/V tile {number} more than once ({where})", loop.site)
            if not 0 <= number < math.ceil(keys / columns):
                self._report(
                    "bounds", f"the loop over j visits K/V tile {number}, which does not exist ({where})", loop.site
                )
            if not any(loop.first <= mask.number < loop.last for mask in masks):
                hidden = [
                    (row, column)
                    for row in range(tile * rows, min(tile * rows + rows, queries))
                    for column in (number * columns, number * columns + columns - 1)
                    if not _is_visible(row, column, queries, keys, is_causal)
                ]
                if hidden:
                    message = f"K/V tile {number} needs a mask and is visited without one ({where})"
                    self._report("bounds", message, loop.site)

    def _look_at_masks(
        self,
        numbers: Numbers,
        loop: Loop,
        masks: list[Value],
        number: int,
        tile: int,
        tile_sizes: tuple[int, int],
        lengths: tuple[int, int],
        is_causal: bool,
    ) -> None:
        rows, columns = tile_sizes
        queries, keys = lengths
        warps = max(1, rows // 16)
        for mask in masks:
            if not loop.first <= mask.number < loop.last:
                continue
            counters = _fragment_counters(self.graph.loops, mask)
            if counters is None:
                continue
            for lane in _LANES:
                if lane // 32 >= warps:
                    continue
                for place in self._places(counters, columns):
                    numbers.counters.update(place.counters)
                    numbers.leaves["threadIdx.x"] = lane
                    row = (
                        tile * rows + lane // 32 * 16 + place.row // 2 * warps * 16 + place.row % 2 * 8 + lane % 32 // 4
                    )
                    column = number * columns + place.column // 2 * 8 + lane % 4 * 2 + place.column % 2
                    hides = numbers.holds(mask.condition)
                    shown = _is_visible(row, column, queries, keys, is_causal)
                    if place.row >= 2 or row >= queries:
                        continue
                    if hides == shown:
                        what = (
                            "is hidden though the row sees it"
                            if hides
                            else "is not hidden though the row must not see it"
                        )
                        message = f"the mask is wrong: score ({row}, {column}) {what} ({queries} queries, {keys} keys)"
                        self._report("mask", message, mask.site)
                        return

    def _places(self, counters: dict[str, tuple[int, Storage]], columns: int) -> list[_Place]:
        key = (columns, tuple(counters.items()))
        if key not in self._known_places:
            self._known_places[key] = list(_places(counters, columns))
        return self._known_places[key]

    def _look_at_loads(self, numbers: Numbers, visited: list[tuple[int, Loop]]) -> None:
        """Compare the tile that each load names with the tile that the product after it works on."""
        for name in ("K", "V"):
            for value, index, loop, is_next in self._loads(name):
                for position, (tile, inside) in enumerate(visited[:-1]):
                    if inside is not loop:
                        continue
                    numbers.counters[loop.number, _tile_counter(loop)] = tile
                    wanted = visited[position + 1][0] if is_next else tile
                    found = numbers.number(index)
                    if found != wanted:
                        message = f"tile {found} of {name} is loaded where tile {wanted} is worked on next"
                        self._report("bounds", message, value.site)
                        return

    def _loads(self, name: str) -> list[tuple[Value, Value, Loop, bool]]:
        """Return the loads of an input inside of the loops: (load, tile number, loop, for the next step)."""
        if name not in self._loaded:
            storage = self.graph.inputs.get(self.comparison.match.inputs.get(name, ""))
            found = []
            for value in self.graph.values:
                if value.op != "element" or value.storage is not storage or storage is None:
                    continue
                for loop in self.loops:
                    index = next((a for a in value.args[1:] if loop.number in a.loops), None)
                    if index is not None and loop.first <= value.number < loop.last:
                        found.append((value, index, loop, self._use(name, loop) < value.number))
            self._loaded[name] = found
        return self._loaded[name]

    def _use(self, name: str, loop: Loop) -> int:
        """Return the number of the first product of a loop that an input enters."""
        wanted = self.comparison.match.inputs[name]
        for value in self.graph.values[loop.first : loop.last]:
            if value.op == "matmul":
                for argument in value.args:
                    terms = self.kernel.alternatives(self.kernel.term(argument), True)
                    if any(term.op == "input" and term.detail == wanted for term in terms):
                        return value.number
        return loop.last

    def _report(self, kind: str, message: str, site: object) -> None:
        location = self.graph.location(site) if site is not None else None
        self.found.setdefault(kind, Finding(kind, message, None, location))


class _Leaves(Numbers):
    """The leaves of one problem: its sizes, and large values for windows that are not asked for."""

    def __init__(self, roles: _Roles, flags: Mapping[str, bool]) -> None:
        super().__init__({}, flags)
        self.roles = roles

    def begin(self, tile: int, tile_sizes: tuple[int, int], lengths: tuple[int, int]) -> None:
        """Begin the work on one tile of rows, outside of all loops."""
        roles = self.roles
        self.counters.clear()
        self.after.clear()
        self.leaves = {roles.rows: tile_sizes[0], roles.columns: tile_sizes[1], roles.keys: lengths[1]}
        if roles.tile:
            self.leaves[roles.tile] = tile
        if roles.queries:
            self.leaves[roles.queries] = lengths[0]

    def _leaf(self, name: str) -> int:
        return self.leaves.get(name, 0)


def coverage_findings(comparison: Comparison) -> list[Finding]:
    """Return what is wrong with the tiles that are visited, masked and loaded, and with loops over elements."""
    return _Coverage(comparison).findings() + element_findings(comparison)


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


# -- what is right ----------------------------------------------------------------------------------------------------
def _is_visible(row: int, column: int, queries: int, keys: int, is_causal: bool) -> bool:
    return column < keys and (not is_causal or column <= row + keys - queries)


def _needed(tile: int, rows: int, columns: int, queries: int, keys: int, is_causal: bool) -> Iterator[int]:
    last = min(tile * rows + rows, queries) - 1
    for number in range(math.ceil(keys / columns)):
        if _is_visible(last, number * columns, queries, keys, is_causal):
            yield number


# -- fragments --------------------------------------------------------------------------------------------------------
@dataclass(slots=True)
class _Place:
    """An element of a thread's fragment: its row and column among those of the thread, and the counters for it."""

    row: int
    column: int
    counters: dict[tuple[int, Storage], int]


def _fragment_counters(loops: list[Loop], mask: Value) -> dict[str, tuple[int, Storage]] | None:
    """Return the counters around a mask by what they count: ``0``, ``0,0``, ``1,1``, …; None where that is not seen."""
    found: dict[str, tuple[int, Storage]] = {}
    for loop in loops:
        if not loop.first <= mask.number < loop.last or len(loop.counters) != 1:
            continue
        condition = loop.condition
        if not isinstance(condition, tuple) or condition[0] != "test":
            continue
        bound = plain(plain(condition[1]).args[-1]) if plain(condition[1]).args else None
        if bound is None or bound.op != "shape" or "<" not in bound.text:
            continue
        key = bound.text.partition("<")[2].rstrip(">").replace(" ", "")
        found[key] = (loop.number, loop.counters[0][0])
    columns = "1" in found or {"1,0", "1,1"} <= found.keys()
    return found if columns else None


def _places(counters: dict[str, tuple[int, Storage]], columns: int) -> Iterator[_Place]:
    per_thread = columns // 4
    for row in (0, 1):
        for column in range(per_thread):
            bound: dict[tuple[int, Storage], int] = {}
            for key, counter in counters.items():
                bound[counter] = {
                    "0": row, "0,0": row % 2, "0,1": row // 2,
                    "1": column, "1,0": column % 2, "1,1": column // 2,
                }.get(key, 0)  # fmt: skip
            yield _Place(row, column, bound)


# -- the kernel's expressions -----------------------------------------------------------------------------------------
def _tile_counter(loop: Loop) -> Storage:
    """Return the counter of a loop over tiles that does not begin at a constant."""
    chosen = loop.counters[0][0]
    for storage, start, _, _ in loop.counters:
        if plain(start).op != "const":
            chosen = storage
    return chosen


def _name(value: Value | None) -> str:
    inner = plain(value) if value is not None else None
    return inner.text if inner is not None else ""


def _extent(storage: Storage) -> str:
    return next((_name(extents[0]) for extents, _, _ in storage.tiles if extents), "")


def _live_leaves(value: Value, flags: Mapping[str, bool]) -> set[str]:
    """Return the scalars that a condition depends on where the optional tensors are not there."""
    found: set[str] = set()
    numbers = _Recorder(flags, found)
    try:
        numbers.number(value)
    except Unseen:
        return found
    return found


class _Recorder(Numbers):
    """Evaluates an expression with one everywhere, and remembers what it asked for."""

    def __init__(self, flags: Mapping[str, bool], asked: set[str]) -> None:
        super().__init__({}, flags)
        self.asked = asked

    def _read(self, value: Value) -> Callable[[], int]:
        if value.op not in ("max", "min", "add", "sub", "mul", "div", "ceil_div", "lt", "gt", "le", "ge", "and", "or"):
            return super()._read(value)

        def visit() -> int:
            for argument in value.args:
                self.number(argument)
            return 1

        return visit

    def _leaf(self, name: str) -> int:
        if "." in name and not name.startswith(("threadIdx", "blockIdx", "blockDim")) or name.isidentifier():
            self.asked.add(name)
        return 1

    def _counter(self, table: Mapping[tuple[int, Storage], int], value: Value) -> int:
        return 1
