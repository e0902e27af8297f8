"""Answers of the dispatch room as plain data, in the shapes of ``tracer/schemas/kernel*`` and ``decode``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracer.dispatch import (
    Answer,
    DecodedName,
    Device,
    KernelTime,
    Launch,
    Prediction,
    Question,
    Tensor,
    TileTable,
    Unsupported,
)
from tracer.model import Location

Data = dict[str, Any]

KERNEL = "flashtracer/kernel/1"
KERNEL_TABLE = "flashtracer/kernel-table/1"
DECODE = "flashtracer/decode/1"
UNSUPPORTED = "flashtracer/kernel-unsupported/1"


def answer(answer: Answer) -> Data:
    """Return the answer to one question as ``flashtracer/kernel/1``."""
    bound = answer.bound
    return {
        **prediction(answer.prediction),
        "question": _question(answer.question),
        "python": None
        if bound is None
        else {
            "binding": bound.binding.qualified_name,
            "called_at": _location(bound.location),
            "route": [{"name": name, "called_at": _location(place)} for name, place in bound.route],
        },
    }


def prediction(prediction: Prediction) -> Data:
    """Return a prediction as ``flashtracer/kernel/1``, without a question in a person's words."""
    error = prediction.error
    return {
        "schema": KERNEL,
        "call": {
            "entry": prediction.call.entry,
            "arguments": {name: _argument(value) for name, value in prediction.call.arguments.items()},
            "device": _device(prediction.device),
        },
        "question": None,
        "python": None,
        "error": None if error is None else {"message": error.message, "location": _location(error.location)},
        "num_splits": prediction.num_splits,
        "launches": [_launch(launch) for launch in prediction.launches],
        "operators": [
            {"name": row.name, "location": _location(row.location), "launches_before": row.launches_before}
            for row in prediction.operators
        ],
        "decisions": [
            {
                "kind": row.kind,
                "condition": row.condition,
                "value": row.value,
                "operands": dict(row.operands),
                "function": row.function,
                "location": _location(row.location),
                "matters": row.matters,
            }
            for row in prediction.decisions
        ],
        "note": prediction.note,
        "warnings": [{"message": row.message, "location": _location(row.location)} for row in prediction.warnings],
    }


def unsupported(error: Unsupported) -> Data:
    """Return how far a call could be followed as ``flashtracer/kernel-unsupported/1``."""
    return {
        "schema": UNSUPPORTED,
        "construct": error.construct,
        "location": None if error.location is None else _location(error.location),
        "reached": [
            {
                "function": row.function,
                "template_arguments": dict(row.template_arguments),
                "values": dict(row.values),
                "location": _location(row.location),
            }
            for row in error.reached
        ],
    }


def _launch(launch: Launch) -> Data:
    return {
        "kernel": launch.kernel,
        "name": launch.name,
        "symbol": launch.symbol,
        "template_arguments": dict(launch.template_arguments),
        "traits": dict(launch.traits),
        "grid": list(launch.grid),
        "block": list(launch.block),
        "shared_memory_bytes": launch.shared_memory_bytes,
        "location": _location(launch.location),
        "defined_at": _location(launch.defined_at),
    }


def table(tiles: TileTable) -> Data:
    """Return the table of all specializations as ``flashtracer/kernel-table/1``."""
    return {
        "schema": KERNEL_TABLE,
        "rows": [
            {
                "form": row.form,
                "head_dims": list(row.head_dims),
                "dtypes": list(row.dtypes),
                "masks": list(row.masks),
                "dropout": row.dropout,
                "gpus": list(row.gpus),
                "kernel": row.kernel or None,
                "head_dim": row.head_dim,
                "block_m": row.block_m,
                "block_n": row.block_n,
                "warps": row.warps,
                "threads": row.threads,
                "shared_memory_bytes": row.shared_memory_bytes,
                "location": None if row.location is None else _location(row.location),
                "refusal": row.refusal,
            }
            for row in tiles.rows
        ],
        "missing": [{"form": form, "reason": reason} for form, reason in tiles.missing],
        "drift_checked": None if tiles.drift_checked is None else _location(tiles.drift_checked),
        "drift": [
            {
                "head_dim": row.head_dim,
                "causal": row.causal,
                "dropout": row.dropout,
                "gpu": row.gpu,
                "python": list(row.python),
                "cpp": list(row.cpp),
                "python_location": _location(row.python_location),
                "cpp_location": _location(row.cpp_location),
            }
            for row in tiles.drift
        ],
    }


def decoded(rows: Sequence[tuple[KernelTime, DecodedName | None]]) -> Data:
    """Return decoded names as ``flashtracer/decode/1``; a kernel that is none of the checkout's has only its name."""
    return {
        "schema": DECODE,
        "kernels": [
            {
                "name": kernel.name,
                "count": kernel.count,
                "nanoseconds": kernel.nanoseconds,
                "decoded": None if name is None else _decoded(name),
            }
            for kernel, name in rows
        ],
    }


def _decoded(name: DecodedName) -> Data:
    example = name.example
    return {
        "demangled": name.demangled,
        "namespace": name.namespace,
        "kernel": name.kernel,
        "template_arguments": [{"name": key, "value": value} for key, value in name.arguments],
        "traits": dict(name.traits),
        "element": name.element,
        "location": None if name.location is None else _location(name.location),
        "problem": name.problem,
        "fits": list(name.fits),
        "example": None
        if example is None
        else {
            "question": _question(example.question),
            "device": _device(example.device),
            "launched_at": _location(example.launched_at),
        },
    }


def _question(question: Question) -> Data:
    return {
        "entry": question.entry, "dtype": question.dtype, "batch": question.batch, "heads": question.heads,
        "heads_k": question.heads_k, "seqlen_q": question.seqlen_q, "seqlen_k": question.seqlen_k,
        "head_dim": question.head_dim, "causal": question.causal, "window": list(question.window),
        "dropout": question.dropout, "softcap": question.softcap, "alibi": question.alibi,
        "return_softmax": question.return_softmax, "page_size": question.page_size, "new_tokens": question.new_tokens,
        "rotary_dim": question.rotary_dim, "num_splits": question.num_splits, "deterministic": question.deterministic,
    }  # fmt: skip


def _device(device: Device) -> Data:
    return {
        "name": device.name, "major": device.major, "minor": device.minor, "sm_count": device.sm_count,
        "shared_memory_per_sm": device.shared_memory_per_sm,
        "shared_memory_per_block_optin": device.shared_memory_per_block_optin, "l2_bytes": device.l2_bytes,
        "bandwidth_bytes_per_second": device.bandwidth_bytes_per_second, "sources": list(device.sources),
    }  # fmt: skip


def _argument(value: object) -> object:
    if isinstance(value, Tensor):
        stride = None if value.stride is None else list(value.stride)
        return {"shape": list(value.shape), "stride": stride, "dtype": value.dtype, "device": value.device}
    return value


def _location(location: Location) -> Data:
    return {
        "file": location.file, "line": location.line, "column": location.column,
        "end_line": max(location.end_line, location.line),
    }  # fmt: skip
