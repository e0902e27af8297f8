"""The screens of ``flashtracer io``: one call in detail, a sweep as a table, profiles, conventions, Figure 2."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracer.render import traffic_words as words
from tracer.render.escape import cells, visible
from tracer.traffic import Comparison, Figure2Row, IoRow, convention, conventions, ratio_limit

_BOLD, _DIM, _RESET = "\x1b[1m", "\x1b[2m", "\x1b[0m"
_MOST_COLUMNS = 4


def rows(found: Sequence[IoRow], *, color: bool = False) -> str:
    """Return the screen for an answer: one call in detail, or a table where there are several calls or many tiles.

    Args:
        found: the rows, at least one.
        color: style it for a terminal.
    """
    found = tuple(found)
    lines = _detail(found) if words.alike(found) and len(found) <= _MOST_COLUMNS else _sweep(found)
    return _styled(lines, color)


def comparisons(row: IoRow, found: Sequence[Comparison], *, color: bool = False) -> str:
    """Return the screen for a profile: measured against predicted, launch by launch.

    Args:
        row: the prediction.
        found: from ``tracer.traffic.compare``.
        color: style it for a terminal.
    """
    table = [["kernel", "launch", "level", "measured", "predicted", "ratio"]]
    notes = []
    for one in found:
        name = visible(one.kernel) + (f" ×{one.times}" if one.times > 1 else "")
        predicted = one.launch
        table.append(
            [
                name,
                predicted.launch,
                "tile traffic",
                words.amount(one.l2_bytes),
                words.amount(predicted.tile_bytes),
                words.ratio(one.l2_ratio),
            ]
        )
        table.append(
            [
                "",
                "",
                "DRAM",
                words.amount(one.dram_bytes),
                words.amount(predicted.dram_bytes),
                words.ratio(one.dram_ratio),
            ]
        )
        table.append(["", "", "compulsory", "", words.amount(predicted.compulsory_bytes), ""])
        notes.append(f"{visible(one.kernel)}: {one.level} — {one.verdict}")
    lines = [f"!{row.algorithm}, {words.call(row)}, tile {words.tile(row.tile)}"]
    lines += ["  tile traffic is measured as lts__t_bytes.sum, DRAM as dram__bytes.sum", ""]
    return _styled([*lines, *_table(table, left=3), "", *notes], color)


def known_conventions() -> str:
    """Return the list of conventions and what they mean."""
    width = max(len(one.name) for one in conventions())
    return "".join(f"{one.name:<{width}}  {one.meaning}\n" for one in conventions())


def figure2(found: Sequence[Figure2Row], *, color: bool = False) -> str:
    """Return the screen about Figure 2 of the paper: each convention's count and what it is consistent with."""
    table = [["algorithms", "B_c", "convention", "bytes", "GFLOP", "consistent with"]]
    for one in found:
        table.append(
            [
                " + ".join(one.algorithms),
                str(one.block_n or "–"),
                one.convention,
                f"{one.gigabytes:.2f} GB",
                f"{one.gigaflops:.1f}",
                one.consistent_with or "–",
            ]
        )
    lines = [
        "!Figure 2 of arXiv 2205.14135: batch 64, 16 heads, N 1,024, d 64, fp16, forward and backward",
        "",
        *_table(table, left=3),
        "",
        "The printed bytes were measured with Nsight Compute: a count can be consistent with them, not equal to them.",
        "The printed 66.6 and 75.2 GFLOP do not follow from this call, with which the counts above do.",
    ]
    return _styled(lines, color)


def _detail(found: tuple[IoRow, ...]) -> list[str]:
    first = found[0]
    head = "!" + words.call(first) + (f"        {words.gpu(first)}" if first.gpu else "")
    names = [row.algorithm for row in found]
    tiles = [words.tile(row.tile) for row in found]
    levels: list[tuple[str, str, list[int | None]]] = [
        ("compulsory", "each input read once, each result written once", [row.compulsory_bytes for row in found]),
        ("tile traffic", "what the kernels request", [row.tile_bytes for row in found]),
        ("DRAM", "what the L2 cache lets through, simulated", [row.dram_bytes for row in found]),
    ]
    table = [["level", "what it counts", *names], ["", "tile", *tiles]]
    table += [[name, meaning, *(words.amount(value) for value in values)] for name, meaning, values in levels]
    table.append(["intensity", _intensity_of(first), *(f"{row.intensity:,.1f}" for row in found)])
    table.append(["stored", "kept for the backward pass", *(words.amount(row.saved_bytes) for row in found)])
    table.append(["workspace", "only during the pass", *(words.amount(row.workspace_bytes) for row in found)])
    lines = [head, "", *_table(table, left=2), ""]
    for row in found:
        if row.tile is not None:
            lines += _per_tensor(row)
    return lines + _notes(found)


def _intensity_of(row: IoRow) -> str:
    level = "DRAM byte" if row.dram_bytes is not None else "byte of tile traffic"
    return f"FLOP per {level}" + (f"; ridge {row.ridge:,.0f}" if row.ridge else "")


def _per_tensor(row: IoRow) -> list[str]:
    table = [["tensor", "bytes each", "compulsory", "read", "written", "DRAM"]]
    for one in row.tensors:
        table.append(
            [
                one.tensor,
                str(one.element_bytes),
                words.amount(one.compulsory_bytes),
                words.amount(one.read_bytes),
                words.amount(one.written_bytes),
                words.amount(one.dram_bytes),
            ]
        )
    assert row.tile is not None
    return [f"!{row.algorithm}, tile {words.tile(row.tile)} ({visible(row.tile.source)})", *_table(table, left=1), ""]


