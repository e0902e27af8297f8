"""Loops over the elements of a fragment that miss some or take wrong ones, exchanges of wrong shares; and rewrites."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.dataflow.mutants import Change, Subject, Subjects, changed, copy_of
from tracer.checkout import open_checkout
from tracer.cpp.tree import Node, walk
from tracer.crosscheck import check
from tracer.dataflow.counting import Counting, Run, Use
from tracer.dataflow.cuda import kernels
from tracer.dataflow.elements import element_findings
from tracer.dataflow.exchanges import exchange_findings
from tracer.dataflow.functions import backward_functions
from tracer.dataflow.ir import Value, plain
from tracer.graph import Program


@pytest.fixture(scope="module")
def combine(subjects: Subjects) -> Subject:
    return subjects("2.8.3", "combine")


# -- finding ----------------------------------------------------------------------------------------------------------
Site = tuple[str, Node]


def runs_around(s: Subject, symbol: str, op: str) -> list[Run]:
    """Return the loops over elements in which a symbol is computed, outermost first."""
    found = [Counting(s.kernel).around(value) for value in s.values(symbol, op)]
    return max(found, key=len)


def bound_site(run: Run) -> Site:
    """Return where the bound of a loop is written."""
    found: Site = (run.loop.site[0], run.loop.site[1].children[1].children[1])
    return found


def uses_of(s: Subject, run: Run) -> list[tuple[Use, Site]]:
    """Return what the counter of a loop indexes, where the source spells that as a call with it as an argument."""
    found = []
    for use in Counting(s.kernel).used(run):
        id, around = use.access.value.site
        for node in walk(around):
            if node.kind == "call" and node.children[0].text == use.access.ref.name:
                for child in node.children[1:]:
                    if s.text((id, child)) == run.storage.name:
                        found.append((use, (id, child)))
    return found


def replace_indices(s: Subject, run: Run, text: str, *, reads: bool = True) -> None:
    """Write something else in the place of a counter, where elements are read or where they are written."""
    sites = [site for use, site in uses_of(s, run) if (use.access.value.op == "element") == reads]
    for site in sites:
        s.replace(site, text)


def stores_of(s: Subject, name: str) -> list[Value]:
    storage = s.kernel.inputs[str(s.side.comparison.match.outputs[name])]
    counting = Counting(s.kernel)
    stores = [v for v in s.kernel.values if v.op == "set" and v.storage is storage and v.site[1].kind != "name"]
    return [value for value in stores if counting.around(value)]


def masking(s: Subject) -> list[Run]:
    comparison = s.side.comparison
    return Counting(s.kernel).around(comparison.masks(comparison.match.flags)[-1])


# -- faults -----------------------------------------------------------------------------------------------------------
def as_far_as_rows(s: Subject) -> None:
    site = bound_site(runs_around(s, "P_ij", "exp")[-1])
    assert "<1>" in s.text(site)
    s.replace(site, s.text(site).replace("<1>", "<0>"))


def as_far_as_another_tensor(s: Subject) -> None:
    rows, columns = runs_around(s, "O_i", "mul")[-2:]
    s.replace(bound_site(columns), s.text(bound_site(rows)))


def half(s: Subject) -> None:
    site = bound_site(runs_around(s, "O_i", "mul")[-1])
    s.replace(site, f"{s.text(site)} / 2")


def first_only(s: Subject) -> None:
    s.replace(bound_site(runs_around(s, "P_ij", "exp")[-1]), "1")


def pieces_unmasked(s: Subject) -> None:
    s.replace(bound_site(masking(s)[0]), "1")


def every_second(s: Subject) -> None:
    run = runs_around(s, "O_i", "mul")[-1]
    s.replace((run.loop.site[0], run.loop.site[1].children[2]), f"{run.storage.name} += 2")


def counted_in_the_body_too(s: Subject) -> None:
    run = runs_around(s, "O_i", "mul")[-1]
    body = (run.loop.site[0], run.loop.site[1].children[3])
    s.replace(body, f"{{ {s.text(body)}; ++{run.storage.name}; }}")


def column_zero(s: Subject) -> None:
    replace_indices(s, runs_around(s, "P_ij", "exp")[-1], "0")


def row_zero(s: Subject) -> None:
    replace_indices(s, runs_around(s, "P_ij", "exp")[-2], "0")


def exchanged(s: Subject) -> None:
    rows, columns = runs_around(s, "P_ij", "exp")[-2:]
    (_, row), *_ = [
        pair for pair in uses_of(s, rows) if len(pair[0].extent[1]) and pair[0].access.value.op == "element"
    ]
    (_, column), *_ = [pair for pair in uses_of(s, columns) if pair[0].access.value.op == "element"]
    s.replace(row, columns.storage.name)
    s.replace(column, rows.storage.name)


def begins_with_the_second(s: Subject) -> None:
    inner = runs_around(s, "m_i", "max")[-1]
    outer = runs_around(s, "m_i", "max")[-2]
    for node in walk(outer.loop.site[1].children[3]):
        if node.kind == "call" and len(node.children) == 3 and node.end < inner.loop.site[1].start:
            if s.text((outer.loop.site[0], node.children[2])) == "0":
                s.replace((outer.loop.site[0], node.children[2]), "1")


def first_of_a_sum_twice(s: Subject) -> None:
    run = runs_around(s, "m_i", "max")[-1]
    assert run.begins == 1
    s.replace(plain(run.loop.counters[0][1]).site, "0")


def one_row_for_all_stores(s: Subject) -> None:
    value = stores_of(s, "L")[-1]
    run = Counting(s.kernel).around(value)[-1]
    for node in walk(value.site[1]):
        if node.kind == "call" and s.text((value.site[0], node)).endswith(f"({run.storage.name})"):
            s.replace((value.site[0], node.children[1]), "0")


def stored_by_the_number_of_the_element(s: Subject) -> None:
    (value, *_) = stores_of(s, "L")
    run = Counting(s.kernel).around(value)[-1]
    s.replace((value.site[0], value.site[1].children[0].children[1]), run.storage.name)


def exchange_of_one_row(s: Subject) -> None:
    exchange = next(value for op, value in s.side.comparison.kernel.lanes if op == "max")
    run = Counting(s.kernel).around(exchange)[-1]
    id, body = run.loop.site[0], run.loop.site[1].children[3]
    calls = [n for n in walk(body) if n.kind == "call" and s.text((id, n)).endswith(f"({run.storage.name})")]
    s.replace((id, calls[-1].children[1]), "0")


def shares_of_a_sum_by_their_maximum(s: Subject) -> None:
    exchanges = s.side.comparison.kernel.lanes
    largest = next(value for op, value in exchanges if op == "max")
    operation = s.source.definition(largest.site[0]).qualified_name.rpartition("::")[0]
    total = next(value for op, value in exchanges if op == "add")
    for id, node in total.chain:
        if node.kind == "call" and len(node.children) == 4 and s.child((id, node), 1) == s.child((id, node), 2):
            call = s.text((id, node))
            last = s.text((id, node.children[3]))
            s.replace((id, node), f"{operation}<float> another; {call[: call.rindex(last)]}another)")
            return


def handed_on_in_one_direction(s: Subject) -> None:
    for value in s.kernel.values:
        if value.op == "lane":
            site = (value.site[0], value.site[1].children[0])
            s.replace(site, s.text(site).replace("_xor_", "_down_"))


def over_too_many_lanes(s: Subject) -> None:
    for value in s.kernel.values:
        if value.op == "lane" and value.text == "2":
            for id, node in value.chain:
                text = s.text((id, node))
                if node.kind == "call" and re.search(r"<4>", text):
                    s.replace((id, node), text.replace("<4>", "<8>"))


def one_row_masked(s: Subject) -> None:
    value = s.side.comparison.masks(s.side.comparison.match.flags)[-1]
    run = Counting(s.kernel).around(value)[-1]
    replace_indices(s, run, "0", reads=False)


FORWARD: dict[str, tuple[Change, str]] = {
    "as far as rows": (as_far_as_rows, "dimension 1 of"),
    "as far as another tensor": (as_far_as_another_tensor, "as far as another tensor goes"),
    "half": (half, "/ 2"),
    "first only": (first_only, "runs from 0 to 1"),
    "pieces unmasked": (pieces_unmasked, "runs from 0 to 1"),
    "every second": (every_second, "counts by 2"),
    "counted in the body too": (counted_in_the_body_too, "counts by 2"),
    "column 0": (column_zero, "element 0 of"),
    "row 0": (row_zero, "element 0 of"),
    "exchanged": (exchanged, "by the counter of dimension"),
    "begins with the second": (begins_with_the_second, "begins with element 1"),
    "first of a sum twice": (first_of_a_sum_twice, "takes element 0 twice"),
    "one row for all stores": (one_row_for_all_stores, "element 0 of"),
    "stored by the number of the element": (stored_by_the_number_of_the_element, "the number of an element"),
    "exchange of one row": (exchange_of_one_row, "element 0 of"),
    "shares of a sum by their maximum": (shares_of_a_sum_by_their_maximum, "shares of a sum are put together"),
    "handed on in one direction": (handed_on_in_one_direction, "handed on in one direction"),
    "over too many lanes": (over_too_many_lanes, "8 lanes put the shares"),
    "one row masked": (one_row_masked, "element 0 of"),
}


@pytest.mark.parametrize("name", FORWARD)
def test_a_fault_in_the_forward_is_caught(name: str, forward: Subject, tmp_path: Path) -> None:
    change, message = FORWARD[name]
    assert not forward.side.findings
    side = changed(forward, change, tmp_path)
    assert any(message in finding.message for finding in side.findings), side.findings


def vector_by_column(s: Subject) -> None:
    rows, columns = runs_around(s, "dS_ij", "mul")[-2:]
    vectors = [site for use, site in uses_of(s, rows) if not use.extent[1]]
    for site in vectors:
        s.replace(site, columns.storage.name)


def gathered(s: Subject, name: str) -> tuple[Site, Run]:
    """Return where the place of an element of a vector is written that a loop reads, with the loop."""
    storage = s.kernel.inputs[s.side.comparison.match.inputs[name]]
    counting = Counting(s.kernel)
    reads = [a.value for a in s.kernel.accesses if a.ref.storage is storage and a.value.op == "element"]
    value = max(reads, key=lambda value: value.number)
    run = counting.around(value)[-1]
    id, node = value.site
    call = next(n for n in walk(node) if n.kind == "call" and len(n.children) == 2 and "get<0>" in s.text((id, n)))
    return (id, call.children[1]), run


def gathered_by_the_number_of_the_element(s: Subject) -> None:
    site, run = gathered(s, "D")
    s.replace(site, run.storage.name)


def gathered_by_column(s: Subject) -> None:
    site, _ = gathered(s, "L")
    s.replace(site, s.text(site).replace("get<0>", "get<1>"))


def added_to_one_place(s: Subject) -> None:
    add_to_place(s, "0")


def added_to_the_next(s: Subject) -> None:
    add_to_place(s, "{0} + 1")


def add_to_place(s: Subject, text: str) -> None:
    for value in stores_of(s, "dQ"):
        run = Counting(s.kernel).around(value)[-1]
        id, node = value.site
        if node.kind == "call" and len(node.children) == 3:
            call = next(n for n in walk(node.children[1]) if n.kind == "call")
            s.replace((id, call.children[1]), text.format(run.storage.name))


BACKWARD: dict[str, tuple[Change, str]] = {
    "vector by column": (vector_by_column, "elsewhere along"),
    "gathered by the number of the element": (gathered_by_the_number_of_the_element, "the number of an element"),
    "gathered by column": (gathered_by_column, "by a column that is the same"),
    "added to one place": (added_to_one_place, "the place is not"),
    "added to the next": (added_to_the_next, "behind the one of this"),
}


@pytest.mark.parametrize("name", BACKWARD)
def test_a_fault_in_the_backward_is_caught(name: str, backward: Subject, tmp_path: Path) -> None:
    change, message = BACKWARD[name]
    assert not backward.side.findings
    side = changed(backward, change, tmp_path)
    assert any(message in finding.message for finding in side.findings), side.findings


def first_range_twice(s: Subject) -> None:
    for run in Counting(s.kernel).runs.values():
        if run.begins == 1:
            s.replace(plain(run.loop.counters[0][1]).site, "0")


def test_a_range_that_counts_twice_is_caught(combine: Subject, tmp_path: Path) -> None:
    assert not combine.side.findings
    side = changed(combine, first_range_twice, tmp_path)
    assert any("takes element 0 twice" in finding.message for finding in side.findings), side.findings


def test_a_later_kernel_that_leaves_elements_out_is_caught(tmp_path: Path) -> None:
    folder = copy_of("2.5.8", tmp_path / "copy")
    with Program(open_checkout(str(folder)), cache=False) as program:
        edits = set()
        for function in backward_functions(program):
            for kernel in kernels(function.source, function.definition.id) if function.role == "row sums" else ():
                for run in Counting(kernel).runs.values():
                    scales = [v for v in kernel.values[run.loop.first : run.loop.last] if v.op == "mul"]
                    if scales and Counting(kernel).used(run) and run.begins == 0 and len(kernel.outputs) == 1:
                        id, node = run.loop.site
                        text, bound = function.source.text(id, node), function.source.text(id, node.children[1])
                        edits.add(
                            (function.source.location(id, node).file, text, text.replace(bound, bound + " / 2", 1))
                        )
    assert edits
    for file, text, wrong in edits:
        path = folder / file
        path.write_text(path.read_text().replace(text, wrong))
    with Program(open_checkout(str(folder)), cache=False) as program:
        answer = check(program, algorithm="backward")
    assert any("/ 2" in problem.message for one in answer.checks for problem in one.problems)


# -- rewrites ---------------------------------------------------------------------------------------------------------
def two_at_a_time(s: Subject) -> None:
    run = runs_around(s, "O_i", "mul")[-1]
    id, (_, _, step, body) = run.loop.site[0], run.loop.site[1].children
    text, name = s.text((id, body)), run.storage.name
    s.replace((id, step), f"{name} += 2")
    next_one = re.sub(rf"\b{name}\b", f"{name} + 1", text)
    s.replace((id, body), f"{{ {text} {next_one} }}")


def as_far_as_a_name_says(s: Subject) -> None:
    run = runs_around(s, "P_ij", "exp")[-1]
    site = bound_site(run)
    s.replace(
        run.loop.site, f"const int last = {s.text(site)}; " + s.text(run.loop.site).replace(s.text(site), "last", 1)
    )


def until_the_counter_is_the_size(s: Subject) -> None:
    for run in Counting(s.kernel).runs.values():
        if run.begins == 0 and run.test == "lt" and run.step == 1 and Counting(s.kernel).bound_of(run.bound):
            condition = run.loop.site[1].children[1]
            site = (run.loop.site[0], condition)
            left, right = s.child(site, 0), s.child(site, 1)
            s.replace(site, f"{left} != {right}")


def first_column_by_itself(s: Subject) -> None:
    run = runs_around(s, "O_i", "mul")[-1]
    id, (_, _, _, body) = run.loop.site[0], run.loop.site[1].children
    s.replace(plain(run.loop.counters[0][1]).site, "1")
    first = re.sub(rf"\b{run.storage.name}\b", "0", s.text((id, body)))
    s.replace((id, replace(run.loop.site[1], end=run.loop.site[1].start)), f"{first} ")


REWRITES: dict[str, Change] = {
    "two at a time": two_at_a_time,
    "first column by itself": first_column_by_itself,
    "as far as a name says": as_far_as_a_name_says,
    "until the counter is the size": until_the_counter_is_the_size,
}


@pytest.mark.parametrize("name", REWRITES)
def test_a_rewrite_is_not_reported(name: str, forward: Subject, tmp_path: Path) -> None:
    side = changed(forward, REWRITES[name], tmp_path)
    found = [*element_findings(side.kernel), *exchange_findings(side.comparison)]
    assert not found, found
