"""Attention and its gradients in float64, written out so that they can be checked by reading.

Nothing here is tiled, streamed or recomputed, and the gradients are the textbook formulas, not autograd.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from refkernel.call import Options


@dataclass(frozen=True)
class Attention:
    """The exact answer for one call, float64, in the layouts of the call.

    Attributes:
        out: O, as q.
        lse: (batch, heads_q, seqlen_q), or (heads_q, total_q) with cu_seqlens.
        dq: gradients as q; likewise ``dk`` as k and ``dv`` as v. Zeros where no ``dout`` was given.
        dk: see ``dq``.
        dv: see ``dq``.
    """

    out: Tensor
    lse: Tensor
    dq: Tensor
    dk: Tensor
    dv: Tensor


def attention(q: Tensor, k: Tensor, v: Tensor, options: Options, dout: Tensor | None = None) -> Attention:
    """Return the exact attention of a call and, for the gradient ``dout`` of its output, the exact gradients.

    Args:
        q: (batch, seqlen_q, heads_q, head dim) or (total_q, heads_q, head dim).
        k: (batch, seqlen_k, heads_k, head dim) or (total_k, heads_k, head dim).
        v: as ``k``.
        options: the call; tile sizes are ignored.
        dout: as ``q``, or None.
    """
    q, k, v = q.double(), k.double(), v.double()
    dout = torch.zeros_like(q) if dout is None else dout.double()
    dq, dk, dv, out = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v), torch.zeros_like(q)
    heads_q = q.shape[-2]
    if options.cu_seqlens_q is None or options.cu_seqlens_k is None:
        batch = q.shape[0]
        lse = q.new_zeros((batch, heads_q, q.shape[1]))
        parts = [(q[b], k[b], v[b], dout[b], out[b], lse[b], dq[b], dk[b], dv[b]) for b in range(batch)]
    else:
        lse = q.new_zeros((heads_q, q.shape[0]))
        starts_q, starts_k = options.cu_seqlens_q.tolist(), options.cu_seqlens_k.tolist()
        batch = len(starts_q) - 1
        parts = []
        for b in range(batch):
            i, j = slice(starts_q[b], starts_q[b + 1]), slice(starts_k[b], starts_k[b + 1])
            parts.append((q[i], k[j], v[j], dout[i], out[i], lse[:, i], dq[i], dk[j], dv[j]))
    slopes = options.alibi_slopes
    # All that follows are views: what is stored into a part is stored into the whole.
    for b, (q_b, k_b, v_b, dout_b, out_b, lse_b, dq_b, dk_b, dv_b) in enumerate(parts):
        for head in range(heads_q):
            head_k = head // (heads_q // k.shape[-2])
            slope = 0.0 if slopes is None else float(slopes.expand(batch, heads_q)[b, head])
            one = _one_head(q_b[:, head], k_b[:, head_k], v_b[:, head_k], dout_b[:, head], options, slope)
            out_b[:, head] = one.out
            lse_b[head] = one.lse
            dq_b[:, head] = one.dq
            dk_b[:, head_k] += one.dk
            dv_b[:, head_k] += one.dv
    return Attention(out, lse, dq, dk, dv)


def visible(seqlen_q: int, seqlen_k: int, causal: bool, window_size: tuple[int, int]) -> Tensor:
    """Return which columns each row sees: (seqlen_q, seqlen_k), bool. The diagonal ends in the bottom right corner."""
    diagonal = torch.arange(seqlen_q)[:, None] + seqlen_k - seqlen_q
    column = torch.arange(seqlen_k)[None, :]
    seen = torch.ones((seqlen_q, seqlen_k), dtype=torch.bool)
    if causal:
        seen &= column <= diagonal
    left, right = window_size
    if left >= 0:
        seen &= column >= diagonal - left
    if right >= 0:
        seen &= column <= diagonal + right
    return seen


def _one_head(Q: Tensor, K: Tensor, V: Tensor, dO: Tensor, options: Options, slope: float) -> Attention:
    seqlen_q, seqlen_k = Q.shape[0], K.shape[0]
    seen = visible(seqlen_q, seqlen_k, options.causal, options.window_size).to(Q.device)
    S = options.softmax_scale * Q @ K.T
    slope_of_cap = torch.ones_like(S)
    if options.softcap > 0:
        ratio = torch.tanh(S / options.softcap)
        S = options.softcap * ratio
        slope_of_cap = 1 - ratio**2
    distance = torch.arange(seqlen_q)[:, None] + seqlen_k - seqlen_q - torch.arange(seqlen_k)[None, :]
    S = S - slope * distance.abs().to(S)
    S = S.masked_fill(~seen, -math.inf)
    some = seen.any(1)  # rows that see anything

    lse = torch.full((seqlen_q,), math.inf, dtype=S.dtype, device=S.device)
    lse[some] = torch.logsumexp(S[some], 1)  # L = log sum exp S
    P = torch.exp(S - lse[:, None])  # P = softmax(S); a row that sees nothing is 0
    out = P @ V  # O = P V
    dV = P.T @ dO  # dV = P^T dO
    dP = dO @ V.T  # dP = dO V^T
    D = (dO * out).sum(1)  # D = rowsum(dO * O)
    dS = P * (dP - D[:, None]) * slope_of_cap  # dS = P * (dP - D)
    dQ = options.softmax_scale * dS @ K  # dQ = scale dS K
    dK = options.softmax_scale * dS.T @ Q  # dK = scale dS^T Q
    return Attention(out, lse, dQ, dK, dV)
