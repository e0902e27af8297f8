"""Rewrites that change nothing and must not be reported; and faults in lanes, steps, rows and stores, which must be."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dataflow.mutants import Change, Edit, Subject, changed, copy_of
from tracer.checkout import open_checkout
from tracer.cpp.tree import walk
from tracer.crosscheck import check
from tracer.dataflow.cuda import kernels
from tracer.dataflow.functions import backward_functions, forward_functions
from tracer.dataflow.ir import Value
from tracer.dataflow.match import main_loops
from tracer.dataflow.names import plain
from tracer.dataflow.terms import Terms
from tracer.errors import NoRoute
from tracer.graph import Program


# -- rewrites ---------------------------------------------------------------------------------------------------------
def exponents(s: Subject) -> list[Value]:
    """Return the differences of a scaled score and a scaled maximum that P is the exponential of."""
    differences = [plain(value.args[0]) for value in s.values("P_ij", "exp") if value.op == "exp2"]
    return [value for value in differences if value.op == "sub" and plain(value.args[0]).op == "mul"]


def fused_multiply_add(s: Subject) -> None:
    for value in exponents(s):
        product = plain(value.args[0])
        if s.child(value.site, 0) == s.text(product.site):
            left, right = s.child(product.site, 0), s.child(product.site, 1)
            s.replace(value.site, f"std::fma({left}, {right}, -{s.child(value.site, 1)})")


def added_negative(s: Subject) -> None:
    for value in exponents(s):
        s.replace(value.site, f"(-{s.child(value.site, 1)}) + {s.child(value.site, 0)}")


def negated_difference(s: Subject) -> None:
    for value in exponents(s):
        s.replace(value.site, f"-({s.child(value.site, 1)} - {s.child(value.site, 0)})")


def mask_the_other_way_round(s: Subject) -> None:
    s.replace_masks("!({0} < {1})")


def main_loops_with_while(s: Subject) -> None:
    for loop in main_loops(s.side.comparison.kernel):
        start, condition, step, body = [s.child(loop.site, number) for number in range(4)]
        start = f"{start.rstrip().rstrip(';')};" if start.strip() else ""
        if body.startswith("{") and "continue" not in body and "break" not in body:
            s.replace(loop.site, f"{{ {start} while ({condition}) {{ {body[1:-1]} {step}; }} }}")


def main_loops_left_by_break(s: Subject) -> None:
    for loop in main_loops(s.side.comparison.kernel):
        start, condition, step, body = [s.child(loop.site, number) for number in range(4)]
        if body.startswith("{") and "break" not in body:
            s.replace(
                loop.site, f"for ({start.rstrip(';')};; {step}) {{ if (!({condition})) {{ break; }} {body[1:-1]} }}"
            )


def gradient_with_added_negative(s: Subject) -> None:
    for value in s.values("dS_ij", "sub"):
        s.replace(value.site, f"(-{s.child(value.site, 1)}) + {s.child(value.site, 0)}")


FORWARD_REWRITES: dict[str, Change] = {
    "fused multiply-add": fused_multiply_add,
    "added negative": added_negative,
    "negated difference": negated_difference,
    "mask the other way round": mask_the_other_way_round,
    "main loops with while": main_loops_with_while,
}
BACKWARD_REWRITES: dict[str, Change] = {
    "main loop with while": main_loops_with_while,
    "main loop left by break": main_loops_left_by_break,
    "added negative": gradient_with_added_negative,
}


def assert_unchanged(s: Subject, change: Change, scratch: Path) -> None:
    assert not s.side.findings
    side = changed(s, change, scratch)
    assert not side.findings
    assert side.comparison.agreeing() == s.side.comparison.agreeing()
    assert side.comparison.unjudged == s.side.comparison.unjudged
    assert side.confirmation is not None and not side.confirmation.reason


@pytest.mark.parametrize("name", FORWARD_REWRITES)
def test_a_forward_rewrite_changes_nothing(name: str, forward: Subject, tmp_path: Path) -> None:
    assert_unchanged(forward, FORWARD_REWRITES[name], tmp_path)


@pytest.mark.parametrize("name", BACKWARD_REWRITES)
def test_a_backward_rewrite_changes_nothing(name: str, backward: Subject, tmp_path: Path) -> None:
    assert_unchanged(backward, BACKWARD_REWRITES[name], tmp_path)


# -- faults -----------------------------------------------------------------------------------------------------------
def exchanged_over_twice_the_distance(s: Subject) -> None:
    for value in s.kernel.values:
        if value.op == "lane" and value.site[1].kind == "call":
            s.replace_child(value.site, 3, f"2 * ({s.child(value.site, 3)})")


def first_row_for_all(s: Subject) -> None:
    for value in s.values("L", "log"):
        for loop in s.kernel.loops:
            if loop.first <= value.number < loop.last and len(loop.counters) == 1:
                vectors = [v for v in s.kernel.values[loop.first : loop.last] if v.op == "element" and len(v.args) == 2]
                reads = [v for v in vectors if plain(v.args[1]) is loop.counters[0][2]]
                assert len(reads) > 1
                id, around = reads[0].site
                calls = [node for node in walk(around) if node.kind == "call" and len(node.children) == 2]
                s.replace((id, calls[0].children[1]), "0")
                return


def mask_border_one_further(s: Subject) -> None:
    s.replace_masks("{0} > {1}")


def rescale_skips_a_column(s: Subject) -> None:
    for value in s.values("O_i", "mul"):
        inner = [
            loop for loop in s.kernel.loops
            if loop.first <= value.number < loop.last and len(loop.counters) == 1
            and plain(loop.counters[0][1]).constant == 0
        ]  # fmt: skip
        if inner:
            s.replace(plain(inner[-1].counters[0][1]).site, "1")


def gradient_begun_anew(s: Subject) -> None:
    for value in s.cleared("S_ij"):
        gradients = {v.storage for v in s.cleared("dV_j") if v.storage is not None}
        for storage in gradients:
            s.replace(value.site, f"{s.text(value.site)}; cute::clear({storage.name})")


def stored_without_adding(s: Subject) -> None:
    dQ = s.side.comparison.match.outputs["dQ"]
    for value in s.kernel.values:
        if value.op == "set" and value.storage is s.kernel.inputs[str(dQ)] and value.site[1].kind == "call":
            if "&" in s.child(value.site, 1):
                s.replace(value.site, f"*({s.child(value.site, 1)}) = {s.child(value.site, 2)}")


def cut_to_a_whole_number(s: Subject) -> None:
    for value in s.values("alpha", "exp"):
        s.replace(value.site, f"int({s.text(value.site)})")


def kept_as_a_whole_number(s: Subject) -> None:
    for value in s.sets("alpha"):
        id, node = value.site
        if node.kind == "variable":
            assert node.type is not None
            file = s.files[node.file]
            start = (s.root / file).read_bytes().rindex(node.type.spelling.encode(), 0, node.start)
            edit = Edit(file, start, node.start, "int ")
            s.edits += [edit] if edit not in s.edits else []


def handed_to_nobody_knows_what(s: Subject) -> None:
    loop = main_loops(s.side.comparison.kernel)[-1]
    s.replace(loop.site, f"{s.text(loop.site)} smooth({s.accumulator('O_i')});")


def doubled_by_a_library(s: Subject) -> None:
    name, loop = s.accumulator("dV"), main_loops(s.side.comparison.kernel)[-1]
    s.replace(loop.site, f"{s.text(loop.site)} cute::axpby(0.f, {name}, 2.f, {name});")


FORWARD_FAULTS: dict[str, tuple[Change, str]] = {
    "cut to a whole number": (cut_to_a_whole_number, "alpha is cut to a whole number"),
    "kept as a whole number": (kept_as_a_whole_number, "alpha is cut to a whole number"),
    "handed to nobody knows what": (handed_to_nobody_knows_what, "is handed to smooth, a function that is not known"),
    "exchanged over twice the distance": (exchanged_over_twice_the_distance, "other rows get into it"),
    "first row for all": (first_row_for_all, "element 0 of"),
    "mask's border one further": (mask_border_one_further, "is not hidden"),
    "rescale skips a column": (rescale_skips_a_column, "leaves elements out"),
}
BACKWARD_FAULTS: dict[str, tuple[Change, str]] = {
    "doubled by a library": (doubled_by_a_library, "dV is 2 times what it should be"),
    "gradient begun anew in each step": (gradient_begun_anew, "each step begins it anew"),
    "stored without adding": (stored_without_adding, "dQ is stored without adding"),
}


@pytest.mark.parametrize("name", FORWARD_FAULTS)
def test_a_forward_fault_is_caught(name: str, forward: Subject, tmp_path: Path) -> None:
    change, message = FORWARD_FAULTS[name]
    side = changed(forward, change, tmp_path)
    assert any(message in finding.message for finding in side.findings), side.findings


@pytest.mark.parametrize("name", BACKWARD_FAULTS)
def test_a_backward_fault_is_caught(name: str, backward: Subject, tmp_path: Path) -> None:
    change, message = BACKWARD_FAULTS[name]
    side = changed(backward, change, tmp_path)
    assert any(message in finding.message for finding in side.findings), side.findings


# -- what must never drop out of the check ----------------------------------------------------------------------------
def test_wrong_row_sums_stay_in_the_check(tmp_path: Path) -> None:
    folder = copy_of("2.5.8", tmp_path / "copy")
    with Program(open_checkout(str(folder)), cache=False) as program:
        function = next(f for f in backward_functions(program) if f.role == "row sums")
        (kernel,) = kernels(function.source, function.definition.id)
        terms = Terms(kernel)
        edits = set()
        for value in kernel.values:
            if value.op == "mul" and value.site[1].kind == "binary" and terms.term(value).op in ("mul", "matmul"):
                id, node = value.site
                text, left = function.source.text(id, node), function.source.text(id, node.children[0])
                edits.add((function.source.location(id, node).file, text, f"{left} * {left}"))
    assert edits
    for file, text, wrong in edits:
        path = folder / file
        path.write_text(path.read_text().replace(text, wrong))
    with Program(open_checkout(str(folder)), cache=False) as program:
        answer = check(program, algorithm="backward")
    roles = [one.role for one in answer.checks]
    assert roles == ["backward", "row sums"]
    assert answer.checks[0].ok and not answer.checks[1].ok
    assert answer.checks[1].problems and answer.matched < answer.steps


def test_what_is_no_program_does_not_pass(tmp_path: Path) -> None:
    folder = copy_of("2.5.8", tmp_path / "copy")
    with Program(open_checkout(str(folder)), cache=False) as program:
        function = next(iter(forward_functions(program)))
        kernel = kernels(function.source, function.definition.id)[0]
        value = next(v for v in kernel.values if v.op == "log" and v.site[1].kind == "call")
        file = folder / function.source.location(*value.site).file
        end = value.site[1].end
    data = file.read_bytes()
    semicolon = data.index(b";", end)
    file.write_bytes(data[:semicolon] + data[semicolon + 1 :])
    with Program(open_checkout(str(folder)), cache=False) as program:
        answer = check(program, algorithm="forward")
    problems = [problem for one in answer.checks for problem in one.problems]
    assert not answer.ok
    assert any(p.kind == "unread" and p.message.startswith("the parser cannot read this") for p in problems)
    assert all(p.location is not None for p in problems)


def test_a_forward_that_is_gone_is_not_replaced_by_the_backward(tmp_path: Path) -> None:
    folder = copy_of("2.5.8", tmp_path / "copy")
    with Program(open_checkout(str(folder)), cache=False) as program:
        answer = check(program, algorithm="forward")
    file = answer.checks[0].function.location.file
    (folder / file).write_text("")

    with (
        Program(open_checkout(str(folder)), cache=False) as program,
        pytest.raises(NoRoute, match="no attention kernel"),
    ):
        check(program)
