from __future__ import annotations

import re

import hostile
import pytest
from markdown_it import MarkdownIt

from tracer.render.escape import Markdown, cells, code, link, shortened, visible, words, xml


def read_back(source: str) -> str:
    """What a reader of the rendered Markdown sees, by an implementation of CommonMark that is not ours."""
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(source)
    text = re.sub(r"</?(p|code|table|thead|tbody|tr|td|th)>", "", html)
    assert "<" not in text, html
    for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&#39;", "'"), ("&amp;", "&")):
        text = text.replace(entity, character)
    return text.strip()


@pytest.mark.parametrize("name", hostile.NAMES)
def test_markdown_shows_exactly_the_name(name: str) -> None:
    assert read_back(words(name)) == visible(name)
    assert read_back(code(name)) == visible(name)


@pytest.mark.parametrize("name", hostile.NAMES)
def test_a_name_stays_in_its_cell(name: str) -> None:
    for cell in (words(name), code(name)):
        html = MarkdownIt("commonmark").enable("table").render(f"| a | b | c |\n| - | - | - |\n| {cell} | next | x |\n")
        assert html.count("<td>") == 3
        assert "<td>next</td>" in html


@pytest.mark.parametrize("name", hostile.NAMES)
def test_nothing_invisible_is_left(name: str) -> None:
    assert all(character.isprintable() for character in visible(name))
    assert "\n" not in visible(name)


def test_what_cannot_be_seen_is_spelled_out() -> None:
    assert visible("a\u202eb") == "a\\u202eb"
    assert visible("a\x1b[31mb\x00") == "a\\x1b[31mb\\x00"
    assert visible("a\udcffb") == "a\\udcffb"
    assert visible(" a \n\t b ") == "a b"
    assert visible("漢字 🚀 é →") == "漢字 🚀 é →"


def test_plain_names_stay_readable_in_the_source() -> None:
    assert words("flash_attn_func, line 3 (a:b)") == "flash_attn_func, line 3 (a:b)"
    assert code("run_mha_fwd_<T, d>") == "`run_mha_fwd_<T, d>`"


def test_addresses_cannot_end_a_link_early() -> None:
    assert link(Markdown("x"), "https://h/a b)(c>#L3") == "[x](https://h/a%20b%29%28c%3E#L3)"
    assert link(Markdown("x"), None) == "x"


def test_shortening_keeps_both_ends_and_the_limit() -> None:
    assert shortened("abcdefghij", 10) == "abcdefghij"
    short = shortened("abcdefghijk", 10)
    assert len(short) == 10 and short.startswith("abc") and short.endswith("jk") and "…" in short


def test_columns_of_wide_and_combining_characters() -> None:
    assert [cells(text) for text in ("abc", "漢字", "e\u0301", "→…")] == [3, 4, 1, 2]


def test_xml_reserves_five_characters() -> None:
    assert xml("<a b=\"c\" d='e'>&") == "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;"
