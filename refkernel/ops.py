"""flash_attn_func and flash_attn_varlen_func as ``torch.library`` custom operators with autograd.

Built at first use; see ``build``. The argument names are those of the flash_attn package, so that a call can be moved
between the two.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor

from refkernel.build import FORWARD_2
from refkernel.call import Options, backward_into, check_inputs, forward_into, lse_shape
from refkernel.errors import NotSupported
from refkernel.library import Execution


def _options(
    softmax_scale: float, window_left: int, window_right: int, softcap: float, alibi_slopes: Tensor | None,
    cu_seqlens_q: Tensor | None, cu_seqlens_k: Tensor | None, max_seqlen_q: int, max_seqlen_k: int,
    block_m: int = 0, block_n: int = 0,
) -> Options:  # fmt: skip
    return Options(
        softmax_scale, False, (window_left, window_right), softcap, alibi_slopes, cu_seqlens_q, cu_seqlens_k,
        max_seqlen_q, max_seqlen_k, block_m, block_n,
    )  # fmt: skip


@torch.library.custom_op("refkernel::attention_forward", mutates_args=())
def attention_forward(
    q: Tensor, k: Tensor, v: Tensor, cu_seqlens_q: Tensor | None, cu_seqlens_k: Tensor | None,
    alibi_slopes: Tensor | None, max_seqlen_q: int, max_seqlen_k: int, softmax_scale: float, window_left: int,
    window_right: int, softcap: float, kernel: str, block_m: int, block_n: int, deterministic: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Operator behind both public functions: returns O and LSE. A causal mask arrives as ``window_right`` = 0."""
    options = _options(
        softmax_scale, window_left, window_right, softcap, alibi_slopes, cu_seqlens_q, cu_seqlens_k, max_seqlen_q,
        max_seqlen_k, block_m, block_n,
    )  # fmt: skip
    out = torch.empty_like(q)
    lse = q.new_empty(lse_shape(q, options), dtype=torch.float32)
    forward_into(kernel, q, k, v, out, lse, options)
    return out, lse


@attention_forward.register_fake
def _attention_forward_fake(
    q: Tensor, k: Tensor, v: Tensor, cu_seqlens_q: Tensor | None, *unused: Any
) -> tuple[Tensor, Tensor]:
    options = Options(softmax_scale=1.0, cu_seqlens_q=cu_seqlens_q)
    return torch.empty_like(q), q.new_empty(lse_shape(q, options), dtype=torch.float32)


