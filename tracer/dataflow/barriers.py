"""Whether a barrier stands between a write to shared memory and the reads of other threads, and the other way round."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tracer.dataflow.conditions import Conditions, Fact, Flags, flags_tested, known_together
from tracer.dataflow.diagnose import Finding
from tracer.dataflow.graph import Graph
from tracer.dataflow.ir import Event, Formula, Loop, Storage, plain

Facts = frozenset[Fact]
_NOTHING: Facts = frozenset()


def barrier_findings(graph: Graph, flags: Flags, loops: Iterable[Loop]) -> list[Finding]:
    """Return which barriers are missing: with all flags off that are not given, else with one of them on.

    Constants of one class may follow from each other, and which combinations there are is not known. So what is found
    with one of them on counts only if it stays where another one is on too.

    Args:
        graph: the kernel.
        flags: the compile-time flags that are known.
        loops: the loops over tiles.
    """
    barriers = Barriers(graph, loops)
    found = barriers.findings(flags)
    free = sorted(barriers.flags_tested - flags.keys())
    for flag in free:
        if found:
            break
        found = barriers.findings({**flags, flag: True})
        cls = flag.rpartition("::")[0]
        beside = (
            [other for other in free if cls and other != flag and other.rpartition("::")[0] == cls] if found else []
        )
        if not all(barriers.findings({**flags, flag: True, other: True}) for other in beside):
            found = []
    return found


class Barriers:
    """The accesses to shared memory of a kernel, and what puts them in order."""

    def __init__(self, graph: Graph, loops: Iterable[Loop]) -> None:
        """Prepare for the loops over tiles."""
        self.graph = graph
        self.conditions = Conditions(loops)
        numbers = self.conditions.loops
        self.events = [e for e in graph.events if e.loop is None or e.loop.number in numbers]
        self._tested: dict[int, frozenset[str]] = {}
        self._paths: dict[tuple[int, frozenset[str]], Facts | None] = {}
        self._formulas: dict[tuple[int, frozenset[str]], Facts | None] = {}
        paths = {id(event.path): event.path for event in self.events}
        self.flags_tested = frozenset().union(*[self._flags_of_path(path) for path in paths.values()])

    def _flags_of_path(self, path: tuple[Formula, ...]) -> frozenset[str]:
        if id(path) not in self._tested:
            self._tested[id(path)] = frozenset().union(*[self._flags_of(formula) for formula in path])
        return self._tested[id(path)]

    def _flags_of(self, formula: Formula) -> frozenset[str]:
        if id(formula) not in self._tested:
            self._tested[id(formula)] = flags_tested(formula)
        return self._tested[id(formula)]

    def held(self, path: tuple[Formula, ...], flags: Flags) -> Facts | None:
        """Return what holds on a path; None for one that is not taken under the flags. Most depend on few flags."""
        key = id(path), frozenset([name for name in self._flags_of_path(path) if flags.get(name, False)])
        if key not in self._paths:
            result: Facts | None = _NOTHING
            for formula in path:
                facts = self._of_formula(formula, flags)
                if facts is None:
                    result = None
                    break
                result = result | facts if result else facts
            self._paths[key] = result
        return self._paths[key]

    def _of_formula(self, formula: Formula, flags: Flags) -> Facts | None:
        key = id(formula), frozenset([name for name in self._flags_of(formula) if flags.get(name, False)])
        if key not in self._formulas:
            self._formulas[key] = self.conditions.facts(formula, flags)
        return self._formulas[key]

    def happening(self, flags: Flags) -> list[Event]:
        """Return the events that can happen under some compile-time flags; what is not named is off."""
        return _Walk(self, flags).happening(self.events)

    def findings(self, flags: Flags) -> list[Finding]:
        """Follow the accesses to shared memory in order, the loops over tiles twice.

        A buffer that was written may be read after a barrier of the block; one that was read may be written after one.
        A copy from global memory arrives with a wait for the group that it was committed to, in a kernel that waits
        for its copies or commits them.

        Args:
            flags: compile-time flags; what is not named is off.
        """
        walk = _Walk(self, flags)
        events = walk.happening(self.events)
        walk.is_asynchronous = any(event.kind in ("wait", "fence") for event in events)
        position = 0
        while position < len(events):
            event = events[position]
            if event.kind == "loop" and event.loop is not None:
                end = next(
                    n for n in range(position, len(events)) if events[n].kind == "end" and events[n].loop is event.loop
                )
                walk.twice(event.loop, events[position + 1 : end])
                position = end
            elif event.kind != "end":
                walk.follow(event)
            position += 1
        return list(walk.found.values())


class _Access:
    """A write or a read that not every other thread need have seen.

    Attributes:
        event: the access.
        facts: under which it happens.
        arrived: for each wait that lets a copy arrive: what must hold for that beside ``facts``.
        ordered: for each barrier behind it: what must hold for it to order the access.
        ordered_in_warp: the same of barriers of the warp.
    """

    __slots__ = ("arrived", "event", "facts", "ordered", "ordered_in_warp")

    def __init__(self, event: Event, facts: Facts, arrived: list[Facts]) -> None:
        self.event, self.facts, self.arrived = event, facts, arrived
        self.ordered: list[Facts] = []
        self.ordered_in_warp: list[Facts] = []


#: A group of copies: under what it was committed, and its copies with what must hold for them to be in it.
_Group = tuple[Facts, list[tuple[_Access, Facts]]]


class _Walk:
    """One way through the events, under some compile-time flags."""

    def __init__(self, barriers: Barriers, flags: Flags) -> None:
        self._barriers, self.flags = barriers, flags
        self.graph, self.conditions = barriers.graph, barriers.conditions
        self.is_asynchronous = False
        self.found: dict[tuple[str, str], Finding] = {}
        self._written: dict[Storage, dict[int, _Access]] = {}
        self._seen: dict[Storage, dict[int, _Access]] = {}
        self._open: list[tuple[_Access, Facts]] = []  # copies that are in no group yet
        self._groups: list[_Group] = []
        self._assumed: list[Fact] = []  # what is known because a loop went on, or ended
        self._steps: dict[int, int] = {}
        self._inside = 0
        self._of_path: dict[int, Facts | None] = {}
        self._of_step: dict[int, Facts] = {}

    # -- conditions ---------------------------------------------------------------------------------------------------
    def held(self, path: tuple[Formula, ...]) -> Facts | None:
        """Return what holds on a path; None for one that is not taken. Many events share one."""
        if id(path) not in self._of_path:
            self._of_path[id(path)] = self._barriers.held(path, self.flags)
        return self._of_path[id(path)]

    def happening(self, events: Iterable[Event]) -> list[Event]:
        """Return the events that can happen under the flags."""
        return [event for event in events if self.held(event.path) is not None]

    def _facts(self, event: Event) -> Facts:
        """Return under what an event happens, in this step of the loops."""
        facts = self._of_step.get(id(event.path))
        if facts is None:
            facts = self.held(event.path) or _NOTHING
            if any(fact.loops for fact in facts):
                facts = self._in_step(facts)
            self._of_step[id(event.path)] = facts
        return facts

    def _in_step(self, facts: Facts) -> Facts:
        return frozenset([self.conditions.in_step(fact, self._steps) for fact in facts])

    def twice(self, loop: Loop, body: list[Event]) -> None:
        """Follow two steps of a loop."""
        self._inside += 1
        for step in range(2):
            self._steps[loop.number] = step
            self._of_step = {}
            for event in body:
                self.follow(event)
            self._assumed += self._in_step(self.conditions.goes_on(loop, self.flags, step == 0))
        self._steps[loop.number] = 2
        self._of_step = {}
        self._inside -= 1

    # -- events -------------------------------------------------------------------------------------------------------
    def follow(self, event: Event) -> None:
        """Follow one event."""
        facts = self._facts(event)
        if event.kind in ("block", "warp"):
            for accesses in (self._written, self._seen):
                for storage in list(accesses):
                    self._order(accesses, storage, facts, event.kind == "block")
        elif event.kind == "fence":
            self._commit(facts)
        elif event.kind == "wait":
            self._wait(event, facts)
        elif event.storage is not None and event.kind == "write":
            if self._seen:
                self._judge("the read and the next write of", self._seen, event, facts)
            is_copy = event.is_copy and self.is_asynchronous
            access = _Access(event, facts, [] if is_copy else [_NOTHING])
            self._written.setdefault(event.storage, {})[id(event)] = access
            if is_copy:
                self._open.append((access, _NOTHING))
        elif event.storage is not None and event.site is not None:
            self._judge("the write and the read of", self._written, event, facts)
            self._seen.setdefault(event.storage, {})[id(event)] = _Access(event, facts, [_NOTHING])

    def _commit(self, facts: Facts) -> None:
        group, still_open = [], []
        for access, needed in self._open:
            rest = facts - access.facts
            group.append((access, needed | rest))
            if rest:
                still_open.append((access, needed))
        self._groups.append((facts, group))
        self._open = still_open

    def _wait(self, event: Event, facts: Facts) -> None:
        """Let the copies of all groups arrive but of the newest, of those that are sure to have been committed."""
        newer, groups = 0, []
        for committed, group in reversed(self._groups):
            if newer >= event.groups:
                for access, needed in group:
                    self._arrive(access, facts, needed)
            if newer < event.groups or facts:
                groups.append((committed, group))
            newer += committed <= facts or all(committed <= (facts | access.facts) for access, _ in group)
        self._groups = groups[::-1]
        if event.waits_for_all:
            for access, needed in self._open:
                self._arrive(access, facts, needed)
            self._open = self._open if facts else []

    def _arrive(self, access: _Access, facts: Facts, needed: Facts) -> None:
        rest = (facts | needed) - access.facts
        if not any(fact.is_of_thread for fact in rest):  # else some threads do not wait for their copies
            _add(access.arrived, rest)

    def _order(
        self, accesses: dict[Storage, dict[int, _Access]], storage: Storage, facts: Facts, is_block: bool
    ) -> None:
        """Note that a barrier stands behind the accesses to a storage."""
        kept = {}
        for key, access in accesses[storage].items():
            rest = facts - access.facts
            if not any(fact.is_of_thread for fact in rest):
                # Where only some threads come to a barrier, those must be the ones on both sides of it.
                rest |= frozenset([fact for fact in facts if fact.is_of_thread])
                for arrived in access.arrived:
                    _add(access.ordered if is_block else access.ordered_in_warp, arrived | rest)
            if not any(not needed for needed in access.ordered):
                kept[key] = access
        if kept:
            accesses[storage] = kept
        else:
            del accesses[storage]

    # -- judging ------------------------------------------------------------------------------------------------------
    def _judge(self, what: str, accesses: Mapping[Storage, dict[int, _Access]], event: Event, facts: Facts) -> None:
        assert event.storage is not None
        for access in accesses.get(event.storage, {}).values():
            # Outside of the loops over tiles a thread may overwrite what only itself has read.
            if event.kind == "write" and not (self._inside or _is_common(access.event)):
                continue
            known = known_together([*access.facts, *facts, *self._assumed])
            if known is None or any(_is_known(needed, known, facts) for needed in access.ordered):
                continue
            in_warp = any(_is_known(needed, known, facts) for needed in access.ordered_in_warp)
            if not (in_warp and self._is_of_one_warp(access.event, event)):
                self._report(what, access.event, event)
                return

    def _is_of_one_warp(self, first: Event, second: Event) -> bool:
        """Tell whether what is accessed is chosen by an index in which both times the warp enters in the same way."""
        for one, other in zip(first.indices, second.indices, strict=False):
            if one is not None and other is not None:
                of_warp = self.conditions.of_warp(one)
                if of_warp and of_warp == self.conditions.of_warp(other):
                    return True
        return False

    def _report(self, what: str, first: Event, second: Event) -> None:
        storage = second.storage
        if storage is None or any(self.held(path) is not None for path in storage.moves):
            return  # a pointer into it moves from step to step, as in double buffering
        location, before = self.graph.location(second.site), self.graph.location(first.site)
        message = f"no barrier between {what} {storage.name} at {before} and {location}, by other threads"
        self.found.setdefault((what, storage.name), Finding("barrier", message, None, location))


def _is_common(event: Event) -> bool:
    """Tell whether the right operand of a product is read: all warps need it that share out the product's rows."""
    return event.tool is not None and plain(event.tool).text.startswith("make_tiled_copy_B")


def _is_known(needed: Facts, known: Mapping[object, int], here: Facts) -> bool:
    return all(fact in here if fact.is_of_thread else fact.follows(known) for fact in needed)


def _add(alternatives: list[Facts], needed: Facts) -> None:
    """Add what must hold to a list of alternatives; two that leave no third case are one."""
    for other in alternatives:
        if other <= needed:
            return
        one, two = needed - other, other - needed
        if len(one) == len(two) == 1 and next(iter(one)).or_else(next(iter(two))):
            alternatives.remove(other)
            _add(alternatives, needed & other)
            return
    alternatives.append(needed)
