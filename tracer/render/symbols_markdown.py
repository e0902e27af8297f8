"""The symbol table and the step-by-step agreement in Markdown, for the report."""

from __future__ import annotations

from collections.abc import Callable

from tracer.crosscheck import CrossCheck, KernelCheck, Problem
from tracer.model import Location
from tracer.render import symbols_wording as wording
from tracer.render.escape import Markdown, code, link, words
from tracer.symbols import SymbolTable, Variable

Permalink = Callable[[Location], "str | None"]


def symbols(table: SymbolTable, permalink: Permalink) -> str:
    """Return a symbol table in Markdown.

    Args:
        table: the answer.
        permalink: returns the address of a place in the checkout, or None.
    """
    lines = [f"**{words(table.algorithm)}**: {words(wording.verdict(table))}, in {code(table.function.name)}.", ""]
    lines += ["| symbol | what it is | checkout | form | reference | |", "| --- | --- | --- | --- | --- | --- |"]
    for row in table.rows:
        shown = wording.main_variables(row)
        held = "; ".join(_variable(variable, permalink) for variable in shown) or words("part of what it enters")
        form = words("; ".join(dict.fromkeys(f"{v.storage}; {v.form}".strip("; ") for v in shown)))
        reference = code(row.reference[0].name) if row.reference else Markdown("")
        cells = (words(wording.symbol(row.symbol)), words(row.meaning), held, form, reference, words(row.status))
        lines.append(f"| {' | '.join(cells)} |")
    lines.append("")
    for loop in table.loops:
        note = ", ".join(word for word in (loop.order, "masked" if loop.is_masked else "") if word)
        lines.append(f"- loop over {words(loop.index)}: {_place(loop.location, permalink)} {words(note)}".rstrip())
    for size in table.sizes:
        where = f", {_place(size.location, permalink)}" if size.location is not None else ""
        lines.append(f"- {words(size.symbol)}: {code(size.name)}{where}{f' — {words(size.note)}' if size.note else ''}")
    for mask in table.masks:
        lines.append(f"- masked at {_place(mask, permalink)}")
    return "\n".join(lines) + "\n"


def check(answer: CrossCheck, permalink: Permalink) -> str:
    """Return a cross-check in Markdown: a verdict and a table of steps for each kernel function."""
    lines: list[str] = [f"{words(wording.summary(answer).replace('  ', ' '))}.", ""]
    lines += [f"- {_problem(problem, permalink)}" for problem in answer.problems]
    lines += [f"- not checked: {words(line)}" for line in answer.not_checked]
    lines += [""] if answer.problems or answer.not_checked else []
    for found in answer.checks:
        lines += _check(found, permalink)
    lines += ["Not seen by this check:", "", *[f"- {words(line)}" for line in answer.blind_spots]]
    return "\n".join(lines) + "\n"


def _check(found: KernelCheck, permalink: Permalink) -> list[str]:
    word = "agrees" if found.ok else "differs"
    count = f"{found.matched} of {len(found.steps)} steps"
    lines = [f"**{words(found.algorithm)}** — {code(found.function.name)}: {word}, {count}.", ""]
    lines += [f"- {_problem(problem, permalink)}" for problem in found.problems]
    lines += [f"- assumed: {words(note)}" for note in found.assumptions]
    lines += [f"- {words(found.confirmed)}", ""]
    lines += ["| step | | checkout | reference | where |", "| --- | --- | --- | --- | --- |"]
    for step in found.steps:
        where = _place(step.location, permalink) if step.location is not None else ""
        title, formula = words(wording.formula(step.title)), words(wording.formula(step.formula))
        lines.append(f"| {title} | {formula} | {step.checkout} | {step.reference} | {where} |")
    return [*lines, ""]


def _problem(problem: Problem, permalink: Permalink) -> str:
    side = "" if problem.where == "checkout" else f" (in the {problem.where} kernel)"
    where = f", {_place(problem.location, permalink)}" if problem.location is not None else ""
    calls = "".join(f", called at {_place(site, permalink)}" for site in problem.chain)
    return f"{words(problem.kind)}: {words(wording.formula(problem.message))}{side}{where}{calls}"


def _variable(variable: Variable, permalink: Permalink) -> str:
    return f"{code(variable.name)} {_place(variable.location, permalink)}"


def _place(location: Location, permalink: Permalink) -> Markdown:
    return link(words(wording.place(location)), permalink(location))
