"""Faults in index sets, bounds and barriers; rewrites that change nothing; kernels in which there is no attention."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.dataflow.mutants import Change, Subject, changed, mutated, subject
from tests.releases import release
from tracer.cpp.tree import walk
from tracer.dataflow.barriers import Barriers, barrier_findings
from tracer.dataflow.coverage import _PROBLEMS
from tracer.dataflow.ir import Value, decided, flags_of
from tracer.dataflow.match import main_loops
from tracer.dataflow.names import plain
from tracer.dataflow.roles import RoleFinder
from tracer.dataflow.tiles import Access, accesses_of


def invert_mask(s: Subject) -> None:
    s.replace_masks("{0} < {1}")


def loop_ends_early(s: Subject) -> None:
    loop = main_loops(s.side.comparison.kernel)[-1]
    condition = loop.site[1].children[1]
    s.replace(
        (loop.site[0], condition), f"{s.child((loop.site[0], condition), 0)} > {s.child((loop.site[0], condition), 1)}"
    )


def loop_begins_late(s: Subject) -> None:
    loop = main_loops(s.side.comparison.kernel)[0]
    for _, start, _, _ in loop.counters:
        if plain(start).op == "sub":
            s.replace(plain(start).site, f"{s.child(plain(start).site, 0)} - 2")


def prefetch_of_another_tile(s: Subject) -> None:
    keys = s.kernel.inputs[s.side.comparison.match.inputs["K"]]
    loops = {loop.number for loop in main_loops(s.side.comparison.kernel)}
    for value in s.kernel.values:
        if value.op == "element" and value.storage is keys:
            for index in value.args[1:]:
                if index.op == "sub" and index.loops & loops:
                    s.replace(index.site, f"{s.child(index.site, 0)} - 2")


def column_left_out(s: Subject) -> None:
    for value in s.values("m_i", "max"):
        for loop in s.kernel.loops:
            if loop.first <= value.number < loop.last and len(loop.counters) == 1:
                start = plain(loop.counters[0][1])
                if start.op == "const" and start.constant == 1:
                    s.replace(start.site, "2")


def divisions_by(s: Subject, name: str) -> list[Value]:
    """Return the divisions by a leaf, of the expressions that loops over tiles begin and end with, by their places."""
    found: dict[int, Value] = {}
    for loop in main_loops(s.side.comparison.kernel):
        waiting = [start for _, start, _, _ in loop.counters]
        waiting += [loop.condition[1]] if isinstance(loop.condition, tuple) else []
        seen: set[int] = set()
        while waiting:
            value = plain(waiting.pop())
            if value.number not in seen:
                seen.add(value.number)
                waiting += value.args
                if value.op == "div" and plain(value.args[1]).text.endswith(name):
                    found[value.site[1].start] = value
    return list(found.values())


def range_rounded_down(s: Subject) -> None:
    roles = RoleFinder(s.side.comparison, main_loops(s.side.comparison.kernel)).roles()
    for value in divisions_by(s, roles.parts):
        s.replace(value.site, f"({s.child(value.site, 0)} - 1) / {s.child(value.site, 1)}")


def first_row_tile_too_late(s: Subject) -> None:
    roles = RoleFinder(s.side.comparison, main_loops(s.side.comparison.kernel)).roles()
    for value in divisions_by(s, roles.rows.rpartition("::")[2]):
        s.replace(value.site, f"{s.child(value.site, 0)} / {s.child(value.site, 1)} + 1")


def causal_limit_one_further(s: Subject) -> None:
    comparison = s.side.comparison
    finder = RoleFinder(comparison, main_loops(comparison.kernel))
    causal = next(found for found in finder.configurations(finder.roles()) if found.is_causal)
    assert causal.only_equal
    s.replace_masks("{0} > {1}", causal.flags)


def loads_of_keys(s: Subject) -> list[Access]:
    accesses, _ = accesses_of(s.side.comparison, main_loops(s.side.comparison.kernel))
    found = [access for access in accesses if access.symbol == "K"]
    assert {access.loop is None for access in found} == {True, False}
    return found


def prefetch_beyond_the_last(s: Subject) -> None:
    for load in loads_of_keys(s):
        for formula in load.guards if load.loop is not None else ():
            if isinstance(formula, tuple) and formula[0] == "test" and formula[1].op == "gt":
                site = formula[1].site
                s.replace(site, f"{s.child(site, 0)} >= {s.child(site, 1)}")


def first_load_of_another_tile(s: Subject) -> None:
    for load in loads_of_keys(s):
        if load.loop is None:
            (index,) = [plain(step.index) for step in load.address.steps if plain(step.index).op == "sub"]
            s.replace(index.site, f"{s.text(index.site)} - 1")


def causal_flags(s: Subject) -> dict[str, bool]:
    comparison = s.side.comparison
    finder = RoleFinder(comparison, main_loops(comparison.kernel))
    return next(found.flags for found in finder.configurations(finder.roles()) if found.is_causal)


def causal_masks(s: Subject) -> list[Value]:
    """Return the masks that only the causal kernel has."""
    comparison = s.side.comparison
    plain_masks = {mask.number for mask in comparison.masks(comparison.match.flags)}
    return [mask for mask in comparison.masks(causal_flags(s)) if mask.number not in plain_masks]


def causal_mask_writes_zero(s: Subject) -> None:
    for mask in causal_masks(s):
        for argument in mask.args:
            inner = plain(argument)
            if inner.op == "const" and inner.constant == -math.inf:
                s.replace(argument.site, f"{s.child(argument.site, 0)} = 0.f")


def causal_only_for_odd_lengths(s: Subject) -> None:
    """The causal mask is left out where the lengths fill all tiles, as the mask of the last keys rightly is."""
    finder = RoleFinder(s.side.comparison, main_loops(s.side.comparison.kernel))
    (even,) = finder._even_flags()
    sites = [mask.site[1].start for mask in causal_masks(s)]
    for function in s.kernel.followed.values():
        for node in walk(function.body) if function.body is not None else ():
            if node.kind == "if" and node.children[0].kind == "name" and any(node.start < n < node.end for n in sites):
                condition = (function.id, node.children[0])
                s.replace(condition, f"{s.text(condition)} && !{even}")


FAULTS: dict[str, tuple[Change, str]] = {
    "prefetch beyond the last": (prefetch_beyond_the_last, "bounds"),
    "first load of another tile": (first_load_of_another_tile, "bounds"),
    "mask inverted": (invert_mask, "mask"),
    "loop ends early": (loop_ends_early, "bounds"),
    "loop begins late": (loop_begins_late, "bounds"),
    "prefetch of another tile": (prefetch_of_another_tile, "bounds"),
    "column left out": (column_left_out, "bounds"),
    "causal mask writes zero": (causal_mask_writes_zero, "bounds"),
    "causal mask for odd lengths only": (causal_only_for_odd_lengths, "bounds"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_index_fault_is_caught(name: str, forward: Subject, tmp_path: Path) -> None:
    change, kind = FAULTS[name]
    assert not forward.side.findings
    side = changed(forward, change, tmp_path)
    assert kind in [finding.kind for finding in side.findings], side.findings
    assert all(finding.location is not None for finding in side.findings)


#: The kernels that do not work like the plain forward one: release, role, and what is done to it.
OTHER_FAULTS: dict[str, tuple[str, str, Change, str]] = {
    "split: mask inverted": ("2.8.3", "split", invert_mask, "mask"),
    "split: loop ends early": ("2.8.3", "split", loop_ends_early, "leaves out K/V tile"),
    "split: loop begins late": ("2.8.3", "split", loop_begins_late, "leaves out K/V tile"),
    "split: range rounded down": ("2.8.3", "split", range_rounded_down, "leaves out K/V tile"),
    "backward: loop ends early": ("2.8.3", "backward", loop_ends_early, "leaves out Q tile 0"),
    "backward: loop begins late": ("2.8.3", "backward", loop_begins_late, "leaves out Q tile"),
    "backward: begins below the diagonal": (
        "2.8.3", "backward", first_row_tile_too_late, "leaves before its tile is done",
    ),
    "forward of 2.0: one score too many": ("2.0.0.post1", "forward", causal_limit_one_further, "is not hidden"),
    "backward of 2.0: begins below the diagonal": (
        "2.0.0.post1", "backward", first_row_tile_too_late, "leaves out Q tile",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHER_FAULTS)
def test_index_fault_of_another_kernel_is_caught(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    version, role, change, message = OTHER_FAULTS[name]
    with subject(release(version), role, tmp_path_factory.mktemp("other")) as found:
        assert not found.side.findings
        side = changed(found, change, tmp_path_factory.mktemp("changed"))
    assert any(message in finding.message for finding in side.findings), side.findings


def test_what_is_not_judged_is_said(forward: Subject, tmp_path: Path) -> None:
    assert not forward.side.comparison.unjudged

    def begin_at_a_table(s: Subject) -> None:
        loop = main_loops(s.side.comparison.kernel)[0]
        for _, start, _, _ in loop.counters:
            if plain(start).op == "sub":
                s.replace(plain(start).site, "reinterpret_cast<int *>(params.rotary_cos_ptr)[m_block]")

    side = changed(forward, begin_at_a_table, tmp_path)
    assert any("not judged" in note for note in side.comparison.unjudged)


def plain_barriers(s: Subject) -> list[tuple[str, object]]:
    """Return the barriers that the plain kernel passes."""
    found = []
    for event in s.kernel.events:
        flags = {flag: False for formula in event.path for flag in flags_of(formula)}
        if event.kind == "block" and all(decided(formula, flags) is not False for formula in event.path):
            found.append(event.site)
    return found


def test_every_barrier_of_the_plain_kernel_is_needed(forward: Subject) -> None:
    comparison = forward.side.comparison
    loops = main_loops(comparison.kernel)
    sites = plain_barriers(forward)
    assert len(sites) >= 4
    events = forward.kernel.events
    try:
        for site in sites:
            forward.kernel.events = [event for event in events if event.site != site]
            assert barrier_findings(forward.kernel, comparison.match.flags, loops), forward.place(site)  # type: ignore[arg-type]
    finally:
        forward.kernel.events = events


def test_every_wait_for_copies_is_needed(forward: Subject) -> None:
    comparison = forward.side.comparison
    loops, flags = main_loops(comparison.kernel), comparison.match.flags
    events = forward.kernel.events
    happening = {id(event) for event in Barriers(forward.kernel, loops).happening(flags)}
    waits = [n for n, event in enumerate(events) if event.kind == "wait" and id(event) in happening]
    assert len(waits) >= 3 and all(events[number].groups == 0 for number in waits)
    needed = 0
    try:
        for number in waits:
            forward.kernel.events = [*events[:number], replace(events[number], groups=1), *events[number + 1 :]]
            needed += bool(barrier_findings(forward.kernel, flags, loops))
    finally:
        forward.kernel.events = events
    assert needed >= 3
    assert not barrier_findings(forward.kernel, flags, loops)


def test_names_and_spelling_change_nothing(forward: Subject, tmp_path: Path) -> None:
    forward.edits = []
    products = forward.values("l_i", "mul") + forward.values("O_i", "mul")
    for value in products:
        if value.site[1].kind == "assign":
            left, right = forward.child(value.site, 0), forward.child(value.site, 1)
            forward.replace(value.site, f"{left} = {right} * {left}")
    assert forward.edits
    names = {v.name for v in forward.kernel.values if v.op == "set" and len(v.name) > 5 and "_" in v.name}
    assert len(names) > 20
    side = mutated(forward, tmp_path)
    assert not side.findings
    pattern = re.compile(rf"\b({'|'.join(map(re.escape, sorted(names)))})\b")
    for file in tmp_path.rglob("*.h"):
        text = pattern.sub(r"renamed_\1", file.read_text(encoding="utf-8"))
        file.write_text(text, encoding="utf-8")
    again = checked(forward, tmp_path)
    assert not again.findings
    assert again.comparison.agreeing() == 31
    assert any(value.name.startswith("renamed_") for value in again.kernel.values)


def checked(s: Subject, root: Path):  # type: ignore[no-untyped-def]
    """Check the sources of a folder that holds a part of a release."""
    from tracer.checkout import Checkout
    from tracer.cpp.source import CppSource
    from tracer.cpp.store import Store
    from tracer.dataflow.cuda import kernels
    from tracer.dataflow.sides import LISTINGS, make_side

    source = CppSource(Checkout(str(root), root, "flash-attention", None, "folder"), s.source.extension, Store(False))
    try:
        name = s.source.definition(s.kernel.id).qualified_name
        id = next(d.id for d in source.definitions() if d.qualified_name == name and d.kind == "device function")
        return make_side(kernels(source, id)[0], LISTINGS[s.role], s.passed)
    finally:
        source.close()


KERNELS = {
    "copies only": ("Y[i] = X[i];", "stores nothing that could be|differ|expected|missing"),
    "never stores": ("float y = X[i] * 2.f; y += 1.f;", "stores nothing"),
}


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_without_attention_never_passes(name: str, tmp_path: Path) -> None:
    from tracer.dataflow.cuda import kernels
    from tracer.dataflow.reference import Reference
    from tracer.dataflow.sides import make_side

    body, message = KERNELS[name]
    folder = tmp_path / "kernels"
    folder.mkdir()
    text = (
        f"__global__ void other(const float* X, float* Y, int n) {{ int i = threadIdx.x; if (i < n) {{ {body} }} }}\n"
    )
    (folder / "other.cuh").write_text(text)
    (folder / "other.cu").write_text('#include "other.cuh"\n')
    with Reference(tmp_path, cache=False) as reference:
        kernel = kernels(reference.source("other"), reference.kernels("other")[0].id)[0]
        side = make_side(kernel, "flash_attention_2_forward", None)
    assert side.findings
    assert side.comparison.agreeing() < 31
    assert re.search(message, " ".join(finding.message for finding in side.findings))


def test_work_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tracer.dataflow import graph
    from tracer.dataflow.cuda import kernels
    from tracer.dataflow.reference import Reference

    monkeypatch.setattr(graph, "MAX_VALUES", 500)
    with Reference() as reference:
        source = reference.source("flash_attention_2_forward")
        with pytest.raises(graph.TooLarge, match="more than 500 operations"):
            kernels(source, reference.kernels("flash_attention_2_forward")[0].id)


@pytest.mark.parametrize(
    "problem", [problem for key, problems in _PROBLEMS.items() if not key[0] for problem in problems]
)
def test_both_sides_of_every_border_are_asked(problem: tuple[int, int, int, int]) -> None:
    """A mask that is off by one can only be seen at the last score that is shown or the first that is hidden."""
    from tracer.dataflow.fragments import LANES, places

    rows, columns, queries, keys = problem
    asked = [
        (i + row, j + column)
        for i in range(0, queries, rows)
        for j in range(0, keys, columns)
        for lane in LANES
        for row, column in [place.in_tile(lane) for place in places({}, columns)]
    ]
    ends = {column - keys for row, column in asked if row < queries}
    diagonal = {column - row - keys + queries for row, column in asked if row < queries and column < keys}
    assert {-1, 0} <= ends and {0, 1} <= diagonal
