"""Barriers, fences and waits that do not order what they should; and other ways to write those that do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.dataflow.mutants import Change, Edit, Subject, changed, copy_of, subject
from tests.dataflow.test_rewrites import assert_unchanged
from tests.releases import release
from tracer.checkout import open_checkout
from tracer.crosscheck import check
from tracer.dataflow.barriers import Barriers, barrier_findings
from tracer.dataflow.conditions import flags_tested
from tracer.dataflow.cuda import kernels
from tracer.dataflow.diagnose import Finding
from tracer.dataflow.functions import backward_functions
from tracer.dataflow.ir import Event, Formula, negated
from tracer.dataflow.library import instructions
from tracer.dataflow.match import main_loops
from tracer.graph import Program


# -- in the order of events -------------------------------------------------------------------------------------------
def findings(s: Subject, events: Sequence[Event]) -> list[Finding]:
    """Return what is found where the events are these."""
    before, s.kernel.events = s.kernel.events, list(events)
    try:
        return barrier_findings(s.kernel, s.side.comparison.match.flags, main_loops(s.side.comparison.kernel))
    finally:
        s.kernel.events = before


def happening(s: Subject, *kinds: str) -> list[int]:
    """Return the numbers of the events of some kinds that happen in the plain kernel."""
    comparison = s.side.comparison
    found = {id(e) for e in Barriers(s.kernel, main_loops(comparison.kernel)).happening(comparison.match.flags)}
    return [number for number, event in enumerate(s.kernel.events) if event.kind in kinds and id(event) in found]


def put(s: Subject, number: int, *events: Event) -> list[Event]:
    """Return the events with others in the place of one."""
    return [*s.kernel.events[:number], *events, *s.kernel.events[number + 1 :]]


def in_loops(s: Subject) -> list[tuple[int, int]]:
    """Return where the loops over tiles begin and end among the events."""
    found = []
    for loop in main_loops(s.side.comparison.kernel):
        begin, end = [n for n, event in enumerate(s.kernel.events) if event.loop is loop]
        found.append((begin, end))
    return found


def of_the_next_tile(s: Subject, begin: int, end: int) -> Formula:
    """Return the condition under which the next tile is loaded, in a loop over tiles."""
    outside = s.kernel.events[begin].path
    fences = [event.path[len(outside) :] for event in s.kernel.events[begin:end] if event.kind == "fence"]
    return next(path[0] for path in fences if path and isinstance(path[0], tuple) and path[0][0] == "test")


def needed_barriers(s: Subject) -> list[int]:
    """Return the barriers without which something is found."""
    return [number for number in happening(s, "block") if findings(s, put(s, number))]


def test_nothing_is_found_in_the_right_kernels(forward: Subject, backward: Subject) -> None:
    for s in (forward, backward):
        assert not findings(s, s.kernel.events)


def test_a_copy_that_is_in_no_group_is_not_waited_for(forward: Subject) -> None:
    fences = happening(forward, "fence")
    assert len(fences) >= 4
    for number in fences:
        assert findings(forward, put(forward, number)), forward.place(forward.kernel.events[number].site)


def test_a_wait_for_all_needs_no_group(backward: Subject) -> None:
    assert all(backward.kernel.events[number].waits_for_all for number in happening(backward, "wait"))
    ((begin, end),) = in_loops(backward)
    events = backward.kernel.events
    without = [event for number, event in enumerate(events) if event.kind != "fence" or not begin < number < end]
    assert not findings(backward, without)
    strict = [replace(event, waits_for_all=False) for event in without]
    assert findings(backward, strict)


def test_copies_that_are_never_waited_for_do_not_arrive(forward: Subject) -> None:
    assert findings(forward, [event for event in forward.kernel.events if event.kind != "wait"])


def test_the_barrier_behind_the_loop_over_rows_is_needed(backward: Subject) -> None:
    """What all warps read as a right operand must not be overwritten before all are done."""
    _, end = in_loops(backward)[-1]
    behind = [number for number in needed_barriers(backward) if number > end]
    assert len(behind) == 2


@pytest.mark.parametrize("role", ["forward", "backward"])
def test_a_barrier_of_the_warp_is_not_one_of_the_block(role: str, request: pytest.FixtureRequest) -> None:
    s: Subject = request.getfixturevalue(role)
    numbers = needed_barriers(s)
    assert len(numbers) >= 4
    for number in numbers:
        warp = replace(s.kernel.events[number], kind="warp")
        assert findings(s, put(s, number, warp)), s.place(warp.site)


def test_elements_that_another_warp_reads_need_a_barrier_of_the_block(tmp_path: Path) -> None:
    with subject(release("2.8.3"), "combine", tmp_path) as s:
        numbers = happening(s, "block")
        assert len(numbers) >= 2 and not findings(s, s.kernel.events)
        for number in numbers:
            assert findings(s, put(s, number, replace(s.kernel.events[number], kind="warp")))


@pytest.mark.parametrize("role", ["forward", "backward"])
@pytest.mark.parametrize("kind", ["block", "wait"])
def test_what_orders_all_steps_must_not_stand_under_a_condition(
    role: str, kind: str, request: pytest.FixtureRequest
) -> None:
    s: Subject = request.getfixturevalue(role)
    for begin, end in in_loops(s):
        condition = of_the_next_tile(s, begin, end)
        tried = [number for number in happening(s, kind) if begin < number < end]
        tried = [number for number in tried if findings(s, put(s, number))]
        assert tried
        for number in tried:
            event = s.kernel.events[number]
            assert findings(s, put(s, number, replace(event, path=(*event.path, condition)))), s.place(event.site)
            both = [replace(event, path=(*event.path, f)) for f in (condition, negated(condition))]
            assert not findings(s, put(s, number, *both)), s.place(event.site)


@pytest.mark.parametrize("role", ["forward", "backward"])
def test_some_threads_of_a_block_are_not_enough(role: str, request: pytest.FixtureRequest) -> None:
    s: Subject = request.getfixturevalue(role)
    thread, border = s.kernel.value("symbol", text="threadIdx.x"), s.kernel.const(128)
    some: Formula = ("test", s.kernel.value("lt", [thread, border]))
    for number in needed_barriers(s):
        event = s.kernel.events[number]
        assert findings(s, put(s, number, replace(event, path=(*event.path, some)))), s.place(event.site)


def test_the_threads_at_a_barrier_must_be_those_on_both_sides_of_it(backward: Subject) -> None:
    thread, border = backward.kernel.value("symbol", text="threadIdx.x"), backward.kernel.const(128)
    some: Formula = ("test", backward.kernel.value("lt", [thread, border]))
    (number,) = needed_barriers(backward)[-1:]
    events = backward.kernel.events

    def under(*kinds: str) -> list[Event]:
        """Return the events where only some threads come to the last barrier and do what is of some kinds."""
        behind = in_loops(backward)[-1][1]
        return [
            replace(event, path=(*event.path, some)) if n == number or (n > behind and event.kind in kinds) else event
            for n, event in enumerate(events)
        ]

    assert findings(backward, under()) and findings(backward, under("write")) and findings(backward, under("read"))
    assert not findings(backward, under("write", "read"))


def test_a_flag_that_is_kept_in_a_constant_is_tried_too(backward: Subject) -> None:
    param = backward.kernel.value("param", text="Some::flag")
    kept = backward.kernel.value("set", [backward.kernel.value("not", [param])])
    conditions = Barriers(backward.kernel, ()).conditions
    assert flags_tested(("and", ("test", kept), True)) == {"Some::flag"}
    assert conditions.facts(("test", kept), {}) == frozenset()
    assert conditions.facts(("test", kept), {"Some::flag": True}) is None


def test_a_step_may_wait_for_the_next_one_where_there_is_one(backward: Subject) -> None:
    ((begin, end),) = in_loops(backward)
    condition, events = of_the_next_tile(backward, begin, end), backward.kernel.events
    first = [number for number in happening(backward, "wait", "block") if begin < number < end][:2]
    order = [events[number] for number in first]
    assert [event.kind for event in order] == ["wait", "block"]
    at_end = [replace(event, path=(*event.path, condition)) for event in order]
    rest = [event for number, event in enumerate(events[begin:end], begin) if number not in first]
    assert not findings(backward, [*events[:begin], *order, *rest, *at_end, *events[end:]])
    assert findings(backward, [*events[:begin], *order, *rest, *events[end:]])


def test_a_barrier_of_another_flag_is_needed_where_it_is_on(backward: Subject) -> None:
    """The barrier guards a copy by the same condition, and stands on a path that the plain kernel does not take."""
    plain = set(happening(backward, "block"))
    events = backward.kernel.events
    guarding = [
        number
        for number, event in enumerate(events)
        if event.kind == "block" and number not in plain
        and any(other.kind == "fence" and other.path == event.path for other in events[number:])
    ]  # fmt: skip
    assert guarding
    for number in guarding:
        assert findings(backward, put(backward, number)), backward.place(events[number].site)


# -- as it is written -------------------------------------------------------------------------------------------------
BARRIERS = (
    "__syncthreads_or(0)",
    "__syncthreads_count(1)",
    "cutlass::arch::NamedBarrier::sync(128, 0)",
    "cooperative_groups::this_thread_block().sync()",
    "cooperative_groups::sync(cooperative_groups::this_thread_block())",
    'asm volatile("bar.sync 0;" ::: "memory")',
    'asm volatile("barrier.cta.sync 0;" : : : "memory")',
)


def written_as(*texts: str) -> Change:
    """Return the change that writes the barriers of the plain kernel in other ways."""

    def change(s: Subject) -> None:
        numbers = needed_barriers(s)
        for place, number in enumerate(numbers):
            s.replace(s.kernel.events[number].site, texts[place % len(texts)])
        for file in {edit.file for edit in s.edits}:
            s.edits.append(Edit(file, 0, 0, "#include <cooperative_groups.h>\n"))

    return change


@pytest.mark.parametrize("texts", [BARRIERS[:4], BARRIERS[4:]], ids=["first", "others"])
def test_a_barrier_may_be_written_in_other_ways(texts: tuple[str, ...], forward: Subject, tmp_path: Path) -> None:
    assert_unchanged(forward, written_as(*texts), tmp_path)


def test_a_group_of_a_warp_is_not_the_block(forward: Subject, tmp_path: Path) -> None:
    groups = "cooperative_groups::tiled_partition<32>(cooperative_groups::this_thread_block())"
    side = changed(forward, written_as(f"{groups}.sync()", f"cooperative_groups::sync({groups})"), tmp_path)
    assert "barrier" in [finding.kind for finding in side.findings]


@pytest.mark.parametrize(
    ("text", "is_right"),
    [
        ("cp.async.wait_group 0;", True),
        ("cp.async.wait_all;", True),
        (r"cp.async.commit_group;\n cp.async.wait_group 0;", True),
        ("cp.async.wait_group 5;", False),
        (r"cp.async.commit_group;\n cp.async.wait_group 2;", False),
    ],
)
def test_a_wait_in_assembly_says_for_how_many(text: str, is_right: bool, forward: Subject, tmp_path: Path) -> None:
    def change(s: Subject) -> None:
        for number in happening(s, "wait"):
            s.replace(s.kernel.events[number].site, f'asm volatile("{text}" ::: "memory")')

    side = changed(forward, change, tmp_path)
    assert [finding.kind for finding in side.findings][:1] == ([] if is_right else ["barrier"])


def test_every_instruction_of_a_statement_is_read() -> None:
    text = 'asm volatile(\n "{ cp.async.commit_group;\\n"\n "cp.async.wait_group %0; }" :: "n"(N) : "memory")'
    assert instructions(text) == [("fence", "cp.async.commit_group", ""), ("wait", "cp.async.wait_group", "%0")]


def test_the_body_of_a_loop_may_be_a_lambda(backward: Subject, tmp_path: Path) -> None:
    def change(s: Subject) -> None:
        for loop in main_loops(s.side.comparison.kernel):
            start, condition, step, body = [s.child(loop.site, number) for number in range(4)]
            start = f"{start.rstrip().rstrip(';')};"
            s.replace(loop.site, f"{start} auto one = [&]() {body}; for (; {condition}; {step}) {{ one(); }}")

    assert_unchanged(backward, change, tmp_path)


def test_a_later_kernel_needs_its_barrier(tmp_path: Path) -> None:
    folder = copy_of("2.5.8", tmp_path / "copy")
    edits = set()
    with Program(open_checkout(str(folder)), cache=False) as program:
        main, *others = backward_functions(program)
        written = set(kernels(main.source, main.definition.id, main.flags)[0].parameter_names)
        for function in others:
            (kernel,) = kernels(function.source, function.definition.id)
            assert written & set(kernel.parameter_names)
            blocks = [event.site for event in kernel.events if event.kind == "block"]
            for id, node in blocks:
                edits.add((function.source.location(id, node).file, node.start, node.end))
    assert edits
    for file, start, end in sorted(edits, reverse=True):
        data = (folder / file).read_bytes()
        (folder / file).write_bytes(data[:start] + data[end:])
    with Program(open_checkout(str(folder)), cache=False) as program:
        answer = check(program, algorithm="backward")
    assert "barrier" in [problem.kind for problem in answer.checks[0].problems]
