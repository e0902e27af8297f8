"""The commands about one call's kernel: kernel, decode."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracer.cli.options import (
    CheckoutArgument,
    EntryOption,
    NoCacheOption,
    OutputOption,
    TableFormat,
    VerboseOption,
    WindowOption,
    app,
    as_json,
    open_program,
    terminal,
    window_of,
)
from tracer.errors import TracerError

if TYPE_CHECKING:
    from tracer.dispatch import DecodedName, Device, Dispatcher, Unsupported
    from tracer.graph import Program


class DecodeFormat(str, Enum):
    """Formats of explained kernel names."""

    TEXT = "text"
    JSON = "json"


GpuOption = Annotated[
    str | None, typer.Option("--gpu", metavar="NAME", help="The GPU: A100, H100, L4, RTX 4090, ….", show_default=False)
]
SmOption = Annotated[
    str | None, typer.Option("--sm", metavar="CC", help="Instead of --gpu: a compute capability, such as 86.")
]
SmCountOption = Annotated[
    int | None, typer.Option("--sm-count", min=1, metavar="N", help="With --sm: streaming multiprocessors.")
]
DefineOption = Annotated[
    list[str] | None,
    typer.Option(
        "--define", "-D", metavar="MACRO", help="A macro of another build, such as FLASHATTENTION_DISABLE_ALIBI."
    ),
]


def chosen_device(gpu: str | None, capability: str | None, sm_count: int | None) -> Device:
    """Return the GPU that the options name."""
    from tracer.dispatch import custom_device, device

    if capability is not None:
        if sm_count is None:
            raise typer.BadParameter("--sm needs --sm-count, the number of streaming multiprocessors")
        return custom_device(capability, sm_count)
    if sm_count is not None:
        raise typer.BadParameter("--sm-count goes with --sm")
    return device(gpu or "A100")


@app.command()
def kernel(
    checkout: CheckoutArgument,
    entry: EntryOption = "flash_attn_func",
    gpu: GpuOption = None,
    sm: SmOption = None,
    sm_count: SmCountOption = None,
    dtype: Annotated[str, typer.Option("--dtype", metavar="TYPE", help="fp16, bf16, ….")] = "fp16",
    batch: Annotated[int, typer.Option("--batch", metavar="B")] = 1,
    heads: Annotated[int, typer.Option("--heads", metavar="H", help="Query heads.")] = 8,
    heads_k: Annotated[
        int | None, typer.Option("--heads-k", metavar="H", help="Key and value heads; as many as --heads without it.")
    ] = None,
    seqlen_q: Annotated[int, typer.Option("--seqlen-q", "--seqlen", metavar="M", help="Query rows.")] = 1024,
    seqlen_k: Annotated[
        int | None, typer.Option("--seqlen-k", metavar="N", help="Key rows; as many as query rows without it.")
    ] = None,
    head_dim: Annotated[int, typer.Option("--head-dim", metavar="D")] = 128,
    causal: Annotated[bool, typer.Option("--causal/--no-causal", help="With the causal mask.")] = False,
    window: WindowOption = "-1,-1",
    dropout: Annotated[
        float, typer.Option("--dropout", metavar="P", help="Probability that an element is dropped.")
    ] = 0.0,
    softcap: Annotated[float, typer.Option("--softcap", metavar="X")] = 0.0,
    alibi: Annotated[bool, typer.Option("--alibi", help="With ALiBi slopes.")] = False,
    return_softmax: Annotated[bool, typer.Option("--return-softmax", help="Ask for the probabilities.")] = False,
    page_size: Annotated[int, typer.Option("--page-size", metavar="N", help="Keys and values in pages of N rows.")] = 0,
    new_tokens: Annotated[int, typer.Option("--new-tokens", metavar="N", help="Rows appended to a KV cache.")] = 0,
    rotary_dim: Annotated[int, typer.Option("--rotary-dim", metavar="D", help="Rotary embedding with a KV cache.")] = 0,
    num_splits: Annotated[int, typer.Option("--num-splits", metavar="N", help="0 leaves it to the heuristic.")] = 0,
    deterministic: Annotated[bool, typer.Option("--deterministic", help="The deterministic backward.")] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Every decision on the way, not only those that matter.")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Instead of one call: every specialization with its tile.")
    ] = False,
    calls: Annotated[
        str | None,
        typer.Option(
            "--calls", metavar="FILE", help="Instead of one call: calls as JSON, one a line; - for standard input."
        ),
    ] = None,
    define: DefineOption = None,
    format: Annotated[TableFormat, typer.Option("--format", "-f", help="How to show the answer.")] = TableFormat.TEXT,
    output: OutputOption = "-",
    no_cache: NoCacheOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Which kernel does this call run: specialization, tile, grid, shared memory, and what decided it.

    The checkout's own host code is interpreted for the call; nothing of it is compiled or run. Without --gpu the GPU is
    an A100. --calls prints one JSON answer a line. Exit status 1 if the checkout refuses the call.
    """
    defines = tuple(define or ())
    refused = False
    color, width = terminal()
    color = color and output == "-"
    with open_program(checkout, no_cache, verbose) as (program, stages):
        extension = program.extension_for(entry)
        if extension is not None and not defines:
            program.source(extension)  # parses while the modules for the question are imported
        from tracer.dispatch import Dispatcher, Question, Unsupported, all_specializations, answer_calls, ask
        from tracer.render import kernel_json, kernel_markdown, kernel_text
        from tracer.render.output import write

        if calls is not None:
            with stages.stage("answering the calls"):
                answers = answer_calls(program, _lines(calls), defines=defines, cache=not no_cache)
                result = "".join(json.dumps(answer) + "\n" for answer in answers)
        elif everything:
            with stages.stage("interpreting the host code for every kind of call"):
                tiles = all_specializations(program, defines=defines)
            if format is TableFormat.JSON:
                result = as_json(kernel_json.table(tiles))
            elif format is TableFormat.MD:
                result = kernel_markdown.tiles(tiles)
            else:
                result = kernel_text.table(tiles, color=color, width=width)
        else:
            question = Question(
                entry, dtype, batch, heads, heads_k, seqlen_q, seqlen_k, head_dim, causal, window_of(window), dropout,
                softcap, alibi, return_softmax, page_size, new_tokens, rotary_dim, num_splits, deterministic,
            )  # fmt: skip
            device = chosen_device(gpu, sm, sm_count)
            dispatcher = Dispatcher(program, extension, defines=defines, cache=not no_cache)
            try:
                with stages.stage("interpreting the host code"):
                    answer = ask(dispatcher, question, device, explain=True, outcomes=True)
            except Unsupported as unknown:
                # How far the call got is worth showing; the error line and the status come from the caller.
                as_data = format is TableFormat.JSON
                write(output, as_json(kernel_json.unsupported(unknown)) if as_data else _reached(unknown, width))
                raise
            finally:
                dispatcher.close()
            refused = answer.prediction.error is not None
            if format is TableFormat.JSON:
                result = as_json(kernel_json.answer(answer))
            elif format is TableFormat.MD:
                result = kernel_markdown.answer(answer, explain=explain)
            else:
                result = kernel_text.answer(answer, color=color, width=width, explain=explain)
                if len(answer.outcomes) > 1:
                    result += "\n" + kernel_text.outcomes(answer.outcomes, width=width)
    write(output, result)
    if refused:
        raise typer.Exit(1)


