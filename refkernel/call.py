"""One attention call on torch tensors: the checks, and the kernels behind it, without autograd."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from refkernel.build import BACKWARD_2, CPU, FORWARD_1, FORWARD_2_MMA, Configuration, padded_head_dim
from refkernel.counting import window_limits
from refkernel.errors import InvalidCall, NotSupported
from refkernel.library import DEFAULT_EXECUTION, AttentionShape, Buffer, Execution, load

DTYPES = {torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16"}


@dataclass(frozen=True)
class Options:
    """Everything of a call that is not a large tensor.

    Attributes:
        softmax_scale: factor of the scores.
        causal: hide columns right of the diagonal that ends in the bottom right corner.
        window_size: columns seen left and right of the diagonal, -1 for all.
        softcap: scores become softcap * tanh(score / softcap); 0 for none.
        alibi_slopes: (heads_q) or (batch, heads_q), fp32: a row's scores fall by slope per column off its diagonal.
        cu_seqlens_q: (batch + 1) int32, first row of each sequence; None if all have the same length.
        cu_seqlens_k: the same for keys.
        max_seqlen_q: longest of the sequences; used with cu_seqlens_q.
        max_seqlen_k: the same for keys.
        block_m: B_r, rows of a Q tile; 0 for the kernel's default.
        block_n: B_c, rows of a K/V tile; 0 for the kernel's default.
    """

    softmax_scale: float
    causal: bool = False
    window_size: tuple[int, int] = (-1, -1)
    softcap: float = 0.0
    alibi_slopes: Tensor | None = None
    cu_seqlens_q: Tensor | None = None
    cu_seqlens_k: Tensor | None = None
    max_seqlen_q: int = 0
    max_seqlen_k: int = 0
    block_m: int = 0
    block_n: int = 0


def check_inputs(q: Tensor, k: Tensor, v: Tensor, options: Options) -> None:
    """Refuse tensors that the kernels would misread: they get bare pointers.

    Raises:
        InvalidCall: names the argument and what is wrong with it.
    """
    varlen = options.cu_seqlens_q is not None
    layout = "(total, heads, head dim)" if varlen else "(batch, seqlen, heads, head dim)"
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if tensor.dim() != (3 if varlen else 4):
            raise InvalidCall(f"{name} has shape {tuple(tensor.shape)}; expected {layout}")
        if tensor.dtype not in DTYPES:
            raise InvalidCall(f"{name} is {tensor.dtype}; the kernels take float32, float16 and bfloat16")
        if tensor.dtype != q.dtype:
            raise InvalidCall(f"{name} is {tensor.dtype} and q is {q.dtype}; they must agree")
        if tensor.device != q.device:
            raise InvalidCall(f"{name} is on {tensor.device} and q on {q.device}; they must agree")
        if tensor.device.type not in ("cpu", "cuda", "meta"):
            raise InvalidCall(f"{name} is on {tensor.device}; the kernels run on cpu and cuda")
        if not tensor.is_contiguous():
            raise InvalidCall(f"{name} is not contiguous; pass {name}.contiguous()")
        if tensor.shape[-1] != q.shape[-1]:
            raise InvalidCall(f"{name} has head dim {tensor.shape[-1]} and q has {q.shape[-1]}; they must agree")
    if k.shape != v.shape:
        raise InvalidCall(f"k has shape {tuple(k.shape)} and v {tuple(v.shape)}; they must agree")
    if not varlen and k.shape[0] != q.shape[0]:
        raise InvalidCall(f"k has batch {k.shape[0]} and q {q.shape[0]}; they must agree")
    padded_head_dim(q.shape[-1])
    heads_q, heads_k = q.shape[-2], k.shape[-2]
    if heads_q == 0 or heads_k == 0 or heads_q % heads_k:
        raise InvalidCall(f"q has {heads_q} heads and k {heads_k}; the first must be a multiple of the second")
    if not (options.softmax_scale > 0 and math.isfinite(options.softmax_scale)):
        raise InvalidCall(f"softmax_scale is {options.softmax_scale}; it must be positive and finite")
    if not (options.softcap >= 0 and math.isfinite(options.softcap)):
        raise InvalidCall(f"softcap is {options.softcap}; it must be positive, or 0 for none")
    batch = q.shape[0]
    if options.cu_seqlens_q is not None or options.cu_seqlens_k is not None:
        batch = _check_cu_seqlens(q, k, options)
    slopes = options.alibi_slopes
    if slopes is not None:
        if slopes.shape not in ((heads_q,), (batch, heads_q)):
            shapes = f"({heads_q},) or ({batch}, {heads_q})"
            raise InvalidCall(f"alibi_slopes has shape {tuple(slopes.shape)}; expected {shapes}")
        if slopes.dtype != torch.float32 or slopes.device != q.device:
            raise InvalidCall(f"alibi_slopes is {slopes.dtype} on {slopes.device}; expected float32 on {q.device}")


def _check_cu_seqlens(q: Tensor, k: Tensor, options: Options) -> int:
    lengths = (
        ("cu_seqlens_q", options.cu_seqlens_q, q, options.max_seqlen_q),
        ("cu_seqlens_k", options.cu_seqlens_k, k, options.max_seqlen_k),
    )
    batch = None
    for name, starts, tensor, longest in lengths:
        if starts is None:
            raise InvalidCall(f"{name} is missing; variable lengths need cu_seqlens_q and cu_seqlens_k")
        if starts.dtype != torch.int32 or starts.dim() != 1 or starts.device != q.device or not starts.is_contiguous():
            raise InvalidCall(f"{name} must be a contiguous one-dimensional int32 tensor on {q.device}")
        batch = starts.shape[0] - 1 if batch is None else batch
        if starts.shape[0] != batch + 1 or batch < 0:
            raise InvalidCall(f"{name} has {starts.shape[0]} entries; both cu_seqlens need batch + 1")
        # Values can be looked at only where they are at hand: not on a GPU, not while a compiler traces.
        if starts.device.type == "cpu" and type(starts) is Tensor:
            values = starts.tolist()
            differences = [end - start for start, end in zip(values, values[1:], strict=False)]
            if values[0] != 0 or values[-1] != tensor.shape[0] or min(differences, default=0) < 0:
                raise InvalidCall(f"{name} is {values}; it must rise from 0 to {tensor.shape[0]}, its tensor's rows")
            if max(differences, default=0) > longest:
                raise InvalidCall(f"{name} holds a sequence of {max(differences)} rows; its max_seqlen is {longest}")
    assert batch is not None
    return batch


def default_tiles(kernel: str, head_dim: int) -> tuple[int, int]:
    """Return B_r and B_c that a kernel uses when the caller names none."""
    if kernel == FORWARD_2_MMA:
        # The largest that need no more than 255 registers a thread.
        width = padded_head_dim(head_dim)
        return (128, 64) if width <= 64 else (128, 32) if width <= 128 else (64, 64)
    return (64, 64) if padded_head_dim(head_dim) <= 128 else (32, 32)  # more would not fit into an SM's shared memory


def _shape(q: Tensor, k: Tensor, options: Options) -> AttentionShape:
    left, right = window_limits(options.causal, options.window_size)
    if options.cu_seqlens_q is None:
        batch, seqlen_q, seqlen_k = q.shape[0], q.shape[1], k.shape[1]
        total_q = batch * seqlen_q
    else:
        batch, seqlen_q, seqlen_k = options.cu_seqlens_q.shape[0] - 1, options.max_seqlen_q, options.max_seqlen_k
        total_q = q.shape[0]
    return AttentionShape(
        batch, seqlen_q, seqlen_k, q.shape[-2], k.shape[-2], q.shape[-1], options.softmax_scale, total_q,
        options.cu_seqlens_q is not None, left, right, options.softcap,
    )  # fmt: skip


def _run(kernel: str, tensors: dict[str, Tensor], q: Tensor, k: Tensor, options: Options, execution: Execution) -> None:
    shape = _shape(q, k, options)
    if options.alibi_slopes is not None:
        per_sequence = options.alibi_slopes.expand(shape.batch, shape.heads_q).contiguous()
        tensors = tensors | {"alibi_slopes": per_sequence}
    if options.cu_seqlens_q is not None and options.cu_seqlens_k is not None:
        tensors = tensors | {"cu_seqlens_q": options.cu_seqlens_q, "cu_seqlens_k": options.cu_seqlens_k}
    default_m, default_n = default_tiles(kernel, q.shape[-1])
    configuration = Configuration(
        kernel,
        DTYPES[q.dtype],
        options.block_m or default_m,
        options.block_n or default_n,
        padded_head_dim(q.shape[-1]),
        softcap=options.softcap > 0,
        alibi=options.alibi_slopes is not None,
    )
    buffers = {name: Buffer(tensor.data_ptr(), tensor.numel()) for name, tensor in tensors.items()}
    if q.device.type == CPU:
        load(configuration).run(buffers, shape, execution)
        return
    with torch.cuda.device(q.device):
        major, minor = torch.cuda.get_device_capability(q.device)
        on_gpu = replace(configuration, target=f"sm_{major}{minor}")
        stream = torch.cuda.current_stream(q.device).cuda_stream
        load(on_gpu).run(buffers, shape, replace(execution, stream=stream))


def lse_shape(q: Tensor, options: Options) -> tuple[int, ...]:
    """Return the shape of LSE: (batch, heads, seqlen_q), or (heads, total_q) with cu_seqlens."""
    if options.cu_seqlens_q is not None:
        return (q.shape[1], q.shape[0])
    return (q.shape[0], q.shape[2], q.shape[1])


def forward_into(
    kernel: str, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, options: Options,
    execution: Execution = DEFAULT_EXECUTION,
) -> None:  # fmt: skip
    """Run a forward kernel and store every element of ``out`` and ``lse``.

    Args:
        kernel: one of the forward kernels of ``build.KERNELS``.
        q: (batch, seqlen_q, heads_q, head dim) or (total_q, heads_q, head dim); fp32, fp16 or bf16.
        k: (batch, seqlen_k, heads_k, head dim) or (total_k, heads_k, head dim).
        v: as ``k``.
        out: as ``q``.
        lse: natural log-sum-exp of the scaled scores, fp32, of ``lse_shape``; +inf for a row that sees nothing.
        options: the call.
        execution: how to run it.

    Raises:
        InvalidCall: a tensor or option the kernels would misread.
        NotSupported: the kernel has no fp32 variant, or is not a forward kernel.
        MissingCompiler: nothing to build the kernel with.
        KernelFault: the kernel misbehaved.
    """
    check_inputs(q, k, v, options)
    if kernel == BACKWARD_2:
        raise NotSupported(f"{kernel} is a backward kernel; call a forward kernel and use autograd")
    if kernel == FORWARD_1:
        accumulator = torch.full_like(q, math.nan, dtype=torch.float32)
        l, m = torch.full_like(lse, math.nan), torch.full_like(lse, math.nan)  # noqa: E741
        _run(kernel, {"Q": q, "K": k, "V": v, "O": accumulator, "l": l, "m": m}, q, k, options, execution)
        out.copy_(accumulator)
        lse.copy_(torch.where(l == 0, math.inf, m + l.log()))
        return
    if kernel == FORWARD_2_MMA and (q.shape[-1] % 8 or any(one.data_ptr() % 16 for one in (q, k, v))):
        # The kernel copies eight elements at a time, from addresses that are multiples of their 16 bytes.
        more = (0, -q.shape[-1] % 8)
        q, k, v = (torch.nn.functional.pad(tensor, more).clone() for tensor in (q, k, v))
        wide = torch.full_like(q, math.nan)
        forward_into(kernel, q, k, v, wide, lse, options, execution)
        out.copy_(wide[..., : out.shape[-1]])
        return
    _run(kernel, {"Q": q, "K": k, "V": v, "O": out, "LSE": lse}, q, k, options, execution)


def backward_into(
    dout: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor,
    dq: Tensor, dk: Tensor, dv: Tensor, options: Options, execution: Execution = DEFAULT_EXECUTION,
) -> None:  # fmt: skip
    """Run the backward kernel and store every element of ``dq``, ``dk`` and ``dv``.

    Args:
        dout: gradient of ``out``, same shape and dtype.
        q: as in ``forward_into``, and likewise ``k``, ``v``, ``out`` and ``lse``.
        k: see ``q``.
        v: see ``q``.
        out: what the forward pass returned.
        lse: what the forward pass returned.
        dq: as ``q``.
        dk: as ``k``.
        dv: as ``v``.
        options: the call.
        execution: how to run it.

    Raises:
        InvalidCall: a tensor or option the kernel would misread.
        MissingCompiler: nothing to build the kernel with.
        KernelFault: the kernel misbehaved.
    """
    check_inputs(q, k, v, options)
    dq_sum = torch.zeros_like(q, dtype=torch.float32)
    per_query_head = (*k.shape[:-2], q.shape[-2], k.shape[-1])
    dk_heads, dv_heads = (torch.full(per_query_head, math.nan, dtype=k.dtype, device=k.device) for _ in range(2))
    tensors = {
        "Q": q, "K": k, "V": v, "O": out.contiguous(), "dO": dout.contiguous(), "LSE": lse,
        "D": torch.full_like(lse, math.nan), "dQ": dq_sum, "dK": dk_heads, "dV": dv_heads,
    }  # fmt: skip
    _run(BACKWARD_2, tensors, q, k, options, execution)
    dq.copy_(dq_sum)
    for total, heads in ((dk, dk_heads), (dv, dv_heads)):
        group = q.shape[-2] // k.shape[-2]
        total.copy_(heads.view(*k.shape[:-1], group, k.shape[-1]).float().sum(-2))
