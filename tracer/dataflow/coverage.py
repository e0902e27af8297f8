"""Which tiles a kernel visits, which rows and columns it masks, and which tiles it loads, for concrete problem sizes.

The loops over tiles are counted through, the mask's condition is asked for elements of the fragment, and the tile that
each load names is compared with the tile that is worked on. A kernel that splits the keys is counted through for each
range of them. What is not judged is told: a kernel of another make, an expression that holds something unknown, and
the masks of a backward pass, whose fragments lie in more than one way.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from tracer.dataflow.compare import Comparison
from tracer.dataflow.cuda import Kernel
from tracer.dataflow.diagnose import Finding
from tracer.dataflow.elements import element_findings
from tracer.dataflow.fragments import LANES, Place, fragment_counters, places
from tracer.dataflow.ir import Loop, Site, Storage, Value
from tracer.dataflow.match import main_loops
from tracer.dataflow.names import plain
from tracer.dataflow.numbers import Numbers, Unseen
from tracer.dataflow.predicates import Copies, Predicates, flag_findings
from tracer.dataflow.roles import Configuration, NotTold, RoleFinder, Roles
from tracer.dataflow.tiles import Tiles, accesses_of, free_flags
from tracer.records import dataclass

#: (rows of a Q tile, rows of a K/V tile, query length, key length) to try, by whether the lengths fill all tiles and
#: whether they are equal. Else they are no multiples of the tiles, and there are more keys than queries, and fewer.
_PROBLEMS: dict[tuple[bool, bool], tuple[tuple[int, int, int, int], ...]] = {
    (False, False): ((64, 32, 83, 139), (64, 64, 139, 75)),
    (False, True): ((64, 32, 131, 131), (64, 64, 139, 139)),
    (True, False): ((64, 32, 128, 192),),
    (True, True): ((64, 32, 128, 128),),
}
_MOST_STEPS = 64
_NEAR = 8
_PARTS = 2


@dataclass(frozen=True, slots=True)
class _Setup:
    """One problem, in tiles.

    Attributes:
        rows, columns: rows of a Q tile and of a K/V tile.
        queries, keys: lengths.
        is_causal: row r sees the columns up to r + keys - queries.
        along_rows: the loops go over tiles of rows.
        has_masks: the masks can be judged.
        by_loops: see :class:`Configuration`.
    """

    rows: int
    columns: int
    queries: int
    keys: int
    is_causal: bool
    along_rows: bool
    has_masks: bool
    by_loops: bool = False

    @property
    def blocks(self) -> int:
        """How many tiles there are that a thread block works on."""
        return math.ceil(self.keys / self.columns) if self.along_rows else math.ceil(self.queries / self.rows)

    @property
    def visits(self) -> int:
        """How many tiles there are along the loops."""
        return math.ceil(self.queries / self.rows) if self.along_rows else math.ceil(self.keys / self.columns)

    def sees(self, row: int, column: int) -> bool:
        """Tell whether a row of the queries sees a key."""
        return column < self.keys and (not self.is_causal or column <= row + self.keys - self.queries)

    def is_near_border(self, row: int, column: int) -> bool:
        """Tell whether what is shown and what is hidden meet near a score."""
        diagonal = row + self.keys - self.queries
        return abs(column - self.keys) <= _NEAR or (self.is_causal and abs(column - diagonal) <= _NEAR)

    def needed(self, tile: int) -> Iterator[int]:
        """Yield the tiles that the work on one tile must visit: those with a score that is not hidden."""
        for number in range(self.visits):
            i, j = (number, tile) if self.along_rows else (tile, number)
            if self.sees(min(i * self.rows + self.rows, self.queries) - 1, j * self.columns):
                yield number

    def described(self, tile: int) -> str:
        """Say what is worked on."""
        size, length = (self.columns, self.keys) if self.along_rows else (self.rows, self.queries)
        last = min(tile * size + size, length) - 1
        if self.along_rows:
            return f"keys {tile * size} to {last} of {self.keys}, {self.queries} rows, tiles of {self.rows}"
        return f"rows {tile * size} to {last} of {self.queries}, {self.keys} keys, tiles of {self.columns}"


class _Coverage:
    """One kernel."""

    def __init__(self, comparison: Comparison) -> None:
        self.comparison, self.kernel = comparison, comparison.kernel
        self.graph = comparison.kernel.graph
        self.loops = sorted(main_loops(comparison.kernel), key=lambda loop: loop.first)
        self.found: dict[str, Finding] = {}
        self.unjudged: dict[str, None] = {}
        self._known_places: dict[tuple[object, ...], list[Place]] = {}
        self.accesses, self.unseen = accesses_of(comparison, self.loops)
        self.asked: Predicates | None = None
        self.uncopied: dict[str, str] = {}
        self._known_copies: Copies | None = None

    def findings(self) -> list[Finding]:
        finder = RoleFinder(self.comparison, self.loops)
        if "D" in self.comparison.match.outputs:
            return self._findings_of_row_sums(finder)
        if not {"Q", "K"} <= self.comparison.match.inputs.keys():
            return []  # a listing without tiles of keys: parts put together
        try:
            roles = finder.roles()
        except NotTold as missing:
            self.unjudged[f"which tiles it visits, masks and loads is not judged: {missing}"] = None
            return []
        if not all(loop.counters for loop in self.loops):
            self.unjudged["which tiles it visits, masks and loads is not judged: a loop over tiles counts nothing"] = (
                None
            )
            return []
        if roles.along_rows:
            self.unjudged["its masks are not judged: the fragments of its scores lie in more than one way"] = None
        for configuration in (*finder.configurations(roles), *self._free(finder)):
            try:
                self._look(roles, configuration, finder.leaves_of_loops(configuration.flags))
            except Unseen as unseen:
                what = "with a causal mask" if configuration.is_causal else "without a causal mask"
                self.unjudged[f"which tiles it visits {what} is not judged: an index depends on {unseen}"] = None
            if self.found:
                break
        for finding in flag_findings(self.graph, self.accesses):
            self.found.setdefault("bounds", finding)
        for symbol, reason in self.unseen.items():
            self.unjudged[f"where the tiles of {symbol} lie is not judged: {reason}"] = None
        for symbol, reason in self.uncopied.items():
            self.unjudged[f"which rows of {symbol} are copied is not judged: a predicate depends on {reason}"] = None
        return list(self.found.values())

    def _findings_of_row_sums(self, finder: RoleFinder) -> list[Finding]:
        """Return the tiles out of place in a kernel that works on one tile of rows, without a loop over tiles."""
        roles = finder.rows_only("O")
        if not roles.rows or not roles.tile:
            self.unjudged["where its tiles lie is not judged: it does not cut them out of a layout"] = None
            return []
        assert isinstance(self.graph, Kernel)
        numbers = _Leaves(roles, finder.base)
        tiles = Tiles(self.graph, self.accesses, (), numbers, roles, (), alike=True)
        for tile in (0, 2):
            numbers.leaves = {roles.rows: 64, roles.tile: tile, roles.queries: 1000}
            tiles.begin((64, 64), (1000, 1000))
            tiles.end()
            for finding in (*tiles.findings((), tile, 0), *tiles.argument_findings()):
                self.found.setdefault("bounds", finding)
        return list(self.found.values())

    def _free(self, finder: RoleFinder) -> Iterator[Configuration]:
        """Yield configurations with a flag that only decides where accesses stand: either way must be right."""
        bounds = finder.leaves_of_loops(finder.base)
        for flag in sorted(free_flags(self.accesses) - finder.base.keys()):
            flags = {**finder.base, flag: True}
            if finder.leaves_of_loops(flags) == bounds:
                yield Configuration(flags, False, False)

    def _look(self, roles: Roles, configuration: Configuration, bounds: set[str]) -> None:
        masks = self.comparison.masks(configuration.flags)
        has_masks = configuration.has_masks and not roles.along_rows
        if not configuration.has_masks:
            on = " and ".join(sorted(flag for flag, value in configuration.flags.items() if value))
            self.unjudged[f"which scores it hides with {on} on is not judged"] = None
        numbers = _Leaves(roles, configuration.flags)
        assert isinstance(self.graph, Kernel)
        predicates = self.asked = Predicates(self._copies(roles, bounds), numbers, self.asked)
        tiles, idle = [
            Tiles(self.graph, found, self.loops, numbers, roles, bounds, predicates) for found in (self.accesses, ())
        ]
        if configuration.conflict is not None:
            message = "the masks hide what lies beyond a diagonal set by {}, the loops end at one set by {}"
            self._report("mask", message.format(*configuration.conflict), masks[0].site if masks else None)
        problems = _PROBLEMS[configuration.is_even, configuration.only_equal]
        for number, (rows, columns, queries, keys) in enumerate(problems):
            setup = _Setup(
                rows, columns, queries, keys, configuration.is_causal, roles.along_rows, has_masks,
                configuration.by_loops,
            )  # fmt: skip
            # Where tiles lie is one formula for all sizes: one problem is enough, with tiles that are not square.
            looks = number == 0 and not configuration.is_even
            for tile in range(setup.blocks):
                self._walk(numbers, masks, tiles if looks else idle, setup, tile)
                if self.found:
                    return
        self.unseen.update(tiles.unseen)
        self.uncopied.update(predicates.unseen)
        for finding in tiles.argument_findings():
            self.found.setdefault("bounds", finding)

    def _copies(self, roles: Roles, bounds: set[str]) -> Copies:
        if self._known_copies is None:
            flags, known = self.comparison.match.flags, roles.known | bounds
            copies = Copies(self.graph, self.accesses, flags, known, is_backward=roles.along_rows)
            self._known_copies = copies
        return self._known_copies

    # -- one tile of one problem --------------------------------------------------------------------------------------
    def _walk(self, numbers: _Leaves, masks: list[Value], tiles: Tiles, setup: _Setup, tile: int) -> None:
        everything: list[tuple[int, Loop]] = []
        misplaced: list[Finding] = []
        has_left = True
        for part in range(_PARTS if numbers.roles.part else 1):
            numbers.begin(setup, tile, part)
            if self._leaves_early(numbers):
                continue
            has_left = False
            visited: list[tuple[int, Loop]] = []
            tiles.begin((setup.rows, setup.columns), (setup.queries, setup.keys))
            for loop in self.loops:
                counter = _tile_counter(loop)
                for _ in numbers.steps(loop, _MOST_STEPS):
                    number = numbers.counters[loop.number, counter]
                    tiles.step(loop, len(visited))
                    visited.append((number, loop))
                    if setup.has_masks:
                        self._look_at_masks(numbers, masks, setup, (tile, number), loop)
            tiles.end()
            numbers_visited = [number for number, _ in visited]
            misplaced += tiles.findings(numbers_visited, tile, setup.visits)
            everything += visited
        if has_left:
            if any(True for _ in setup.needed(tile)):
                what = "keys" if setup.along_rows else "rows"
                self._report("bounds", f"a thread block leaves before its tile is done ({what} of tile {tile})", None)
            return
        # A window hides the tiles at the other end, too, which a causal mask never does.
        edge = setup.visits - 1 if setup.along_rows else 0
        if setup.by_loops and edge in setup.needed(tile) and all(number != edge for number, _ in everything):
            raise Unseen("the width of a window")
        self._judge(everything, masks, setup, tile)
        if misplaced and not self.found:
            self.found["bounds"] = misplaced[0]

    def _leaves_early(self, numbers: Numbers) -> bool:
        for path in self.graph.exits:
            try:
                if all(numbers.holds(formula) for formula in path):
                    return True
            except Unseen:
                continue
        return False

    def _judge(self, visited: list[tuple[int, Loop]], masks: list[Value], setup: _Setup, tile: int) -> None:
        numbers = [number for number, _ in visited]
        where = setup.described(tile)
        over, kind = ("i", "Q") if setup.along_rows else ("j", "K/V")
        site = self.loops[-1].site
        for needed in setup.needed(tile):
            if needed not in numbers:
                self._report("bounds", f"the loop over {over} leaves out {kind} tile {needed} ({where})", site)
        for number, loop in visited:
            said = f"the loop over {over} visits {kind} tile {number}"
            if numbers.count(number) > 1:
                self._report("bounds", f"{said} more than once ({where})", loop.site)
            if not 0 <= number < setup.visits:
                self._report("bounds", f"{said}, which does not exist ({where})", loop.site)
            is_masked = not setup.has_masks or any(loop.first <= mask.number < loop.last for mask in masks)
            if not is_masked and self._hides_something(setup, tile, number):
                self._report(
                    "bounds", f"K/V tile {number} needs a mask and is visited without one ({where})", loop.site
                )

    def _hides_something(self, setup: _Setup, tile: int, number: int) -> bool:
        rows = range(tile * setup.rows, min(tile * setup.rows + setup.rows, setup.queries))
        columns = (number * setup.columns, number * setup.columns + setup.columns - 1)
        return any(not setup.sees(row, column) for row in rows for column in columns)

    def _look_at_masks(
        self, numbers: _Leaves, masks: list[Value], setup: _Setup, at: tuple[int, int], loop: Loop
    ) -> None:
        """Ask the masks of one step for elements of the fragment: a score is hidden where one of them hides it."""
        inside = [mask for mask in masks if loop.first <= mask.number < loop.last]
        hidden: dict[tuple[int, int], bool] = {}
        for mask in inside:
            counters = fragment_counters(self.graph.loops, mask)
            if counters is None:
                self.unjudged["a mask is not judged: its loops are not over the elements of a fragment"] = None
                return
            hides_where_true = self.comparison.exact.is_constant(self.comparison.exact.term(mask.args[0]), -math.inf)
            for lane in LANES:
                if lane // 32 >= max(1, setup.rows // 16):
                    continue
                numbers.leaves["threadIdx.x"] = lane
                for place in self._places(counters, setup.columns):
                    row, column = place.in_tile(lane)
                    row, column = at[0] * setup.rows + row, at[1] * setup.columns + column
                    if lane != LANES[0] and not setup.is_near_border(row, column):
                        continue  # one lane is enough where nothing changes
                    numbers.counters.update(place.counters)
                    hides = numbers.holds(mask.condition) == hides_where_true
                    hidden[row, column] = hidden.get((row, column), False) or hides
        for (row, column), hides in hidden.items():
            if row < setup.queries and hides == setup.sees(row, column):
                what = "is hidden though the row sees it" if hides else "is not hidden though the row must not see it"
                sizes = f"{setup.queries} queries, {setup.keys} keys"
                message = f"the mask is wrong: score ({row}, {column}) {what} ({sizes})"
                self._report("mask", message, inside[0].site)
                return

    def _places(self, counters: dict[str, tuple[int, Storage]], columns: int) -> list[Place]:
        key = (columns, tuple(counters.items()))
        if key not in self._known_places:
            self._known_places[key] = list(places(counters, columns))
        return self._known_places[key]

    def _report(self, kind: str, message: str, site: Site, chain: tuple[Site, ...] = ()) -> None:
        location = self.graph.location(site) if site is not None else None
        self.found.setdefault(kind, Finding(kind, message, None, location, self.graph.calls(chain)))


class _Leaves(Numbers):
    """The leaves of one problem: its sizes, and zero for windows and offsets that are not asked for."""

    def __init__(self, roles: Roles, flags: dict[str, bool]) -> None:
        super().__init__({}, flags)
        self.roles = roles

    def begin(self, setup: _Setup, tile: int, part: int) -> None:
        """Begin the work on one tile, or on one range of keys for it, outside of all loops."""
        roles = self.roles
        self.counters.clear()
        self.after.clear()
        self.leaves = {
            roles.tile: tile, roles.rows: setup.rows, roles.columns: setup.columns, roles.queries: setup.queries,
            roles.keys: setup.keys, roles.parts: _PARTS, roles.part: part,
        }  # fmt: skip
        self.leaves.pop("", None)

    def leaf(self, name: str) -> int:
        """Return the value of a scalar by its name: of one that plays no part, zero, or one where it divides."""
        return self.leaves.get(name, 1 if name in self.roles.divisors else 0)


def coverage_findings(comparison: Comparison) -> list[Finding]:
    """Return what is wrong with the tiles that are visited, masked and loaded, and with loops over elements.

    What cannot be judged is added to the comparison's ``unjudged``.
    """
    coverage = _Coverage(comparison)
    found = coverage.findings()
    comparison.unjudged += coverage.unjudged
    return element_findings(comparison.kernel.graph) + found


def _tile_counter(loop: Loop) -> Storage:
    """Return the counter of a loop over tiles that does not begin at a constant."""
    chosen = loop.counters[0][0]
    for storage, start, _, _ in loop.counters:
        if plain(start).op != "const":
            chosen = storage
    return chosen
