"""A picture as Mermaid, within what the viewers on code hosting sites draw."""

from __future__ import annotations

import os.path
import re

from tracer.model import Confidence
from tracer.picture import Arrow, Node, Picture, limited
from tracer.render.escape import shortened, visible
from tracer.render.style import FADED, LANGUAGE, PAPER, ROUTE, TEXT
from tracer.render.wording import LANGUAGE_NAMES

# Mermaid refuses a chart that reaches either limit, and shows an error in its place.
EDGES = 500
CHARACTERS = 50_000
# An underscore inside a word begins no emphasis; everywhere else it may.
_UNSAFE = re.compile(r"[\"#&<>`*\\~;%{}|]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_UNSAFE_BESIDE_STYLE = re.compile(rf"{_UNSAFE.pattern}|:")
_LABEL = 46
_EDGE_LABEL = 34


def render(picture: Picture, edges: int = EDGES, characters: int = CHARACTERS) -> str:
    """Return a picture as a Mermaid flowchart.

    Args:
        picture: what to draw; where it is too large, its most important part is drawn and the chart says so.
        edges: the chart has fewer edges than that.
        characters: the chart has fewer characters than that.
    """
    whole = limited(picture, len(picture.nodes), edges - 1)
    text = _chart(whole)
    if len(text) < characters:
        return text
    fits, too_many = 0, len(picture.nodes)
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if len(_chart(limited(picture, middle, edges - 1))) < characters:
            fits = middle
        else:
            too_many = middle
    return _chart(limited(picture, fits, edges - 1))


def _chart(picture: Picture) -> str:
    numbers = {node.id: f"n{position}" for position, node in enumerate(picture.nodes)}
    lines = ['%%{init: {"flowchart": {"wrappingWidth": 480}}}%%', "flowchart TB"]
    if picture.cut:
        lines.append(f"  cut[{quoted(picture.cut)}]:::cut")
    for language, files in picture.clusters.items():
        tint = LANGUAGE[language]
        lines.append(f"  subgraph {tint.name}[{quoted(LANGUAGE_NAMES[language])}]")
        for position, (file, nodes) in enumerate(files.items()):
            lines.append(f"    subgraph {tint.name}{position}[{quoted(_file(file))}]")
            lines += [f"      {numbers[node.id]}({_label(node)})" for node in nodes]
            lines.append("    end")
        lines.append("  end")
    lines += [f"  {numbers[edge.source]} {_arrow(edge)} {numbers[edge.target]}" for edge in picture.edges]
    lines += _styles(picture, numbers)
    return "\n".join(lines) + "\n"


def quoted(text: str) -> str:
    """Return text as a Mermaid label that shows exactly this text.

    In quotes a label may hold brackets and the word ``end``. What it may not hold, or would read as a character code,
    as HTML or as Markdown, is written as a character code.
    """
    return f'"{_coded(visible(text))}"'


def _coded(text: str) -> str:
    unsafe = _UNSAFE
    if "style" in text or "classDef" in text:
        # Mermaid takes a semicolon away from what looks like a style statement, even inside a label.
        unsafe = _UNSAFE_BESIDE_STYLE
    return unsafe.sub(lambda match: f"#{ord(match.group())};", text)


def _label(node: Node) -> str:
    number = f"{node.step} " if node.on_route else ""
    count = f" ×{node.count}" if node.count > 1 else ""
    name = _coded(shortened(visible(node.label), _LABEL))
    place = node.sublabel
    if len({member.location.file for member in node.members}) == 1:
        place = f"line {place.rpartition(':')[2]}"
    small = _coded(visible(place))
    if node.condition:
        small += f"<br/>if {_coded(shortened(visible(node.condition), _LABEL))}"
    return f'"{number}{name}{count}<br/><small>{small}</small>"'


def _file(file: str) -> str:
    folder, name = os.path.split(file)
    return f"{os.path.basename(folder)}/{name}" if folder else name


def _arrow(edge: Arrow) -> str:
    line = "==>" if edge.on_route else "-.->" if edge.on_branch or edge.confidence is not Confidence.EXACT else "-->"
    if not edge.label:
        return line
    return f"{line}|{quoted(shortened(visible(edge.label), _EDGE_LABEL))}|"


def _styles(picture: Picture, numbers: dict[str, str]) -> list[str]:
    """Name colours for text and ground together, so that the boxes read on a light page and on a dark one."""
    lines = [
        f"  classDef route fill:{PAPER},stroke:{ROUTE},stroke-width:3px,color:{TEXT}",
        f"  classDef branch fill:{PAPER},stroke:{ROUTE},stroke-width:1.5px,stroke-dasharray:4 3,color:{TEXT}",
        f"  classDef other fill:{PAPER},stroke:{FADED},color:{TEXT}",
        f"  classDef cut fill:none,stroke:none,color:{FADED}",
    ]
    kinds = {
        "route": [numbers[node.id] for node in picture.nodes if node.on_route],
        "branch": [numbers[node.id] for node in picture.nodes if node.on_branch],
        "other": [numbers[node.id] for node in picture.nodes if not node.on_route and not node.on_branch],
    }
    lines += [f"  class {','.join(names)} {kind}" for kind, names in kinds.items() if names]
    for language, files in picture.clusters.items():
        tint = LANGUAGE[language]
        lines.append(f"  style {tint.name} fill:{tint.wash},stroke:{tint.border},color:{tint.border}")
        for position in range(len(files)):
            lines.append(f"  style {tint.name}{position} fill:{tint.fill},stroke:{tint.line},color:{TEXT}")
    for width, chosen in (
        ("3px", [position for position, edge in enumerate(picture.edges) if edge.on_route]),
        ("1.5px", [position for position, edge in enumerate(picture.edges) if edge.on_branch and not edge.on_route]),
    ):
        if chosen:
            lines.append(f"  linkStyle {','.join(map(str, chosen))} stroke:{ROUTE},stroke-width:{width}")
    return lines
