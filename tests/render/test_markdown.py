from __future__ import annotations

import os.path
import re
import shutil
from dataclasses import replace

import hostile
import pytest
import synthetic as s
from markdown_it import MarkdownIt

from tracer.model import Coverage, Location
from tracer.render import markdown, templates
from tracer.route import Route


def html(source: str) -> str:
    return str(MarkdownIt("commonmark").enable("table").render(source))


def cells(row: str) -> list[str]:
    return [re.sub(r"<[^>]+>", "", cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row, re.S)]


def table(source: str, first_heading: str) -> list[list[str]]:
    body = re.search(rf"<tr>\s*<th[^>]*>{first_heading}</th>.*?<tbody>(.*?)</tbody>", html(source), re.S)
    assert body
    return [cells(row) for row in re.findall(r"<tr>(.*?)</tr>", body[1], re.S)]


def test_the_route_is_a_table_of_all_steps() -> None:
    rows = table(markdown.route(s.ROUTE), "step")
    assert [row[0] for row in rows] == [str(number) for number in range(1, 15)]
    assert rows[4] == ["5", "C++ host", "mha_fwd", "csrc/flash_attn/flash_api.cpp:351", "—", "exact"]
    assert rows[9][2:] == [
        "flash_fwd_kernel — the kernel",
        "csrc/flash_attn/src/flash_fwd_launch_template.h:32",
        "launched at :91 through `kernel` :79",
        "exact",
    ]


def test_places_are_permalinks_where_the_address_is_known() -> None:
    address = "https://example.org/flash-attention/blob/v2.8.3/csrc/flash_attn/flash_api.cpp#L351"
    assert f"[`csrc/flash_attn/flash_api.cpp:351`]({address})" in markdown.route(s.ROUTE)
    pattern = replace(s.IDENTITY, permalink="https://example.org/{file}?line={line}")
    assert "https://example.org/setup%20a.py?line=3" in markdown.place(Location("setup a.py", 3), pattern.permalink)
    unknown = markdown.report(replace(s.ROUTE, checkout=replace(s.IDENTITY, permalink=None)))
    assert "](" not in unknown and "| `csrc/flash_attn/flash_api.cpp:351` |" in unknown
    assert "**Places are not links:**" in unknown


def test_the_report_has_its_sections_in_order() -> None:
    report = markdown.report(s.ROUTE, picture="route.svg", made={"version": "0.1.0"}, files={"trace.json": "the route"})
    assert re.findall(r"^#+ (.*)$", report, re.M) == [
        "flash_attn_func → flash_fwd_kernel",
        "Picture",
        "Route",
        "Alternatives",
        "Coverage",
        "What this report cannot see",
        "How it was made",
    ]
    assert report.splitlines()[2:5] == [
        "**Read:** flash-attention 2.8.3 (pypi), commit `060c9188beec3a8b62b33a3bfa6d5d2d44975fab`.<br>",
        "**Route:** `flash_attn_func` reaches `flash_fwd_kernel` in 14 steps: Python 1–3, Binding 4, C++ host 5–9, "
        "CUDA 10–14.<br>",
        "**Verdict:** Every step exact. Resolved 101 of 382 call sites on the way, 279 into libraries; unresolved 2.",
    ]
    assert "![flash_attn_func → flash_fwd_kernel](route.svg)" in report
    assert "- version: `0.1.0`" in report and "- [`trace.json`](trace.json): the route" in report


def test_all_alternatives_and_branches_are_listed() -> None:
    report = markdown.report(s.ROUTE)
    for item in (*s.specializations, *s.per_head_dim, *s.ROUTE.branches[0].definitions):
        assert f"`{item.qualified_name}` at [`{item.location}`]" in report
    assert "leaves step 6 at [`csrc/flash_attn/flash_api.cpp:250`]" in report
    assert "where `params.num_splits > 1`" in report


def test_everything_unresolved_and_every_diagnostic_is_listed() -> None:
    report = markdown.report(s.ROUTE)
    assert [row[1:] for row in table(report, "place")] == [
        ["round_multiple", "a local variable"],
        ["gemm_op", "two overloads fit"],
    ]
    assert report.count(" | unknown type name 'int4' |") == 2
    assert "| [`csrc/flash_attn/src/utils.h:40`](https://example.org/" in report
    assert "csrc/flash_attn/src/flash_fwd_kernel.h 2, csrc/flash_attn/src/utils.h 1" in report


def test_without_an_image_the_chart_stands_in_the_report() -> None:
    report = markdown.report(s.ROUTE, mermaid='flowchart TB\n  n0("a")\n')
    assert '```mermaid\nflowchart TB\n  n0("a")\n```' in report


def test_a_later_room_adds_a_section_by_adding_a_template(tmp_path: object) -> None:
    folder = os.path.join(str(tmp_path), "templates")
    shutil.copytree(templates.folder(), folder)
    with open(os.path.join(folder, "report", "50-symbols.md.j2"), "w") as file:
        file.write("{% if symbols is defined %}\n## Symbols\n\n{{ symbols | join(' and ') }}\n{% endif %}\n")
    values = {**markdown._values(s.ROUTE), "picture": "", "mermaid": "", "files": {}, "made": {}}
    without = templates.fill("report.md.j2", values, folder)
    report = templates.fill("report.md.j2", {**values, "symbols": ["m<i>", "l"]}, folder)
    assert "Symbols" not in without
    assert (
        report.index("## Alternatives") < report.index("## Symbols\n\nm&#60;i&#62; and l") < report.index("## Coverage")
    )


def test_the_templates_are_found_beside_the_package_or_in_it() -> None:
    assert os.path.isfile(os.path.join(templates.folder(), "report.md.j2"))


@pytest.mark.parametrize("render", [markdown.route, markdown.report])
def test_hostile_names_break_no_table_and_bring_no_html(render: object) -> None:
    assert callable(render)
    report = str(render(hostile.ROUTE))
    rows = table(report, "step")
    assert [row[0] for row in rows] == [str(number + 1) for number in range(len(hostile.NAMES))]
    assert {len(row) for row in rows} == {6}
    assert {len(row) for row in table(report, "place")} == {3}
    ours = {"a", "br", "code", "details", "summary"}
    blocks = MarkdownIt("commonmark").enable("table").parse(report)
    for token in [token for block in blocks for token in (block, *(block.children or ()))]:
        if token.type in ("html_inline", "html_block"):
            assert set(re.findall(r"</?([a-z]+)", token.content)) <= ours, token.content
        assert "javascript:" not in str(token.attrGet("href") or "")
        assert token.type != "image" or "Picture" in report
    assert "\u202e" not in report and "\r" not in report and "\x00" not in report
    report.encode()


def test_a_report_on_no_route_says_so() -> None:
    report = markdown.report(Route(s.IDENTITY, (), (), (), Coverage()))
    assert "none was found" in report and "nothing on the route branches" in report
