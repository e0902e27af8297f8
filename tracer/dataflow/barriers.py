"""Whether a barrier stands between a write to shared memory and the reads of other threads, and the other way round."""

from __future__ import annotations

from collections.abc import Iterator

from tracer.dataflow.diagnose import Finding
from tracer.dataflow.graph import Graph
from tracer.dataflow.ir import Event, Formula, Loop, Storage


def barrier_findings(graph: Graph, flags: dict[str, bool], loops: list[Loop]) -> list[Finding]:
    """Follow the accesses to shared memory in order, the loops over tiles twice.

    A buffer that was written may be read after a barrier of the block; one that was read may be written after one. A
    copy from global memory arrives with a wait, in a kernel that waits for its copies at all.

    Args:
        graph: the kernel.
        flags: compile-time flags; what is not named is off.
        loops: the loops over tiles.
    """
    events = _happening(graph.events, flags)
    is_asynchronous = any(event.kind == "wait" for event in events)
    if not any(event.kind == "block" for event in graph.events) and not any(e.kind == "write" for e in events):
        return []
    written: dict[Storage, Event] = {}
    groups: list[set[Storage]] = [set()]  # of copies under way, the one that is being made last
    seen: dict[Storage, Event] = {}
    depth = 0  # outside of the loops over tiles a thread may overwrite what only itself has read
    found: dict[tuple[str, str], Finding] = {}

    def report(what: str, first: Event, second: Event) -> None:
        if second.storage is None or second.storage.is_moving:
            return
        name = second.storage.name
        location, before = graph.location(second.site), graph.location(first.site)
        message = f"no barrier between {what} {name} at {before} and {location}, by other threads"
        found.setdefault((what, name), Finding("barrier", message, None, location))

    for event in _twice(events, {loop.number for loop in loops}):
        if event.kind in ("loop", "end"):
            depth += 1 if event.kind == "loop" else -1
        elif event.kind in ("block", "warp"):
            pending = set().union(*groups)
            written = {storage: first for storage, first in written.items() if storage in pending}
            seen = {}
        elif event.kind == "fence":
            groups.append(set())
        elif event.kind == "wait":
            groups = [*groups[:-1][-event.groups :], set()] if event.groups else [set()]
        elif event.kind == "write" and event.storage is not None:
            if event.storage in seen and depth:
                report("the read and the next write of", seen[event.storage], event)
            written[event.storage] = event
            if event.is_copy and is_asynchronous:
                groups[-1].add(event.storage)
        elif event.kind == "read" and event.storage is not None and event.site is not None:
            if event.storage in written:
                report("the write and the read of", written[event.storage], event)
            seen[event.storage] = event
    return list(found.values())


def _happening(events: list[Event], flags: dict[str, bool]) -> list[Event]:
    """Return the events that can happen under some flags. Many events share one path, which is asked once."""
    possible: dict[int, bool] = {}
    found = []
    for event in events:
        path = id(event.path)
        if path not in possible:
            possible[path] = all(_truth(formula, flags) is not False for formula in event.path)
        if possible[path]:
            found.append(event)
    return found


def _truth(formula: Formula, flags: dict[str, bool]) -> bool | None:
    """Tell whether a formula holds; None where a test at run time decides."""
    if isinstance(formula, bool):
        return formula
    if formula[0] == "flag":
        return flags.get(formula[1], False)
    if formula[0] == "test":
        return None
    left = _truth(formula[1], flags)
    if formula[0] == "not":
        return None if left is None else not left
    decisive = formula[0] == "or"
    if left is decisive:
        return decisive
    right = _truth(formula[2], flags)
    return right if right is decisive or left is not None else None


def _twice(events: list[Event], loops: set[int]) -> Iterator[Event]:
    """Yield events in the order of execution, the loops over tiles as two steps."""
    position = 0
    while position < len(events):
        event = events[position]
        if event.kind == "loop" and event.loop is not None and event.loop.number in loops:
            end = next(
                (n for n in range(position, len(events)) if events[n].kind == "end" and events[n].loop is event.loop),
                len(events) - 1,
            )
            body = events[position + 1 : end]
            yield event
            yield from _twice(body, loops)
            yield from _twice(body, loops)
            yield events[end]
            position = end + 1
            continue
        if event.kind not in ("loop", "end"):
            yield event
        position += 1
