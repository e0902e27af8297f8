"""Whether each tile is read from its place in memory and written to its place, for a concrete problem.

The address of an access is the sum that :mod:`tracer.dataflow.addresses` keeps: with numbers for the problem's sizes,
a prime for each stride, and the first batch and head, it must be the first row of the tile that is worked on, times the
stride of the tensor's rows. A pointer that moves is moved as the loops over tiles are counted through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tracer.dataflow.addresses import Address, Mode, Step, Walk
from tracer.dataflow.compare import Comparison
from tracer.dataflow.cuda import Kernel
from tracer.dataflow.diagnose import Finding
from tracer.dataflow.ir import Formula, Loop, Storage, Value, flags_of, tests_of
from tracer.dataflow.names import plain
from tracer.dataflow.numbers import Condition, Numbers, Unseen
from tracer.dataflow.predicates import Predicates, Seen
from tracer.dataflow.roles import Roles
from tracer.records import dataclass

_ALONG_KEYS = frozenset(("K", "V", "dK", "dV"))
_MOVING = frozenset(("element", "set", "copy", "convert", "phi", "select", "input", "undefined"))
_FIRST_PRIME = 10_007
#: Number of a batch or of a head to try, and how many heads of the queries share one of the keys.
_ARGUMENT, _SHARED = 6, 2
#: Arguments of the listing of which the same heads belong together; those of dK and dV may be summed up later.
_ALIKE = (("Q", "O", "dO", "dQ"), ("K", "V"), ("dK", "dV"))


@dataclass(frozen=True, slots=True)
class Access:
    """A load or a store of a tile in global memory.

    Attributes:
        symbol: the argument of the listing that it is a tile of.
        value: what is loaded, or the assignment.
        address: where.
        loop: the loop over tiles that it stands in; None outside of them.
        is_before: outside of the loops, before the first.
        is_next: in a loop, a load for the step after.
        is_store: it is written.
        guards: the formulas under which it happens.
    """

    symbol: str
    value: Value
    address: Address
    loop: Loop | None
    is_before: bool
    is_next: bool
    is_store: bool
    guards: tuple[Formula, ...]

    @property
    def is_along_keys(self) -> bool:
        """Tell whether its tiles are those of the keys."""
        return self.symbol in _ALONG_KEYS


@dataclass(frozen=True, slots=True)
class Offset:
    """By how much a tensor's place moves with an argument of the kernel.

    Attributes:
        elements: for :data:`_ARGUMENT` in the place of zero.
        leaves: the strides that it is a multiple of, with their values.
    """

    elements: int
    leaves: tuple[tuple[str, int], ...]

    @property
    def factor(self) -> int:
        """How many of its stride that is; zero where it is no multiple of exactly one."""
        return self.elements // self.leaves[0][1] if len(self.leaves) == 1 else 0


class Tiles:
    """The accesses of one kernel under some flags."""

    def __init__(
        self,
        kernel: Kernel,
        accesses: Sequence[Access],
        loops: Sequence[Loop],
        numbers: Numbers,
        roles: Roles,
        bounds: Iterable[str],
        predicates: Predicates | None = None,
        *,
        alike: bool = False,
    ) -> None:
        """Prepare.

        Args:
            kernel: whose match succeeded.
            accesses: see :func:`accesses_of`.
            loops: its loops over tiles.
            numbers: what the loops are counted through with; its leaves and counters are used as they are.
            roles: what the leaves are.
            bounds: leaves that the loops begin and end with, which keep the values that ``numbers`` gives them.
            predicates: of the accesses; None where they are not looked at.
            alike: take all tensors to have the same strides.
        """
        self.kernel, self.accesses, self.loops, self.roles, self.alike = kernel, accesses, loops, roles, alike
        self.places = _Places(numbers, frozenset(bounds), frozenset(kernel.parameter_names), roles.divisors)
        self.predicates = predicates
        self.unseen: dict[str, str] = {}
        self._known: dict[int, tuple[Access, dict[str, Offset]]] = {}  # by argument of the kernel
        self.sizes = (0, 0)
        self.walks = {walk for access in accesses for walk, _ in access.address.walks}
        self._totals: dict[tuple[Walk, bool], int | None] = {}  # None where it is not known any more
        self._found: list[tuple[Access, int | None, int, int]] = []
        self._copied: list[tuple[Access, int | None, Seen]] = []

    # -- while the loops are counted through --------------------------------------------------------------------------
    def begin(self, sizes: tuple[int, int], lengths: tuple[int, int]) -> None:
        """Begin with one tile, before the loops.

        Args:
            sizes: rows of a tile along the queries, and along the keys.
            lengths: of the queries, and of the keys.
        """
        self.sizes = sizes
        if self.predicates is not None:
            self.predicates.begin(sizes, lengths)
        self._totals = {(walk, are_equal): 0 for walk in self.walks for are_equal in (False, True)}
        self._found, self._copied = [], []
        self._ask(None, None, (a for a in self.accesses if a.loop is None and a.is_before))

    def step(self, loop: Loop, position: int) -> None:
        """Take one step of a loop over tiles, the ``position``-th of all loops."""
        self._ask(position, loop, (access for access in self.accesses if access.loop is loop))
        self.places.part = ""
        for (walk, are_equal), total in self._totals.items():
            if walk.loop is loop and total is not None:
                self.places.are_equal = are_equal
                try:
                    self._totals[walk, are_equal] = total + self._moves(walk, len(walk.moves))
                except Unseen:
                    self._totals[walk, are_equal] = None

    def end(self) -> None:
        """Leave the loops."""
        self._ask(None, None, (a for a in self.accesses if a.loop is None and not a.is_before))

    def _ask(self, position: int | None, loop: Loop | None, accesses: Iterable[Access]) -> None:
        for access in accesses:
            if access.symbol in self.unseen or not self._happens(access.guards):
                continue
            # Only the loops depend on which range of the keys it is; for what they do not go over, take the first.
            self.places.part = "" if self._is_along(access) else self.roles.part
            try:
                place, stride = self._place(access.address, loop)
                self._found.append((access, position, place, stride))
                if self.predicates is not None:
                    size = self.sizes[access.is_along_keys]
                    seen = self.predicates.ask(access, place // (size * stride) if stride else 0)
                    if seen is not None:
                        self._copied.append((access, position, seen))
                if access.value.number not in self._known:
                    self._known[access.value.number] = access, self._offsets(access.address, loop, place)
            except Unseen as unseen:
                self.unseen[access.symbol] = str(unseen)

    def _happens(self, guards: Iterable[Formula]) -> bool:
        for formula in guards:
            try:
                if not self.places.holds(formula):
                    return False
            except Unseen:
                continue
        return True

    def _is_along(self, access: Access) -> bool:
        """Tell whether the loops go over the tiles of an access."""
        return access.is_along_keys != self.roles.along_rows

    # -- addresses ----------------------------------------------------------------------------------------------------
    def _place(self, address: Address, loop: Loop | None) -> tuple[int, int]:
        """Return an address, and how far its rows are apart.

        Raises:
            Unseen: something in it is not known.
        """
        assert address.rows is not None
        # A size that is a template's argument may be an argument of the kernel too, under another name.
        self.places.are_equal = False
        self.places.are_equal = self.alike or not self._is_passed(address.rows)
        place = sum(self._step(step) for step in address.steps)
        for walk, behind in address.walks:
            total = self._totals[walk, self.places.are_equal]
            if total is None or (walk.loop not in self.loops and self._happens(walk.loop.guards)):
                raise Unseen("how a pointer moves")
            place += total + (self._moves(walk, behind) if walk.loop is loop else 0)
        return place, self._stride(address.rows)

    def _offsets(self, address: Address, loop: Loop | None, place: int) -> dict[str, Offset]:
        """Return by how much batch, head and whatever else tells thread blocks apart move a place."""
        found = {}
        for name in sorted(self.places.asked):
            self.places.given = name
            try:
                moved = self._place(address, loop)[0] - place
            finally:
                self.places.given = ""
            found[name] = Offset(moved, self.places.leaves_in(moved))
        return found

    def _moves(self, walk: Walk, count: int) -> int:
        """Return by how much the first moves of a step move a pointer."""
        return sum(self._step(move) for move in walk.moves[:count])

    def _step(self, step: Step) -> int:
        if not self._happens(step.guards):
            return 0
        self.places.is_inside = step.is_inside
        try:
            index = self.places.number(step.index)
        except Unseen:
            if not step.is_inside:
                raise
            return 0  # whichever element of the tile that is
        finally:
            self.places.is_inside = False
        return step.sign * index * (self._stride(step.mode) if step.mode is not None and index else 1)

    def _is_passed(self, mode: Mode) -> bool:
        """Tell whether the host passes a stride; else it is one, or a size that is known to the compiler."""
        self.places.has_passed = False
        self._stride(mode)
        return self.places.has_passed

    def _stride(self, mode: Mode) -> int:
        value = plain(mode.strides)
        while value.op == "select" or value.number in self.kernel.layouts:
            if value.op == "select":
                value = plain(value.args[0 if self.places.holds(value.condition) else 1])
            else:
                value = plain(self.kernel.layouts[value.number])
        parts = self.kernel.tuples.get(value.number, ())
        if mode.number >= len(parts):
            raise Unseen("a layout")
        stride = self.places.number(parts[mode.number])
        for extent in mode.extents:
            stride *= self.places.number(extent)
        return stride

    def argument_findings(self) -> Iterator[Finding]:
        """Yield the tensors whose batch or head is not that of the others, or of which other columns are copied."""
        if self.predicates is not None:
            yield from self.predicates.column_findings()
        names = {name for _, offsets in self._known.values() for name, offset in offsets.items() if offset.elements}
        for name in sorted(names):
            rows = [(access, offsets[name]) for access, offsets in self._known.values() if name in offsets]
            factors = {access.symbol: offset.factor for access, offset in rows if offset.factor}
            for access, offset in rows:
                first = next(other for other, _ in rows if other.symbol == access.symbol)
                alike = next((group for group in _ALIKE if access.symbol in group), ())
                other = next((s for s in alike if factors.get(s, offset.factor) != offset.factor), "")
                if not offset.elements:
                    what = f"does not depend on {name}, as it does for the other tensors"
                elif offset != next(found for found_access, found in rows if found_access is first):
                    what = f"depends on {name} here in another way than at {self.kernel.location(first.value.site)}"
                elif offset.factor and other:
                    what = f"depends on {name} in another way than where {other} does"
                else:
                    continue
                location, chain = self.kernel.location(access.value.site), self.kernel.calls(access.value.chain)
                yield Finding("bounds", f"where {access.symbol} lies {what}", None, location, chain)

    # -- judging ------------------------------------------------------------------------------------------------------
    def findings(self, visited: Sequence[int], tile: int, visits: int) -> Iterator[Finding]:
        """Yield what is read or written elsewhere than where it should be, or not as far as it should be.

        Args:
            visited: the tiles that the loops went over.
            tile: the tile of the thread block.
            visits: how many tiles there are for the loops.
        """
        for access, position, place, stride in self._found:
            size = self.sizes[access.is_along_keys]
            wanted = self._wanted(access, position, visited, tile)
            if wanted is None:
                # Behind the last step, one tile too many may be read, but only one that there is.
                if not access.is_next or position is None or 0 <= place <= (visits - 1) * size * stride:
                    continue
                what = "while no tile is worked on next"
            elif place == wanted * size * stride:
                continue
            else:
                when = " next" if access.is_next and position is not None else ""
                what = f"while tile {wanted}, from row {wanted * size} on, is worked on{when}"
            if stride and place % stride == 0:
                where = f"row {place // stride}"
            else:
                where = "a place that is no row of it (an offset does not fit the tensor's strides)"
            storage = access.value.storage
            # D is a sum of products: which factor is O and which is dO is not told by what is computed.
            name = storage.name if self.alike and storage is not None else access.symbol
            message = f"{name} is {'written to' if access.is_store else 'read from'} {where}, {what}"
            graph = self.kernel
            yield Finding("bounds", message, None, graph.location(access.value.site), graph.calls(access.value.chain))
        for access, position, seen in self._copied:
            wanted = self._wanted(access, position, visited, tile)
            if wanted is not None and self.predicates is not None:
                yield from self.predicates.row_findings(access, seen, wanted)

    def _wanted(self, access: Access, position: int | None, visited: Sequence[int], tile: int) -> int | None:
        """Return the number of the tile that an access should be of; None where that is not known."""
        if not self._is_along(access):
            return tile
        if position is None:
            return visited[0] if access.is_before and visited and not access.is_store else None
        position += access.is_next
        return visited[position] if position < len(visited) else None


class _Places(Numbers):
    """Numbers for addresses: the problem's sizes, zero for batch and head, and a prime for everything else."""

    def __init__(
        self, numbers: Numbers, bounds: frozenset[str], arguments: frozenset[str], divisors: frozenset[str]
    ) -> None:
        super().__init__({}, numbers.flags)
        self.base, self.bounds, self.arguments, self.divisors = numbers, bounds, arguments, divisors
        self.counters, self.after = numbers.counters, numbers.after
        self.part, self.are_equal, self.has_passed = "", False, False
        self.is_inside = False
        self.asked: set[str] = set()
        self.given = ""
        self._primes: dict[str, int] = {}

    def leaves_in(self, number: int) -> tuple[tuple[str, int], ...]:
        """Return the leaves whose primes divide a number, with these; none for zero."""
        return tuple([row for row in self._primes.items() if number and number % row[1] == 0])

    def _read(self, value: Value) -> Callable[[], int]:
        if value.op == "element" and value.storage is not None and value.storage.is_identity:
            return lambda: 0  # the first element of a thread's tile
        return super()._read(value)

    def _counter(self, table: Mapping[tuple[int, Storage], int], value: Value) -> int:
        if self.is_inside and value.loop is not None and (value.loop.number, value.storage) not in table:
            return 0
        return super()._counter(table, value)

    def condition(self, formula: Formula) -> Condition:
        """Return a condition as the loops see it: a prime would make every test true."""
        return self.base.condition(formula)

    def leaf(self, name: str) -> int:
        """Return the value of a scalar by its name."""
        if name == self.part:
            return 0
        if name in self.base.leaves or name in self.bounds:
            return self.base.leaf(name)
        if name in self.arguments or name.startswith("blockIdx."):
            self.asked.add(name)
            return _ARGUMENT if name == self.given else 0
        if name.startswith("threadIdx."):
            return 0
        if name in self.divisors:
            return _SHARED
        self.has_passed = self.has_passed or "." in name
        if name not in self._primes:
            self._primes[name] = _prime_after(max(self._primes.values(), default=_FIRST_PRIME))
        return _FIRST_PRIME if self.are_equal else self._primes[name]


