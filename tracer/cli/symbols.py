"""The commands about the paper's symbols: symbols, check."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from tracer.cli.options import (
    CheckoutArgument,
    EntryOption,
    NoCacheOption,
    OutputOption,
    TableFormat,
    VerboseOption,
    app,
    as_json,
    open_program,
    terminal,
)


class Pass(str, Enum):
    """Which pass of attention."""

    FORWARD = "forward"
    BACKWARD = "backward"


class Passes(str, Enum):
    """Which passes of attention."""

    FORWARD = "forward"
    BACKWARD = "backward"
    ALL = "all"


@app.command()
def symbols(
    checkout: CheckoutArgument,
    algorithm: Annotated[Pass, typer.Option("--algorithm", help="Whose symbols.")] = Pass.FORWARD,
    entry: EntryOption = "flash_attn_func",
    format: Annotated[TableFormat, typer.Option("--format", "-f", help="How to show the table.")] = TableFormat.TEXT,
    output: OutputOption = "-",
    no_cache: NoCacheOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Which variable holds which symbol of the paper, from which operation on, in which form.

    Found by what is computed, not by what things are called, and set beside the reference kernel's variables.
    """
    with open_program(checkout, no_cache, verbose) as (program, stages), stages.stage("following the values"):
        from tracer.route import begin

        begin(program)  # the parsers work while what follows is imported
        from tracer.symbols import symbol_table

        table = symbol_table(program, algorithm=algorithm.value, entry=entry)
    from tracer.render import symbols_json, symbols_markdown, symbols_text
    from tracer.render.output import write

    if format is TableFormat.JSON:
        result = as_json(symbols_json.symbols(table))
    elif format is TableFormat.MD:
        result = symbols_markdown.symbols(table, program.checkout.permalink)
    else:
        result = symbols_text.symbols(table, width=terminal()[1])
    write(output, result)


@app.command()
def check(
    checkout: CheckoutArgument,
    algorithm: Annotated[Passes, typer.Option("--algorithm", help="What to check.")] = Passes.ALL,
    entry: EntryOption = "flash_attn_func",
    format: Annotated[TableFormat, typer.Option("--format", "-f", help="How to show the answer.")] = TableFormat.TEXT,
    output: OutputOption = "-",
    no_cache: NoCacheOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Do the checkout's kernels and the reference kernel implement the paper's algorithm, step by step.

    Exit status 1, and the missing, extra or swapped step with its place, if not.
    """
    with open_program(checkout, no_cache, verbose) as (program, stages), stages.stage("following the values"):
        from tracer.route import begin

        begin(program)  # the parsers work while what follows is imported
        from tracer.crosscheck import check as cross_check

        answer = cross_check(program, algorithm=algorithm.value, entry=entry)
    from tracer.render import symbols_json, symbols_markdown, symbols_text
    from tracer.render.output import write

    if format is TableFormat.JSON:
        result = as_json(symbols_json.check(answer))
    elif format is TableFormat.MD:
        result = symbols_markdown.check(answer, program.checkout.permalink)
    else:
        result = symbols_text.check(answer, width=terminal()[1])
    write(output, result)
    if not answer.ok:
        raise typer.Exit(1)
