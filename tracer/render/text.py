"""The screen of ``flashtracer trace``: a route as aligned plain text, coloured where a terminal wants it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from tracer.render import wording
from tracer.render.escape import cells, visible
from tracer.route import Route

_LISTED_UNRESOLVED = 5
_NUMBER = 4
_GAP = 2
_NARROWEST = 40

Segment = tuple[str, str]
Line = list[Segment]


def route(route: Route, *, color: bool, width: int, hint: str = "") -> str:
    """Return the screen for a route.

    Args:
        route: the answer.
        color: style it for a terminal.
        width: columns of the terminal.
        hint: what to try next; shown beside the coverage.

    Returns:
        Lines that end with a newline, none wider than ``width`` columns unless a single word is.
    """
    width = max(width, _NARROWEST)
    lines = _head(route, width) + _table(route, width) + [[]] + _foot(route, width, hint)
    return _styled(lines) if color else _plain(lines)


def _head(route: Route, width: int) -> list[Line]:
    title = wording.headline(route)
    facts = f"{wording.identity(route.checkout)}, {len(route.steps)} steps, {wording.certainty(route.edges)}"
    if cells(title) + 8 + cells(facts) <= width:
        return [[(title, "bold"), (" " * 8 + facts, "")], []]
    return [[(title, "bold")], *([(line, "")] for line in _wrapped(facts, width)), []]


def _table(route: Route, width: int) -> list[Line]:
    rows = wording.rows(route)
    notes = [_note(row) for row in rows]
    label_width = min(max((cells(row.label) for row in rows), default=0), max(24, width * 3 // 8))
    place_width = _place_width(rows, notes, width - _NUMBER - label_width - 2 * _GAP)
    lines: list[Line] = []
    language = ""
    for row, note in zip(rows, notes, strict=True):
        if row.language != language:
            language = row.language
            lines.append([(f" {language}", "bold")])
        place = _front_cut(row.place, place_width)
        line: Line = [(f"{row.number:>3} ", "dim"), (row.label, "cyan" if row.role else "")]
        if cells(row.label) > label_width:
            lines.append(line)
            line = [(" " * (_NUMBER + label_width), "")]
        else:
            line.append((" " * (label_width - cells(row.label)), ""))
        line.append((" " * _GAP + place, "blue"))
        used = _NUMBER + label_width + _GAP + max(place_width, cells(place)) + _GAP
        if note and used + cells(note) <= width:
            line.append((" " * (used - _NUMBER - label_width - _GAP - cells(place)), ""))
            line.append((note, "dim"))
            lines.append(line)
            continue
        lines.append(line)
        indent = " " * (_NUMBER + 2)
        lines += [[(indent + part, "dim")] for part in _wrapped(note, width - len(indent))]
    return lines


def _note(row: wording.Row) -> str:
    return "; ".join(part for part in (row.role, row.found) if part)


def _place_width(rows: Sequence[wording.Row], notes: Sequence[str], room: int) -> int:
    """Columns for the places: as many as possible without sending a note to a line of its own that could stay."""
    longest = max((cells(row.place) for row in rows), default=0)
    least = max((cells(_front_cut(row.place, 0)) for row in rows), default=0)

    def sent_away(width: int) -> int:
        return sum(bool(note) and width + _GAP + cells(note) > room for note in notes)

    widths = range(max(least, min(longest, room)), least - 1, -1)
    return min(widths, key=sent_away)


def _front_cut(place: str, limit: int) -> str:
    """Shorten a path by its leading folders only, so that the file's name and the line always stay."""
    parts = place.split("/")
    if " " in place or cells(place) <= limit or len(parts) == 1:
        return place
    for start in range(1, len(parts)):
        shorter = "…/" + "/".join(parts[start:])
        if cells(shorter) <= limit:
            return shorter
    shortest = "…/" + parts[-1]
    return shortest if cells(shortest) < cells(place) else place


def _foot(route: Route, width: int, hint: str) -> list[Line]:
    lines: list[Line] = []
    for other in route.branches:
        lines += [[(part, "")] for part in _wrapped(f"Also reachable {wording.branch(route, other)}", width)]
    found = route.coverage
    summary = wording.coverage(found)
    if hint and cells(summary) + 6 + cells(hint) <= width:
        summary, hint = f"{summary}      {hint}", ""
    lines += [[(part, "")] for part in _wrapped(summary, width)]
    if len(found.unresolved) <= _LISTED_UNRESOLVED:
        for site in found.unresolved:
            reason = f"   {visible(site.reason)}" if site.reason else ""
            text = f"  {visible(str(site.location))}   {visible(site.written)}{reason}"
            lines += [[(part, "yellow")] for part in _wrapped(text, width, indent="  ")]
    else:
        for reason, count in wording.reasons(found):
            lines += [[(part, "yellow")] for part in _wrapped(f"  {count} × {reason}", width, indent="  ")]
    for text in (wording.diagnostics(route.diagnostics), hint):
        lines += [[(part, "")] for part in _wrapped(text, width)] if text else []
    return lines


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """Break text between words only; a path or a name stays whole."""
    return textwrap.wrap(
        text,
        width,
        initial_indent="",
        subsequent_indent=indent + "  ",
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
    )


def _plain(lines: Iterable[Line]) -> str:
    return "".join("".join(text for text, _ in line).rstrip() + "\n" for line in lines)


def _styled(lines: Iterable[Line]) -> str:
    from rich.console import Console
    from rich.text import Text

    console = Console(force_terminal=True, color_system="standard", no_color=False, width=10_000, legacy_windows=False)
    with console.capture() as capture:
        for line in lines:
            styled = [(text, style) for text, style in line if text]
            console.print(Text.assemble(*styled), soft_wrap=True, highlight=False)
    return capture.get()