def _prime_after(number: int) -> int:
    number += 2
    while any(number % divisor == 0 for divisor in range(3, int(number**0.5) + 1, 2)):
        number += 2
    return number


def accesses_of(comparison: Comparison, loops: Sequence[Loop]) -> tuple[list[Access], dict[str, str]]:
    """Return the accesses of tiles in global memory, and why not where a symbol has none whose address is known."""
    graph, match = comparison.kernel.graph, comparison.match
    symbols = {theirs: mine for mine, theirs in match.inputs.items()}
    stored = {theirs: mine for mine, theirs in match.outputs.items() if theirs is not None}
    storages = {id(graph.inputs[name]): name for name in (*symbols, *stored) if name in graph.inputs}
    guards = guards_of_loads(graph.values)
    found: list[Access] = []
    unknown: set[str] = set()
    lost = graph.lost if isinstance(graph, Kernel) else set()
    uses: dict[tuple[str, int], int] = {}
    read: set[tuple[str, int, object]] = set()
    for value in graph.values:
        name = storages.get(id(value.storage)) if value.op in ("element", "set") and value.storage is not None else None
        if name is None or (value.op == "element" and value.number not in guards):
            continue
        symbol = (stored if value.op == "set" else symbols).get(name)
        if symbol is None or value.is_view:
            continue
        address = value.address
        is_lost = value.storage in lost or address is None or not address.is_known
        if is_lost or address is None or not address.is_tile or address.rows is None:
            unknown.add(symbol)
            continue
        loop = next((loop for loop in loops if loop.first <= value.number < loop.last), None)
        is_next = False
        if loop is not None and value.op == "element":
            key = (name, loop.number)
            if key not in uses:
                uses[key] = _first_use(comparison, name, loop)
            # What is read again from where it was read before it was used is still of the same step.
            tile = tuple([step for step in address.steps if not step.is_inside]), address.walks
            if uses[key] >= value.number:
                read.add((name, loop.number, tile))
            is_next = (name, loop.number, tile) not in read
        when = value.guards if value.op == "set" else guards[value.number]
        is_before = not loops or value.number < loops[0].first
        found.append(Access(symbol, value, address, loop, is_before, is_next, value.op == "set", when))
    missing = sorted(unknown - {access.symbol for access in found})
    return found, dict.fromkeys(missing, "they are not cut out of a layout whose strides are known")


