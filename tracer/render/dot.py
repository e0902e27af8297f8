"""A picture as Graphviz DOT: one band per language, a box per file in it, the route as one thick line downwards."""

from __future__ import annotations

import math
import os.path
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tracer.model import Confidence, Language
from tracer.picture import LANGUAGE_ORDER, Arrow, Node, Picture
from tracer.render.escape import cells, shortened, visible, xml
from tracer.render.style import CLUSTER_TEXT, FADED, LANGUAGE, LINE, PAPER, ROUTE, SMALL_TEXT, TEXT
from tracer.render.wording import LANGUAGE_NAMES

# The letters of every monospaced font are about equally wide, so text fits its box in whatever font a viewer has. In
# these sizes that width is a whole number of pixels, to which some layout programs round it.
SIZE, SMALL_SIZE = 10, 8.75
ADVANCE = 0.6
CODE_FONT = "Courier"
TITLE_FONT = "Helvetica"
_LABEL = 46
_EDGE_LABEL = 34
_CONDITION = 44
_FILE_LABEL = 60
_ROW = 4
_STYLES = {Confidence.EXACT: "solid", Confidence.INFERRED: "dashed", Confidence.AMBIGUOUS: "dotted"}


def render(picture: Picture) -> str:
    """Return a picture as a DOT file, ready for ``dot -Tsvg``."""
    numbers = {node.id: f"n{position}" for position, node in enumerate(picture.nodes)}
    clusters = picture.clusters
    lines = ["digraph flashtracer {", *_defaults(picture)]
    for position, (language, files) in enumerate(clusters.items()):
        lines.append(f"  subgraph cluster_{position} {{")
        lines.append(f"    {_language(language)}")
        for number, (file, nodes) in enumerate(files.items()):
            lines.append(f"    subgraph cluster_{position}_{number} {{")
            lines.append(f"      {_file(file, language)}")
            lines += [f"      {numbers[node.id]} [{_node(node)}]" for node in nodes]
            lines.append("    }")
        lines.append("  }")
    order = {node.id: LANGUAGE_ORDER[node.language] for node in picture.nodes}
    for edge in picture.edges:
        upward = ", constraint=false" if order[edge.source] > order[edge.target] else ""
        lines.append(f"  {numbers[edge.source]} -> {numbers[edge.target]} [{_edge(edge)}{upward}]")
    lines += _bands(picture, numbers)
    lines += _columns(picture, numbers)
    if picture.cut:
        lines.append(f"  label={quoted(visible(picture.cut))}; labelloc=b; fontcolor={quoted(SMALL_TEXT)}")
    lines.append("}")
    return "\n".join(lines) + "\n"


def quoted(text: str) -> str:
    """Return text as a DOT string that shows exactly this text; line breaks in it stay line breaks."""
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    # Graphviz reads entities in every string.
    return f'"{text.replace("&", "&amp;")}"'


def _defaults(picture: Picture) -> list[str]:
    font = f"fontname={quoted(CODE_FONT)}"
    return [
        f"  graph [newrank=true, nodesep=0.2, ranksep=0.3, {font}, fontsize={SMALL_SIZE}, bgcolor={quoted(PAPER)}, "
        f"pad=0.25, tooltip={quoted(visible(picture.title))}]",
        f"  node [shape=box, style={quoted('filled,rounded')}, {font}, fontsize={SIZE}, margin={quoted('0.11,0.05')}, "
        f"height=0.3, color={quoted(LINE)}, fillcolor={quoted(PAPER)}, fontcolor={quoted(TEXT)}]",
        f"  edge [{font}, fontsize={SMALL_SIZE}, color={quoted(FADED)}, fontcolor={quoted(SMALL_TEXT)}, arrowsize=0.6]",
    ]


def _language(language: Language) -> str:
    tint = LANGUAGE[language]
    return (
        f"label={quoted(LANGUAGE_NAMES[language])}; labeljust=l; fontsize=14; fontname={quoted(TITLE_FONT)}; "
        f"style={quoted('rounded,filled')}; "
        f"class={quoted('language ' + tint.name)}; color={quoted(tint.border)}; fillcolor={quoted(tint.wash)}; "
        f"fontcolor={quoted(tint.border)}; tooltip={quoted(LANGUAGE_NAMES[language])}"
    )


def _file(file: str, language: Language) -> str:
    tint = LANGUAGE[language]
    folder, name = os.path.split(file)
    label = f"{os.path.basename(folder)}/{name}" if folder else name
    return (
        f"label={quoted(shortened(visible(label), _FILE_LABEL))}; fontsize={SMALL_SIZE}; fontname={quoted(CODE_FONT)}; "
        f"class={quoted('file ' + tint.name)}; "
        f"tooltip={quoted(visible(file))}; color={quoted(tint.line)}; fillcolor={quoted(tint.fill)}; "
        f"fontcolor={quoted(CLUSTER_TEXT)}"
    )