def _sweep(found: tuple[IoRow, ...]) -> list[str]:
    naive = words.partners(found)
    paired = set(map(id, naive.values()))
    with_dram = any(row.dram_bytes is not None for row in found)
    varying = [name for name in _COMMON if len({_COMMON[name](row) for row in found}) > 1]
    head = [*varying, "N", "d", "tile", "algorithm", "compulsory", "naive", "tile traffic", "ratio"]
    if with_dram:
        head += ["DRAM", "naive DRAM", "ratio"]
    table = [head]
    for position, row in enumerate(found):
        if id(row) in paired:
            continue
        other = naive.get(position)
        shape = row.shape
        length = f"{shape.seqlen_q:,}" + (f" × {shape.seqlen_k:,}" if shape.seqlen_k != shape.seqlen_q else "")
        line = [_COMMON[name](row) for name in varying]
        line += [length, str(shape.head_dim), words.tile(row.tile), row.algorithm, words.amount(row.compulsory_bytes)]
        line += [words.amount(other.tile_bytes if other else None), words.amount(row.tile_bytes)]
        line.append(words.ratio(other.tile_bytes / row.tile_bytes if other else None))
        if with_dram:
            naive_dram = other.dram_bytes if other else None
            line += [words.amount(row.dram_bytes), words.amount(naive_dram)]
            line.append(words.ratio(naive_dram / row.dram_bytes if naive_dram and row.dram_bytes else None))
        table.append(line)
    common = ", ".join(f"{name} {_COMMON[name](found[0])}" for name in _COMMON if name not in varying)
    about = f"        {words.gpu(found[0])}" if found[0].gpu else ""
    return [f"!{common}{about}", "", *_table(table), "", *_notes(found)]


#: What a sweep usually holds fixed: in the head line, or as a column where it varies.
_COMMON: dict[str, Callable[[IoRow], str]] = {
    "batch": lambda row: str(row.shape.batch),
    "heads": lambda row: words.heads(row.shape),
    "dtype": lambda row: row.shape.dtype,
    "mask": lambda row: words.mask(row.shape) or "none",
}


def _notes(found: tuple[IoRow, ...]) -> list[str]:
    how = convention(found[0].convention)
    lines = [f"Counted as '{how.name}': {how.meaning}."]
    limits: dict[str, None] = {}
    for position, other in words.partners(found).items():
        row = found[position]
        limit = ratio_limit(row, other)
        if limit is not None and row.tile is not None:
            of = f"B_r {row.tile.block_m}" if row.algorithm.startswith("fa2") else f"B_c {row.tile.block_n}"
            limits[f"{limit:.2f} for d {row.shape.head_dim}, {of}, {row.algorithm}"] = None
    if limits:
        several = list(limits)
        shown = "; ".join(several[:6]) + (f"; and {len(several) - 6} more" if len(several) > 6 else "")
        lines.append(
            "Naive by flash tile traffic does not grow with N: both grow as N², so the ratio tends to a constant "
            f"({shown}). What grows is naive by DRAM bytes."
        )
    for row in found:
        if row.bounds is not None:
            lower = f"{row.bounds.lower:,.0f}" if row.bounds.lower is not None else "not covered (M < d²)"
            lines.append(
                f"M = {row.bounds.on_chip:,} elements, N = {row.shape.seqlen_q:,}, d = {row.shape.head_dim}; elements "
                f"per head, constants left out: Theorem 2 of arXiv 2205.14135 gives naive {row.bounds.naive:,}, flash "
                f"{row.bounds.flash:,.0f}; lower bound {lower}"
                + ("." if row.bounds.applies else "; M is outside of d … Nd, for which the theorem holds.")
            )
            break
    if found[0].gpu and found[0].l2_bytes is None:
        lines.append(f"The L2 size of {found[0].gpu} is not known, so DRAM bytes are not predicted; give --l2-bytes.")
    elif not found[0].gpu:
        lines.append("DRAM bytes lie between compulsory bytes and tile traffic; --gpu simulates the L2 cache.")
    return lines


def _table(table: list[list[str]], left: int = 0) -> list[str]:
    """Align columns: the first ``left`` ones to the left, all others to the right; the first line is the head."""
    count = max(len(line) for line in table)
    padded = [line + [""] * (count - len(line)) for line in table]
    widths = [max(cells(line[column]) for line in padded) for column in range(count)]
    lines = []
    for number, line in enumerate(padded):
        parts = []
        for column, text in enumerate(line):
            space = " " * (widths[column] - cells(text))
            parts.append(text + space if column < left else space + text)
        lines.append(("~" if number == 0 else "") + " " + "   ".join(parts).rstrip())
    return lines


def _styled(lines: Sequence[str], color: bool) -> str:
    shown = []
    for line in lines:
        mark = line[:1]
        text = line[1:] if mark in ("!", "~") else line
        style = {"!": _BOLD, "~": _DIM}.get(mark, "")
        shown.append(f"{style}{text.rstrip()}{_RESET}" if color and style else text.rstrip())
    return "\n".join(shown) + "\n"
