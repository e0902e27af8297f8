"""The Nsight Compute command that measures a call: bytes at DRAM and at L2 of the kernels that the model is about."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from tracer.traffic.shapes import InvalidShape, Shape

#: What is measured: bytes at DRAM both ways and each way, bytes at the L2 cache, and time.
METRICS = (
    "dram__bytes.sum",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "lts__t_bytes.sum",
    "gpu__time_duration.sum",
)

_TORCH_TYPES = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}


def ncu_command(
    shape: Shape,
    kernels: Sequence[str],
    *,
    module: str = "flash_attn",
    entry: str = "flash_attn_func",
    backward: bool = False,
    program: Sequence[str] = (),
) -> str:
    """Return the command line that measures a call, ready for a shell.

    Each kernel runs alone and starts with empty caches (``--cache-control all``), which is what the model's DRAM bytes
    of a launch are about; units are fixed, so that the output reads the same everywhere.

    Args:
        shape: the call.
        kernels: names of the kernels without namespaces and arguments; only they are measured.
        module: Python module that has the entry.
        entry: the function that is called.
        backward: run the backward pass too.
        program: words of a command to profile in place of a call made up from ``shape``.

    Raises:
        InvalidShape: no kernel is named, or sequences differ in length and no program was given.
    """
    if not kernels:
        raise InvalidShape("an ncu command needs the name of a kernel to look at; none is known for this call")
    names = "|".join(re.escape(name) for name in dict.fromkeys(kernels))
    command = [
        "ncu", "--kernel-name-base", "function", "--kernel-name", f"regex:^({names})$", "--metrics", ",".join(METRICS),
        "--cache-control", "all", "--print-units", "base", "--page", "raw", "--csv",
    ]  # fmt: skip
    return shlex.join([*command, *(program or ("python", "-c", _call(shape, module, entry, backward)))])


def _call(shape: Shape, module: str, entry: str, backward: bool) -> str:
    if shape.lengths:
        raise InvalidShape("no call can be made up for sequences of different lengths; give the program to profile")
    options = []
    if shape.causal:
        options.append("causal=True")
    if shape.window != (-1, -1):
        options.append(f"window_size={shape.window}")
    arguments = ", ".join(["q", "k", "v", *options])
    kind = f"dtype=torch.{_TORCH_TYPES[shape.dtype]}, device='cuda'" + (", requires_grad=True" if backward else "")
    lines = [
        "import torch",
        f"from {module} import {entry}",
        f"q = torch.randn({shape.batch}, {shape.seqlen_q}, {shape.heads}, {shape.head_dim}, {kind})",
        f"k = torch.randn({shape.batch}, {shape.seqlen_k}, {shape.heads_k}, {shape.head_dim}, {kind})",
        f"v = torch.randn({shape.batch}, {shape.seqlen_k}, {shape.heads_k}, {shape.head_dim}, {kind})",
        f"out = {entry}({arguments})",
    ]
    if backward:
        lines.append("out.backward(torch.randn_like(out))")
    return "; ".join([*lines, "torch.cuda.synchronize()"])
