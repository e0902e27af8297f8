"""Tile tables and answers as Markdown, for the report and for ``--format md``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracer.dispatch import Answer, TileTable
from tracer.model import Location
from tracer.render import kernel_wording as wording
from tracer.render.escape import Markdown, code, words

Place = Callable[[Location], str]


def answer(answer: Answer, *, explain: bool = False, place: Place = str) -> str:
    """Return the answer to one question.

    Args:
        answer: what runs and why.
        explain: every decision, not only those that matter.
        place: turns a location into Markdown, such as a permalink.
    """
    prediction = answer.prediction
    lines = [f"### {words(wording.headline(prediction))}", "", f"Asked: {words(wording.asked(answer))}.", ""]
    if prediction.error is not None:
        lines += [f"Refused at {place(prediction.error.location)}.", ""]
    for launch in prediction.launches:
        rows = [
            ("tile", words(wording.tile(launch))),
            ("grid, block", words(wording.extent(launch))),
            ("head dim", words(wording.head_dim(launch, prediction))),
            ("flags", words(wording.flags(launch))),
            ("launched at", Markdown(place(launch.location))),
            ("name", code(launch.name)),
        ]
        lines += _table((launch.kernel, ""), rows) + [""]
    lines += [f"- Warning: {words(row.message)}, at {place(row.location)}" for row in prediction.warnings]
    lines += [f"- {words(note)}" for note in wording.python_notes(answer)]
    decisions = [row for row in prediction.decisions if explain or row.matters]
    if decisions:
        told = [(place(row.location), *map(words, wording.decision(row))) for row in decisions]
        lines += ["", "Why:", "", *_table(("place", "decision", "values"), told)]
    return "\n".join(lines).rstrip() + "\n"


def tiles(table: TileTable, *, place: Place = str) -> str:
    """Return the tile tables, one for each form, and what Python's copy of the block sizes says."""
    lines: list[str] = []
    for form in dict.fromkeys(row.form for row in table.rows):
        rows = [row for row in table.rows if row.form == form]
        kernels = ", ".join(code(name) for name in dict.fromkeys(row.kernel for row in rows if row.kernel))
        lines += [f"**{form}**: {kernels}", ""]
        shown = [
            (*map(words, wording.tile_row(row)[:-1]), Markdown(place(row.location)) if row.location else Markdown(""))
            for row in rows
        ]
        lines += [*_table(wording.TILE_HEADINGS, shown), ""]
    lines += [f"{words(form)}: not in this version ({words(reason)})." for form, reason in table.missing]
    if table.drift_checked is not None:
        copy = place(table.drift_checked)
        if not table.drift:
            lines += ["", f"Python's copy of the block sizes ({copy}) agrees with the C++ tiles."]
        else:
            lines += ["", f"Python's copy of the block sizes ({copy}) differs from the C++ tiles:", ""]
            lines += _table(
                ("head dim", "causal", "dropout", "GPU", "Python", "C++", "launched at"),
                [
                    (
                        str(row.head_dim), "yes" if row.causal else "no", "yes" if row.dropout else "no",
                        words(row.gpu), " × ".join(map(str, row.python)), " × ".join(map(str, row.cpp)),
                        place(row.cpp_location),
                    )
                    for row in table.drift
                ],
            )  # fmt: skip
    return "\n".join(lines).rstrip() + "\n"


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [
        f"| {' | '.join(headings)} |",
        f"|{' --- |' * len(headings)}",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
