"""How byte counts are put into words and columns: what the text, CSV and plot of ``flashtracer io`` share."""

from __future__ import annotations

from tracer.traffic import IoRow, Shape, Tile

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")


def amount(count: float | None) -> str:
    """Return a number of bytes with a decimal unit and four digits: ``541.1 MB``; ``–`` for None."""
    if count is None:
        return "–"
    value, unit = float(count), 0
    while value >= 999.95 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    if unit == 0:
        return f"{count:.0f} B"
    return f"{value:.{3 if value < 9.9995 else 2 if value < 99.995 else 1}f} {_UNITS[unit]}"


def ratio(value: float | None) -> str:
    """Return a ratio with about three digits; ``–`` for None."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def tile(of: Tile | None) -> str:
    """Return ``B_r × B_c``, with the number of splits where there are several; ``–`` for no tile."""
    if of is None:
        return "–"
    return f"{of.block_m} × {of.block_n}" + (f", {of.num_splits} splits" if of.num_splits > 1 else "")


def call(row: IoRow) -> str:
    """Return the call in one line: ``batch 1, 16 heads, N 8,192, d 64, fp16, causal``."""
    shape = row.shape
    if shape.lengths:
        length = f"{len(shape.lengths)} lengths up to {shape.seqlen_q:,} × {shape.seqlen_k:,}"
    elif shape.seqlen_q == shape.seqlen_k:
        length = f"N {shape.seqlen_q:,}"
    else:
        length = f"{shape.seqlen_q:,} × {shape.seqlen_k:,} rows"
    masked = mask(shape)
    parts = [f"batch {shape.batch}", f"{heads(shape)} heads", length, f"d {shape.head_dim}", shape.dtype]
    return ", ".join([*parts, masked] if masked else parts)


def heads(shape: Shape) -> str:
    """Return the number of query heads, with that of key heads where it is another: ``32 on 8``."""
    return str(shape.heads) + (f" on {shape.heads_k}" if shape.heads_k != shape.heads else "")


def mask(shape: Shape) -> str:
    """Return what is masked, in words; empty for nothing."""
    parts = [f"window {shape.window[0]}, {shape.window[1]}"] if shape.window != (-1, -1) else []
    return ", ".join(parts + (["causal"] if shape.causal else []))


def gpu(row: IoRow) -> str:
    """Return what is known of the GPU: ``H100, 52.43 MB L2, 3.35 TB/s``."""
    parts = [row.gpu, f"{amount(row.l2_bytes)} L2" if row.l2_bytes is not None else "L2 size not known"]
    if row.bandwidth_bytes_per_second:
        parts.append(f"{amount(row.bandwidth_bytes_per_second)}/s")
    return ", ".join(parts)


def alike(rows: tuple[IoRow, ...]) -> bool:
    """Tell whether all rows are about one call."""
    return len({row.shape for row in rows}) == 1


def partners(rows: tuple[IoRow, ...]) -> dict[int, IoRow]:
    """Return for each position of a tiled row the naive row of the same call and direction, where there is one."""
    found = {}
    for position, row in enumerate(rows):
        if row.tile is None:
            continue
        backward = row.algorithm.endswith("backward")
        for other in rows:
            if other.tile is None and other.shape == row.shape and other.algorithm.endswith("backward") == backward:
                found[position] = other
                break
    return found