@torch.library.custom_op("refkernel::attention_backward", mutates_args=())
def attention_backward(
    dout: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, cu_seqlens_q: Tensor | None,
    cu_seqlens_k: Tensor | None, alibi_slopes: Tensor | None, max_seqlen_q: int, max_seqlen_k: int,
    softmax_scale: float, window_left: int, window_right: int, softcap: float, deterministic: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Operator behind autograd: returns dQ, dK and dV."""
    options = _options(
        softmax_scale, window_left, window_right, softcap, alibi_slopes, cu_seqlens_q, cu_seqlens_k, max_seqlen_q,
        max_seqlen_k,
    )  # fmt: skip
    dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
    execution = Execution(os_threads=1 if deterministic else 0)
    backward_into(dout, q, k, v, out, lse, dq, dk, dv, options, execution)
    return dq, dk, dv


@attention_backward.register_fake
def _attention_backward_fake(
    dout: Tensor, q: Tensor, k: Tensor, v: Tensor, *unused: Any
) -> tuple[Tensor, Tensor, Tensor]:
    return torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    q, k, v, cu_seqlens_q, cu_seqlens_k, alibi_slopes, *scalars, _kernel, _block_m, _block_n, deterministic = inputs
    out, lse = output
    ctx.mark_non_differentiable(lse)
    ctx.save_for_backward(q, k, v, out, lse, cu_seqlens_q, cu_seqlens_k, alibi_slopes)
    ctx.scalars = (*scalars, deterministic)


def _backward(ctx: Any, dout: Tensor, _dlse: Tensor) -> tuple[Tensor | None, ...]:
    dq, dk, dv = attention_backward(dout, *ctx.saved_tensors, *ctx.scalars)
    return (dq, dk, dv, *[None] * 13)


attention_forward.register_autograd(_backward, setup_context=_setup_context)


def _attention(
    q: Tensor, k: Tensor, v: Tensor, options: Options, dropout_p: float, deterministic: bool, return_attn_probs: bool,
    kernel: str,
) -> Tensor | tuple[Tensor, Tensor, None]:  # fmt: skip
    if dropout_p != 0.0:
        raise NotSupported(f"dropout_p is {dropout_p}; the reference kernel has no dropout, pass 0.0")
    if deterministic and q.device.type == "cuda":
        raise NotSupported("deterministic=True is not supported on a GPU: dQ is summed there with atomic adds")
    check_inputs(q, k, v, options)
    left, right = options.window_size
    out, lse = cast(
        "tuple[Tensor, Tensor]",
        attention_forward(
            q, k, v, options.cu_seqlens_q, options.cu_seqlens_k, options.alibi_slopes, options.max_seqlen_q,
            options.max_seqlen_k, options.softmax_scale, left, 0 if options.causal else right, options.softcap, kernel,
            options.block_m, options.block_n, deterministic,
        ),
    )  # fmt: skip
    return (out, lse, None) if return_attn_probs else out


def flash_attn_func(
    q: Tensor, k: Tensor, v: Tensor, dropout_p: float = 0.0, softmax_scale: float | None = None, causal: bool = False,
    window_size: tuple[int, int] = (-1, -1), softcap: float = 0.0, alibi_slopes: Tensor | None = None,
    deterministic: bool = False, return_attn_probs: bool = False,
    *, kernel: str = FORWARD_2, block_m: int = 0, block_n: int = 0,
) -> Tensor | tuple[Tensor, Tensor, None]:  # fmt: skip
    """Compute softmax(softmax_scale * Q K^T) V with a reference kernel; differentiable in q, k and v.

    Args:
        q: (batch, seqlen_q, heads_q, head dim), float32, float16 or bfloat16, contiguous, on cpu or cuda.
        k: (batch, seqlen_k, heads_k, head dim); heads_q is a multiple of heads_k.
        v: as ``k``.
        dropout_p: only 0.0.
        softmax_scale: factor of the scores; 1 / sqrt(head dim) where left out.
        causal: row i sees columns up to i + seqlen_k - seqlen_q.
        window_size: columns seen left and right of that diagonal, -1 for all.
        softcap: scores become softcap * tanh(score / softcap); 0 for none.
        alibi_slopes: (heads_q) or (batch, heads_q) float32; slope * |i + seqlen_k - seqlen_q - j| is subtracted.
        deterministic: CPU only: sum dQ in a fixed order.
        return_attn_probs: also return LSE; the third value is always None, since there is no dropout mask.
        kernel: which forward kernel, one of ``refkernel.KERNELS``.
        block_m: B_r; 0 for the kernel's default.
        block_n: B_c; 0 for the kernel's default.

    Returns:
        O as ``q``; with ``return_attn_probs`` the tuple O, LSE (batch, heads_q, seqlen_q) float32, None. A row that
        sees nothing has O = 0 and LSE = +inf.

    Raises:
        InvalidCall: an argument is wrong.
        NotSupported: dropout, or deterministic on a GPU.
        MissingCompiler: nothing to build the kernel with.
    """
    scale = q.shape[-1] ** -0.5 if softmax_scale is None else softmax_scale
    options = Options(scale, causal, window_size, softcap, alibi_slopes, block_m=block_m, block_n=block_n)
    return _attention(q, k, v, options, dropout_p, deterministic, return_attn_probs, kernel)


def flash_attn_varlen_func(
    q: Tensor, k: Tensor, v: Tensor, cu_seqlens_q: Tensor, cu_seqlens_k: Tensor, max_seqlen_q: int, max_seqlen_k: int,
    dropout_p: float = 0.0, softmax_scale: float | None = None, causal: bool = False,
    window_size: tuple[int, int] = (-1, -1), softcap: float = 0.0, alibi_slopes: Tensor | None = None,
    deterministic: bool = False, return_attn_probs: bool = False,
    *, kernel: str = FORWARD_2, block_m: int = 0, block_n: int = 0,
) -> Tensor | tuple[Tensor, Tensor, None]:  # fmt: skip
    """Compute attention for sequences of different lengths that lie one after the other.

    Args:
        q: (total_q, heads_q, head dim).
        k: (total_k, heads_k, head dim).
        v: as ``k``.
        cu_seqlens_q: (batch + 1) int32: sequence b holds rows cu_seqlens_q[b] to cu_seqlens_q[b + 1] - 1 of q.
        cu_seqlens_k: the same for k and v.
        max_seqlen_q: length of the longest sequence of queries.
        max_seqlen_k: length of the longest sequence of keys.
        dropout_p: this and the rest as in ``flash_attn_func``.
        softmax_scale: see ``flash_attn_func``.
        causal: see ``flash_attn_func``; each sequence has its own diagonal.
        window_size: see ``flash_attn_func``.
        softcap: see ``flash_attn_func``.
        alibi_slopes: see ``flash_attn_func``.
        deterministic: see ``flash_attn_func``.
        return_attn_probs: see ``flash_attn_func``; LSE is (heads_q, total_q).
        kernel: see ``flash_attn_func``.
        block_m: see ``flash_attn_func``.
        block_n: see ``flash_attn_func``.

    Returns:
        As ``flash_attn_func``.

    Raises:
        InvalidCall: as ``flash_attn_func``, and for cu_seqlens that do not fit the tensors.
        NotSupported: as ``flash_attn_func``.
        MissingCompiler: as ``flash_attn_func``.
    """
    scale = q.shape[-1] ** -0.5 if softmax_scale is None else softmax_scale
    options = Options(
        scale, causal, window_size, softcap, alibi_slopes, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k,
        block_m, block_n,
    )  # fmt: skip
    return _attention(q, k, v, options, dropout_p, deterministic, return_attn_probs, kernel)
