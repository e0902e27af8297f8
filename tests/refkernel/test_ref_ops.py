"""The public functions: autograd, torch.library's own checks, torch.compile, and what they refuse."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import refkernel  # noqa: E402
from refkernel import oracle  # noqa: E402
from refkernel.call import Options  # noqa: E402
from refkernel.ops import attention_backward, attention_forward  # noqa: E402


def draw(*shape: int, dtype: Any = torch.float32, grad: bool = False) -> torch.Tensor:
    return torch.randn(shape).to(dtype).requires_grad_(grad)


def op_arguments(grad: bool = True) -> tuple[Any, ...]:
    q, k, v = draw(1, 20, 4, 64, grad=grad), draw(1, 30, 2, 64, grad=grad), draw(1, 30, 2, 64, grad=grad)
    return (q, k, v, None, None, None, 0, 0, 0.125, -1, 0, 0.0, refkernel.FORWARD_2, 0, 0, False)


@pytest.mark.parametrize("kernel", [refkernel.FORWARD_1, refkernel.FORWARD_2])
def test_forward_and_gradients_through_autograd(kernel: str) -> None:
    torch.manual_seed(1)
    q, k, v = draw(2, 90, 4, 64, grad=True), draw(2, 110, 2, 64, grad=True), draw(2, 110, 2, 64, grad=True)
    dout = draw(2, 90, 4, 64)
    out, lse, none = refkernel.flash_attn_func(q, k, v, causal=True, return_attn_probs=True, kernel=kernel)
    exact = oracle.attention(q.detach(), k.detach(), v.detach(), Options(0.125, True), dout)
    gradients = torch.autograd.grad(out, (q, k, v), dout)
    assert none is None
    assert not lse.requires_grad
    torch.testing.assert_close(out.double(), exact.out, rtol=0, atol=5e-6)
    torch.testing.assert_close(lse.double(), exact.lse, rtol=0, atol=5e-6)
    for mine, wanted in zip(gradients, (exact.dq, exact.dk, exact.dv), strict=True):
        torch.testing.assert_close(mine.double(), wanted, rtol=0, atol=2e-5)


def test_variable_length_through_autograd_is_the_sequences_one_by_one() -> None:
    torch.manual_seed(2)
    q, k, v = draw(100, 2, 64, grad=True), draw(80, 2, 64, grad=True), draw(80, 2, 64, grad=True)
    dout = draw(100, 2, 64)
    starts_q, starts_k = torch.tensor([0, 30, 100], dtype=torch.int32), torch.tensor([0, 50, 80], dtype=torch.int32)
    out = refkernel.flash_attn_varlen_func(q, k, v, starts_q, starts_k, 70, 50, causal=True)
    together = torch.autograd.grad(out, (q, k, v), dout)
    apart, outs = [], []
    for a, b, c, d in ((0, 30, 0, 50), (30, 100, 50, 80)):
        one = [t[x:y].detach().clone().unsqueeze(0).requires_grad_() for t, x, y in ((q, a, b), (k, c, d), (v, c, d))]
        outs.append(refkernel.flash_attn_func(*one, causal=True))
        apart.append(torch.autograd.grad(outs[-1], one, dout[a:b].unsqueeze(0)))
    assert torch.equal(out, torch.cat([one[0] for one in outs]))
    for mine, parts in zip(together, zip(*apart, strict=True), strict=True):
        torch.testing.assert_close(mine, torch.cat([part[0] for part in parts]), rtol=0, atol=2e-6)


def test_tensor_core_kernel_pads_odd_head_dims() -> None:
    torch.manual_seed(3)
    q, k, v = (draw(1, 40, 2, 61, dtype=torch.bfloat16) for _ in range(3))
    out = refkernel.flash_attn_func(q, k, v, kernel=refkernel.FORWARD_2_MMA)
    exact = oracle.attention(q, k, v, Options(61**-0.5))
    torch.testing.assert_close(out.double(), exact.out, rtol=0, atol=1.6e-2)


def test_tensor_core_kernel_takes_tensors_that_begin_anywhere() -> None:
    torch.manual_seed(3)
    memory = draw(1 + 40 * 2 * 64, dtype=torch.float16)
    q = memory[1:].view(1, 40, 2, 64)
    assert q.is_contiguous()
    assert q.data_ptr() % 16
    out = refkernel.flash_attn_func(q, q, q, kernel=refkernel.FORWARD_2_MMA)
    assert torch.equal(out, refkernel.flash_attn_func(q.clone(), q.clone(), q.clone(), kernel=refkernel.FORWARD_2_MMA))


def test_opcheck_of_both_operators() -> None:
    torch.manual_seed(4)
    torch.library.opcheck(attention_forward, op_arguments())
    q, k, v, *rest = op_arguments(grad=False)
    out, lse = attention_forward(q, k, v, *rest)
    backward_arguments = (torch.randn_like(q), q, k, v, out, lse, *rest[:9], False)
    torch.library.opcheck(attention_backward, backward_arguments)


def test_opcheck_with_variable_lengths_and_every_feature() -> None:
    starts = torch.tensor([0, 12, 20], dtype=torch.int32)
    q, k, v = (draw(20, 2, 64, grad=True) for _ in range(3))
    slopes = torch.tensor([0.1, 0.2])
    arguments = (q, k, v, starts, starts, slopes, 12, 12, 0.125, 5, 0, 5.0, refkernel.FORWARD_2, 64, 64, True)
    torch.library.opcheck(attention_forward, arguments)


def test_compiled_function_agrees_with_eager() -> None:
    torch.manual_seed(5)
    q, k, v = (draw(1, 33, 2, 64, grad=True) for _ in range(3))

    def loss(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return refkernel.flash_attn_func(q * 2.0, k, v, causal=True, deterministic=True).square().sum()

    eager = loss(q, k, v)
    wanted = torch.autograd.grad(eager, (q, k, v))
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)(q, k, v)
    torch.testing.assert_close(compiled, eager)
    for mine, expected in zip(torch.autograd.grad(compiled, (q, k, v)), wanted, strict=True):
        torch.testing.assert_close(mine, expected)


def test_fake_tensors_get_shapes_without_running_anything() -> None:
    q, k, v = (torch.empty(2, 7, 3, 40, device="meta", dtype=torch.float16) for _ in range(3))
    out, lse, _ = refkernel.flash_attn_func(q, k, v, return_attn_probs=True)
    assert (out.shape, out.dtype, lse.shape, lse.dtype) == ((2, 7, 3, 40), torch.float16, (2, 3, 7), torch.float32)


def test_empty_inputs() -> None:
    q, k = draw(1, 3, 2, 64, grad=True), draw(1, 0, 2, 64, grad=True)
    out, lse, _ = refkernel.flash_attn_func(q, k, k, return_attn_probs=True)
    assert torch.equal(out, torch.zeros(1, 3, 2, 64))
    assert torch.equal(lse, torch.full((1, 2, 3), math.inf))
    assert torch.equal(torch.autograd.grad(out.sum(), q)[0], torch.zeros(1, 3, 2, 64))
    assert refkernel.flash_attn_func(k, q, q).shape == (1, 0, 2, 64)


GOOD = {"q": (1, 8, 4, 64), "k": (1, 8, 2, 64), "v": (1, 8, 2, 64)}


def tensors(**changed: Any) -> list[torch.Tensor]:
    return [changed[name] if name in changed else torch.zeros(shape) for name, shape in GOOD.items()]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (tensors(q=torch.zeros(8, 4, 64)), {}, "q has shape (8, 4, 64); expected (batch, seqlen, heads, head dim)"),
        (tensors(k=torch.zeros(1, 8, 2, 64).half()), {}, "k is torch.float16 and q is torch.float32; they must agree"),
        (tensors(q=torch.zeros(1, 8, 4, 64).double()), {}, "q is torch.float64; the kernels take"),
        (tensors(v=torch.zeros(1, 8, 64, 2).transpose(2, 3)), {}, "v is not contiguous; pass v.contiguous()"),
        (tensors(v=torch.zeros(1, 9, 2, 64)), {}, "k has shape (1, 8, 2, 64) and v (1, 9, 2, 64); they must agree"),
        (tensors(k=torch.zeros(2, 8, 2, 64), v=torch.zeros(2, 8, 2, 64)), {}, "k has batch 2 and q 1; they must agree"),
        (tensors(k=torch.zeros(1, 8, 2, 32)), {}, "k has head dim 32 and q has 64; they must agree"),
        (tensors(q=torch.zeros(1, 8, 3, 64)), {}, "q has 3 heads and k 2; the first must be a multiple of the second"),
        (tensors(k=torch.zeros(1, 8, 2, 64, device="meta")), {}, "k is on meta and q on cpu; they must agree"),
        (tensors(), {"softmax_scale": 0.0}, "softmax_scale is 0.0; it must be positive and finite"),
        (tensors(), {"softcap": -1.0}, "softcap is -1.0; it must be positive, or 0 for none"),
        (tensors(), {"alibi_slopes": torch.zeros(3)}, "alibi_slopes has shape (3,); expected (4,) or (1, 4)"),
        (tensors(), {"alibi_slopes": torch.zeros(4).half()}, "alibi_slopes is torch.float16 on cpu; expected float32"),
        (tensors(), {"dropout_p": 0.1}, "dropout_p is 0.1; the reference kernel has no dropout, pass 0.0"),
        (tensors(), {"kernel": "flash_attention_9"}, "kernel 'flash_attention_9' does not exist; the kernels are"),
        (tensors(), {"kernel": refkernel.BACKWARD_2}, "is a backward kernel"),
        (tensors(), {"kernel": refkernel.FORWARD_2_MMA}, "runs on tensor cores and takes fp16 or bf16, not fp32"),
        (tensors(), {"block_m": 48}, "block_m is 48; flash_attention_2_forward can be compiled for 32, 64, 128"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_named(arguments: list[torch.Tensor], options: dict[str, Any], message: str) -> None:
    with pytest.raises(refkernel.RefkernelError) as error:
        refkernel.flash_attn_func(*arguments, **options)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_head_dim_beyond_256_is_refused() -> None:
    q = torch.zeros(1, 2, 1, 257)
    with pytest.raises(refkernel.InvalidCall, match="the head dimension is 257; the kernels support 1 to 256"):
        refkernel.flash_attn_func(q, q, q)


@pytest.mark.parametrize(
    ("starts", "longest", "message"),
    [
        (torch.tensor([0, 5, 9], dtype=torch.int32), 5, "it must rise from 0 to 10"),
        (torch.tensor([0, 6, 5, 10], dtype=torch.int32), 6, "it must rise from 0 to 10"),
        (torch.tensor([0, 3, 10], dtype=torch.int32), 5, "holds a sequence of 7 rows; its max_seqlen is 5"),
        (torch.tensor([0, 5, 10]), 5, "must be a contiguous one-dimensional int32 tensor on cpu"),
    ],
)
def test_wrong_cu_seqlens_are_named(starts: torch.Tensor, longest: int, message: str) -> None:
    q = torch.zeros(10, 2, 64)
    with pytest.raises(refkernel.InvalidCall) as error:
        refkernel.flash_attn_varlen_func(q, q, q, starts, starts, longest, longest)
    assert message in str(error.value)


def test_cu_seqlens_of_different_batches_are_refused() -> None:
    q = torch.zeros(10, 2, 64)
    one, two = torch.tensor([0, 10], dtype=torch.int32), torch.tensor([0, 5, 10], dtype=torch.int32)
    with pytest.raises(refkernel.InvalidCall, match="both cu_seqlens need batch"):
        refkernel.flash_attn_varlen_func(q, q, q, one, two, 10, 10)


def test_options_are_data() -> None:
    options = Options(0.5)
    assert replace(options, causal=True) != options
    with pytest.raises(AttributeError):
        options.causal = True  # type: ignore[misc]