def _reached(unknown: Unsupported, width: int) -> str:
    """Return how far a call could be followed; nothing where it stopped at once."""
    from tracer.render import kernel_text

    return kernel_text.unsupported(unknown, width=width) if unknown.reached else ""


def _lines(file: str) -> list[str]:
    """Return the lines of a file, or of standard input for ``-``."""
    if file == "-":
        return sys.stdin.read().splitlines()
    try:
        return Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise TracerError(
            f"cannot read '{file}': {getattr(error, 'strerror', None) or error}; name a text file"
        ) from None


@app.command()
def decode(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME…]", help="Kernel names, mangled or not; - or none for standard input."),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile", metavar="FILE", help="A torch profiler trace, or an Nsight Systems or Compute export."
        ),
    ] = None,
    checkout: Annotated[
        str, typer.Option("--checkout", metavar="CHECKOUT", help="The checkout that explains the names.")
    ] = "pypi:latest",
    format: Annotated[DecodeFormat, typer.Option("--format", "-f", help="How to show the answer.")] = DecodeFormat.TEXT,
    output: OutputOption = "-",
    no_cache: NoCacheOption = False,
    verbose: VerboseOption = False,
) -> None:
    """A kernel name out of a profiler, explained argument by argument.

    A name that fits no kernel of the checkout is dated by the releases that earlier runs fetched.
    """
    from tracer.dispatch import Decoder, Dispatcher, KernelNameError, KernelTime, kernels_in_text, read_profile
    from tracer.render import kernel_json, kernel_text
    from tracer.render.output import write

    if profile is not None and names:
        raise typer.BadParameter("give names or --profile, not both")
    kernels: tuple[KernelTime, ...]
    if profile is not None:
        kernels = read_profile(Path(profile))
    elif names and names != ["-"]:
        kernels = tuple(KernelTime(name, 1, 0) for name in names)
    else:
        kernels = kernels_in_text(sys.stdin.read())
    if not kernels:
        raise TracerError(
            "no kernel name to explain; give names, --profile FILE, or names on standard input, one a line"
        )
    color, width = terminal()
    with open_program(checkout, no_cache, verbose) as (program, stages), stages.stage("explaining the names"):
        opened: list[Program] = []
        decoder = Decoder(Dispatcher(program), lambda: _kept_releases(program, opened), examples=profile is None)
        rows: list[tuple[KernelTime, DecodedName | None]] = []
        single = len(kernels) == 1 and profile is None
        for one in kernels:
            try:
                rows.append((one, decoder.decode(one.name)))
            except KernelNameError:
                if single:
                    raise
                rows.append((one, None))  # a kernel of somebody else's
        for other in opened:
            other.close()
    if format is DecodeFormat.JSON:
        result = as_json(kernel_json.decoded(rows))
    elif profile is None and all(name is not None for _, name in rows):
        result = kernel_text.decoded([name for _, name in rows if name], color=color and output == "-", width=width)
    else:
        result = kernel_text.profile(rows, color=color and output == "-", width=width)
    write(output, result)


def _kept_releases(program: Program, opened: list[Program]) -> Iterator[tuple[str, Dispatcher]]:
    """Yield (version, dispatcher) of the releases that earlier runs fetched, but for the one in hand."""
    from tracer.checkout import open_checkout
    from tracer.checkout.release import kept_releases
    from tracer.dispatch import Dispatcher
    from tracer.graph import Program as OpenedProgram

    for version in kept_releases():
        if version == program.checkout.version:
            continue
        other = OpenedProgram(open_checkout(f"pypi:{version}"))
        opened.append(other)
        if other.attention_extension() is not None:
            yield version, Dispatcher(other)
