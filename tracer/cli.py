"""The command line: one function per command, which parses, calls the API and prints."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from tracer import __version__
from tracer.render.progress import Stages

if TYPE_CHECKING:
    from tracer.graph import Program

app = typer.Typer(
    name="flashtracer",
    help="Follow one attention call through a flash-attention checkout, from Python to the CUDA kernel.\n\n"
    "CHECKOUT is a folder, FOLDER@REF (a git tag, branch or commit; the work tree stays untouched) or pypi:VERSION "
    "(the release's source archive, fetched once and kept). Its code is read, never run.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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


class TableFormat(str, Enum):
    """Formats of a table."""

    TEXT = "text"
    MD = "md"
    JSON = "json"


class Device(str, Enum):
    """Where the reference kernel runs."""

    CPU = "cpu"
    CUDA = "cuda"


class Dtype(str, Enum):
    """Element types with kernels of their own."""

    FP16 = "fp16"
    BF16 = "bf16"


CheckoutArgument = Annotated[
    str, typer.Argument(metavar="CHECKOUT", help="A folder, FOLDER@REF or pypi:VERSION.", show_default=False)
]
EntryOption = Annotated[
    str, typer.Option("--entry", metavar="NAME", help="Where the call begins: a Python or C++ function or method.")
]
ToOption = Annotated[
    str | None,
    typer.Option("--to", metavar="NAME", help="Where to end; without it, in the kernel that does the work."),
]
HeadDimOption = Annotated[
    int | None, typer.Option("--head-dim", min=1, metavar="D", help="Only the kernels for this head dimension.")
]
DtypeOption = Annotated[Dtype | None, typer.Option("--dtype", help="Only the kernels for this element type.")]
CausalOption = Annotated[
    bool | None, typer.Option("--causal/--no-causal", help="Only the kernels with, or without, the causal mask.")
]
OutputOption = Annotated[
    str, typer.Option("--output", "-o", metavar="FILE", help="Write to a file instead of standard output.")
]
NoCacheOption = Annotated[bool, typer.Option("--no-cache", help="Neither use nor keep what earlier runs read.")]
VerboseOption = Annotated[
    bool, typer.Option("--verbose", "-v", help="Tell how long each stage took, on standard error.")
]


def _version(asked: bool) -> None:
    if asked:
        print(f"flashtracer {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    """Options of the program itself."""


@contextmanager
def _program(checkout: str, no_cache: bool, verbose: bool) -> Iterator[tuple[Program, Stages]]:
    """Open a checkout as a program, with its stages shown and timed."""
    from tracer.checkout import open_checkout
    from tracer.graph import Program

    with Stages(verbose) as stages:
        with stages.stage("opening the checkout"):
            opened = open_checkout(checkout, cache=not no_cache, progress=stages.say)
        with stages.stage("reading the build description"):
            program = Program(opened, cache=not no_cache)
        try:
            yield program, stages
        finally:
            with stages.stage("keeping what was read"):
                program.close()


def _terminal() -> tuple[bool, int]:
    """Return whether to colour standard output, and how wide it is."""
    import shutil

    watched = sys.stdout.isatty()
    color = watched and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return color, shutil.get_terminal_size((120, 24)).columns if watched else 160


def _json(data: object) -> str:
    import json

    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


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
    from tracer.render.output import write
    from tracer.route import Wanted
    from tracer.route import trace as find_route

    with _program(checkout, no_cache, verbose) as (program, stages):
        with stages.stage("following the call"):
            route = find_route(program, entry, to, Wanted(head_dim, dtype.value if dtype else None, causal))
        with stages.stage("rendering"):
            if format is TraceFormat.TEXT:
                from tracer.render import text

                color, width = _terminal()
                folded = any(step.alternatives for step in route.steps)
                hint = "Narrow it: --head-dim 128 --dtype bf16 --causal" if folded else ""
                result = text.route(route, color=color and output == "-", width=width, hint=hint)
            elif format is TraceFormat.MD:
                from tracer.render import markdown

                result = markdown.route(route)
            elif format is TraceFormat.JSON:
                from tracer.render import json_data

                result = _json(json_data.route(route))
            else:
                from tracer.picture import Prune, draw
                from tracer.report import graph_of_route

                picture = draw(graph_of_route(program, route), route, Prune(hops=0))
                result = _drawn(GraphFormat(format.value), picture, program)
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

    with _program(checkout, no_cache, verbose) as (program, stages):
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

        return _json(json_data.graph(picture, identity(program.checkout)))
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
    from tracer.report import report as make_report

    check_folder(output)
    with _program(checkout, no_cache, verbose) as (program, stages):
        files = make_report(program, entry, stages.stage)
    write_folder(output, files)
    print(os.path.join(output, "report.md"))


@app.command()
def validate(
    full: Annotated[
        bool, typer.Option("--full", help="Every kernel, type, shape and mask, not only a quick set.")
    ] = False,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, metavar="N", help="Seed of the inputs; drawn and printed without it.")
    ] = None,
    device: Annotated[Device, typer.Option("--device", help="Where the kernels run.")] = Device.CPU,
    format: Annotated[TableFormat, typer.Option("--format", "-f", help="How to show the table.")] = TableFormat.TEXT,
    output: OutputOption = "-",
) -> None:
    """The reference kernel's error against float64, with the bound it must keep.

    Exit status 1 if a bound is broken. Needs PyTorch (pip install 'flashtracer[kernel]') and a C++ compiler.
    """
    from refkernel import validate as reference
    from tracer.render.output import write

    with Stages() as stages:
        found = reference.validate(full, seed, device=device.value, on_progress=stages.say)
    renderers = {
        TableFormat.TEXT: reference.render_text,
        TableFormat.MD: reference.render_markdown,
        TableFormat.JSON: reference.to_json,
    }
    write(output, renderers[format](found).rstrip("\n") + "\n")
    if not found.passed:
        raise typer.Exit(1)
