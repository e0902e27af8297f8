"""The whole report, from the answers of the rooms below: Markdown with pictures and JSON beside it."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from tracer import __version__
from tracer.errors import TracerError
from tracer.graph import Program
from tracer.picture import Prune, draw
from tracer.render import dot, json_data, markdown, mermaid, svg
from tracer.render.escape import Markdown
from tracer.route import DEFAULT_ENTRY, Route, identity, trace

if TYPE_CHECKING:
    import networkx

    from tracer.crosscheck import CrossCheck


_MEANINGS = {
    "symbols-forward.json": "the symbols of the forward as data",
    "symbols-backward.json": "the symbols of the backward as data",
    "check.json": "the agreement, step by step, as data",
    "values.mmd": "the value flow of the forward as a Mermaid chart",
}
_TYPICAL_GPU = "A100"
# Sizes of a call (query rows, key rows, head dim, batch, heads, key heads) and whether it is causal: the paper's
# Figure 2, a long prompt, and one token against a long cache with grouped heads.
_TYPICAL_CALLS = (
    ((1024, 1024, 64, 64, 16, 16), False),
    ((16384, 16384, 128, 1, 32, 32), True),
    ((1, 16384, 128, 16, 32, 8), False),
)


def graph_of_route(program: Program, route: Route) -> networkx.MultiDiGraph[str]:
    """Return the part of the call graph that a route, its alternatives and its branches lie in."""
    import networkx

    graph: networkx.MultiDiGraph[str] = networkx.MultiDiGraph()
    definitions = [definition for step in route.steps for definition in (step.definition, *step.alternatives)]
    definitions += [definition for branch in route.branches for definition in branch.definitions]
    for definition in definitions:
        graph.add_node(definition.id, definition=definition)
    for id in list(graph):
        for edge in program.edges(id):
            if edge.target in graph:
                graph.add_edge(id, edge.target, edge=edge)
    return graph


def make_report(
    program: Program,
    entry: str = DEFAULT_ENTRY,
    stage: Callable[[str], AbstractContextManager[None]] = lambda _: nullcontext(),
    programs: tuple[str, ...] = svg.PROGRAMS,
) -> dict[str, str]:
    """Return the files of a report: name to content; ``report.md`` is the one to read.

    Args:
        program: the checkout.
        entry: where the call begins.
        stage: called with the name of each stage, to show or time it.
        programs: layout programs for the pictures, the first one found is used.

    Raises:
        NameNotFound: no function has the entry's name.
        NoRoute: no attention kernel is reached from it.
    """
    with stage("following the call"):
        route = trace(program, entry)
    with stage("reading the graph"):
        linked = program.graph([route.steps[0].definition.id])
    with stage("drawing"):
        near = draw(linked, route, Prune(hops=0))
        whole = draw(linked, route)
        chart = mermaid.render(near)
        files = {
            "route.svg": svg.render(near, programs),
            "route.mmd": chart,
            "graph.dot": dot.render(whole),
            "graph.svg": svg.render(draw(linked, route, Prune(hops=1)), programs),
            "graph.json": _json(json_data.graph(whole, route.checkout)),
            "route.json": _json(json_data.route(route)),
        }
    with stage("following the values"):
        answers, more_files = _symbols(program, entry)
        files.update(more_files)
    with stage("interpreting the host code"):
        answers.update(_tiles(program, route))
        answers.update(_bytes(program, entry))
    with stage("writing the report"):
        text = markdown.report(
            route,
            picture="route.svg",
            mermaid=chart,
            files={
                "route.svg": "the picture of the route",
                "route.mmd": "the same as a Mermaid chart",
                "graph.svg": "the route and what it calls",
                "graph.dot": "everything that the entry reaches, for Graphviz",
                "graph.json": "the same as data",
                "route.json": "the route as data",
                **{name: meaning for name, meaning in _MEANINGS.items() if name in files},
            },
            made={
                "program": f"flashtracer {__version__}",
                "command": f"flashtracer report {program.checkout.spec} -o DIR"
                + (f" --entry {entry}" if entry != DEFAULT_ENTRY else ""),
            },
            **answers,
        )
    return {"report.md": text, **files}


def _symbols(program: Program, entry: str) -> tuple[dict[str, object], dict[str, str]]:
    """Return the sections on symbols and on agreement, and their files; a sentence where the kernel is not followed."""
    from tracer.crosscheck import BACKWARD, FORWARD, analyse
    from tracer.dataflow.reference import Reference
    from tracer.render import symbols_json, symbols_markdown, symbols_mermaid
    from tracer.symbols import table_of

    about = identity(program.checkout)
    link = program.checkout.permalink
    reference = Reference()
    try:
        analyses = analyse(program, algorithm="all", entry=entry, reference=reference, forms=True)
        answer = analyses.answer(program)
        if answer.matched * 2 < answer.steps:
            # So little in common is no difference to report: it is a kernel that this analysis cannot follow.
            found_steps = f"{answer.matched} of {answer.steps} steps of the listing were recognised"
            return {
                "check": f"Not told: only {found_steps}, so the kernel is written in a form that is not followed."
            }, {}
        tables = {}
        for wanted in (FORWARD, BACKWARD):
            found = [a for a, check in zip(analyses.functions, answer.checks, strict=True) if check.role == wanted]
            if found:
                tables[wanted] = table_of(about, found[0])
    except TracerError as error:
        return {"check": f"Not told: {error}."}, {}
    finally:
        reference.close()
    sections: dict[str, object] = {
        "symbols": [
            (name.capitalize(), Markdown(symbols_markdown.symbols(table, link).rstrip()))
            for name, table in tables.items()
        ],
        "agreement": _agreement(answer),
        "check": Markdown(symbols_markdown.check(answer, link).rstrip()),
    }
    files = {f"symbols-{name}.json": _json(symbols_json.symbols(table)) for name, table in tables.items()}
    files["check.json"] = _json(symbols_json.check(answer))
    if FORWARD in tables:
        files["values.mmd"] = symbols_mermaid.flow(tables[FORWARD])
        sections["value_flow"] = Markdown(files["values.mmd"].strip())
    return sections, files


def _agreement(answer: CrossCheck) -> str:
    """Return the cross-check's verdict as a sentence."""
    verb = "agrees" if answer.ok else "differs"
    return (
        f"The kernels' computation {verb} with the paper's: {answer.matched} of {answer.steps} steps in "
        f"{len(answer.checks)} kernel functions."
    )


