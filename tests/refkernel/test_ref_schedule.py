"""Results do not depend on how the CPU runs a kernel: OS threads, or which thread of a block goes first."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from refkernel import call, library  # noqa: E402
from refkernel.build import FORWARD_1, FORWARD_2, FORWARD_2_MMA  # noqa: E402
from refkernel.call import Options, backward_into, forward_into, lse_shape  # noqa: E402
from refkernel.library import Execution  # noqa: E402

WAYS = [Execution(threads, reversed) for threads, reversed in itertools.product((1, 2, 5), (False, True))]


@pytest.mark.parametrize("kernel", [FORWARD_1, FORWARD_2, FORWARD_2_MMA])
def test_forward_is_the_same_to_the_bit(kernel: str) -> None:
    torch.manual_seed(4)
    dtype = torch.float16 if kernel == FORWARD_2_MMA else torch.float32
    q, k, v = (torch.randn(2, 150, 2, 64).to(dtype) for _ in range(3))
    options = Options(0.125, causal=True, block_m=64, block_n=64)
    results = []
    for way in WAYS:
        out = torch.full_like(q, float("nan"))
        lse = torch.full(lse_shape(q, options), float("nan"))
        forward_into(kernel, q, k, v, out, lse, options, way)
        assert not out.isnan().any()
        results.append((out, lse))
    for out, lse in results[1:]:
        assert torch.equal(out, results[0][0])
        assert torch.equal(lse, results[0][1])


def test_a_missing_barrier_makes_the_result_depend_on_the_order(
    broken_copy: Callable[[str, str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the comparison above can fail."""
    barrier = "overwritten.\n    __syncthreads();\n\n    // Load K_j"
    root = broken_copy(f"kernels/{FORWARD_2}.cuh", barrier, barrier.replace("__syncthreads();", ""))
    monkeypatch.setattr(call, "load", partial(library.load, source_root=root))
    q, k, v = (torch.randn(1, 200, 1, 64) for _ in range(3))
    options = Options(0.125, block_m=64, block_n=64)
    outs = []
    for way in (Execution(1, False), Execution(1, True)):
        outs.append(torch.empty_like(q))
        forward_into(FORWARD_2, q, k, v, outs[-1], torch.empty(lse_shape(q, options)), options, way)
    assert not torch.equal(*outs)


def test_backward_differs_only_by_the_order_of_sums() -> None:
    """dK and dV are summed by one block, in one order; dQ by many blocks, so its last bits may differ."""
    torch.manual_seed(5)
    q, k, v, dout = (torch.randn(1, 200, 2, 64) for _ in range(4))
    options = Options(0.125, causal=True)
    out, lse = torch.empty_like(q), torch.empty(lse_shape(q, options))
    forward_into(FORWARD_2, q, k, v, out, lse, options)
    results = []
    for way in WAYS:
        gradients = [torch.full_like(q, float("nan")) for _ in range(3)]
        backward_into(dout, q, k, v, out, lse, *gradients, options, way)
        results.append(gradients)
    for dq, dk, dv in results[1:]:
        torch.testing.assert_close(dq, results[0][0], rtol=0, atol=2e-6)
        assert torch.equal(dk, results[0][1])
        assert torch.equal(dv, results[0][2])


def test_one_os_thread_sums_dq_in_one_order() -> None:
    """What deterministic=True relies on."""
    torch.manual_seed(6)
    q, k, v, dout = (torch.randn(1, 200, 1, 64) for _ in range(4))
    options = Options(0.125)
    out, lse = torch.empty_like(q), torch.empty(lse_shape(q, options))
    forward_into(FORWARD_2, q, k, v, out, lse, options)
    results = []
    for _ in range(3):
        gradients = [torch.empty_like(q) for _ in range(3)]
        backward_into(dout, q, k, v, out, lse, *gradients, options, Execution(os_threads=1))
        results.append(gradients[0])
    assert torch.equal(results[0], results[1])
    assert torch.equal(results[0], results[2])
