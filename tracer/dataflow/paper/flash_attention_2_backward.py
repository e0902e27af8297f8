"""FlashAttention-2 (Dao 2023, arXiv 2307.08691), Algorithm 2: the backward pass, after its line 4 has prepared D."""

# mypy: ignore-errors
import numpy as np

ALGORITHM = "FlashAttention-2 backward"

#: Of each symbol: what it is, its shape, and the line of the printed algorithm.
SYMBOLS = {
    "K_j": ("tile j of the keys", "B_c x d", 6),
    "V_j": ("tile j of the values", "B_c x d", 6),
    "Q_i": ("tile i of the queries", "B_r x d", 9),
    "dO_i": ("tile i of the output's gradient", "B_r x d", 9),
    "L_i": ("log-sum-exp of the rows of tile i", "B_r", 9),
    "D_i": ("row sum of dO * O of tile i", "B_r", 9),
    "S_ij": ("scores of tile (i, j)", "B_r x B_c", 10),
    "P_ij": ("probabilities", "B_r x B_c", 11),
    "dV_j": ("gradient of V_j", "B_c x d", 12),
    "dP_ij": ("gradient of P_ij", "B_r x B_c", 13),
    "dS_ij": ("gradient of S_ij", "B_r x B_c", 14),
    "dQ": ("gradient of Q", "N x d", 15),
    "dK_j": ("gradient of K_j", "B_c x d", 16),
    "dK": ("gradient of K", "N x d", 18),
    "dV": ("gradient of V", "N x d", 18),
}


def algorithm(Q, K, V, dO, L, D, B_r, B_c, scale):
    """Return (dQ, dK, dV) for one head; Q, K, V, dO are [N, d], L and D are [N]."""
    N, d = Q.shape
    M = K.shape[0]
    dQ, dK, dV = np.zeros((N, d)), np.empty((M, d)), np.empty((M, d))
    for j in range(0, M, B_c):
        K_j, V_j = K[j : j + B_c], V[j : j + B_c]
        dK_j, dV_j = np.zeros(K_j.shape), np.zeros(V_j.shape)
        for i in range(0, N, B_r):
            Q_i, dO_i, L_i, D_i = Q[i : i + B_r], dO[i : i + B_r], L[i : i + B_r], D[i : i + B_r]
            S_ij = scale * (Q_i @ K_j.T)
            S_ij = np.where(np.arange(j, j + len(K_j)) < M, S_ij, -np.inf)
            P_ij = np.exp(S_ij - L_i[:, None])
            dV_j += P_ij.T @ dO_i
            dP_ij = dO_i @ V_j.T
            dS_ij = P_ij * (dP_ij - D_i[:, None])
            dQ[i : i + B_r] += scale * (dS_ij @ K_j)
            dK_j += scale * (dS_ij.T @ Q_i)
        dK[j : j + B_c] = dK_j
        dV[j : j + B_c] = dV_j
    return dQ, dK, dV
