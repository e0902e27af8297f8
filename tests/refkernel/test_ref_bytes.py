"""Counted bytes against the formulas of the papers, exactly and per tensor.

The model here is written from the algorithms, not from the kernels: which tiles are visited follows from the mask by
asking, for every tile, whether any of its rows sees any of its columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from refkernel import count_bytes, counting, library
from refkernel.build import BACKWARD_2, FORWARD_1, FORWARD_2, FORWARD_2_MMA
from refkernel.errors import InvalidCall

WIDTH = {"fp32": 4, "fp16": 2, "bf16": 2}


@dataclass(frozen=True)
class Problem:
    seqlen_q: int
    seqlen_k: int
    block_m: int = 64
    block_n: int = 64
    causal: bool = False
    window_size: tuple[int, int] = (-1, -1)
    heads_q: int = 1
    heads_k: int = 1
    batch: int = 1
    head_dim: int = 64
    dtype: str = "fp32"

    def visited(self) -> set[tuple[int, int]]:
        """Tiles (i, j) with some row that sees some column; rows of the last tile beyond the sequence count too."""
        left, right = self.window_size
        right = 0 if self.causal else right
        tiles = set()
        for row in range(-(-self.seqlen_q // self.block_m) * self.block_m):
            diagonal = row + self.seqlen_k - self.seqlen_q
            for column in range(self.seqlen_k):
                if (left < 0 or column >= diagonal - left) and (right < 0 or column <= diagonal + right):
                    tiles.add((row // self.block_m, column // self.block_n))
        return tiles

    def rows_of_q(self, i: int) -> int:
        return min(self.block_m, self.seqlen_q - i * self.block_m)

    def rows_of_k(self, j: int) -> int:
        return min(self.block_n, self.seqlen_k - j * self.block_n)

    def arguments(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


PROBLEMS = [
    Problem(256, 256),
    Problem(256, 256, causal=True),
    Problem(200, 200),
    Problem(200, 200, causal=True),
    Problem(37, 37, causal=True),
    Problem(1, 1),
    Problem(130, 70, causal=True),
    Problem(70, 130, causal=True),
    Problem(150, 0),
    Problem(200, 200, 32, 32, causal=True),
    Problem(200, 170, 32, 128),
    Problem(200, 170, 128, 64, causal=True),
    Problem(300, 300, 128, 128, causal=True),
    Problem(200, 200, window_size=(30, 10)),
    Problem(200, 140, window_size=(0, -1)),
    Problem(140, 200, causal=True, heads_q=6, heads_k=2, batch=2),
    Problem(100, 100, heads_q=4, heads_k=1, dtype="fp16"),
    Problem(100, 90, causal=True, head_dim=111, dtype="fp16"),
]


def name(p: Problem) -> str:
    mask = "causal" if p.causal else f"window{p.window_size}" if p.window_size != (-1, -1) else "full"
    return f"{p.seqlen_q}x{p.seqlen_k}-{p.block_m}x{p.block_n}-{mask}-h{p.heads_q}:{p.heads_k}-d{p.head_dim}-{p.dtype}"


def check(kernel: str, problem: Problem, model: dict[str, tuple[int, int]]) -> None:
    """Compare (loaded, stored), given per head and sequence, with what the kernel asked for."""
    counted = count_bytes(kernel, **problem.arguments())
    heads = problem.batch * problem.heads_q
    assert {t: (b.loaded, b.stored) for t, b in counted.items()} == {
        tensor: (loaded * heads, stored * heads) for tensor, (loaded, stored) in model.items()
    }


@pytest.mark.parametrize("problem", PROBLEMS, ids=name)
def test_forward_1(problem: Problem) -> None:
    """Dao et al. 2022, Algorithm 1: K and V once; Q, O, l, m for every tile of K/V that sees them.

    Without a mask, in elements: 2 N d for K and V, T_c (3 N d + 4 N) for the rest, and N d + 2 N to initialise.
    """
    p, d = problem, problem.head_dim
    e = WIDTH[p.dtype]
    key_rows = p.seqlen_k
    steps = sum(p.rows_of_q(i) for i, _ in p.visited())  # rows of Q_i over all steps of the inner loop
    check(FORWARD_1, p, {
        "K": (key_rows * d * e, 0),
        "V": (key_rows * d * e, 0),
        "Q": (steps * d * e, 0),
        "O": (steps * d * 4, (steps + p.seqlen_q) * d * 4),
        "l": (steps * 4, (steps + p.seqlen_q) * 4),
        "m": (steps * 4, (steps + p.seqlen_q) * 4),
    })  # fmt: skip


def test_forward_1_is_the_printed_formula() -> None:
    """N = 256, d = 64, T_c = 4: 2 N d + T_c (3 N d + 4 N) elements, and N d + 2 N to initialise, in fp32."""
    N, d, T_c = 256, 64, 4
    counted = count_bytes(FORWARD_1, seqlen_q=N, head_dim=d)
    total = sum(b.loaded + b.stored for b in counted.values())
    initialise = N * d + 2 * N
    assert total == 4 * (2 * N * d + T_c * (3 * N * d + 4 * N) + initialise)


@pytest.mark.parametrize("problem", PROBLEMS, ids=name)
def test_forward_2(problem: Problem) -> None:
    """Dao 2023, Algorithm 1: Q and O once, LSE once, and of K and V what each row tile visits."""
    p, d = problem, problem.head_dim
    e = WIDTH[p.dtype]
    key_rows = sum(p.rows_of_k(j) for _, j in p.visited())
    check(FORWARD_2, p, {
        "Q": (p.seqlen_q * d * e, 0),
        "K": (key_rows * d * e, 0),
        "V": (key_rows * d * e, 0),
        "O": (0, p.seqlen_q * d * e),
        "LSE": (0, p.seqlen_q * 4),
    })  # fmt: skip


@pytest.mark.parametrize("problem", PROBLEMS, ids=name)
def test_backward_2(problem: Problem) -> None:
    """Dao 2023, Algorithm 2: K and V once, Q, dO, LSE, D for every tile that sees them, dQ read and written there.

    D = rowsum(dO * O) reads O and dO once and writes D. Each query head writes dK and dV of its own.
    """
    p, d = problem, problem.head_dim
    e = WIDTH[p.dtype]
    steps = sum(p.rows_of_q(i) for i, _ in p.visited())
    check(BACKWARD_2, p, {
        "O": (p.seqlen_q * d * e, 0),
        "D": (steps * 4, p.seqlen_q * 4),
        "K": (p.seqlen_k * d * e, 0),
        "V": (p.seqlen_k * d * e, 0),
        "Q": (steps * d * e, 0),
        "dO": ((steps + p.seqlen_q) * d * e, 0),
        "LSE": (steps * 4, 0),
        "dQ": (steps * d * 4, steps * d * 4),
        "dK": (0, p.seqlen_k * d * e),
        "dV": (0, p.seqlen_k * d * e),
    })  # fmt: skip


def test_tensor_cores_ask_for_the_same_bytes() -> None:
    """Rung 4 is rung 2's loop: with the same tile it moves the same bytes."""
    sizes = {"seqlen_q": 200, "seqlen_k": 170, "dtype": "fp16", "causal": True, "block_m": 64, "block_n": 64}
    assert count_bytes(FORWARD_2_MMA, **sizes) == count_bytes(FORWARD_2, **sizes)