def _node(node: Node) -> str:
    label = shortened(visible(node.label), _LABEL)
    if node.count > 1:
        label += f" ×{node.count}"
    if node.on_route:
        label = f"{node.step} {label}"
    place = _place(node)
    condition = f"if {shortened(visible(node.condition), _CONDITION)}" if node.condition else ""
    width = max(cells(label) * SIZE, max(cells(place), cells(condition)) * SMALL_SIZE) * ADVANCE / 72 + 0.24
    small = "<BR/>".join(xml(line) for line in (place, condition) if line)
    name = f"<B>{xml(label)}</B>" if node.on_route else xml(label)
    attributes = [
        f'label=<{name}<BR/><FONT POINT-SIZE="{SMALL_SIZE}" COLOR="{SMALL_TEXT}">{small}</FONT>>',
        f"width={width:.2f}",
        f"tooltip={quoted(tooltip(node.tooltip))}",
    ]
    if node.on_route:
        attributes += ["class=route", "group=route", "penwidth=2.4", f"color={quoted(ROUTE)}"]
    elif node.on_branch:
        attributes += ["class=branch", "penwidth=1.4", f"color={quoted(ROUTE)}"]
        attributes.append(f"style={quoted('filled,rounded,dashed')}")
    else:
        attributes += ["class=other", "penwidth=0.8"]
    return ", ".join(attributes)


def _place(node: Node) -> str:
    """The line alone where the box stands in its file's frame, which names the file."""
    if len({member.location.file for member in node.members}) > 1:
        return visible(node.sublabel)
    return f"line {visible(node.sublabel).rpartition(':')[2]}"


def _edge(edge: Arrow) -> str:
    attributes = [f"tooltip={quoted(tooltip(edge.tooltip))}"]
    if edge.label:
        attributes.append(f"label={quoted('  ' + shortened(visible(edge.label), _EDGE_LABEL))}")
    style = _STYLES[edge.confidence]
    if edge.on_route:
        attributes += ["class=route", "penwidth=3", "arrowsize=0.9", "weight=40"]
    elif edge.on_branch:
        style = "dashed"
        attributes += ["class=branch", "penwidth=1.6", "weight=4"]
    else:
        attributes += ["class=other", "penwidth=0.9"]
    if edge.on_route or edge.on_branch:
        attributes += [f"color={quoted(ROUTE)}", f"fontcolor={quoted(ROUTE)}"]
    if style != "solid":
        attributes.append(f"style={style}")
    return ", ".join(attributes)


def tooltip(text: str) -> str:
    """Return a tooltip whose lines are visible text, its own line breaks kept."""
    return "\n".join(visible(line) for line in text.split("\n"))


def _bands(picture: Picture, numbers: Mapping[str, str]) -> Iterator[str]:
    """Keep each language below the one before it, so that the route leads downwards through all of them.

    A point between two bands stands below what ends the upper band and above what begins the lower one.
    """
    order = {node.id: LANGUAGE_ORDER[node.language] for node in picture.nodes}
    present = sorted(set(order.values()))
    for upper, lower in zip(present, present[1:], strict=False):
        inside = [edge for edge in picture.edges if order[edge.source] == order[edge.target]]
        calling = {edge.source for edge in inside}
        called = {edge.target for edge in inside}
        point = f"band_{lower}"
        yield f"  {point} [shape=point, style=invis, width=0, height=0, label={quoted('')}]"
        for node in picture.nodes:
            if order[node.id] == upper and (node.id not in calling or node.on_route):
                yield f"  {numbers[node.id]} -> {point} [style=invis, weight=0]"
            if order[node.id] == lower and (node.id not in called or node.on_route):
                yield f"  {point} -> {numbers[node.id]} [style=invis, weight=0]"


def _columns(picture: Picture, numbers: Mapping[str, str]) -> Iterator[str]:
    """Set many leaves of one file in rows of a few instead of one row as wide as a wall."""
    calling = {edge.source for edge in picture.edges}
    called = {edge.target for edge in picture.edges}
    for files in picture.clusters.values():
        for nodes in files.values():
            leaves = [node for node in nodes if node.id not in calling and not node.on_route]
            for group in ([node for node in leaves if node.id in called], [n for n in leaves if n.id not in called]):
                yield from _rows(group, numbers)


def _rows(leaves: Sequence[Node], numbers: Mapping[str, str]) -> Iterable[str]:
    if len(leaves) <= _ROW:
        return
    columns = max(_ROW, math.ceil(math.sqrt(len(leaves))))
    for upper, lower in zip(leaves, leaves[columns:], strict=False):
        yield f"  {numbers[upper.id]} -> {numbers[lower.id]} [style=invis, weight=8]"
