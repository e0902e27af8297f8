"""FlashAttention-2 (Dao 2023, arXiv 2307.08691), Algorithm 2, line 4: D = rowsum(dO * O)."""

# mypy: ignore-errors
import numpy as np

ALGORITHM = "FlashAttention-2 backward, row sums"

#: Of each symbol: what it is, its shape, and the line of the printed algorithm.
SYMBOLS = {
    "O_i": ("tile i of the output", "B_r x d", 4),
    "dO_i": ("tile i of the output's gradient", "B_r x d", 4),
    "D": ("row sums of dO * O", "N", 4),
}


def algorithm(O, dO, B_r):  # noqa: E741
    """Return D for one head; O and dO are [N, d]."""
    N = O.shape[0]
    D = np.empty(N)
    for i in range(0, N, B_r):
        O_i, dO_i = O[i : i + B_r], dO[i : i + B_r]
        D[i : i + B_r] = (dO_i * O_i).sum(axis=1)
    return D
