"""A route and a graph whose every name tries to break out of where it is shown."""

from __future__ import annotations

from dataclasses import replace

import networkx
import synthetic as s

from tracer.model import CallSite, Coverage, Diagnostic, Language, Location, Outcome
from tracer.route import Branch, Route, Step

NAMES = (
    "a|b<script>alert(1)</script>",
    'quote"s and \\back\\slash\\',
    "`tick` ``two``",
    "line\nbreak\r\nand\ttab",
    "]]> --> <!-- -->",
    "end",
    "subgraph[x](y){z}",
    "#35; &amp; &lt; %%{init}%%",
    "**bold** _under_ ~~gone~~ $math$",
    "[text](javascript:alert) ![img](x)",
    "emoji 🚀 wide 漢字",
    "right\u202eleft\u200bzero\u0000nul\x1b[31mred",
    "lone\udcffsurrogate",
    "style n0 fill:red; click n0",
    "operator<<(a, b)",
    "'; drop",
    "http://example.org www.example.org",
    "x" * 300,
)


def _route() -> Route:
    definitions = [
        s.definition(name, list(Language)[min(position // 5, 3)], "function", f"dir/{name}.h", position + 1)
        for position, name in enumerate(NAMES)
    ]
    edges = tuple(
        s.edge(source, target, 7, written=target.name, through=Location(target.name, 3))
        for source, target in zip(definitions, definitions[1:], strict=False)
    )
    steps = tuple(Step(item, item.name, role=item.name) for item in definitions)
    steps = (*steps[:-1], replace(steps[-1], alternatives=(s.definition(NAMES[0], Language.CUDA, "kernel", "b.h", 3),)))
    site = Location(NAMES[0], 3)
    unresolved = tuple(
        CallSite(item.id, item.name, item.location, Outcome.UNRESOLVED, (), item.name) for item in definitions
    )
    return Route(
        replace(s.IDENTITY, flavour=NAMES[0], version=NAMES[2]),
        steps,
        edges,
        (Branch(2, (s.definition(NAMES[4], Language.CUDA, "kernel", NAMES[1], 4),), NAMES[0], site),),
        Coverage(len(NAMES), 0, 0, unresolved),
        tuple(Diagnostic(item.location, item.name) for item in definitions),
    )


ROUTE = _route()


def graph() -> networkx.MultiDiGraph[str]:
    made: networkx.MultiDiGraph[str] = networkx.MultiDiGraph()
    for step in ROUTE.steps:
        made.add_node(step.definition.id, definition=step.definition)
    for item in ROUTE.edges:
        made.add_edge(item.source, item.target, edge=item)
    return made
