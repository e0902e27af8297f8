"""The screens of ``flashtracer symbols`` and ``flashtracer check``."""

from __future__ import annotations

import textwrap

from tracer.crosscheck import CrossCheck, KernelCheck, Problem
from tracer.render import symbols_wording as wording
from tracer.render.escape import cells, visible
from tracer.symbols import SymbolTable

_NARROWEST = 60


def symbols(table: SymbolTable, *, width: int) -> str:
    """Return the screen for a symbol table.

    Args:
        table: the answer.
        width: columns of the terminal.
    """
    width = max(width, _NARROWEST)
    head = f"{table.algorithm}        {wording.verdict(table)}, in {visible(table.function.name)}"
    rows: list[tuple[str, ...]] = [("symbol", "what it is", "checkout", "form", "reference")]
    for row in table.rows:
        shown = wording.same_name(wording.main_variables(row))
        held = "; ".join(f"{name} {place}" for name, place in shown) or "no variable: part of what it enters"
        forms = list(dict.fromkeys(_form(v.storage, v.form) for v in wording.main_variables(row)))
        reference = row.reference[0].name if row.reference else ""
        mark = "" if row.status == "agrees" else f" {row.status}"
        rows.append((wording.symbol(row.symbol) + mark, row.meaning, held, forms[0] if forms else "", reference))
    lines = [head, "", *_table(rows, width), ""]
    for loop in table.loops:
        words = [word for word in (loop.order, "masked" if loop.is_masked else "") if word]
        note = f", {', '.join(words)}" if words else ""
        lines.append(f"Loop over {loop.index}: {visible(str(loop.location))}{note}")
    sizes = [f"{size.symbol} = {visible(size.name)} {wording.place(size.location)}".strip() for size in table.sizes]
    if sizes:
        lines += textwrap.wrap("; ".join(sizes), width)
    if table.masks:
        lines.append("Masked at " + ", ".join(wording.place(mask) for mask in table.masks))
    lines += [line for problem in table.check.problems for line in _problem(problem, width)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def check(answer: CrossCheck, *, width: int) -> str:
    """Return the screen for a cross-check.

    Args:
        answer: the answer.
        width: columns of the terminal.
    """
    width = max(width, _NARROWEST)
    lines: list[str] = []
    for found in answer.checks:
        lines += _check(found, width)
    if not answer.checks:
        lines.append("not found   no attention kernel to check")
    for problem in answer.problems:
        lines += _problem(problem, width)
    lines += [f"no check  {visible(line)}" for line in answer.not_checked]
    lines += [wording.summary(answer), "", "Not seen by this check:"]
    lines += [f"  {line}" for line in answer.blind_spots]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _check(found: KernelCheck, width: int) -> list[str]:
    word = "agrees" if found.ok else "differs"
    lines = [
        f"{word:<10}{wording.role(found)}: {visible(found.function.name)}, {found.matched} of {len(found.steps)} steps"
    ]
    for problem in found.problems:
        lines += _problem(problem, width)
    lines += textwrap.wrap(visible(found.confirmed), width, initial_indent=" " * 10, subsequent_indent=" " * 10)
    if found.assumptions:
        text = f"assumed: {'; '.join(map(visible, found.assumptions))}"
        lines += textwrap.wrap(text, width, initial_indent=" " * 10, subsequent_indent=" " * 12)
    if found.unknown:
        names = ", ".join(f"{visible(name)} at {wording.place(place)}" for name, place in found.unknown)
        text = f"library names without a meaning: {names}"
        lines += textwrap.wrap(text, width, initial_indent=" " * 10, subsequent_indent=" " * 12)
    return lines


def _problem(problem: Problem, width: int) -> list[str]:
    side = "" if problem.where == "checkout" else f" (in the {problem.where} kernel)"
    first = f"{problem.kind:<10}{wording.formula(problem.title) or '—'}{side}"
    lines = textwrap.wrap(first, width, subsequent_indent=" " * 10)
    if problem.message != problem.title:
        lines += textwrap.wrap(
            wording.formula(visible(problem.message)), width, initial_indent=" " * 10, subsequent_indent=" " * 12
        )
    where = wording.chain(problem)
    if where:
        lines += textwrap.wrap(f"at {visible(where)}", width, initial_indent=" " * 10, subsequent_indent=" " * 12)
    return lines


def _form(storage: str, form: str) -> str:
    return f"{storage}; {form}" if form else storage


def _table(rows: list[tuple[str, ...]], width: int) -> list[str]:
    """Return rows as aligned columns; the widest columns are wrapped."""
    columns = len(rows[0])
    widths = [max(cells(row[column]) for row in rows) for column in range(columns)]
    room = width - 2 * (columns - 1) - 1
    while sum(widths) > room:
        widest = max(range(columns), key=lambda column: widths[column])
        if widths[widest] <= 12:
            break
        widths[widest] -= 1
    lines: list[str] = []
    for row in rows:
        parts = [textwrap.wrap(cell, widths[number]) or [""] for number, cell in enumerate(row)]
        for line in range(max(len(part) for part in parts)):
            texts = [part[line] if line < len(part) else "" for part in parts]
            padded = [text + " " * (widths[number] - cells(text)) for number, text in enumerate(texts)]
            lines.append(" " + "  ".join(padded))
    return lines
