"""The screens of ``flashtracer kernel`` and ``flashtracer decode`` as plain text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from tracer.dispatch import Answer, DecodedName, KernelTime, Launch, Outcome, TileTable, Unsupported
from tracer.render import kernel_wording as wording
from tracer.render.escape import cells, visible

_NARROWEST = 60
_LABEL = 15

Line = tuple[str, str]  # text and style


def answer(answer: Answer, *, color: bool, width: int, explain: bool = False) -> str:
    """Return the screen for one question.

    Args:
        answer: what runs and why.
        color: style it for a terminal.
        width: columns of the terminal.
        explain: show every decision, not only those that matter.
    """
    width = max(width, _NARROWEST)
    prediction = answer.prediction
    lines: list[Line] = [
        (_apart(visible(wording.headline(prediction)), wording.splits(prediction), width), "bold"),
        ("", ""),
    ]
    if prediction.error is not None:
        lines.append((_fact("refused at", str(prediction.error.location)), ""))
        lines += _facts("asked", wording.asked(answer), width)
    for launch in prediction.launches:
        lines += _launch(launch, answer, width, headed=len(prediction.launches) > 1)
    for operator in prediction.operators:
        lines.append((_fact("also", f"{operator.name} of the library, called at {operator.location}"), "dim"))
    for warned in prediction.warnings:
        lines += _facts("warning", f"{warned.message} ({warned.location})", width, "yellow")
    for note in wording.python_notes(answer):
        lines += _facts("Python", note, width)
    lines += _why(answer, width, explain)
    for number, launch in enumerate(prediction.launches):
        head = "As a profiler shows it" if not number else "and"
        lines += [(part, "") for part in _wrapped(f"{head}: {visible(launch.name)}", width)]
    return _finished(lines, color)


def _launch(launch: Launch, answer: Answer, width: int, *, headed: bool) -> list[Line]:
    lines: list[Line] = [(f"  {launch.kernel}", "cyan")] if headed else []
    tile = wording.tile(launch)
    if tile:
        lines.append((_fact("tile", tile), ""))
    lines.append((_fact("grid, block", wording.extent(launch)), ""))
    lines.append((_fact("head dim", wording.head_dim(launch, answer.prediction)), ""))
    lines += [
        (_fact("flags" if not n else "", part), "") for n, part in enumerate(_folded(wording.flags(launch), width))
    ]
    lines.append((_fact("launched at", str(launch.location)), ""))
    lines.append(("", ""))
    return lines


def _why(answer: Answer, width: int, explain: bool) -> list[Line]:
    decisions = [row for row in answer.prediction.decisions if explain or row.matters]
    if not decisions:
        return []
    lines: list[Line] = [("Why", "bold")]
    place_width = max(cells(wording.short(row.location)) for row in decisions)
    for row in decisions:
        told, values = wording.decision(row)
        place = wording.short(row.location)
        head = f"  {place}{' ' * (place_width - cells(place))}   "
        text = visible(told) + (f"     {visible(values)}" if values else "")
        wrapped = textwrap.wrap(text, max(width - len(head), 30), break_long_words=False, drop_whitespace=False) or [""]
        lines.append((head + wrapped[0].rstrip(), ""))
        lines += [(" " * (len(head) + 2) + part.strip(), "dim") for part in wrapped[1:]]
    return lines


def outcomes(found: Sequence[Outcome], *, width: int) -> str:
    """Return what can happen where the question does not decide it: each outcome with what it takes for granted."""
    width = max(width, _NARROWEST)
    lines: list[Line] = [("The question does not decide all of it. What can happen:", "")]
    for number, one in enumerate(found, 1):
        lines += _facts(f"  {number}", visible(wording.headline(one.prediction)), width)
        assumed = "; ".join(f"{condition} is {value} ({place})" for condition, value, place in _assumed(one))
        lines += _facts("", f"if {assumed}", width)
    return _finished(lines, color=False)


def _assumed(outcome: Outcome) -> list[tuple[str, str, str]]:
    return [
        (visible(decision.condition), "true" if decision.value else "false", wording.short(decision.location))
        for decision in outcome.assumptions
    ]


def unsupported(error: Unsupported, *, width: int) -> str:
    """Return how far a call could be followed: what was not known, and the functions that it was inside of."""
    width = max(width, _NARROWEST)
    lines: list[Line] = [(part, "") for part in _wrapped(visible(str(error)), width)]
    for number, row in enumerate(error.reached):
        lines += _facts("reached" if not number else "", f"{row.function} ({row.location})", width)
        shown = ", ".join(f"{name} = {value}" for name, value in row.values.items())
        if shown and not number:
            lines += _facts("", shown, width)
    return _finished(lines, color=False)


def decoded(names: Sequence[DecodedName], *, color: bool, width: int) -> str:
    """Return the screen for decoded names."""
    width = max(width, _NARROWEST)
    lines: list[Line] = []
    for name in names:
        if lines:
            lines.append(("", ""))
        lines += _decoded(name, width)
    return _finished(lines, color)


def _decoded(name: DecodedName, width: int) -> list[Line]:
    facts = []
    traits = dict(name.traits)

    def trait(ending: str) -> int:
        return next((value for key, value in traits.items() if key.endswith(ending)), 0)

    if trait("HeadDim"):
        facts.append(f"head dim {trait('HeadDim')}")
    if name.element:
        facts.append(name.element)
    truths = {key: value == "true" for key, value in name.arguments}
    facts += [word for flag, word in (("Is_causal", "causal"), ("Is_local", "window")) if truths.get(flag)]
    if trait("BlockM") and trait("BlockN"):
        facts.append(f"tile {trait('BlockM')} × {trait('BlockN')}")
    if trait("NWarps"):
        facts.append(f"{trait('NWarps')} warps")
    lines: list[Line] = [(f"{visible(name.kernel)}     {', '.join(facts)}".rstrip(), "bold")]
    plain = [(key, value) for key, value in name.arguments if "<" not in value]
    shown = " · ".join(f"{key} {value}".strip() for key, value in plain)
    lines += [(f"  {part}", "") for part in _wrapped(visible(shown), width - 2)]
    if name.namespace:
        lines.append((_fact("namespace", visible(name.namespace)), ""))
    if name.location is not None:
        lines.append((_fact("source", str(name.location)), ""))
    if name.problem:
        lines += [
            (_fact("does not fit" if not n else "", part), "yellow")
            for n, part in enumerate(_folded(name.problem, width))
        ]
        fits = ", ".join(name.fits) or "no release that is at hand"
        lines += [(_fact("fits" if not n else "", part), "") for n, part in enumerate(_folded(fits, width))]
    if name.example is not None:
        call = f"{wording.call(name.example.question)}, on {name.example.device.name}"
        lines += _facts("a call", call, width)
        lines.append((_fact("launched at", str(name.example.launched_at)), ""))
    return lines


def profile(rows: Sequence[tuple[KernelTime, DecodedName | None]], *, color: bool, width: int) -> str:
    """Return a table of a profile's kernels: time, launches, and what each attention kernel is.

    Args:
        rows: the profile's kernels; None for a kernel that is none of the checkout's.
        color: style it for a terminal.
        width: columns of the terminal.
    """
    width = max(width, _NARROWEST)
    total = sum(kernel.nanoseconds for kernel, _ in rows)
    lines: list[Line] = [(f"{'time':>12}  {'share':>6}  {'launches':>8}  kernel", "bold")]
    others, other_time = 0, 0.0
    for kernel, name in rows:
        if name is None:
            others += kernel.count
            other_time += kernel.nanoseconds
            continue
        share = f"{kernel.nanoseconds / total:.1%}" if total else ""
        time = f"{kernel.nanoseconds / 1e6:,.3f} ms" if kernel.nanoseconds else ""
        first, *rest = _decoded(name, width - 32)
        lines.append((f"{time:>12}  {share:>6}  {kernel.count:>8}  {first[0]}", ""))
        lines += [(f"{'':32}{text.strip()}", "dim") for text, _ in rest]
    if others:
        share = f"{other_time / total:.1%}" if total else ""
        time = f"{other_time / 1e6:,.3f} ms" if other_time else ""
        lines.append((f"{time:>12}  {share:>6}  {others:>8}  kernels of others", ""))
    return _finished(lines, color)


def table(tiles: TileTable, *, color: bool, width: int) -> str:
    """Return the table of all specializations with their tiles."""
    lines: list[Line] = []
    for form in dict.fromkeys(row.form for row in tiles.rows):
        rows = [wording.tile_row(row) for row in tiles.rows if row.form == form]
        kernels = list(dict.fromkeys(row.kernel for row in tiles.rows if row.form == form and row.kernel))
        lines += [(f"{form}: {', '.join(kernels)}", "bold")]
        lines += [(line, "") for line in _columns([wording.TILE_HEADINGS, *rows])]
        lines.append(("", ""))
    for form, reason in tiles.missing:
        lines += [
            (part, "yellow") for part in _wrapped(f"{form}: not in this version ({reason})", max(width, _NARROWEST))
        ]
    if tiles.drift_checked is not None:
        count = len(tiles.drift)
        verdict = f"{count} differences to the C++ tiles" if count else "agrees with the C++ tiles"
        lines.append((f"Python's copy of the block sizes ({tiles.drift_checked}): {verdict}", "bold" if count else ""))
        for drift in tiles.drift:
            asked = (
                f"head dim {drift.head_dim}{', causal' if drift.causal else ''}{', dropout' if drift.dropout else ''}"
            )
            sizes = " × ".join(map(str, drift.python))
            cpp = " × ".join(map(str, drift.cpp))
            lines.append((f"  {asked} on {drift.gpu}: Python says {sizes}, C++ runs {cpp} ({drift.cpp_location})", ""))
    return _finished(lines, color)


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(cells(row[number]) for row in rows) for number in range(len(rows[0]))]
    return [
        "  " + "  ".join(cell + " " * (width - cells(cell)) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _fact(label: str, text: str) -> str:
    return f"  {label:<{_LABEL}}{text}".rstrip()


def _facts(label: str, text: str, width: int, style: str = "") -> list[Line]:
    return [(_fact("" if number else label, part), style) for number, part in enumerate(_folded(text, width))]


def _folded(text: str, width: int) -> list[str]:
    return _wrapped(visible(text), width - _LABEL - 2)


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(width, 30), break_long_words=False, break_on_hyphens=False) or [""]


def _apart(left: str, right: str, width: int) -> str:
    if not right:
        return left
    gap = max(4, min(width, 100) - cells(left) - cells(right))
    return f"{left}{' ' * gap}{right}"


def _finished(lines: Iterable[Line], color: bool) -> str:
    kept = list(lines)
    while kept and not kept[-1][0]:
        kept.pop()
    if not color:
        return "".join(f"{text.rstrip()}\n" for text, _ in kept)
    from rich.console import Console
    from rich.text import Text

    console = Console(force_terminal=True, color_system="standard", no_color=False, width=10_000, legacy_windows=False)
    with console.capture() as capture:
        for text, style in kept:
            console.print(Text(text, style=style), soft_wrap=True, highlight=False)
    return capture.get()
