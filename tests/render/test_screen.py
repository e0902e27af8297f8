"""The screen of ``trace``: what stands in which column, at which width."""

from __future__ import annotations

import re
from dataclasses import replace

import hostile
import pytest
import synthetic as s

from tracer.model import CallSite, Confidence, Coverage, Outcome
from tracer.render import text
from tracer.render.escape import cells
from tracer.route import Route


def rows(screen: str) -> list[str]:
    return [line for line in screen.splitlines() if re.match(r" [ \d]\d ", line)]


@pytest.mark.parametrize("width", [80, 100, 120, 160])
def test_nothing_is_wider_than_the_terminal(width: int) -> None:
    assert all(cells(line) <= width for line in text.route(s.ROUTE, color=False, width=width).splitlines())


@pytest.mark.parametrize("width", [80, 100, 120, 160])
def test_every_step_has_its_number_name_file_and_line(width: int) -> None:
    found = rows(text.route(s.ROUTE, color=False, width=width))
    assert len(found) == 14
    for number, (line, step) in enumerate(zip(found, s.STEPS, strict=True), start=1):
        assert line.startswith(f"{number:>3} {step.label} ")
        place = step.definition.location
        wanted = "24 specializations in 24 .cu files" if number == 7 else f"{place.file.split('/')[-1]}:{place.line}"
        assert wanted in line


@pytest.mark.parametrize("width", [80, 120, 160])
def test_places_begin_in_one_column(width: int) -> None:
    found = rows(text.route(s.ROUTE, color=False, width=width))
    starts = {
        line.index(step.label) + len(step.label) + len(re.match(r" *", line.split(step.label, 1)[1]).group())  # type: ignore[union-attr]
        for line, step in zip(found, s.STEPS, strict=True)
    }
    assert len(starts) == 1


def test_parts_stand_in_the_order_of_the_chain() -> None:
    screen = text.route(s.ROUTE, color=False, width=160)
    assert re.findall(r"^ ([A-Z][\w+ ]*)$", screen, re.M) == ["Python", "Binding", "C++ host", "CUDA"]


def test_paths_are_whole_where_there_is_room_and_lose_folders_only_where_there_is_none() -> None:
    wide, narrow = (text.route(s.ROUTE, color=False, width=width) for width in (160, 80))
    assert "…/" not in wide and s.LAUNCH in wide
    assert "…/src/flash_fwd_launch_template.h:55" in narrow and s.LAUNCH not in narrow
    assert f"{s.SOFTMAX}:137" in narrow


def test_the_head_answers_first() -> None:
    head = text.route(s.ROUTE, color=False, width=160).splitlines()[0]
    assert head.startswith("flash_attn_func → flash_fwd_kernel   ")
    assert head.endswith("flash-attention 2.8.3 (pypi), 14 steps, every step exact")


def test_how_each_step_was_reached() -> None:
    screen = rows(text.route(s.ROUTE, color=False, width=200))
    ends = {
        2: "through FlashAttnFunc.apply :1196",
        3: "through custom op flash_attn::_flash_attn_forward :834",
        4: "called at flash_attn_interface.py:91; module named in setup.py:228",
        5: "csrc/flash_attn/flash_api.cpp:351",
        6: "called at :499",
        10: "the kernel; launched at :91 through `kernel` :79",
        13: "the online-softmax update; called at flash_fwd_kernel.h:340",
    }
    for number, end in ends.items():
        assert screen[number - 1].endswith(end)


def test_what_is_not_exact_says_so() -> None:
    edges = (replace(s.EDGES[0], confidence=Confidence.INFERRED), *s.EDGES[1:])
    screen = text.route(replace(s.ROUTE, edges=edges), color=False, width=160)
    assert "12 exact, 1 inferred" in screen.splitlines()[0]
    assert rows(screen)[1].endswith("(inferred)")


def test_other_ways_and_coverage() -> None:
    screen = text.route(s.ROUTE, color=False, width=160)
    assert (
        "Also reachable from step 6: run_mha_fwd_splitkv_dispatch → run_flash_splitkv_fwd → flash_fwd_splitkv_kernel"
        "   (params.num_splits > 1)\n"
    ) in screen
    assert "Resolved 101 of 382 call sites on the way, 279 into libraries; unresolved 2.\n" in screen
    assert "csrc/flash_attn/flash_api.cpp:417   round_multiple   a local variable" in screen
    assert "3 diagnostics: flash_fwd_kernel.h 2, utils.h 1." in screen


def test_many_unresolved_sites_are_counted_by_reason() -> None:
    site = s.ROUTE.coverage.unresolved[0]
    many = tuple(
        CallSite(site.caller, f"f{n}", site.location, Outcome.UNRESOLVED, (), "odd" if n % 2 else "even")
        for n in range(9)
    )
    screen = text.route(replace(s.ROUTE, coverage=Coverage(9, 0, 0, many)), color=False, width=120)
    assert "unresolved 9." in screen and "  5 × even\n  4 × odd\n" in screen
    assert "f3" not in screen


def test_colour_changes_how_it_looks_but_not_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    plain, coloured = (text.route(s.ROUTE, color=color, width=120) for color in (False, True))
    assert "\x1b" not in plain and "\x1b[1m" in coloured and "\x1b[34m" in coloured
    stripped = [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", coloured).splitlines()]
    assert stripped == plain.splitlines()


@pytest.mark.parametrize("color", [False, True])
def test_hostile_names_stay_in_their_lines(color: bool) -> None:
    screen = text.route(hostile.ROUTE, color=color, width=120)
    assert "\u202e" not in screen and "\x1b[31mred" not in screen and "\r" not in screen
    assert len(re.findall(r"^(?:\x1b\[\d+m)? [ \d]\d (?!×)", screen, re.M)) == len(hostile.NAMES)


def test_a_route_of_no_steps_is_no_crash() -> None:
    empty = Route(s.IDENTITY, (), (), (), Coverage())
    assert text.route(empty, color=False, width=80).startswith("no route")


def test_a_hint_stands_beside_the_coverage_or_below_it() -> None:
    wide, narrow = (text.route(s.ROUTE, color=False, width=width, hint="Narrow it: --causal") for width in (160, 80))
    assert "unresolved 2.      Narrow it: --causal\n" in wide
    assert narrow.endswith("Narrow it: --causal\n")
