"""What the commands share: the program itself, options that several have, and how a checkout is opened."""

from __future__ import annotations

import os
import re
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


class TableFormat(str, Enum):
    """Formats of a table."""

    TEXT = "text"
    MD = "md"
    JSON = "json"


class Dtype(str, Enum):
    """Element types with kernels of their own."""

    FP16 = "fp16"
    BF16 = "bf16"


WindowOption = Annotated[
    str, typer.Option("--window", metavar="LEFT,RIGHT", help="Sliding window beside the diagonal; -1 for no limit.")
]
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


_UNITS = 2  # of an extension: its host code and its device code


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
def open_program(checkout: str, no_cache: bool, verbose: bool) -> Iterator[tuple[Program, Stages]]:
    """Open a checkout as a program, with its stages shown and timed."""
    from tracer.checkout.cache import note_read, was_read
    from tracer.cpp.process import end_unused, start_early

    if no_cache or not was_read(checkout):
        start_early(_UNITS)
    try:
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
                    if not no_cache:
                        note_read(checkout)
    finally:
        end_unused()


def window_of(text: str) -> tuple[int, int]:
    """Return a sliding window as a person writes it: ``256,0``, ``(256, 0)``, ``256 0``; -1 for no limit."""
    numbers = re.findall(r"-?\d+", text)
    if len(numbers) != 2 or re.sub(r"-?\d+|[\s,()]", "", text):
        raise typer.BadParameter(f"--window '{text}' is no pair LEFT,RIGHT; -1 means no limit, such as 256,0 or -1,-1")
    return int(numbers[0]), int(numbers[1])


def terminal() -> tuple[bool, int]:
    """Return whether to colour standard output, and how wide it is."""
    import shutil

    watched = sys.stdout.isatty()
    color = watched and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return color, shutil.get_terminal_size((120, 24)).columns if watched else 160


def as_json(data: object) -> str:
    """Return data as readable JSON."""
    import json

    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"
