from __future__ import annotations

import re

import hostile
import networkx
import synthetic as s

from tracer.model import Definition, Language
from tracer.picture import Picture, Prune, draw
from tracer.render import mermaid
from tracer.route import Route, Step

ARROW = re.compile(r"^  n\d+ (==>|-->|-\.->)(\|\"[^\"]*\"\|)? n\d+$")
BOX = re.compile(r"^      (n\d+)\(\"([^\"]*)\"\)$")
FRAME = re.compile(r"^ {2,4}subgraph (\w+)\[\"([^\"]*)\"\]$")


def large(edges: int) -> Picture:
    """A route of two steps and a graph with many more edges than a chart may have."""
    made: networkx.MultiDiGraph[str] = networkx.MultiDiGraph()
    items: list[Definition] = [s.entry, s.kernel]
    items += [
        s.definition(f"helper_{chr(97 + n % 26)}_{'x' * n}"[:60], Language.CPP, "function", "a.h", n)
        for n in range(1, 101)
    ]
    for item in items:
        made.add_node(item.id, definition=item)
    made.add_edge(s.entry.id, s.kernel.id, edge=s.edge(s.entry, s.kernel, 2))
    pairs = [(a, b) for a in items for b in items if a is not b and (a, b) != (s.entry, s.kernel)]
    for position, (source, target) in enumerate(pairs[: edges - 1]):
        made.add_edge(source.id, target.id, edge=s.edge(source, target, position + 3))
    first, last = Step(s.entry, "flash_attn_func"), Step(s.kernel, "flash_fwd_kernel")
    route = Route(s.IDENTITY, (first, last), (s.edge(s.entry, s.kernel, 2),), (), s.ROUTE.coverage)
    return draw(made, route, fold=False)


def arrows(chart: str) -> list[str]:
    return [line for line in chart.splitlines() if ARROW.match(line)]


def test_every_line_is_one_that_mermaid_knows() -> None:
    for picture in (draw(s.graph(), s.ROUTE), draw(s.graph()), draw(hostile.graph(), hostile.ROUTE)):
        lines = mermaid.render(picture).splitlines()
        assert lines[1] == "flowchart TB"
        known = (ARROW, BOX, FRAME, re.compile(r"^ +end$|^  cut\[|^  (classDef|class|style|linkStyle) [\w,#:;.\- ]+$"))
        assert [line for line in lines[2:] if not any(form.match(line) for form in known)] == []
        assert sum(line.strip() == "end" for line in lines) == sum(" subgraph " in line for line in lines)


def test_boxes_arrows_and_frames_are_those_of_the_picture() -> None:
    picture = draw(s.graph(), s.ROUTE, Prune(hops=0))
    chart = mermaid.render(picture)
    assert len(arrows(chart)) == len(picture.edges)
    assert sum(bool(BOX.match(line)) for line in chart.splitlines()) == len(picture.nodes)
    frames = [match[2] for line in chart.splitlines() if (match := FRAME.match(line))]
    assert [name for name in frames if "/" not in name] == ["Python", "Binding", "C++ host", "CUDA"]
    assert "flash_attn/flash_api.cpp" in frames


def test_the_route_is_thick() -> None:
    chart = mermaid.render(draw(s.graph(), s.ROUTE))
    assert sum("==>" in line for line in arrows(chart)) == 13
    assert all("==>" in line for line in arrows(chart)[:13])
    assert "linkStyle 0,1,2,3,4,5,6,7,8,9,10,11,12 " in chart
    boxes = re.search(r"class ([\w,]+) route", chart)
    assert boxes and len(boxes[1].split(",")) == 14


def test_folded_boxes_say_their_number() -> None:
    chart = mermaid.render(draw(s.graph(), s.ROUTE))
    assert "×24<br/><small>24 specializations in 24 .cu files</small>" in chart


def test_a_graph_of_five_thousand_edges_stays_below_both_limits_and_says_what_is_cut() -> None:
    picture = large(5000)
    assert len(picture.edges) == 5000
    chart = mermaid.render(picture)
    assert len(chart) < 50_000
    assert 300 < len(arrows(chart)) < 500
    assert "1 flash_attn_func" in chart and "2 flash_fwd_kernel" in chart
    assert re.search(r"cut\[\"Shown: \d+ of 102 boxes and \d+ of 5000 arrows", chart)


def test_the_limit_of_characters_counts_too() -> None:
    picture = large(450)
    whole = mermaid.render(picture)
    cut = mermaid.render(picture, characters=len(whole))
    assert "Shown:" not in whole
    assert len(cut) < len(whole) and "Shown:" in cut
    assert "1 flash_attn_func" in cut and "2 flash_fwd_kernel" in cut
    assert len(cut) > len(whole) / 2


def test_exactly_at_the_limit_of_edges() -> None:
    assert len(arrows(mermaid.render(large(499)))) == 499
    assert len(arrows(mermaid.render(large(500)))) == 499


def test_the_same_picture_gives_the_same_chart() -> None:
    assert mermaid.render(draw(s.graph(), s.ROUTE)) == mermaid.render(draw(s.graph(), s.ROUTE))


def test_a_label_that_looks_like_a_style_statement_has_no_colon() -> None:
    assert mermaid.quoted("my_style::f<T>") == '"my_style#58;#58;f#60;T#62;"'
    assert mermaid.quoted("a::_f_x") == '"a::#95;f_x"'


def test_hostile_names_are_codes_in_quotes() -> None:
    chart = mermaid.render(draw(hostile.graph(), hostile.ROUTE))
    assert "<script" not in chart and "%%{init}%%" not in chart and "`" not in chart
    assert "\u202e" not in chart and "\r" not in chart
    assert "#60;script#62;" in chart
    chart.encode()