def guards_of_loads(values: Sequence[Value]) -> dict[int, tuple[Formula, ...]]:
    """Return under which formulas what is loaded is used, by the number of the value that loads it.

    Those are known of what is put somewhere; of what enters an operation at once, there are none.
    """
    found: dict[int, tuple[Formula, ...]] = {argument.number: () for value in values for argument in value.args}
    for value in values:
        if value.op == "set":
            inner = value.args[0]
            while inner.op in ("copy", "convert"):
                inner = inner.args[0]
            if inner.op == "element":
                found[inner.number] = value.guards
    return found


def free_flags(accesses: Iterable[Access]) -> set[str]:
    """Return the compile-time flags that decide whether a tile is accessed, or whether a pointer moves."""
    guards = {formula for access in accesses for formula in access.guards}
    moves = {id(walk): walk.moves for access in accesses for walk, _ in access.address.walks}
    guards |= {formula for steps in moves.values() for step in steps for formula in step.guards}
    found = {flag for formula in guards for flag in flags_of(formula)}
    for test in {test.number: plain(test) for formula in guards for test in tests_of(formula)}.values():
        while test.op == "not":
            test = plain(test.args[0])
        if test.op == "param":
            found.add(test.text)
    return found


def _first_use(comparison: Comparison, name: str, loop: Loop) -> int:
    """Return the number of the first value of a loop that computes something of an input."""
    kernel = comparison.kernel
    for value in kernel.graph.values[loop.first : loop.last]:
        if value.op not in _MOVING:
            for argument in value.args:
                terms = kernel.alternatives(kernel.term(argument), True)
                if any(term.op == "input" and term.detail == name for term in terms):
                    return value.number
    return loop.last
