"""FlashAttention (Dao et al. 2022, arXiv 2205.14135), Algorithm 4: the backward pass, from O, l and m."""

# mypy: ignore-errors
import numpy as np

ALGORITHM = "FlashAttention backward"

#: Of each symbol: what it is, its shape, and the line of the printed algorithm.
SYMBOLS = {
    "K_j": ("tile j of the keys", "B_c x d", 8),
    "V_j": ("tile j of the values", "B_c x d", 8),
    "Q_i": ("tile i of the queries", "B_r x d", 11),
    "dO_i": ("tile i of the output's gradient", "B_r x d", 11),
    "S_ij": ("scores of tile (i, j)", "B_r x B_c", 12),
    "P_ij": ("probabilities", "B_r x B_c", 14),
    "dV_j": ("gradient of V_j", "B_c x d", 17),
    "dP_ij": ("gradient of P_ij", "B_r x B_c", 18),
    "D_i": ("row sum of dO * O", "B_r", 20),
    "dS_ij": ("gradient of S_ij", "B_r x B_c", 21),
    "dQ": ("gradient of Q", "N x d", 22),
    "dK_j": ("gradient of K_j", "B_c x d", 23),
    "dK": ("gradient of K", "N x d", 25),
    "dV": ("gradient of V", "N x d", 25),
}


def algorithm(Q, K, V, O, dO, l, m, B_r, B_c, scale):  # noqa: E741
    """Return (dQ, dK, dV) for one head; Q, K, V, O, dO are [N, d], l and m are [N]."""
    N, d = Q.shape
    M = K.shape[0]
    dQ, dK, dV = np.zeros((N, d)), np.empty((M, d)), np.empty((M, d))
    for j in range(0, M, B_c):
        K_j, V_j = K[j : j + B_c], V[j : j + B_c]
        dK_j, dV_j = np.zeros(K_j.shape), np.zeros(V_j.shape)
        for i in range(0, N, B_r):
            Q_i, O_i, dO_i, l_i, m_i = Q[i : i + B_r], O[i : i + B_r], dO[i : i + B_r], l[i : i + B_r], m[i : i + B_r]
            S_ij = scale * (Q_i @ K_j.T)
            S_ij = np.where(np.arange(j, j + len(K_j)) < M, S_ij, -np.inf)
            P_ij = np.exp(S_ij - m_i[:, None]) / l_i[:, None]
            dV_j += P_ij.T @ dO_i
            dP_ij = dO_i @ V_j.T
            D_i = (dO_i * O_i).sum(axis=1)
            dS_ij = P_ij * (dP_ij - D_i[:, None])
            dQ[i : i + B_r] += scale * (dS_ij @ K_j)
            dK_j += scale * (dS_ij.T @ Q_i)
        dK[j : j + B_c] = dK_j
        dV[j : j + B_c] = dV_j
    return dQ, dK, dV
