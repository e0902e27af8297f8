"""A picture as Graphviz DOT: boxes in clusters by language and file, the route as one thick line."""

from __future__ import annotations

import os.path

from tracer.model import Confidence
from tracer.picture import Arrow, Node, Picture
from tracer.render.escape import shortened, visible, xml
from tracer.render.style import CLUSTER_TEXT, FADED, LANGUAGE, LINE, PAPER, ROUTE, SMALL_TEXT, TEXT
from tracer.render.wording import LANGUAGE_NAMES

_LABEL = 44
_EDGE_LABEL = 34
_FONT = "Helvetica,Arial,sans-serif"


def render(picture: Picture) -> str:
    """Return a picture as a DOT file, ready for ``dot -Tsvg``."""
    numbers = {node.id: f"n{position}" for position, node in enumerate(picture.nodes)}
    lines = [
        "digraph flashtracer {",
        f"  graph [rankdir=TB, newrank=true, compound=true, nodesep=0.22, ranksep=0.38, splines=true, "
        f"fontname={quoted(_FONT)}, fontsize=11, bgcolor={quoted(PAPER)}, pad=0.25, tooltip=" + quoted(picture.title) + "]",
        f"  node [shape=box, style={quoted('filled,rounded')}, fontname={quoted(_FONT)}, fontsize=11, "
        f"margin={quoted('0.10,0.05')}, height=0.3, color={quoted(LINE)}, fontcolor={quoted(TEXT)}]",
        f"  edge [fontname={quoted(_FONT)}, fontsize=9, color={quoted(FADED)}, fontcolor={quoted(SMALL_TEXT)}, "
        "arrowsize=0.6]",
    ]
    if picture.cut:
        lines.append(f"  label={quoted(visible(picture.cut))}; labelloc=b; fontcolor={quoted(SMALL_TEXT)}")
    for position, (language, files) in enumerate(picture.clusters.items()):
        lines.append(f"  subgraph cluster_{position} {{")
        lines.append(
            f"    label={quoted(LANGUAGE_NAMES[language])}; labeljust=l; fontsize=14; "
            f"style={quoted('rounded,filled')}; class={quoted('language ' + LANGUAGE[language].name)}; "
            f"color={quoted(LANGUAGE[language].border)}; fillcolor={quoted(LANGUAGE[language].wash)}; "
            f"fontcolor={quoted(LANGUAGE[language].border)}"
        )
        for number, (file, nodes) in enumerate(files.items()):
            lines.append(f"    subgraph cluster_{position}_{number} {{")
            lines.append(
                f"      label={quoted(shortened(visible(_file_label(file)), 60))}; fontsize=10; "
                f"class=file; tooltip={quoted(visible(file))}; style={quoted('rounded,filled')}; "
                f"color={quoted(LANGUAGE[language].line)}; "
                f"fillcolor={quoted(LANGUAGE[language].fill)}; fontcolor={quoted(CLUSTER_TEXT)}"
            )
            lines += [f"      {numbers[node.id]} [{_node(node)}]" for node in nodes]
            lines.append("    }")
        lines.append("  }")
    lines += [f"  {numbers[edge.source]} -> {numbers[edge.target]} [{_edge(edge)}]" for edge in picture.edges]
    lines.append("}")
    return "\n".join(lines) + "\n"


def quoted(text: str) -> str:
    """Return text as a DOT string; line breaks in it stay line breaks."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _node(node: Node) -> str:
    number = f"{node.step}  " if node.on_route else ""
    label = shortened(visible(node.label), _LABEL)
    place = visible(node.sublabel)
    count = f" ×{node.count}" if node.count > 1 else ""
    html = (
        f"<B>{number}{xml(label)}{count}</B>" if node.on_route else f"{xml(label)}{count}"
    )
    html += f'<BR/><FONT POINT-SIZE="8.5" COLOR="{SMALL_TEXT}">{xml(place)}</FONT>'
    attributes = [f"label=<{html}>", f"tooltip={quoted(node.tooltip)}"]
    if node.on_route:
        attributes.append(f"class=route, penwidth=2.4, color={quoted(ROUTE)}, fillcolor={quoted(PAPER)}")
    elif node.on_branch:
        attributes.append(f"class=branch, style={quoted('filled,rounded,dashed')}, color={quoted(ROUTE)}, penwidth=1.4")
        attributes.append(f"fillcolor={quoted(PAPER)}")
    else:
        attributes.append(f"class=other, penwidth=0.8, fillcolor={quoted(PAPER)}")
    return ", ".join(attributes)


def _edge(edge: Arrow) -> str:
    attributes = [f"tooltip={quoted(edge.tooltip)}"]
    if edge.label:
        attributes.append(f"label={quoted(' ' + shortened(visible(edge.label), _EDGE_LABEL))}")
    style = {Confidence.EXACT: "solid", Confidence.INFERRED: "dashed", Confidence.AMBIGUOUS: "dotted"}[edge.confidence]
    if edge.on_route:
        attributes.append(f"class=route, penwidth=3, color={quoted(ROUTE)}, weight=40, fontcolor={quoted(ROUTE)}")
        attributes.append("arrowsize=0.9")
    elif edge.on_branch:
        style = "dashed"
        attributes.append(f"class=branch, penwidth=1.6, color={quoted(ROUTE)}, weight=4, fontcolor={quoted(ROUTE)}")
    else:
        attributes.append("class=other, penwidth=0.9")
    if style != "solid":
        attributes.append(f"style={style}")
    return ", ".join(attributes)


def _file_label(file: str) -> str:
    """Return the file with its last folder: enough to tell two files of one name apart."""
    folder, name = os.path.split(file)
    return f"{os.path.basename(folder)}/{name}" if folder else name
