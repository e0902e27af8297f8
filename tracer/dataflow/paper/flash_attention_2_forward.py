"""FlashAttention-2 (Dao 2023, arXiv 2307.08691), Algorithm 1: the forward pass."""

# mypy: ignore-errors
import numpy as np

ALGORITHM = "FlashAttention-2 forward"

#: Of each symbol: what it is, its shape, and the line of the printed algorithm.
SYMBOLS = {
    "Q_i": ("tile i of the queries", "B_r x d", 4),
    "K_j": ("tile j of the keys", "B_c x d", 7),
    "V_j": ("tile j of the values", "B_c x d", 7),
    "S_ij": ("scores of tile (i, j)", "B_r x B_c", 8),
    "m_ij": ("row maximum of tile (i, j)", "B_r", 9),
    "m_prev": ("row maximum before tile j", "B_r", 9),
    "m_i": ("running row maximum", "B_r", 9),
    "alpha": ("rescale factor", "B_r", 9),
    "P_ij": ("unnormalised probabilities", "B_r x B_c", 9),
    "l_ij": ("row sum of tile (i, j)", "B_r", 9),
    "l_i": ("running row sum", "B_r", 9),
    "O_i": ("output accumulator", "B_r x d", 10),
    "O": ("output", "N x d", 14),
    "L": ("log-sum-exp of the rows", "N", 15),
}


def algorithm(Q, K, V, B_r, B_c, scale):
    """Return (O, L) for one head; Q, K, V are [N, d], and ``scale`` multiplies the scores."""
    N, d = Q.shape
    M = K.shape[0]
    O, L = np.empty((N, d)), np.empty(N)  # noqa: E741
    for i in range(0, N, B_r):
        Q_i = Q[i : i + B_r]
        O_i, l_i, m_i = np.zeros(Q_i.shape), np.zeros(len(Q_i)), np.full(len(Q_i), -np.inf)
        for j in range(0, M, B_c):
            K_j, V_j = K[j : j + B_c], V[j : j + B_c]
            S_ij = scale * (Q_i @ K_j.T)
            S_ij = np.where(np.arange(j, j + len(K_j)) < M, S_ij, -np.inf)
            m_ij = S_ij.max(axis=1)
            m_prev = m_i
            m_i = np.maximum(m_prev, m_ij)
            P_ij = np.exp(S_ij - m_i[:, None])
            alpha = np.exp(m_prev - m_i)
            l_ij = P_ij.sum(axis=1)
            l_i = alpha * l_i + l_ij
            O_i = alpha[:, None] * O_i + P_ij @ V_j
        O[i : i + B_r] = O_i / l_i[:, None]
        L[i : i + B_r] = m_i + np.log(l_i)
    return O, L
