"""The command about bytes: io."""

from __future__ import annotations

import itertools
from contextlib import ExitStack
from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from tracer.cli.kernel import GpuOption, SmCountOption, SmOption, chosen_device
from tracer.cli.options import (
    NoCacheOption,
    OutputOption,
    VerboseOption,
    WindowOption,
    app,
    as_json,
    open_program,
    terminal,
    window_of,
)

if TYPE_CHECKING:
    from tracer.traffic import CheckoutTiles, Shape, Tile


class IoFormat(str, Enum):
    """Formats of byte counts."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"
    SVG = "svg"


@app.command()
def io(
    batch: Annotated[list[int] | None, typer.Option("--batch", metavar="B", help="Sequences; repeat it.")] = None,
    heads: Annotated[list[int] | None, typer.Option("--heads", metavar="H", help="Query heads; repeat it.")] = None,
    heads_k: Annotated[
        list[int] | None, typer.Option("--heads-k", metavar="H", help="Key and value heads; as --heads without it.")
    ] = None,
    seqlen: Annotated[
        list[int] | None, typer.Option("--seqlen", "--seqlen-q", metavar="N", help="Query rows; repeat it for a sweep.")
    ] = None,
    seqlen_k: Annotated[
        list[int] | None, typer.Option("--seqlen-k", metavar="N", help="Key rows; as many as query rows without it.")
    ] = None,
    head_dim: Annotated[
        list[int] | None, typer.Option("--head-dim", metavar="D", help="Repeat it for a sweep.")
    ] = None,
    block_m: Annotated[
        list[int] | None, typer.Option("--block-m", metavar="B_r", help="Rows of a Q tile; repeat it for a sweep.")
    ] = None,
    block_n: Annotated[
        list[int] | None,
        typer.Option("--block-n", metavar="B_c", help="Rows of a K and V tile; as --block-m without it."),
    ] = None,
    num_splits: Annotated[int, typer.Option("--num-splits", min=1, metavar="N", help="Parts of the keys.")] = 1,
    dtype: Annotated[list[str] | None, typer.Option("--dtype", metavar="TYPE", help="fp16, bf16, fp32.")] = None,
    causal: Annotated[bool, typer.Option("--causal/--no-causal", help="With the causal mask.")] = False,
    window: WindowOption = "-1,-1",
    algorithm: Annotated[
        list[str] | None,
        typer.Option("--algorithm", metavar="NAME", help="naive-forward, fa1-forward, fa2-backward, …; repeat it."),
    ] = None,
    convention: Annotated[
        str, typer.Option("--convention", metavar="NAME", help="How to count; see --conventions.")
    ] = "algorithm",
    conventions: Annotated[
        bool, typer.Option("--conventions", help="List the conventions of counting and end.")
    ] = False,
    figure2: Annotated[
        bool, typer.Option("--figure2", help="Figure 2 of the paper by every convention, and end.")
    ] = False,
    checkout: Annotated[
        str | None, typer.Option("--checkout", metavar="CHECKOUT", help="Take the tile from this checkout's dispatch.")
    ] = None,
    gpu: GpuOption = None,
    sm: SmOption = None,
    sm_count: SmCountOption = None,
    l2: Annotated[
        float | None,
        typer.Option("--l2-bytes", min=0, metavar="BYTES", help="Another size of the L2 cache; inf for endless."),
    ] = None,
    sram: Annotated[
        int | None, typer.Option("--sram-bytes", min=1, metavar="BYTES", help="M of the paper's bounds.")
    ] = None,
    measured: Annotated[
        str | None,
        typer.Option("--measured", metavar="FILE", help="Output of ncu --csv, or an .ncu-rep, to compare with."),
    ] = None,
    command: Annotated[
        bool, typer.Option("--ncu-command", help="Print the command that measures the call, and end.")
    ] = False,
    format: Annotated[IoFormat, typer.Option("--format", "-f", help="How to show the answer.")] = IoFormat.TEXT,
    output: OutputOption = "-",
    no_cache: NoCacheOption = False,
    verbose: VerboseOption = False,
) -> None:
    """How many bytes attention moves, naive and flash, on three levels that are never mixed.

    Compulsory bytes (each tensor once), tile traffic (what the kernels request) and, with --gpu, DRAM bytes (what the
    L2 cache lets through). --checkout takes the tile that its code picks for the call.
    """
    from tracer import traffic
    from tracer.dispatch import devices
    from tracer.render import traffic_csv, traffic_json, traffic_plot, traffic_text
    from tracer.render.output import write

    color = terminal()[0] and output == "-"
    if conventions:
        write(output, traffic_text.known_conventions())
        return
    if figure2:
        figures = traffic.figure2()
        as_data = format is IoFormat.JSON
        write(
            output,
            as_json(traffic_json.rows((), (), figures)) if as_data else traffic_text.figure2(figures, color=color),
        )
        return
    shapes = _shapes(batch, heads, heads_k, seqlen, seqlen_k, head_dim, dtype, causal, window_of(window))
    device = chosen_device(gpu, sm, sm_count) if gpu or sm or sm_count or checkout else None
    with ExitStack() as stack:
        tiles: CheckoutTiles | None = None
        if checkout is not None:
            program, _ = stack.enter_context(open_program(checkout, no_cache, verbose))
            assert device is not None
            tiles = stack.enter_context(traffic.CheckoutTiles(program, device))
        if command:
            write(output, _ncu_command(shapes[0], tiles) + "\n")
            return
        found = traffic.rows(
            shapes,
            algorithms=algorithm or traffic.DEFAULT_ALGORITHMS,
            tiles=_tiles(block_m, block_n, num_splits) or (() if tiles or sram else (traffic.Tile(128, 128),)),
            tile_source=tiles,
            convention_name=convention,
            gpu=device,
            l2_bytes=l2,
            on_chip_bytes=sram,
            shared_memory_limit=max(known.shared_memory_per_block_optin for known in devices()),
        )
        compared = traffic.compare(traffic.read_measurements(measured), found[-1]) if measured is not None else ()
    if format is IoFormat.JSON:
        result = as_json(traffic_json.rows(found, compared))
    elif format is IoFormat.CSV:
        result = traffic_csv.rows(found)
    elif format is IoFormat.SVG:
        result = traffic_plot.plot(found)
    elif measured is not None:
        result = traffic_text.comparisons(found[-1], compared, color=color)
    else:
        result = traffic_text.rows(found, color=color)
    write(output, result)


def _shapes(
    batch: list[int] | None, heads: list[int] | None, heads_k: list[int] | None, seqlen: list[int] | None,
    seqlen_k: list[int] | None, head_dim: list[int] | None, dtype: list[str] | None, causal: bool,
    window: tuple[int, int],
) -> list[Shape]:  # fmt: skip
    """Return the calls that the options ask for, in the order of a sweep."""
    from tracer.traffic import Shape as Call

    lengths = [(n, k) for n in seqlen or [4096] for k in (seqlen_k or [n])]
    return [
        Call(n, k, d, b, h, h_k, type_, causal, window)
        for type_, b, h, h_k, d, (n, k) in itertools.product(
            dtype or ["fp16"], batch or [1], heads or [1], heads_k or [0], head_dim or [128], lengths
        )
    ]


def _tiles(block_m: list[int] | None, block_n: list[int] | None, num_splits: int) -> list[Tile]:
    """Return the tiles that the options ask for; none where they leave that open."""
    from tracer.traffic import Tile as OneTile

    if not block_m and not block_n:
        return []
    pairs = [(m, n) for m in block_m or block_n or [] for n in block_n or [m]]
    return [OneTile(m, n, num_splits=num_splits) for m, n in pairs]


def _ncu_command(shape: Shape, tiles: CheckoutTiles | None) -> str:
    """Return the command that measures a call; with a checkout, only the kernels that it launches."""
    from tracer.traffic import ncu_command

    kernels = ["flash_fwd"]
    if tiles is not None:
        kernels = [launch.kernel for launch in tiles.prediction(shape, "fa2-forward").launches]
    return ncu_command(shape, kernels)
