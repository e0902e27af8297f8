from __future__ import annotations

import json
import re
import shutil
import subprocess

import hostile
import pytest
import synthetic as s

from tracer.picture import Picture, Prune, draw
from tracer.render import dot
from tracer.render.escape import shortened, visible

needs_dot = pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")


def parsed(picture: Picture) -> dict[str, object]:
    """The drawing as Graphviz understands it."""
    done = subprocess.run(["dot", "-Tdot_json"], input=dot.render(picture).encode(), capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout.decode("utf-8", "replace"), strict=False)
    assert isinstance(data, dict)
    return data


@needs_dot
def test_graphviz_reads_the_boxes_and_arrows_of_the_picture() -> None:
    picture = draw(s.graph(), s.ROUTE)
    data = parsed(picture)
    objects, edges = data["objects"], data["edges"]
    assert isinstance(objects, list) and isinstance(edges, list)
    boxes = [item for item in objects if item.get("class") in ("route", "branch", "other")]
    shown = [item for item in edges if item.get("style") != "invis"]
    assert len(boxes) == len(picture.nodes) and len(shown) == len(picture.edges)
    assert sum(item["class"] == "route" for item in boxes) == 14
    assert sum(item["class"] == "route" for item in shown) == 13
    assert {item["penwidth"] for item in shown if item["class"] == "route"} == {"3"}


@needs_dot
def test_frames_are_languages_with_files_inside() -> None:
    picture = draw(s.graph(), s.ROUTE)
    data = parsed(picture)
    objects = data["objects"]
    assert isinstance(objects, list)
    frames = [item for item in objects if item["name"].startswith("cluster_")]
    languages = [item for item in frames if item["class"].startswith("language")]
    assert [item["label"] for item in languages] == ["Python", "Binding", "C++ host", "CUDA"]
    assert len(frames) == 4 + len({node.cluster for node in picture.nodes})
    binding = next(item for item in frames if item["class"] == "file binding")
    assert (binding["label"], len(binding["nodes"])) == ("flash_attn/flash_api.cpp", 1)


@needs_dot
def test_graphviz_reads_hostile_names_as_they_are() -> None:
    picture = draw(hostile.graph(), hostile.ROUTE)
    data = parsed(picture)
    objects = data["objects"]
    assert isinstance(objects, list)
    boxes = {item["name"]: item for item in objects if item.get("class") in ("route", "branch", "other")}
    for position, node in enumerate(picture.nodes):
        name = visible(node.members[0].qualified_name)
        assert unescaped(boxes[f"n{position}"]["tooltip"]).split("\\n")[1].startswith(name)


def unescaped(text: str) -> str:
    """Graphviz prints a string as it was written: with entities and doubled backslashes."""
    return text.replace("&amp;", "&").replace("\\\\", "\\")


def test_hostile_names_stay_in_their_strings() -> None:
    source = dot.render(draw(hostile.graph(), hostile.ROUTE))
    assert "\u202e" not in source and "\r" not in source and "\x1b" not in source
    labels = [line.split("label=<")[1].split(">, width=")[0] for line in source.splitlines() if "label=<" in line]
    assert {tag for label in labels for tag in re.findall(r"</?(\w+)", label)} == {"B", "BR", "FONT"}
    assert any("&lt;script&gt;" in label for label in labels)
    source.encode()


def test_labels_are_short_enough_to_read() -> None:
    source = dot.render(draw(hostile.graph(), hostile.ROUTE))
    labels = [line.split("label=<")[1].split("<BR/>")[0] for line in source.splitlines() if "label=<" in line]
    assert shortened("x" * 300, 46) in "".join(labels)
    assert "x" * 50 not in "".join(labels)


def test_each_language_stands_below_the_one_before() -> None:
    source = dot.render(draw(s.graph(), s.ROUTE, Prune(hops=0)))
    assert source.count("shape=point") == 3


def test_what_is_cut_is_said() -> None:
    assert "Shown: 17 of" in dot.render(draw(s.graph(), s.ROUTE, Prune(hops=0)))
    assert "Shown:" not in dot.render(draw(s.graph(), s.ROUTE))


def test_the_same_picture_gives_the_same_drawing() -> None:
    assert dot.render(draw(s.graph(), s.ROUTE)) == dot.render(draw(s.graph(), s.ROUTE))


@pytest.mark.parametrize(
    ("text", "written"),
    [('a"b', '"a\\"b"'), ("a\\", '"a\\\\"'), ("a\nb", '"a\\nb"'), ("&lt;", '"&amp;lt;"'), ("\\N", '"\\\\N"')],
)
def test_strings_show_exactly_their_text(text: str, written: str) -> None:
    assert dot.quoted(text) == written
