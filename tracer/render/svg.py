"""A picture as SVG: laid out by Graphviz, then made to stand alone, in light and in dark viewers."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from tracer.errors import MissingTool, TracerError
from tracer.picture import Picture, limited
from tracer.render import dot
from tracer.render.escape import visible
from tracer.render.style import (
    DARK_BOX,
    DARK_FADED,
    DARK_PAPER,
    DARK_ROUTE,
    DARK_SMALL_TEXT,
    DARK_TEXT,
    LANGUAGE,
    PAPER,
    SMALL_TEXT,
    TEXT,
)

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

LAYOUT_SECONDS = 30.0
# More than that no eye can follow, and the layout takes minutes.
BOXES, ARROWS = 400, 800
# The first is Graphviz itself, the second a wheel that brings the same program to where there is none.
PROGRAMS = ("dot", "graphviz-pure")
_CODE_FONT = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace"
_TITLE_FONT = "system-ui,Helvetica,Arial,'DejaVu Sans',sans-serif"
_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"


def render(picture: Picture, programs: tuple[str, ...] = PROGRAMS, seconds: float = LAYOUT_SECONDS) -> str:
    """Return a picture as one SVG document that needs nothing beside it.

    Args:
        picture: what to draw; of a very large one, the most important part is drawn and the picture says so.
        programs: layout programs to look for, the first one found is used. Two programs place boxes differently;
            naming one makes the output the same everywhere.
        seconds: how long the layout may take.

    Raises:
        MissingTool: none of the programs is installed.
        TracerError: the program failed, or did not end in time.
    """
    program = find_program(programs)
    picture = limited(picture, BOXES, ARROWS)
    return _finished(_laid_out(program, dot.render(picture), seconds), picture)


def find_program(programs: tuple[str, ...] = PROGRAMS) -> str:
    """Return the path of the first layout program that is installed.

    Raises:
        MissingTool: there is none.
    """
    import shutil
    import sysconfig

    for name in programs:
        # A program that a wheel brings lies beside the interpreter, which need not be on PATH.
        path = shutil.which(name) or shutil.which(name, path=sysconfig.get_path("scripts"))
        if path:
            return path
    names = " or ".join(f"'{name}'" for name in programs)
    raise MissingTool(f"no SVG: looked for {names} on PATH, found neither; install Graphviz, or use --format mermaid")


def _laid_out(program: str, source: str, seconds: float) -> str:
    import subprocess

    name = os.path.basename(program)
    try:
        done = subprocess.run([program, "-Tsvg"], input=source.encode(), capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired as error:
        raise TracerError(
            f"no SVG: '{name}' did not finish within {seconds:g} s; draw less, for example with --hops 1"
        ) from error
    except OSError as error:
        raise MissingTool(f"no SVG: '{program}' cannot be started: {error.strerror}") from error
    if done.returncode != 0 or b"</svg>" not in done.stdout:
        words = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise TracerError(f"no SVG: '{name}' failed: {visible(words[-1]) if words else f'exit {done.returncode}'}")
    return done.stdout.decode("utf-8", "replace")


def _finished(text: str, picture: Picture) -> str:
    """Take the layout and leave out what belongs to the layout program: comments, names of its own, fonts, links."""
    from xml.etree import ElementTree

    ElementTree.register_namespace("", _SVG)
    root = ElementTree.fromstring(re.sub(r"<!DOCTYPE[^>]*>", "", text, count=1))
    _unlink(root)
    _clean(root)
    _raise_names(root)
    title, described = ElementTree.Element(f"{{{_SVG}}}title"), ElementTree.Element(f"{{{_SVG}}}desc")
    title.text = visible(picture.title)
    described.text = visible(picture.cut) or "Call graph; the route is drawn as a thick line."
    style = ElementTree.Element(f"{{{_SVG}}}style")
    style.text = _style()
    root.set("role", "img")
    for position, element in enumerate((title, described, style)):
        root.insert(position, element)
    ElementTree.indent(root, " ", 0)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _unlink(group: Element) -> None:
    """Put what Graphviz wraps in a link, to carry a tooltip, back in its place, and the tooltip into the title."""
    hint = ""
    children: list[Element] = []
    for child in group:
        anchor = child.find(f"{{{_SVG}}}a") if child.get("id", "").startswith("a_") else None
        if anchor is None:
            _unlink(child)
            children.append(child)
        else:
            hint = anchor.get(f"{{{_XLINK}}}title", hint)
            children += anchor
    for child in children:
        if child.tag == f"{{{_SVG}}}title":
            child.text = hint
    group[:] = [child for child in children if hint or child.tag != f"{{{_SVG}}}title"]


def _clean(root: Element) -> None:
    for name in ("width", "height"):
        root.set(name, root.get(name, "").removesuffix("pt"))
    for element in root.iter():
        element.attrib.pop("id", None)
        element.attrib.pop("{http://www.w3.org/XML/1998/namespace}space", None)
        if element.tag == f"{{{_SVG}}}text":
            _clean_text(element)
        elif element.get("class") == "graph":
            for paper in element.findall(f"{{{_SVG}}}polygon"):
                paper.set("class", "paper")
                paper.set("stroke", "none")
        elif element.get("class", "").startswith("node"):
            _centre(element)


def _centre(box: Element) -> None:
    """Centre the lines of a box in it; the layout put their beginnings where one font would have them."""
    outline = box.find(f"{{{_SVG}}}path")
    if outline is None:
        return
    across = [float(number) for number in re.findall(r"-?[\d.]+", outline.get("d", ""))[::2]]
    for text in box.findall(f"{{{_SVG}}}text"):
        text.set("x", f"{(min(across) + max(across)) / 2:.2f}")
        text.set("text-anchor", "middle")
        # The layout sets lines of two sizes so close that an underscore touches the line below.
        shift = 1.5 if text.get("fill") == SMALL_TEXT else -1.0
        text.set("y", f"{float(text.get('y', '0')) + shift:.2f}")


def _raise_names(root: Element) -> None:
    """Move the names of languages and files above the arrows that would strike them out."""
    graph = root.find(f"{{{_SVG}}}g")
    if graph is None:
        return
    for cluster in [group for group in graph if "cluster" in group.get("class", "")]:
        named = cluster.makeelement(cluster.tag, {"class": cluster.get("class", "")})
        named[:] = cluster.findall(f"{{{_SVG}}}text")
        for text in named:
            cluster.remove(text)
        graph.append(named)


def _clean_text(element: Element) -> None:
    """Leave the font to the style sheet."""
    element.set("font-size", f"{float(element.get('font-size', '10')):g}")
    classes = []
    if dot.TITLE_FONT in element.attrib.pop("font-family", ""):
        classes.append("name")
    if element.get("fill") == SMALL_TEXT:
        classes.append("small")
    if classes:
        element.set("class", " ".join(classes))


def _style() -> str:
    light = [
        f"svg{{background:{PAPER};color:{TEXT}}}text{{font-family:{_CODE_FONT}}}.name{{font-family:{_TITLE_FONT}}}",
        ".cluster text{paint-order:stroke;stroke-width:3px;stroke-linejoin:round;stroke-opacity:.85}",
    ]
    dark = [
        f".paper{{fill:{DARK_PAPER}}}",
        f"text{{fill:{DARK_TEXT}}}.small,.cluster text{{fill:{DARK_SMALL_TEXT}}}",
        f".node path,.node polygon{{fill:{DARK_BOX}}}",
        f".edge path,.edge polygon{{stroke:{DARK_FADED}}}.edge polygon{{fill:{DARK_FADED}}}",
        f".route path,.route polygon,.branch path,.branch polygon{{stroke:{DARK_ROUTE}}}",
        f".edge.route polygon,.edge.branch polygon,.edge.route text,.edge.branch text{{fill:{DARK_ROUTE}}}",
    ]
    for tint in LANGUAGE.values():
        light.append(f".language.{tint.name} text{{stroke:{tint.wash}}}.file.{tint.name} text{{stroke:{tint.fill}}}")
        dark.append(f".language.{tint.name} path{{fill:{tint.dark_wash};stroke:{tint.dark_border}}}")
        dark.append(f".language.{tint.name} text{{fill:{tint.dark_border};stroke:{tint.dark_wash}}}")
        dark.append(f".file.{tint.name} text{{stroke:{tint.dark_fill}}}")
        dark.append(f".file.{tint.name} path{{fill:{tint.dark_fill};stroke:{tint.dark_border};stroke-opacity:.4}}")
    return f"{''.join(light)}@media (prefers-color-scheme:dark){{svg{{background:{DARK_PAPER}}}{''.join(dark)}}}"