def _tiles(program: Program, route: Route) -> dict[str, object]:
    """Return the section on tiles, or a sentence where this checkout's host code cannot be followed."""
    from tracer.dispatch import Unsupported, all_specializations
    from tracer.render import kernel_markdown

    try:
        table = all_specializations(program, dtypes=("fp16",), forms=("forward",))
    except (TracerError, Unsupported) as error:
        return {"tiles": f"Not told: {error}."}
    base = route.checkout.permalink
    shown = kernel_markdown.tiles(table, place=lambda location: markdown.place(location, base))
    return {"tiles": Markdown(shown.rstrip())}


def _bytes(program: Program, entry: str) -> dict[str, object]:
    """Return the section on bytes for three typical calls; nothing where no tile can be told for them."""
    from tracer import traffic
    from tracer.dispatch import Unsupported, device
    from tracer.render import traffic_markdown

    gpu = device(_TYPICAL_GPU)
    calls = [traffic.Shape(*sizes, causal=causal) for sizes, causal in _TYPICAL_CALLS]
    try:
        with traffic.CheckoutTiles(program, gpu, entry=entry) as tiles:
            rows = traffic.rows(calls, tile_source=tiles, gpu=gpu)
    except (TracerError, Unsupported):
        return {}
    return {"bytes": traffic_markdown.rows(rows), "bytes_gpu": gpu.name}


def _json(data: object) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"
