"""The reference kernel: FlashAttention in CUDA with the paper's names, for GPU and CPU.

``import refkernel`` needs no torch; ``flash_attn_func`` and ``flash_attn_varlen_func`` do, and bring it in when first
used. ``count_bytes`` counts what a kernel asks of memory and needs only a C++ compiler.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from refkernel.build import BACKWARD_2, FORWARD_1, FORWARD_2, FORWARD_2_MMA, KERNELS
from refkernel.counting import count_bytes
from refkernel.errors import (
    CompileError,
    InvalidCall,
    KernelFault,
    MissingCompiler,
    MissingGpu,
    MissingTorch,
    NotSupported,
    RefkernelError,
)
from refkernel.library import TensorBytes
from refkernel.needs import require_torch

if TYPE_CHECKING:
    from refkernel.ops import flash_attn_func, flash_attn_varlen_func

__all__ = [
    "BACKWARD_2",
    "CompileError",
    "FORWARD_1",
    "FORWARD_2",
    "FORWARD_2_MMA",
    "InvalidCall",
    "KERNELS",
    "KernelFault",
    "MissingCompiler",
    "MissingGpu",
    "MissingTorch",
    "NotSupported",
    "RefkernelError",
    "TensorBytes",
    "count_bytes",
    "flash_attn_func",
    "flash_attn_varlen_func",
]


def __getattr__(name: str) -> Any:
    if name not in ("flash_attn_func", "flash_attn_varlen_func"):
        raise AttributeError(f"module 'refkernel' has no attribute '{name}'")
    require_torch()
    return getattr(importlib.import_module("refkernel.ops"), name)
