"""Every kind of wrong kernel is caught, and the message names the step; equivalent rewrites change nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dataflow.mutants import Change, Subject, changed, subject
from tests.releases import release
from tracer.dataflow.ir import Value


@pytest.fixture(scope="module", params=["2.8.3", "2.0.0.post1"])
def forward(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Subject]:
    with subject(release(request.param), "forward", tmp_path_factory.mktemp("forward")) as found:
        yield found


# -- edits of the forward pass ----------------------------------------------------------------------------------------
def forget_rescale_of_l(s: Subject) -> None:
    for value in s.values("l_i", "mul"):
        s.replace(value.site, "0" if value.site[1].kind == "assign" else s.child(value.site, 0))


def forget_rescale_of_o(s: Subject) -> None:
    for value in s.values("O_i", "mul"):
        s.replace(value.site, "0")


def swap_max_difference(s: Subject) -> None:
    for value in s.values("alpha", "sub"):
        s.replace(value.site, f"{s.child(value.site, 1)} - {s.child(value.site, 0)}")


def sum_before_exponential(s: Subject) -> None:
    swap_calls(s, s.values("P_ij", "exp"), s.values("l_ij", "rowsum") or s.values("l_i", "add"))


def maximum_after_exponential(s: Subject) -> None:
    swap_calls(s, s.values("P_ij", "exp"), s.values("m_i", "max") + s.values("m_ij", "rowmax"))


def swap_calls(s: Subject, left: list[Value], right: list[Value]) -> None:
    """Exchange two calls of one function: that through which one value is reached, and that of another."""
    for one in left:
        for other in right:
            for a in one.chain:
                for b in other.chain:
                    if a[0] == b[0] and a[1] is not b[1] and a[1].kind == b[1].kind == "call":
                        s.replace(a, s.text(b))
                        s.replace(b, s.text(a))
                        return


def no_logarithm(s: Subject) -> None:
    for value in s.values("L", "log"):
        s.replace(value.site, "0.f")


def no_maximum_in_lse(s: Subject) -> None:
    for value in s.values("L", "add"):
        s.replace(value.site, s.child(value.site, 1))


def multiply_by_l(s: Subject) -> None:
    for value in s.kernel.values:
        if value.op == "div" and s.side.comparison.kernel.term(value).op == "reciprocal":
            s.replace(value.site, s.child(value.site, 1))


def divide_by_m(s: Subject) -> None:
    scaled = [v for v in s.values("L", "add") for v in v.args if v.op == "mul"]
    for value in s.kernel.values:
        if value.op == "div" and s.side.comparison.kernel.term(value).op == "reciprocal":
            s.replace_child(value.site, 1, s.child(scaled[0].site, 0))


def keys_for_values(s: Subject) -> None:
    inputs = s.side.comparison.match.inputs
    swap_argument(s, inputs["V"], inputs["K"])


def swap_argument(s: Subject, wrong: str, right: str) -> None:
    from tracer.cpp.tree import walk

    field, other = wrong.rpartition(".")[2], right.rpartition(".")[2]
    for part in s.source.tree(s.kernel.id):
        for node in walk(part):
            if node.kind == "member" and node.text == field:
                site = (s.kernel.id, node)
                s.replace(site, s.text(site).replace(field, other))


def ignore_previous_sum(s: Subject) -> None:
    for value in s.values("l_i", "mul"):
        site = value.site
        if site[1].kind == "assign":
            s.replace(site, f"{s.child(site, 0)} = 0")
        else:
            s.replace(site, "0.f")


def square_rescale(s: Subject) -> None:
    for value in s.values("O_i", "mul"):
        s.replace_child(value.site, 1, f"({s.child(value.site, 1)} * {s.child(value.site, 1)})")


def scores_not_cleared(s: Subject) -> None:
    for value in s.cleared("S_ij"):
        s.replace(value.site, "0")


def carried_and_cleared(s: Subject, symbol: str) -> list[Value]:
    """Return the assignments of zero to what the loop over tiles carries as a symbol."""
    carried = {
        partner.origin.storage
        for term in s.side.comparison.steps.order
        if term.op == "carried" and term.origin.storage.name == symbol  # type: ignore[union-attr]
        for partner in s.side.comparison.partners(term)
        if partner.origin is not None
    }
    return [value for value in s.cleared(symbol) if value.storage in carried]


def output_not_cleared(s: Subject) -> None:
    for value in carried_and_cleared(s, "O_i"):
        s.replace(value.site, "0")


def output_cleared_in_the_loop(s: Subject) -> None:
    output = carried_and_cleared(s, "O_i")[0]
    for value in s.cleared("S_ij"):
        s.append(value.site, s.text(output.site))


def no_normalisation(s: Subject) -> None:
    for value in s.values("O", "div"):
        if value.site[1].kind == "assign":
            s.replace(value.site, "0")


def masks(s: Subject) -> list[tuple[str, object]]:
    from tracer.dataflow.names import plain

    found = []
    for value in s.kernel.values:
        if value.op == "set" and plain(value).op == "const" and plain(value).constant == float("-inf"):
            if value.site[1].kind == "assign" and value.chain:
                found.append(value.site)
    return found


def no_mask(s: Subject) -> None:
    for site in masks(s):
        s.replace(site, "0")  # type: ignore[arg-type]


def mask_with_zero(s: Subject) -> None:
    for site in masks(s):
        s.replace_child(site, 1, "0.f")  # type: ignore[arg-type]


def drop_exchange(s: Subject, op: str) -> None:
    lanes = s.side.comparison.lanes
    assert lanes is not None
    for exchange in lanes.exchanges.values():
        if exchange.op == op:
            inside = [site for site in exchange.value.chain if site[1].kind == "call"]
            statements = [site for site in inside if s.text(site).count("(") and not _is_value(s, site)]
            s.replace(statements[-1], "0")


def _is_value(s: Subject, site: tuple[str, object]) -> bool:
    """Tell whether a call is used as a value, and not a statement of its own."""
    from tracer.cpp.tree import walk

    for part in s.source.tree(site[0]):
        for node in walk(part):
            if node.kind == "block" and any(child is site[1] for child in node.children):
                return False
    return True


def no_exchange_of_sums(s: Subject) -> None:
    drop_exchange(s, "add")


def no_exchange_of_maxima(s: Subject) -> None:
    drop_exchange(s, "max")


def lse_unscaled(s: Subject) -> None:
    for value in s.values("L", "add"):
        for part in value.args:
            if part.op == "mul":
                s.replace(part.site, s.child(part.site, 0))


def lse_not_stored(s: Subject) -> None:
    for value in s.sets("L"):
        if value.storage is not None and value.storage.space == "global":
            s.replace(value.site, "0")


def minimum_for_maximum(s: Subject) -> None:
    for value in s.values("m_i", "max"):
        if value.site[1].kind == "call":
            callee = (value.site[0], value.site[1].children[0])
            s.replace(callee, re.sub(r"\bf?max", "min", s.text(callee)))


def natural_exponential(s: Subject) -> None:
    for value in s.values("P_ij", "exp") + s.values("alpha", "exp"):
        s.replace_child(value.site, 0, "expf")


FORWARD: dict[str, tuple[Change, str]] = {
    "rescale of l forgotten": (forget_rescale_of_l, "l_i"),
    "rescale of O forgotten": (forget_rescale_of_o, "O_i"),
    "difference of maxima swapped": (swap_max_difference, "alpha"),
    "sum before exponential": (sum_before_exponential, "P_ij|l_i"),
    "maximum after exponential": (maximum_after_exponential, "m_i|S_ij"),
    "no logarithm": (no_logarithm, "L"),
    "no maximum in the log-sum-exp": (no_maximum_in_lse, "L"),
    "division by m": (divide_by_m, "l_i|O"),
    "multiplication by l": (multiply_by_l, "O"),
    "K for V": (keys_for_values, "V_j"),
    "previous sum ignored": (ignore_previous_sum, "l_i"),
    "rescale squared": (square_rescale, "O_i"),
    "scores not cleared": (scores_not_cleared, "S_ij"),
    "output not cleared": (output_not_cleared, "O_i"),
    "output cleared in the loop": (output_cleared_in_the_loop, "O_i"),
    "no normalisation": (no_normalisation, "O"),
    "no mask": (no_mask, "S_ij|m_ij|mask"),
    "mask writes zero": (mask_with_zero, "S_ij|m_ij|mask"),
    "sums not exchanged between lanes": (no_exchange_of_sums, "l_i"),
    "maxima not exchanged between lanes": (no_exchange_of_maxima, "m_i"),
    "log-sum-exp unscaled": (lse_unscaled, "L"),
    "log-sum-exp not stored": (lse_not_stored, "L"),
    "minimum for maximum": (minimum_for_maximum, "m_i"),
    "exp for exp2": (natural_exponential, "P_ij|alpha"),
}


def test_the_release_itself_is_right(forward: Subject) -> None:
    assert not forward.side.findings
    assert forward.side.comparison.agreeing() == len(forward.side.comparison.steps.all) == 31


@pytest.mark.parametrize("name", FORWARD)
def test_forward_mutant_is_caught(name: str, forward: Subject, tmp_path: Path) -> None:
    change, step = FORWARD[name]
    side = changed(forward, change, tmp_path)
    assert side.findings, f"{name} passes"
    messages = [finding.message for finding in side.findings]
    assert any(re.search(step, message) for message in messages), messages
    assert any(finding.location is not None for finding in side.findings) or name == "log-sum-exp not stored"


# -- edits of the backward pass ---------------------------------------------------------------------------------------
def no_row_sums(s: Subject) -> None:
    for value in s.values("dS_ij", "sub"):
        s.replace(value.site, s.child(value.site, 0))


def swap_row_sums(s: Subject) -> None:
    for value in s.values("dS_ij", "sub"):
        s.replace(value.site, f"({s.child(value.site, 1)} - {s.child(value.site, 0)})")


def no_probabilities_in_ds(s: Subject) -> None:
    for value in s.values("dS_ij", "mul"):
        s.replace(value.site, s.child(value.site, 1))


def values_are_keys(s: Subject) -> None:
    inputs = s.side.comparison.match.inputs
    swap_argument(s, inputs["V"], inputs["K"])


def queries_are_gradients(s: Subject) -> None:
    inputs = s.side.comparison.match.inputs
    swap_argument(s, inputs["dO"], inputs["Q"])


def gradient_of_k_not_cleared(s: Subject) -> None:
    for value in s.cleared("dK"):
        s.replace(value.site, "0")


def no_lse(s: Subject) -> None:
    for value in s.values("P_ij", "sub"):
        s.replace(value.site, s.child(value.site, 0))


def natural_exponential_backward(s: Subject) -> None:
    for value in s.values("P_ij", "exp"):
        s.replace_child(value.site, 0, "expf")


def gradient_of_k_unscaled(s: Subject) -> None:
    for value in s.sets("dK"):
        if value.site[1].kind == "assign" and value.site[1].text == "*=":
            s.replace(value.site, "0")


BACKWARD: dict[str, tuple[Change, str]] = {
    "D not subtracted": (no_row_sums, "D_i|dS_ij"),
    "D less dP": (swap_row_sums, "dS_ij"),
    "dS without P": (no_probabilities_in_ds, "dS_ij"),
    "K for V": (values_are_keys, "V_j"),
    "Q for dO": (queries_are_gradients, "dO_i|Q_i"),
    "dK not cleared": (gradient_of_k_not_cleared, "dK|dS_ij"),
    "log-sum-exp not subtracted": (no_lse, "P_ij|L_i"),
    "exp for exp2": (natural_exponential_backward, "P_ij"),
    "dK without the scale": (gradient_of_k_unscaled, "dK"),
}


@pytest.mark.parametrize("name", BACKWARD)
def test_backward_mutant_is_caught(name: str, backward: Subject, tmp_path: Path) -> None:
    change, step = BACKWARD[name]
    assert not backward.side.findings
    side = changed(backward, change, tmp_path)
    assert side.findings, f"{name} passes"
    messages = [finding.message for finding in side.findings]
    assert any(re.search(step, message) for message in messages), messages
