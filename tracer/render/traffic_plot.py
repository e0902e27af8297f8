"""The answer of ``flashtracer io`` as a picture: bytes against N, and arithmetic intensity against the GPU's ridge.

An SVG written by hand, both axes logarithmic. Solid lines are tile traffic, dashed ones DRAM bytes; the grey one is
what is compulsory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from tracer.render import style
from tracer.render import traffic_words as words
from tracer.render.escape import xml
from tracer.traffic import InvalidShape, IoRow

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 560, 360, 76, 32, 44, 44
_COLOURS = ("#2c5f93", "#c0392b", "#3b6e2b", "#80590c", "#6f4393", "#0f7c84", "#a3527a", "#5c6470")
_MOST_LINES = len(_COLOURS)

Point = tuple[float, float]
Line = tuple[str, str, str, list[Point]]


def plot(found: Sequence[IoRow]) -> str:
    """Return the picture as SVG.

    Args:
        found: rows of at least two lengths.

    Raises:
        InvalidShape: fewer than two lengths, or more kinds of rows than colours.
    """
    groups = _groups(found)
    if len({row.shape.seqlen_q for row in found}) < 2:
        raise InvalidShape("a plot over N needs at least two lengths; give --seqlen more than once")
    if len(groups) > _MOST_LINES:
        raise InvalidShape(f"a plot has room for {_MOST_LINES} kinds of rows, not {len(groups)}; sweep less than that")
    legend_height = 18 * (len(groups) + 2) + 8
    height = _HEIGHT + legend_height
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * _WIDTH} {height}" width="{2 * _WIDTH}" '
        f'height="{height}" font-family="sans-serif" font-size="12">',
        f"<style>{_css()}</style>",
        f'<rect class="paper" width="{2 * _WIDTH}" height="{height}"/>',
        _panel(0, "bytes against N", _byte_lines(groups), words.amount),
        _panel(_WIDTH, "FLOP per byte against N", _intensity_lines(groups), words.ratio),
        _legend(groups, found),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _groups(found: Sequence[IoRow]) -> dict[str, list[IoRow]]:
    """Put rows together that differ in N only, by a name that says what else they have."""
    differing: list[Callable[[IoRow], str]] = [
        lambda row: f"d {row.shape.head_dim}",
        lambda row: f"batch {row.shape.batch}",
        lambda row: f"{words.heads(row.shape)} heads",
        lambda row: row.shape.dtype,
        lambda row: words.mask(row.shape) or "no mask",
    ]
    told = [name for name in differing if len({name(row) for row in found}) > 1]
    groups: dict[str, list[IoRow]] = {}
    for row in found:
        tile = [words.tile(row.tile)] if row.tile else []
        groups.setdefault(", ".join([row.algorithm, *tile, *(name(row) for name in told)]), []).append(row)
    return {name: sorted(rows, key=lambda row: row.shape.seqlen_q) for name, rows in groups.items()}


def _byte_lines(groups: dict[str, list[IoRow]]) -> list[Line]:
    lines: list[Line] = []
    compulsory: dict[int, list[Point]] = {}
    for number, rows in enumerate(groups.values()):
        colour = _COLOURS[number]
        lines.append((colour, "", "line", [(row.shape.seqlen_q, row.tile_bytes) for row in rows]))
        through = [(float(row.shape.seqlen_q), float(row.dram_bytes)) for row in rows if row.dram_bytes]
        if through:
            lines.append((colour, "6 4", "line", through))
        if rows[0].tile is not None:
            points = [(float(row.shape.seqlen_q), float(row.compulsory_bytes)) for row in rows]
            compulsory.setdefault(rows[0].shape.head_dim, points)
    return lines + [("", "", "least", points) for points in compulsory.values()]


def _intensity_lines(groups: dict[str, list[IoRow]]) -> list[Line]:
    lines: list[Line] = []
    for number, rows in enumerate(groups.values()):
        dashes = "6 4" if rows[0].dram_bytes is not None else ""
        lines.append((_COLOURS[number], dashes, "line", [(row.shape.seqlen_q, row.intensity) for row in rows]))
    every = [row for rows in groups.values() for row in rows]
    ridge = every[0].ridge
    if ridge:
        lengths = [row.shape.seqlen_q for row in every]
        lines.append(("", "2 3", "ridge", [(float(min(lengths)), ridge), (float(max(lengths)), ridge)]))
    return lines


def _panel(x0: int, title: str, lines: Sequence[Line], shown: Callable[[float], str]) -> str:
    points = [point for *_, line in lines for point in line]
    low_x, high_x = _reach((x for x, _ in points), 2)
    low_y, high_y = _reach((y for _, y in points), 10)
    left, right, top, bottom = x0 + _LEFT, x0 + _WIDTH - _RIGHT, _TOP, _HEIGHT - _BOTTOM

    def at(point: Point) -> tuple[float, float]:
        across = (math.log(point[0]) - math.log(low_x)) / (math.log(high_x) - math.log(low_x))
        up = (math.log(point[1]) - math.log(low_y)) / (math.log(high_y) - math.log(low_y))
        return left + across * (right - left), bottom - up * (bottom - top)

    parts = [f'<text class="title" x="{left}" y="{top - 18}">{xml(title)}</text>']
    for value in _steps(low_y, high_y, 10):
        y = at((low_x, value))[1]
        parts.append(f'<path class="grid" d="M{left} {y:.1f}H{right}"/>')
        parts.append(f'<text class="small" text-anchor="end" x="{left - 6}" y="{y + 4:.1f}">{xml(shown(value))}</text>')
    for value in _steps(low_x, high_x, 2):
        x = at((value, low_y))[0]
        parts.append(f'<path class="grid" d="M{x:.1f} {top}V{bottom}"/>')
        parts.append(f'<text class="small" text-anchor="middle" x="{x:.1f}" y="{bottom + 16}">{value:,.0f}</text>')
    for colour, dashes, kind, line in lines:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(at, line))
        stroke = f' stroke="{colour}"' if colour else ""
        dash = f' stroke-dasharray="{dashes}"' if dashes else ""
        parts.append(f'<polyline class="{kind}" fill="none"{stroke}{dash} points="{path}"/>')
        if kind == "ridge":
            x, y = at(line[0])
            parts.append(f'<text class="small" x="{x + 4:.1f}" y="{y - 5:.1f}">ridge {xml(shown(line[0][1]))}</text>')
    return "\n".join(parts)


def _legend(groups: dict[str, list[IoRow]], found: Sequence[IoRow]) -> str:
    parts = []
    y = _HEIGHT + 6
    for number, name in enumerate(groups):
        parts.append(f'<path class="line" stroke="{_COLOURS[number]}" d="M{_LEFT} {y}h28"/>')
        parts.append(f'<text x="{_LEFT + 36}" y="{y + 4}">{xml(name)}</text>')
        y += 18
    parts.append(f'<path class="least" d="M{_LEFT} {y}h28"/>')
    parts.append(
        f'<text x="{_LEFT + 36}" y="{y + 4}">compulsory: each input read once, each result written once</text>'
    )
    first = found[0]
    about = f"solid: tile traffic; dashed: DRAM, simulated for {words.gpu(first)}" if first.gpu else "tile traffic"
    parts.append(f'<text class="small" x="{_LEFT}" y="{y + 24}">{xml(about)}</text>')
    return "\n".join(parts)


def _reach(values: Iterable[float], base: int) -> tuple[float, float]:
    """Return the powers of ``base`` around positive values."""
    known = [value for value in values if value > 0]
    low = float(base) ** math.floor(math.log(min(known), base) + 1e-9)
    high = float(base) ** math.ceil(math.log(max(known), base) - 1e-9)
    return low, max(high, low * base)


def _steps(low: float, high: float, base: int) -> list[float]:
    count = round(math.log(high / low, base))
    skip = max(1, -(-count // 8))
    return [low * float(base) ** power for power in range(0, count + 1, skip)]


def _css() -> str:
    return (
        f".paper{{fill:{style.PAPER}}} text{{fill:{style.TEXT}}} .small{{fill:{style.SMALL_TEXT};font-size:11px}} "
        f".title{{font-weight:600}} .grid{{stroke:{style.LINE};stroke-width:.5;opacity:.5}} .line{{stroke-width:2}} "
        f".least{{stroke:{style.LINE};stroke-width:4;opacity:.7}} .ridge{{stroke:{style.TEXT};stroke-width:1.5}} "
        f"@media (prefers-color-scheme:dark){{.paper{{fill:{style.DARK_PAPER}}} text{{fill:{style.DARK_TEXT}}} "
        f".small{{fill:{style.DARK_SMALL_TEXT}}} .ridge{{stroke:{style.DARK_TEXT}}} .line{{filter:brightness(1.5)}}}}"
    )
