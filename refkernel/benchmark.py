"""Measures how long kernels take, next to PyTorch in the same run. The numbers are returned; ``benchmarks/`` prints."""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from refkernel.build import BACKWARD_2, FORWARD_2, FORWARD_2_MMA

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Workload:
    """One attention call to time.

    Attributes:
        batch: sequences.
        heads: query and key heads.
        seqlen: rows of both.
        head_dim: elements per head.
        dtype: ``fp32``, ``fp16`` or ``bf16``.
        causal: causal mask.
    """

    batch: int
    heads: int
    seqlen: int
    head_dim: int
    dtype: str
    causal: bool

    def operations(self, kernel: str) -> float:
        """Return floating point operations: two products forward, five backward; half of them under a causal mask."""
        products = 5 if kernel == BACKWARD_2 else 2
        return products * 2 * self.batch * self.heads * self.seqlen**2 * self.head_dim * (0.5 if self.causal else 1.0)


@dataclass(frozen=True)
class Timing:
    """How long one implementation takes for one workload.

    Attributes:
        implementation: a kernel's name, or ``sdpa flash``, ``sdpa math``.
        workload: what was run.
        milliseconds: median over the repetitions.
        teraflops: operations per second, in 1e12.
        ratio_to_flash: time of SDPA's flash backend in the same run divided by this time; above 1 is faster than it.
    """

    implementation: str
    workload: Workload
    milliseconds: float
    teraflops: float
    ratio_to_flash: float | None


def draw(workload: Workload, device: str) -> tuple[Tensor, Tensor, Tensor]:
    """Return random q, k, v (batch, seqlen, heads, head dim) for a workload."""
    import torch

    from refkernel.call import DTYPES

    dtype = {name: dtype for dtype, name in DTYPES.items()}[workload.dtype]
    shape = (workload.batch, workload.seqlen, workload.heads, workload.head_dim)
    q, k, v = (torch.randn(shape, device=device).to(dtype) for _ in range(3))
    return q, k, v


def cpu_seconds(workload: Workload, kernel: str, repetitions: int = 5) -> float:
    """Return the shortest wall time of a forward kernel on the CPU, after it was built."""
    from refkernel.ops import flash_attn_func

    q, k, v = draw(workload, "cpu")
    flash_attn_func(q, k, v, causal=workload.causal, kernel=kernel)
    times = []
    for _ in range(repetitions):
        started = time.perf_counter()
        flash_attn_func(q, k, v, causal=workload.causal, kernel=kernel)
        times.append(time.perf_counter() - started)
    return min(times)


def cpu_peer_seconds(workload: Workload, repetitions: int = 5) -> float:
    """Return the shortest wall time of ``scaled_dot_product_attention`` on the CPU."""
    from torch.nn.functional import scaled_dot_product_attention

    q, k, v = (one.transpose(1, 2) for one in draw(workload, "cpu"))
    times = []
    for _ in range(repetitions):
        started = time.perf_counter()
        scaled_dot_product_attention(q, k, v, is_causal=workload.causal)
        times.append(time.perf_counter() - started)
    return min(times)


def gpu_milliseconds(call: Callable[[], object], repetitions: int = 20) -> float:
    """Return the median time of a call on the GPU, measured with CUDA events after three calls to warm up."""
    import torch

    for _ in range(3):
        call()
    times = []
    for _ in range(repetitions):
        started, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        started.record()
        call()
        ended.record()
        torch.cuda.synchronize()
        times.append(float(started.elapsed_time(ended)))
    return statistics.median(times)


def gpu_timings(workload: Workload, kernels: tuple[str, ...]) -> list[Timing]:
    """Time kernels and PyTorch's flash and math backends for one workload, in one run, on the GPU.

    The backward kernel is timed against the backward pass of the flash backend.
    """
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention

    from refkernel.call import Options, backward_into, forward_into, lse_shape

    q, k, v = draw(workload, "cuda")
    options = Options(workload.head_dim**-0.5, workload.causal)
    out = torch.empty_like(q)
    lse = torch.empty(lse_shape(q, options), device="cuda")
    Q, K, V = (one.transpose(1, 2).detach().requires_grad_() for one in (q, k, v))
    milliseconds: dict[str, float] = {}

    def peer() -> Tensor:
        return scaled_dot_product_attention(Q, K, V, is_causal=workload.causal)

    half = workload.dtype != "fp32"
    if half:
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            milliseconds["sdpa flash"] = gpu_milliseconds(peer)
            if BACKWARD_2 in kernels:
                result = peer()
                gradient = torch.randn_like(result)
                milliseconds["sdpa flash backward"] = gpu_milliseconds(
                    lambda: torch.autograd.grad(result, (Q, K, V), gradient, retain_graph=True)
                )
    if workload.seqlen <= 4096:  # the math backend keeps S and P
        with sdpa_kernel(SDPBackend.MATH), torch.no_grad():
            milliseconds["sdpa math"] = gpu_milliseconds(peer)
    for kernel in kernels:
        if kernel == FORWARD_2_MMA and not half:
            continue
        if kernel == BACKWARD_2:
            forward_into(FORWARD_2, q, k, v, out, lse, options)
            dq, dk, dv = (torch.empty_like(q) for _ in range(3))
            milliseconds[kernel] = gpu_milliseconds(
                functools.partial(backward_into, out, q, k, v, out, lse, dq, dk, dv, options)
            )
        else:
            milliseconds[kernel] = gpu_milliseconds(functools.partial(forward_into, kernel, q, k, v, out, lse, options))
    timings = []
    for name, time_taken in milliseconds.items():
        backward = "backward" in name
        flash = milliseconds.get("sdpa flash backward" if backward else "sdpa flash")
        operations = workload.operations(BACKWARD_2 if backward else name)
        timings.append(
            Timing(name, workload, time_taken, operations / time_taken / 1e9, flash / time_taken if flash else None)
        )
    return timings
