from __future__ import annotations

import os
import re
import stat
import sys
from pathlib import Path
from xml.etree import ElementTree

import hostile
import pytest
import synthetic as s

from tracer.errors import MissingTool, TracerError
from tracer.picture import Picture, Prune, draw
from tracer.render import svg
from tracer.render.escape import visible

SPACE = "{http://www.w3.org/2000/svg}"


def installed() -> list[str]:
    found = []
    for name in svg.PROGRAMS:
        try:
            found.append(svg.find_program((name,)))
        except MissingTool:
            pass
    return found


@pytest.fixture(params=svg.PROGRAMS)
def program(request: pytest.FixtureRequest) -> str:
    try:
        return svg.find_program((request.param,))
    except MissingTool:
        pytest.skip(f"{request.param} is not installed")


def drawn(picture: Picture, program: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg.render(picture, (program,)))


def texts(root: ElementTree.Element) -> list[str]:
    return [(element.text or "").replace("\xa0", " ").strip() for element in root.iter(f"{SPACE}text")]


def test_names_and_places_are_text(program: str) -> None:
    picture = draw(s.graph(), s.ROUTE)
    shown = texts(drawn(picture, program))
    for node in picture.nodes:
        count = f" ×{node.count}" if node.count > 1 else ""
        assert (f"{node.step} {node.label}{count}" if node.on_route else f"{node.label}{count}") in shown
    for name in ("Python", "Binding", "C++ host", "CUDA", "flash_attn/flash_attn_interface.py", "line 1135"):
        assert name in shown


def test_titles_are_ours_and_carry_the_tooltips(program: str) -> None:
    picture = draw(s.graph(), s.ROUTE, Prune(hops=0))
    root = drawn(picture, program)
    titles = [element.text or "" for element in root.iter(f"{SPACE}title")]
    assert titles[0] == "flash_attn_func → flash_fwd_kernel"
    assert not [title for title in titles if re.fullmatch(r"n\d+(->n\d+)?|cluster_\w+|flashtracer|", title)]
    assert any(
        "run_mha_fwd_hdim128 at csrc/flash_attn/src/flash_fwd_launch_template.h:225" in title for title in titles
    )
    assert any("launch at csrc/flash_attn/src/flash_fwd_launch_template.h:91" in title for title in titles)
    assert (root.findtext(f"{SPACE}desc") or "").startswith("Shown: 17 of")


def test_nothing_is_loaded_and_nothing_runs(program: str) -> None:
    for picture in (draw(s.graph(), s.ROUTE), draw(hostile.graph(), hostile.ROUTE)):
        text = svg.render(picture, (program,))
        assert set(re.findall(r"\b\w+://[\w./]+", text)) <= {"http://www.w3.org/2000/svg", "http://example.org"}
        root = ElementTree.fromstring(text)
        tags = {element.tag.removeprefix(SPACE) for element in root.iter()}
        assert tags <= {"svg", "g", "title", "desc", "style", "path", "polygon", "text", "ellipse"}
        names = {name for element in root.iter() for name in element.attrib}
        assert not [name for name in names if "href" in name or name.startswith("on") or name == "id"]
        assert "<!" not in text and "@import" not in text and "url(" not in text


def test_the_route_stands_out_and_follows_the_colour_scheme(program: str) -> None:
    root = drawn(draw(s.graph(), s.ROUTE), program)
    groups = [element.get("class", "") for element in root.iter(f"{SPACE}g")]
    assert groups.count("node route") == 14 and groups.count("edge route") == 13
    style = root.findtext(f"{SPACE}style") or ""
    assert "prefers-color-scheme:dark" in style and ">" not in style
    paper = [element for element in root.iter(f"{SPACE}polygon") if element.get("class") == "paper"]
    assert [element.get("fill") for element in paper] == ["#ffffff"] and ".paper{fill:#0d1117}" in style


def test_boxes_do_not_overlap(program: str) -> None:
    for picture in (draw(s.graph(), s.ROUTE), draw(s.graph(), s.ROUTE, Prune(hops=0)), draw(s.graph())):
        boxes = []
        for group in drawn(picture, program).iter(f"{SPACE}g"):
            if group.get("class", "").startswith("node"):
                path = group.find(f"{SPACE}path")
                assert path is not None
                numbers = [float(number) for number in re.findall(r"-?\d+\.?\d*", path.get("d", ""))]
                boxes.append((min(numbers[::2]), min(numbers[1::2]), max(numbers[::2]), max(numbers[1::2])))
        assert len(boxes) == len(picture.nodes)
        for position, (left, top, right, bottom) in enumerate(boxes):
            for other_left, other_top, other_right, other_bottom in boxes[:position]:
                apart = right <= other_left or other_right <= left or bottom <= other_top or other_bottom <= top
                assert apart


def test_text_fits_its_box_in_a_monospaced_font(program: str) -> None:
    for group in drawn(draw(s.graph(), s.ROUTE), program).iter(f"{SPACE}g"):
        path = group.find(f"{SPACE}path")
        if not group.get("class", "").startswith("node") or path is None:
            continue
        across = [float(number) for number in re.findall(r"-?\d+\.?\d*", path.get("d", ""))][::2]
        for text in group.iter(f"{SPACE}text"):
            half = 0.61 * float(text.get("font-size", "0")) * len(text.text or "") / 2
            middle = float(text.get("x", "0"))
            assert min(across) <= middle - half and middle + half <= max(across), text.text


def test_hostile_names_are_text_and_nothing_else(program: str) -> None:
    root = drawn(draw(hostile.graph(), hostile.ROUTE), program)
    everything = "\n".join(element.text or "" for element in root.iter(f"{SPACE}title"))
    for name in hostile.NAMES:
        assert visible(name) in everything


def test_the_same_picture_gives_the_same_bytes(program: str) -> None:
    picture = draw(s.graph(), s.ROUTE)
    assert svg.render(picture, (program,)) == svg.render(picture, (program,))


def test_a_large_graph_is_drawn_in_part_and_says_so(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(svg, "BOXES", 20)
    root = drawn(draw(s.graph(), s.ROUTE), program)
    assert sum(group.get("class", "").startswith("node") for group in root.iter(f"{SPACE}g")) <= 20
    assert any(text.startswith("Shown: ") for text in texts(root))


def test_no_layout_program_is_one_clear_line() -> None:
    with pytest.raises(MissingTool, match=r"^no SVG: looked for 'nodot' on PATH.*install Graphviz[^\n]*$"):
        svg.render(draw(s.graph(), s.ROUTE), ("nodot",))


def fake(folder: Path, body: str) -> str:
    path = folder / "layout"
    path.write_text(f"#!{sys.executable}\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_a_program_that_fails_is_one_clear_line(tmp_path: Path) -> None:
    program = fake(tmp_path, "import sys; print('bad\\nsyntax error', file=sys.stderr); sys.exit(3)")
    with pytest.raises(TracerError, match=r"^no SVG: 'layout' failed: syntax error$"):
        svg.render(draw(s.graph(), s.ROUTE), (program,))


def test_a_program_that_hangs_is_killed(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    program = fake(tmp_path, f"import os, time; open({str(mark)!r}, 'w').write(str(os.getpid())); time.sleep(600)")
    with pytest.raises(TracerError, match="did not finish within 2 s"):
        svg.render(draw(s.graph(), s.ROUTE), (program,), seconds=2)
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)


def test_at_least_one_program_was_tried() -> None:
    assert installed(), "neither Graphviz nor the wheel that brings it is installed: the drawings were not tested"
