"""What is said about kernels, in words that the screen and the report share."""

from __future__ import annotations

import os.path

from tracer.dispatch import Answer, Decision, Device, Launch, Prediction, Question, TileRow
from tracer.model import Location


def tile(launch: Launch) -> str:
    """Return the tile of a launch, such as ``64 × 256 (kBlockM × kBlockN), 4 warps``; empty where it has none."""
    own = [value for name, value in launch.template_arguments if name.endswith("BlockM")]
    if own:
        return f"{own[0]} rows a block"
    shown = [(name, value) for name, value in launch.traits if name.endswith(("BlockM", "BlockN"))][:2]
    if not shown:
        return ""
    warps = next((value for name, value in launch.traits if name.endswith("NWarps")), 0)
    text = f"{' × '.join(str(value) for _, value in shown)} ({' × '.join(name for name, _ in shown)})"
    return f"{text}, {warps} warps" if warps else text


def head_dim(launch: Launch, prediction: Prediction) -> str:
    """Return the head dimension of the call and of the kernel."""
    kernel = next(((name, value) for name, value in launch.traits if name.endswith("HeadDim")), None)
    query = prediction.call.arguments.get("q")
    asked = getattr(query, "shape", (0,))[-1]
    if kernel is None:
        return str(asked)
    even = "even" if asked == kernel[1] else f"{kernel[1] - asked} columns empty"
    return f"{asked} ({kernel[0]} {kernel[1]}, {even})"


def flags(launch: Launch) -> str:
    """Return the template arguments that are true or false, by the names that the source gives them."""
    return " · ".join(f"{name} {value}" for name, value in launch.template_arguments if value in ("true", "false"))


def extent(launch: Launch) -> str:
    """Return grid, block and shared memory."""
    threads = launch.block[0] * launch.block[1] * launch.block[2]
    memory = (
        f"{launch.shared_memory_bytes:,} bytes of shared memory"
        if launch.shared_memory_bytes
        else "no dynamic shared memory"
    )
    return f"({', '.join(map(str, launch.grid))}), {threads} threads, {memory}"


def headline(prediction: Prediction) -> str:
    """Return what happens, in one line."""
    if prediction.error is not None:
        return f"refused: {prediction.error.message}"
    if not prediction.launches:
        return prediction.note or "no kernel is launched"
    return ", then ".join(launch.kernel for launch in prediction.launches)


def splits(prediction: Prediction) -> str:
    """Return into how many parts the keys are split; empty where the version has no such choice."""
    if prediction.error is not None or prediction.num_splits is None or not prediction.launches:
        return ""
    return f"{prediction.num_splits} splits" if prediction.num_splits > 1 else "no split"


def call(question: Question) -> str:
    """Return a call of the checkout's API that asks for what a question asks for."""
    parts = ["q, k, v"]
    if question.entry.endswith("kvcache"):
        parts = ["q, k_cache, v_cache"] + (["k, v"] if question.new_tokens else [])
    if question.dropout:
        parts.append(f"dropout_p={question.dropout:g}")
    if question.causal:
        parts.append("causal=True")
    if question.window != (-1, -1):
        parts.append(f"window_size={question.window}")
    if question.softcap:
        parts.append(f"softcap={question.softcap:g}")
    if question.alibi:
        parts.append("alibi_slopes=…")
    if question.page_size:
        parts.append("block_table=…")
    if question.num_splits:
        parts.append(f"num_splits={question.num_splits}")
    if question.return_softmax:
        parts.append("return_attn_probs=True")
    lengths = f"{question.seqlen_q}" if question.seqlen_k in (None, question.seqlen_q) else (
        f"{question.seqlen_q} queries and {question.seqlen_k} keys"
    )  # fmt: skip
    return f"{question.entry}({', '.join(parts)}), {question.dtype}, head dim {question.head_dim}, length {lengths}"


def asked(answer: Answer) -> str:
    """Return the question and the GPU."""
    question = answer.question
    heads = f"{question.heads} heads"
    if question.heads_k not in (None, question.heads):
        heads += f" on {question.heads_k}"
    return f"{call(question)}, batch {question.batch}, {heads}, on {gpu(answer.prediction.device)}"


def gpu(device: Device) -> str:
    """Return a GPU with the figures that decide."""
    return f"{device.name} (sm_{device.major}{device.minor}, {device.sm_count} multiprocessors)"


def decision(row: Decision) -> tuple[str, str]:
    """Return a decision and the values that it read."""
    if row.kind == "value":
        name = row.condition.partition("(")[0]
        return f"{name}({', '.join(value for _, value in row.operands)}) = {row.value}", _named(row)
    if row.kind == "check":
        return row.condition, "holds" if row.value == "true" else "fails"
    return f"{row.condition} is {row.value}", _named(row)


def _named(row: Decision) -> str:
    shown = [f"{name} = {value}" for name, value in row.operands if name != value]
    return ", ".join(shown)


def short(location: Location) -> str:
    """Return a place by the file's name and the line."""
    return f"{os.path.basename(location.file)}:{location.line}"


def python_notes(answer: Answer) -> list[str]:
    """Return what Python changed before the call."""
    bound = answer.bound
    if bound is None:
        return []
    notes = [f"through {bound.binding.qualified_name}, called at {bound.location}"]
    query = answer.prediction.call.arguments.get("q")
    padded = getattr(query, "shape", (answer.question.head_dim,))[-1]
    if padded != answer.question.head_dim:
        notes.append(f"Python pads the head dimension from {answer.question.head_dim} to {padded}")
    return notes


def tile_row(row: TileRow) -> tuple[str, ...]:
    """Return a row of the tile table as cells: head dim, dtypes, masks, dropout, GPUs, tile, warps, memory."""
    dims = f"{row.head_dims[1]}" if row.head_dims[0] == row.head_dims[1] else f"{row.head_dims[0]}–{row.head_dims[1]}"
    shown = f"{row.block_m} × {row.block_n}" if row.block_m else row.refusal
    return (
        dims,
        ", ".join(row.dtypes),
        ", ".join(row.masks),
        "yes" if row.dropout else "no",
        ", ".join(row.gpus),
        shown,
        str(row.warps or ""),
        f"{row.shared_memory_bytes:,}" if row.shared_memory_bytes else "",
        short(row.location) if row.location else "",
    )


TILE_HEADINGS = ("head dim", "dtype", "mask", "dropout", "GPU", "tile", "warps", "shared memory", "launched at")
