"""The command about the reference kernel: validate."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from tracer.cli.options import OutputOption, TableFormat, app
from tracer.render.progress import Stages


class Device(str, Enum):
    """Where the reference kernel runs."""

    CPU = "cpu"
    CUDA = "cuda"


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
