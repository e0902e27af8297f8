"""The float64 oracle against PyTorch's own attention and against autograd."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

from refkernel import oracle  # noqa: E402
from refkernel.call import Options  # noqa: E402


def draw(*shape: int) -> torch.Tensor:
    return torch.randn(shape, dtype=torch.float64)


@pytest.mark.parametrize("causal", [False, True])
def test_agrees_with_scaled_dot_product_attention(causal: bool) -> None:
    torch.manual_seed(1)
    q, k, v, dout = (draw(2, 9, 4, 5).requires_grad_() for _ in range(4))
    exact = oracle.attention(q.detach(), k.detach(), v.detach(), Options(0.7, causal), dout.detach())
    out = torch.nn.functional.scaled_dot_product_attention(
        q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=causal, scale=0.7
    ).transpose(1, 2)
    dq, dk, dv = torch.autograd.grad(out, (q, k, v), dout)
    for mine, theirs in ((exact.out, out), (exact.dq, dq), (exact.dk, dk), (exact.dv, dv)):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-12)


def test_gradients_are_those_of_its_own_forward_pass_with_every_feature() -> None:
    torch.manual_seed(2)
    q, k, v, dout = draw(11, 4, 3), draw(14, 2, 3), draw(14, 2, 3), draw(11, 4, 3)
    options = Options(
        0.9, True, (4, -1), 1.5, torch.tensor([0.1, 0.3, 0.2, 0.05]),
        torch.tensor([0, 5, 11], dtype=torch.int32), torch.tensor([0, 8, 14], dtype=torch.int32), 6, 8,
    )  # fmt: skip
    exact = oracle.attention(q, k, v, options, dout)

    def loss(which: int, moved: torch.Tensor) -> float:
        inputs = [q, k, v]
        inputs[which] = moved
        return float((oracle.attention(*inputs, options).out * dout).sum())

    for which, gradient in enumerate((exact.dq, exact.dk, exact.dv)):
        direction = torch.randn_like((q, k, v)[which])
        step = 1e-6
        up, down = (loss(which, (q, k, v)[which] + sign * step * direction) for sign in (1, -1))
        assert math.isclose((up - down) / (2 * step), float((gradient * direction).sum()), rel_tol=1e-6, abs_tol=1e-8)


def test_mask_is_aligned_to_the_bottom_right() -> None:
    """Two rows and three columns, counted by hand: the last row's diagonal is the last column."""
    assert oracle.visible(2, 3, True, (-1, -1)).tolist() == [[True, True, False], [True, True, True]]
    assert oracle.visible(3, 2, True, (-1, -1)).tolist() == [[False, False], [True, False], [True, True]]
    assert oracle.visible(2, 3, False, (0, 1)).tolist() == [[False, True, True], [False, False, True]]


def test_one_row_by_hand() -> None:
    """Scores log 1 and log 3, so P is 1/4 and 3/4, LSE is log 4, and O follows."""
    q = torch.ones(1, 1, 1, 1)
    k = torch.tensor([1.0, 3.0], dtype=torch.float64).log().reshape(1, 2, 1, 1)
    v = torch.tensor([4.0, 8.0]).reshape(1, 2, 1, 1)
    exact = oracle.attention(q, k, v, Options(1.0))
    assert math.isclose(float(exact.out), 7.0, rel_tol=1e-12)
    assert math.isclose(float(exact.lse), math.log(4.0), rel_tol=1e-12)


def test_rows_that_see_nothing_and_softcap_and_alibi_by_hand() -> None:
    q, k, v = torch.ones(1, 3, 1, 1), torch.ones(1, 1, 1, 1), torch.full((1, 1, 1, 1), 5.0)
    exact = oracle.attention(q, k, v, Options(1.0, causal=True), torch.ones(1, 3, 1, 1))
    assert exact.out.flatten().tolist() == [0.0, 0.0, 5.0]
    assert exact.lse.flatten().tolist() == [math.inf, math.inf, 1.0]
    assert exact.dq.flatten().tolist() == [0.0, 0.0, 0.0]
    capped = oracle.attention(q, k, v, Options(1.0, softcap=0.5))
    assert math.isclose(float(capped.lse[0, 0, 0]), 0.5 * math.tanh(2.0), rel_tol=1e-12)
    biased = oracle.attention(q, k, v, replace(Options(1.0), alibi_slopes=torch.tensor([0.25])))
    assert biased.lse.flatten().tolist() == [1.0 - 0.5, 1.0 - 0.25, 1.0]
