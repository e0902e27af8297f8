"""FlashAttention (Dao et al. 2022, arXiv 2205.14135), Algorithm 1: the forward pass, K and V in the outer loop."""

# mypy: ignore-errors
import numpy as np

ALGORITHM = "FlashAttention forward"

#: Of each symbol: what it is, its shape, and the line of the printed algorithm.
SYMBOLS = {
    "K_j": ("tile j of the keys", "B_c x d", 6),
    "V_j": ("tile j of the values", "B_c x d", 6),
    "Q_i": ("tile i of the queries", "B_r x d", 8),
    "S_ij": ("scores of tile (i, j)", "B_r x B_c", 9),
    "m_ij": ("row maximum of tile (i, j)", "B_r", 10),
    "P_ij": ("probabilities before they are normalised", "B_r x B_c", 10),
    "l_ij": ("row sum of tile (i, j)", "B_r", 10),
    "m_new": ("running row maximum after tile j", "B_r", 11),
    "alpha": ("rescale factor of what was", "B_r", 11),
    "beta": ("rescale factor of what this tile adds", "B_r", 11),
    "l_new": ("running row sum after tile j", "B_r", 11),
    "O": ("output, normalised at every step", "N x d", 12),
    "l": ("running row sums", "N", 13),
    "m": ("running row maxima", "N", 13),
}


def algorithm(Q, K, V, O, l, m, B_r, B_c, scale):  # noqa: E741
    """Return (O, l, m) for one head; Q, K, V, O are [N, d], l and m are [N]: O, l, m live in HBM."""
    N, M = Q.shape[0], K.shape[0]
    O[:] = 0.0
    l[:] = 0.0
    m[:] = -np.inf
    for j in range(0, M, B_c):
        K_j, V_j = K[j : j + B_c], V[j : j + B_c]
        for i in range(0, N, B_r):
            Q_i, O_i, l_i, m_i = Q[i : i + B_r], O[i : i + B_r], l[i : i + B_r], m[i : i + B_r]
            S_ij = scale * (Q_i @ K_j.T)
            S_ij = np.where(np.arange(j, j + len(K_j)) < M, S_ij, -np.inf)
            m_ij = S_ij.max(axis=1)
            P_ij = np.exp(S_ij - m_ij[:, None])
            l_ij = P_ij.sum(axis=1)
            m_new = np.maximum(m_i, m_ij)
            alpha, beta = np.exp(m_i - m_new), np.exp(m_ij - m_new)
            l_new = alpha * l_i + beta * l_ij
            O[i : i + B_r] = (l_i[:, None] * alpha[:, None] * O_i + beta[:, None] * (P_ij @ V_j)) / l_new[:, None]
            l[i : i + B_r] = l_new
            m[i : i + B_r] = m_new
    return O, l, m
