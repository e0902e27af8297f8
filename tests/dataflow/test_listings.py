"""The papers' listings: what they compute, and that an empty or useless one is refused."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from tracer.dataflow.arrays import elementwise, filled, multiplied, ratio, reduced, scalar
from tracer.dataflow.evaluate import Evaluation, Problem, attention, joined, random_tiles
from tracer.dataflow.listing import Listing, ListingError, listing
from tracer.dataflow.terms import Terms

SIZES = {"i": 3, "j": 2, "d": 4, "s": 3}
SCALE = 0.37


def problem(names: str, tiles: int) -> Problem:
    inputs = {name: name for name in names.split()}
    hidden = [filled("ij", [3, 2], lambda place, t=t: float(place["j"] + 2 * t > place["i"] + 1)) for t in range(tiles)]
    return Problem(SIZES, random_tiles(inputs, SIZES, tiles, 5), {"scale": SCALE}, hidden, (), inputs)


def run(name: str, problem: Problem) -> dict[str, Any]:
    return Evaluation(Terms(listing(name), exact=True), problem).outputs()


@pytest.mark.parametrize("name", ["flash_attention_1_forward", "flash_attention_2_forward"])
def test_forward_listings_carried_out_are_attention(name: str) -> None:
    given = problem("Q K V O l m", 4)
    found = run(name, given)
    output, lse, _ = attention(
        given.tiles["Q"][0], joined(given.tiles["K"]), joined(given.tiles["V"]), SCALE, joined(given.hidden)
    )
    factor = ratio(found["O"], output, 1e-12)
    assert factor is not None and abs(factor - 1) < 1e-12
    if "L" in found:
        factor = ratio(found["L"], lse, 1e-12)
        assert factor is not None and abs(factor - 1) < 1e-12


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no function named 'algorithm'"),
        ("def algorithm(Q):\n    O = Q\n", "returns nothing"),
    ],
)
def test_a_listing_that_says_nothing_is_refused(text: str, message: str) -> None:
    with pytest.raises(ListingError, match=message):
        Listing("empty", text)


def test_an_unknown_listing_is_refused() -> None:
    with pytest.raises(ListingError, match="no listing named 'nowhere'"):
        listing("nowhere")


def numbers() -> Any:
    return pytest.importorskip("numpy")


def reference(np: Any, Q: Any, K: Any, V: Any) -> tuple[Any, Any, Any]:
    S = SCALE * Q @ K.T
    m = S.max(axis=1, keepdims=True)
    P = np.exp(S - m)
    total = P.sum(axis=1, keepdims=True)
    return P / total @ V, (m + np.log(total))[:, 0], P / total


@pytest.mark.parametrize("sizes", [(7, 9, 4, 3, 2), (4, 4, 2, 4, 4), (1, 5, 3, 2, 3)])
def test_listings_run_by_numpy_are_attention(sizes: tuple[int, int, int, int, int]) -> None:
    np = numbers()
    N, M, d, B_r, B_c = sizes
    random = np.random.default_rng(11)
    Q, K, V, dO = (
        random.normal(size=(N, d)),
        random.normal(size=(M, d)),
        random.normal(size=(M, d)),
        random.normal(size=(N, d)),
    )
    O, L, P = reference(np, Q, K, V)  # noqa: E741
    forward = importlib.import_module("tracer.dataflow.paper.flash_attention_2_forward").algorithm
    found, lse = forward(Q, K, V, B_r, B_c, SCALE)
    assert np.abs(found - O).max() < 1e-13 and np.abs(lse - L).max() < 1e-13
    first = importlib.import_module("tracer.dataflow.paper.flash_attention_1_forward").algorithm
    found, l, m = first(Q, K, V, np.empty((N, d)), np.empty(N), np.empty(N), B_r, B_c, SCALE)  # noqa: E741
    assert np.abs(found - O).max() < 1e-13 and np.abs(m + np.log(l) - L).max() < 1e-13
    D = importlib.import_module("tracer.dataflow.paper.flash_attention_2_row_sums").algorithm(O, dO, B_r)
    dV = P.T @ dO
    dP = dO @ V.T
    dS = P * (dP - (dO * O).sum(axis=1, keepdims=True))
    dQ, dK = SCALE * dS @ K, SCALE * dS.T @ Q
    backward = importlib.import_module("tracer.dataflow.paper.flash_attention_2_backward").algorithm
    for mine, true in zip(backward(Q, K, V, dO, L, D, B_r, B_c, SCALE), (dQ, dK, dV), strict=True):
        assert np.abs(mine - true).max() < 1e-12
    old = importlib.import_module("tracer.dataflow.paper.flash_attention_1_backward").algorithm
    for mine, true in zip(old(Q, K, V, O, dO, l, m, B_r, B_c, SCALE), (dQ, dK, dV), strict=True):
        assert np.abs(mine - true).max() < 1e-12


def test_ranges_of_keys_are_combined_by_numpy() -> None:
    np = numbers()
    random = np.random.default_rng(12)
    Q, K, V = random.normal(size=(5, 3)), random.normal(size=(8, 3)), random.normal(size=(8, 3))
    parts = [reference(np, Q, K[s : s + 4], V[s : s + 4]) for s in (0, 4)]
    combine = importlib.import_module("tracer.dataflow.paper.flash_attention_2_combine").algorithm
    O, L = combine(np.stack([p[0] for p in parts]), np.stack([p[1] for p in parts]), 2)  # noqa: E741
    whole = reference(np, Q, K, V)
    assert np.abs(O - whole[0]).max() < 1e-13 and np.abs(L - whole[1]).max() < 1e-13


def test_a_product_sums_over_what_its_operands_share() -> None:
    left = filled("id", [2, 2], lambda p: float(p["i"] * 2 + p["d"] + 1))
    right = filled("jd", [2, 2], lambda p: float(p["j"] - p["d"]))
    assert multiplied(left, right).numbers == (-2.0, 1.0, -4.0, 3.0)
    assert elementwise(max, reduced(max, left, ["d"]), scalar(3.0)).numbers == (3.0, 4.0)