def test_variable_length_is_the_sum_of_its_sequences() -> None:
    lengths = ((70, 130), (0, 40), (129, 64))
    together = count_bytes(
        FORWARD_2, seqlen_q=0, causal=True, heads_q=2, cu_seqlens_q=(0, 70, 70, 199), cu_seqlens_k=(0, 130, 170, 234)
    )
    apart = [count_bytes(FORWARD_2, seqlen_q=m, seqlen_k=n, causal=True, heads_q=2) for m, n in lengths]
    for tensor in ("Q", "K", "V", "O", "LSE"):
        assert together[tensor].loaded == sum(one[tensor].loaded for one in apart)
        assert together[tensor].stored == sum(one[tensor].stored for one in apart)


def test_a_second_read_is_counted(
    broken_copy: Callable[[str, str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the comparisons above can fail: K read twice per element, V as before."""
    old = "K_j[c][k] = inside ? T(K[at]) : T(0.f);"
    root = broken_copy(f"kernels/{FORWARD_2}.cuh", old, f"{old}\n      if (inside) K_j[c][k] = T(K[at]);")
    once = count_bytes(FORWARD_2, seqlen_q=100)
    monkeypatch.setattr(counting, "load", partial(library.load, source_root=root))
    twice = count_bytes(FORWARD_2, seqlen_q=100)
    assert twice["K"].loaded == 2 * once["K"].loaded
    assert twice["V"] == once["V"]


def test_impossible_sizes_are_refused() -> None:
    with pytest.raises(InvalidCall, match="multiple of heads_k"):
        count_bytes(seqlen_q=8, heads_q=3, heads_k=2)
    with pytest.raises(InvalidCall, match="block_n is 48"):
        count_bytes(seqlen_q=8, block_n=48)
    with pytest.raises(InvalidCall, match="head dimension is 257"):
        count_bytes(seqlen_q=8, head_dim=257)
