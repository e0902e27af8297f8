"""Flash-decoding's second step: the outputs of several ranges of keys made one, by the log-sum-exp of each.

It is FlashAttention-2's rescaling (arXiv 2307.08691, section 2.3.1) applied once more: each range s has been normalised
by its own row sum, L_s is the logarithm of that sum, and the weight of range s is exp(L_s - L).
"""

# mypy: ignore-errors
import numpy as np

ALGORITHM = "combination of key ranges"

#: Of each symbol: what it is, its shape, and the equation.
SYMBOLS = {
    "L_s": ("log-sum-exp of each range", "S x B_r", 1),
    "m_i": ("row maximum over the ranges", "B_r", 1),
    "l_i": ("row sum over the ranges", "B_r", 2),
    "L_i": ("log-sum-exp of the rows", "B_r", 3),
    "w_s": ("weight of each range", "S x B_r", 4),
    "O_s": ("normalised output of one range", "B_r x d", 5),
    "O_i": ("output accumulator", "B_r x d", 5),
    "O": ("output", "N x d", 5),
    "L": ("log-sum-exp", "N", 3),
}


def algorithm(O_parts, L_parts, B_r):
    """Return (O, L) from the parts: O_parts is [S, N, d], L_parts is [S, N]."""
    S, N, d = O_parts.shape
    O, L = np.empty((N, d)), np.empty(N)  # noqa: E741
    for i in range(0, N, B_r):
        L_s = L_parts[:, i : i + B_r]
        m_i = L_s.max(axis=0)
        l_i = np.exp(L_s - m_i).sum(axis=0)
        L_i = m_i + np.log(l_i)
        w_s = np.exp(L_s - L_i)
        O_i = np.zeros((len(m_i), d))
        for s in range(0, S, 1):
            O_s = O_parts[s, i : i + B_r]
            O_i += w_s[s][:, None] * O_s
        O[i : i + B_r] = O_i
        L[i : i + B_r] = L_i
    return O, L
