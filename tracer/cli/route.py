"""The commands about the route: trace, graph, report."""

from __future__ import annotations

import os
from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from tracer.cli.options import (
    CausalOption,
    CheckoutArgument,
    DtypeOption,
    EntryOption,
    HeadDimOption,
    NoCacheOption,
    OutputOption,
    ToOption,
    VerboseOption,
    app,
    as_json,
    open_program,
    terminal,
)

if TYPE_CHECKING:
    from tracer.graph import Program


class TraceFormat(str, Enum):
    """Formats of a route."""

    TEXT = "text"
    MD = "md"
    JSON = "json"
    MERMAID = "mermaid"
    DOT = "dot"
    SVG = "svg"


class GraphFormat(str, Enum):
    """Formats of a call graph."""

    MERMAID = "mermaid"
    DOT = "dot"
    SVG = "svg"
    JSON = "json"


@app.command()
def trace(
    checkout: CheckoutArgument,
    entry: EntryOption = "flash_attn_func",
    to: ToOption = None,
    head_dim: HeadDimOption = None,
    dtype: DtypeOption = None,
    causal: CausalOption = None,
    format: Annotated[TraceFormat, typer.Option("--format", "-f", help="How to show the route.")] = TraceFormat.TEXT,
    output: OutputOption = "-",
    no_cache: NoCacheOption = False,
    verbose: VerboseOption = False,
) -> None:
    """By which steps does a call get from A to B.

    Without --to, the route ends in the kernel that does the work: at its softmax update.
    """
    with open_program(checkout, no_cache, verbose) as (program, stages):
        from tracer.route import Wanted
        from tracer.route import trace as find_route

        with stages.stage("following the call"):
            route = find_route(program, entry, to, Wanted(head_dim, dtype.value if dtype else None, causal))
        with stages.stage("rendering"):
            if format is TraceFormat.TEXT:
                from tracer.render import text

                color, width = terminal()
                folded = any(step.alternatives for step in route.steps)
                hint = "Narrow it: --head-dim 128 --dtype bf16 --causal" if folded else ""
                result = text.route(route, color=color and output == "-", width=width, hint=hint)
            elif format is TraceFormat.MD:
                from tracer.render import markdown

                result = markdown.route(route)
            elif format is TraceFormat.JSON:
                from tracer.render import json_data

                result = as_json(json_data.route(route))
            else:
                from tracer.picture import Prune, draw
                from tracer.report import graph_of_route

                picture = draw(graph_of_route(program, route), route, Prune(hops=0))
                result = _drawn(GraphFormat(format.value), picture, program)
    from tracer.render.output import write

    write(output, result)


@app.command()
def graph(
    checkout: CheckoutArgument,
    entry: EntryOption = "flash_attn_func",
    hops: Annotated[
        int | None,
        typer.Option("--hops", min=0, metavar="N", help="Only the route and what lies within N calls of it."),
    ] = None,
    file: Annotated[
        str, typer.Option("--file", metavar="FILE", help="Only functions of this file, or of files that end so.")
    ] = "",
    whole: Annotated[
        bool, typer.Option("--whole", help="Everything in the checkout, not only what the entry reaches.")
    ] = False,
    format: Annotated[GraphFormat, typer.Option("--format", "-f", help="How to draw it.")] = GraphFormat.MERMAID,
    output: OutputOption = "-",
    no_cache: NoCacheOption = False,
    verbose: VerboseOption = False,
) -> None:
    """The call graph: what an entry reaches, or the whole checkout.

    Mermaid is cut to what its viewers accept, the route first; the drawing says what was left out.
    """
    from tracer.picture import Prune, draw
    from tracer.render.output import write
    from tracer.route import trace as find_route

    with open_program(checkout, no_cache, verbose) as (program, stages):
        with stages.stage("following the call"):
            route = find_route(program, entry)
        with stages.stage("reading the graph"):
            linked = program.graph(None if whole else [route.steps[0].definition.id])
        with stages.stage("drawing"):
            picture = draw(linked, route, Prune(hops, file))
            result = _drawn(format, picture, program)
    write(output, result)


def _drawn(format: GraphFormat, picture: object, program: Program) -> str:
    """Render a picture in one of the graph formats."""
    from tracer.picture import Picture
    from tracer.route import identity

    assert isinstance(picture, Picture)
    if format is GraphFormat.JSON:
        from tracer.render import json_data

        return as_json(json_data.graph(picture, identity(program.checkout)))
    if format is GraphFormat.DOT:
        from tracer.render import dot

        return dot.render(picture)
    if format is GraphFormat.SVG:
        from tracer.render import svg

        return svg.render(picture)
    from tracer.render import mermaid

    return mermaid.render(picture)


@app.command()
def report(
    checkout: CheckoutArgument,
    output: Annotated[str, typer.Option("--output", "-o", metavar="DIR", help="Folder to write; created if need be.")],
    entry: EntryOption = "flash_attn_func",
    no_cache: NoCacheOption = False,
    verbose: VerboseOption = False,
) -> None:
    """The main job: route, call graph and coverage as one Markdown report, with pictures and JSON beside it."""
    from tracer.render.output import check_folder, write_folder
    from tracer.report import make_report

    check_folder(output)
    with open_program(checkout, no_cache, verbose) as (program, stages):
        files = make_report(program, entry, stages.stage)
    write_folder(output, files)
    print(os.path.join(output, "report.md"))
