"""Byte counts as a Markdown table, for the report."""

from __future__ import annotations

from collections.abc import Sequence

from tracer.render import traffic_words as wording
from tracer.render.escape import Markdown, words
from tracer.traffic import IoRow

_HEADINGS = ("call", "algorithm", "tile", "compulsory", "tile traffic", "DRAM", "FLOP per DRAM byte")


def rows(found: Sequence[IoRow]) -> Markdown:
    """Return a row for every call and algorithm."""
    lines = [f"| {' | '.join(_HEADINGS)} |", "| --- | --- | --- | ---: | ---: | ---: | ---: |"]
    for row in found:
        cells = (
            wording.call(row), row.algorithm, wording.tile(row.tile), wording.amount(row.compulsory_bytes),
            wording.amount(row.tile_bytes), wording.amount(row.dram_bytes), wording.ratio(row.intensity),
        )  # fmt: skip
        lines.append(f"| {' | '.join(words(cell) for cell in cells)} |")
    return Markdown("\n".join(lines))
