"""Confirming a match by value: kernel and listing carried out on the same random tiles, compared symbol by symbol."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import field
from functools import partial

from tracer.dataflow.algebra import Term
from tracer.dataflow.arrays import Array, filled, ratio
from tracer.dataflow.compare import Comparison, exact_paper
from tracer.dataflow.diagnose import Diagnosis, Finding
from tracer.dataflow.evaluate import Evaluation, Problem, Unknown, random_tiles
from tracer.dataflow.ir import Value
from tracer.dataflow.match import main_loops
from tracer.dataflow.terms import Terms
from tracer.model import Location
from tracer.records import dataclass

#: From the name of a member of the kernel's argument struct to the value that the host passes.
Passed = Callable[[str], "float | None"]

#: The softmax scale of the small problem.
SCALE = 0.5
_SIZES = {"i": 2, "j": 3, "d": 2, "s": 3}
_TILES = 3
#: Relative error up to which values are the same: constants such as log2 e are written with the digits of a float.
EXACT = 1e-6
#: What a term raises that cannot be carried out: an operation that does not fit what was understood of its operands.
_NOT_CARRIED_OUT = (Unknown, LookupError, AssertionError, ValueError, ArithmeticError)


@dataclass(slots=True)
class Confirmation:
    """What came of carrying a kernel out.

    Attributes:
        factors: of each output of the listing, by which factor the kernel's is larger; None where there is no such
            factor.
        forms: of each value of the kernel that was carried out, by which factor it is larger than the symbol.
        scalars: the factors that the host passes, with the values they had.
        findings: what is wrong.
        reason: why it could not be carried out; empty where it was.
        is_masked: with a mask; False where the kernel needs none for keys beyond the end.
    """

    factors: dict[str, float | None] = field(default_factory=dict)
    forms: dict[int, float] = field(default_factory=dict)
    scalars: dict[str, float] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    reason: str = ""
    unread: str = ""
    is_masked: bool = True


def confirm(
    comparison: Comparison, passed: Passed | None, free: frozenset[str] = frozenset(), *, forms: bool = False
) -> Confirmation:
    """Carry a matched kernel out.

    Args:
        comparison: a comparison whose match succeeded.
        passed: tells the value that the host passes for a member of the argument struct at a softmax scale of
            :data:`SCALE`; None for a kernel whose host code is not read.
        free: outputs that may lack a constant factor, because another kernel applies it.
        forms: find out, too, in which form each variable holds its symbol.
    """
    result = Confirmation()
    paper = exact_paper(comparison.listing.name)
    kernel = comparison.exact
    is_chained = bool(comparison.paper.recurrences)
    # A backward pass may leave keys beyond the end unmasked: their tiles are zero and their gradients are not stored.
    plans: tuple[tuple[tuple[int, ...], bool], ...] = (
        (((1,), True), ((2,), True)) if is_chained else (((), True), ((), False))
    )
    for number, (steps, is_masked) in enumerate(plans):
        result.findings = []
        runs = _runs(comparison, (paper, kernel), (steps, is_masked), passed, result)
        if runs is None:
            return result
        _compare_outputs(comparison, runs, result, free)
        if forms and (number == 0 or not is_masked):
            _compare_symbols(comparison, runs, result)
        if bool(result.findings) == is_chained:
            break
    result.is_masked = is_masked
    return result


def _problem(
    comparison: Comparison, plan: tuple[tuple[int, ...], bool], scalars: dict[str, float], names: dict[str, str]
) -> Problem:
    steps, is_masked = plan
    tiles = _TILES if steps else 1
    masked = (steps[0] if steps else 1) if is_masked else 0
    sizes = [_SIZES["i"], _SIZES["j"]]
    hidden = [filled("ij", sizes, partial(_is_hidden, tile, masked)) for tile in range(tiles)]
    arrays = random_tiles(comparison.match.inputs, _SIZES, tiles, seed=20231 + len(comparison.match.inputs))
    return Problem(_SIZES, arrays, scalars, hidden, steps, names)


def _is_hidden(tile: int, masked: int, place: dict[str, int]) -> float:
    """Hide some scores of the tiles that a kernel masks: those of the first loop over tiles."""
    return float(tile < masked and place["j"] > place["i"] + tile)


_Runs = tuple[Evaluation, Evaluation, dict[str, Array], dict[str, Array]]


def _runs(
    comparison: Comparison,
    terms: tuple[Terms, Terms],
    plan: tuple[tuple[int, ...], bool],
    passed: Passed | None,
    result: Confirmation,
) -> _Runs | None:
    paper, kernel = terms
    match = comparison.match
    listing_names = {name: name for name in match.inputs}
    first = Evaluation(paper, _problem(comparison, plan, {"scale": SCALE}, listing_names))
    expected = {name: first.value(term) for name, term in paper.outputs.items()}
    wanted = [k for k in match.outputs.values() if k is not None]
    while True:
        second = Evaluation(kernel, _problem(comparison, plan, dict(result.scalars), dict(match.inputs)), match.flags)
        try:
            found = {name: second.value(kernel.outputs[name]) for name in wanted}
        except Unknown as unknown:
            name = str(unknown)
            member = name.rpartition(".")[2]
            if name in result.scalars or member.startswith("#"):
                result.reason = f"{name} has no value that the host code gives it"
                return None
            value = passed(member) if passed is not None else None
            if value is not None:
                result.scalars[name] = value
            elif passed is None and name in comparison.kernel.graph.inputs:
                result.scalars[name] = SCALE  # the one factor of a kernel whose host code is not read
            else:
                result.reason = f"{name} has no value that the host code gives it"
                result.unread = name
                return None
            continue
        except RecursionError:
            message = "a value of the loops over tiles depends on itself before it has any value"
            result.findings.append(Finding("value", message, None, _place_of_loops(comparison)))
            return None
        except (ValueError, OverflowError) as error:
            message = f"the values become infinite or are not defined where the algorithm's are finite: {error}"
            result.findings.append(Finding("value", message, None, _place_of_loops(comparison)))
            return None
        except (LookupError, AssertionError, ZeroDivisionError) as error:
            result.reason = f"the terms cannot be carried out: {error}"
            return None
        return first, second, expected, found


def _place_of_loops(comparison: Comparison) -> Location | None:
    loops = main_loops(comparison.kernel)
    return comparison.kernel.graph.location(loops[0].site) if loops else None


def _compare_outputs(comparison: Comparison, runs: _Runs, result: Confirmation, free: frozenset[str]) -> None:
    first, second, expected, found = runs
    for name, k in comparison.match.outputs.items():
        if k is None:
            continue
        factor = ratio(found[k], expected[name], EXACT)
        result.factors[name] = factor
        if factor is not None and (abs(factor - 1.0) < EXACT or name in free):
            continue
        result.findings.append(_first_deviation(comparison, runs, name, factor))


def _first_deviation(comparison: Comparison, runs: _Runs, output: str, factor: float | None) -> Finding:
    """Say where the kernel's values part from the listing's: the earliest symbol that is no multiple of it."""
    first, second, _, _ = runs
    diagnosis = Diagnosis(comparison.paper, comparison.kernel, comparison.steps)
    for term in comparison.steps.order:
        if not term.args or not comparison.paper.names(term):
            continue
        wanted = _inside(first, term)
        if wanted is None:
            continue
        values = [value for k in comparison.partners(term) for value in k.values if value.op not in ("input", "phi")]
        factors = [_factor(second, value, wanted) for value in values]
        if values and all(f is None for f in factors) or (factors and _is_off(term, factors)):
            symbol = comparison.steps.symbol(term)
            last = max(values, key=lambda value: value.number)
            location = comparison.kernel.graph.location(last.site)
            chain = comparison.kernel.graph.calls(last.chain)
            message = (
                f"{symbol} <- {comparison.steps.formula(term)}: the operations are these, but the values differ "
                f"(a factor, a base of the exponential, a mask); so does the output {output}"
            )
            return Finding("value", message, (term.number, 0), location, chain)
    term = comparison.paper.outputs[output]
    kernel = comparison.kernel.outputs[str(comparison.match.outputs[output])]
    where, calls = diagnosis.place(kernel)
    by = f"is {factor:.6g} times what it should be" if factor is not None else "has other values than it should have"
    message = f"{output} {by}, though the operations are the algorithm's"
    return Finding("value", message, (term.number, 0), where, calls)


def _is_off(term: Term, factors: list[float | None]) -> bool:
    """Tell whether an exponential has a factor; a score or a maximum may be held without the softmax scale."""
    known = [factor for factor in factors if factor is not None]
    return term.op == "exp" and bool(known) and all(abs(factor - 1.0) > EXACT for factor in known)


def _inside(evaluation: Evaluation, term: Term) -> Array | None:
    """Carry out the exact form of a listing's term in the last step of its loop."""
    for value in reversed(term.values):
        if value.op not in ("input", "phi"):
            try:
                return evaluation.inside(evaluation.terms.term(value))
            except _NOT_CARRIED_OUT:
                continue
    return None


def _factor(evaluation: Evaluation, value: Value, wanted: Array) -> float | None:
    try:
        return ratio(evaluation.inside(evaluation.terms.term(value)), wanted, EXACT)
    except _NOT_CARRIED_OUT:
        return None


def _compare_symbols(comparison: Comparison, runs: _Runs, result: Confirmation) -> None:
    """Note by which factor each variable is larger than the symbol that it holds."""
    first, second, _, _ = runs
    for term in comparison.steps.order:
        wanted = _inside(first, term)
        if wanted is None:
            continue
        for k in comparison.partners(term):
            for value in k.values:
                if value.op == "set" and value.number not in result.forms:
                    factor = _factor(second, value, wanted)
                    if factor is not None and math.isfinite(factor):
                        result.forms[value.number] = factor
