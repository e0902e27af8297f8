"""What a kernel asks of memory, counted by running it on the CPU. Needs a compiler, and neither torch nor a GPU."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence

from refkernel.build import BACKWARD_2, ELEMENT_TYPES, FORWARD_1, FORWARD_2, Configuration, padded_head_dim
from refkernel.errors import InvalidCall
from refkernel.library import UNLIMITED, AttentionShape, Buffer, Library, TensorBytes, load


def window_limits(causal: bool, window_size: tuple[int, int]) -> tuple[int, int]:
    """Return how many columns a row sees left and right of its diagonal; a causal mask sees none on the right.

    Args:
        causal: hide columns right of the diagonal, which ends in the bottom right corner.
        window_size: (left, right); a negative number means no limit.
    """
    left, right = (UNLIMITED if limit < 0 else min(limit, UNLIMITED) for limit in window_size)
    return left, 0 if causal else right


def tensor_sizes(kernel: str, dtype: str, shape: AttentionShape, total_k: int) -> dict[str, tuple[int, int]]:
    """Return elements and bytes per element of every tensor that a kernel reads or writes, by its name in the paper.

    Args:
        kernel: one of ``build.KERNELS``.
        dtype: of Q, K and V.
        shape: the call.
        total_k: key rows over all sequences.
    """
    width = ELEMENT_TYPES[dtype][1]
    rows_q, statistics = shape.total_q * shape.heads_q * shape.head_dim, shape.total_q * shape.heads_q
    rows_k = total_k * shape.heads_k * shape.head_dim
    sizes = {"Q": (rows_q, width), "K": (rows_k, width), "V": (rows_k, width), "O": (rows_q, width)}
    if kernel == FORWARD_1:
        sizes |= {"O": (rows_q, 4), "l": (statistics, 4), "m": (statistics, 4)}
    elif kernel == BACKWARD_2:
        per_query_head = total_k * shape.heads_q * shape.head_dim
        sizes |= {"dO": (rows_q, width), "LSE": (statistics, 4), "D": (statistics, 4), "dQ": (rows_q, 4)}
        sizes |= {"dK": (per_query_head, width), "dV": (per_query_head, width)}
    else:
        sizes["LSE"] = (statistics, 4)
    return sizes


def count_bytes(
    kernel: str = FORWARD_2,
    *,
    seqlen_q: int,
    seqlen_k: int | None = None,
    batch: int = 1,
    heads_q: int = 1,
    heads_k: int | None = None,
    head_dim: int = 64,
    dtype: str = "fp32",
    block_m: int = 64,
    block_n: int = 64,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    cu_seqlens_q: Sequence[int] | None = None,
    cu_seqlens_k: Sequence[int] | None = None,
) -> dict[str, TensorBytes]:
    """Run a kernel on zeros and return the bytes it asked for, per tensor.

    These are requested bytes: every element access of every thread. They do not depend on the values. They are not DRAM
    bytes; on a GPU the caches serve part of them.

    Args:
        kernel: one of ``build.KERNELS``.
        seqlen_q: query rows per sequence; ignored where cu_seqlens_q is given.
        seqlen_k: key rows per sequence; ``seqlen_q`` where left out.
        batch: sequences; ignored where cu_seqlens_q is given.
        heads_q: query heads.
        heads_k: key heads; ``heads_q`` where left out.
        head_dim: elements per head.
        dtype: ``fp32``, ``fp16`` or ``bf16``.
        block_m: B_r.
        block_n: B_c.
        causal: mask, aligned to the bottom right.
        window_size: sliding window (left, right), -1 for no limit.
        cu_seqlens_q: first row of each sequence, then their total, for sequences of different lengths.
        cu_seqlens_k: the same for keys.

    Returns:
        By tensor: Q, K, V, and O, LSE (forward 2), O, l, m (forward 1), or O, dO, LSE, D, dQ, dK, dV (backward), and
        cu_seqlens_q, cu_seqlens_k where given.

    Raises:
        InvalidCall: sizes or tiles that no kernel supports.
        MissingCompiler: no C++ compiler.
    """
    seqlen_k = seqlen_q if seqlen_k is None else seqlen_k
    heads_k = heads_q if heads_k is None else heads_k
    if min(seqlen_q, seqlen_k) < 0 or min(batch, heads_q, heads_k) < 1 or heads_q % heads_k:
        raise InvalidCall("lengths must not be negative, batch and heads positive, and heads_q a multiple of heads_k")
    total_q, total_k = batch * seqlen_q, batch * seqlen_k
    integers: dict[str, Sequence[int]] = {}
    if cu_seqlens_q is not None and cu_seqlens_k is not None:
        integers = {"cu_seqlens_q": cu_seqlens_q, "cu_seqlens_k": cu_seqlens_k}
        batch, total_q, total_k = len(cu_seqlens_q) - 1, cu_seqlens_q[-1], cu_seqlens_k[-1]
        seqlen_q, seqlen_k = _longest(cu_seqlens_q), _longest(cu_seqlens_k)
    left, right = window_limits(causal, window_size)
    shape = AttentionShape(
        batch, seqlen_q, seqlen_k, heads_q, heads_k, head_dim, head_dim**-0.5, total_q, bool(integers), left, right
    )
    configuration = Configuration(kernel, dtype, block_m, block_n, padded_head_dim(head_dim))
    return run_on_zeros(load(configuration), configuration, shape, total_k, integers)


def run_on_zeros(
    library: Library,
    configuration: Configuration,
    shape: AttentionShape,
    total_k: int,
    cu_seqlens: Mapping[str, Sequence[int]],
) -> dict[str, TensorBytes]:
    """Run a kernel on tensors of zeros, each in memory of its exact size.

    Args:
        library: what to run.
        configuration: what it was compiled for; only kernel and dtype are looked at.
        shape: the call.
        total_k: key rows over all sequences.
        cu_seqlens: ``cu_seqlens_q`` and ``cu_seqlens_k``, or nothing.

    Raises:
        KernelFault: the kernel misused memory or barriers.
    """
    sizes = tensor_sizes(configuration.kernel, configuration.dtype, shape, total_k)
    memory = {name: (ctypes.c_char * max(1, elements * width))() for name, (elements, width) in sizes.items()}
    buffers = {name: Buffer(ctypes.addressof(memory[name]), elements) for name, (elements, _) in sizes.items()}
    arrays = {name: (ctypes.c_int * len(values))(*values) for name, values in cu_seqlens.items()}
    buffers |= {name: Buffer(ctypes.addressof(array), len(array)) for name, array in arrays.items()}
    return library.run(buffers, shape)


def _longest(cu_seqlens: Sequence[int]) -> int:
    return max((end - start for start, end in zip(cu_seqlens, cu_seqlens[1:], strict=False)), default=0)
