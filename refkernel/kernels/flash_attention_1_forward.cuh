// Rung 1: the forward pass of FlashAttention as first printed (Dao et al. 2022, arXiv 2205.14135, Algorithm 1).
//
// The outer loop is over K_j, V_j and the inner one over Q_i. O, l and m live in HBM: each step reads the tile's O_i,
// l_i, m_i, brings them up to date and writes them back, O_i normalised every time. The numbers in the comments are the
// lines of the printed algorithm. What the paper leaves to its appendix is added here: the mask, and guards for rows
// that have seen nothing yet.
//
// One block does one head of one sequence: the outer loop carries O, l, m from step to step, so it cannot be shared
// out. The block is B_r / 8 warps. A warp owns 8 rows of Q_i. Its 32 lanes share the columns of a row: lane n holds
// the columns n, n + 32, n + 64, … of S_ij, P_ij and O_i, so a sum or maximum over a row is one over the lanes.
//
// Template parameters: T element type of Q, K, V (O is fp32 here, since it is rounded at every step); B_r, B_c rows
// of a Q and of a K/V tile; d head dimension, rounded up to a multiple of 32 (columns beyond head_dim are zero);
// Is_softcap, Has_alibi whether the scores are changed before the softmax.
#pragma once
#include "attention_shape.cuh"

// The tiles in shared memory. Each row of K_j is longer by one 4-byte bank, so that the same column of 32 rows, which
// the 32 lanes of a warp read at once, lies in 32 different banks.
template <typename T, int B_r, int B_c, int d>
struct Forward1Tiles {
  float P_ij[B_r][B_c];
  float l_i[B_r], m_i[B_r];
  T Q_i[B_r][d];
  T K_j[B_c][d + 4 / sizeof(T)];
  T V_j[B_c][d];
};

template <typename T, int B_r, int B_c, int d, bool Is_softcap, bool Has_alibi>
__global__ void __launch_bounds__(4 * B_r, 1)
flash_attention_1_forward(GlobalPtr<const T> Q, GlobalPtr<const T> K, GlobalPtr<const T> V,
                          GlobalPtr<float> O, GlobalPtr<float> l, GlobalPtr<float> m,
                          GlobalPtr<const int> cu_seqlens_q, GlobalPtr<const int> cu_seqlens_k,
                          GlobalPtr<const float> alibi_slopes, AttentionShape shape) {
  constexpr int kThreads = 4 * B_r;
  constexpr int R = 8;         // rows of a warp
  constexpr int C = B_c / 32;  // columns of S_ij and P_ij per lane
  constexpr int D = d / 32;    // columns of O_i per lane

  const int head = blockIdx.x, batch = blockIdx.y;
  const int head_k = head / (shape.heads_q / shape.heads_k);
  const int head_dim = shape.head_dim;
  const int first_row = threadIdx.x / 32 * R;  // of this warp, in the tile
  const int lane = threadIdx.x % 32;

  const Sequence sequence = sequence_of_batch(shape, cu_seqlens_q, cu_seqlens_k, batch);
  const int seqlen_q = sequence.seqlen_q, seqlen_k = sequence.seqlen_k;
  const int shift = seqlen_k - seqlen_q;
  const size_t statistics = statistics_offset(shape, sequence, batch, head);  // where l and m begin
  const float slope = Has_alibi ? float(alibi_slopes[batch * shape.heads_q + head]) : 0.f;

  DYNAMIC_SHARED(shared);
  auto& tiles = *reinterpret_cast<Forward1Tiles<T, B_r, B_c, d>*>(shared);
  T (&Q_i)[B_r][d] = tiles.Q_i;
  T (&K_j)[B_c][d + 4 / sizeof(T)] = tiles.K_j;
  T (&V_j)[B_c][d] = tiles.V_j;
  float (&P_ij)[B_r][B_c] = tiles.P_ij;
  float (&l_i)[B_r] = tiles.l_i;
  float (&m_i)[B_r] = tiles.m_i;

  // 2: initialise O = 0, l = 0, m = -inf in HBM.
  for (int x = threadIdx.x; x < seqlen_q * head_dim; x += kThreads) {
    O[row_offset(sequence.first_q + x / head_dim, shape.heads_q, head, head_dim) + x % head_dim] = 0.f;
  }
  for (int row = threadIdx.x; row < seqlen_q; row += kThreads) {
    l[statistics + row] = 0.f;
    m[statistics + row] = -INFINITY;
  }

  // 5: for each tile j of K and V
  const int T_c = ceil_div(seqlen_k, B_c);
  for (int j = 0; j < T_c; j++) {
    const int k0 = j * B_c;       // first row of K_j and V_j, and first column of S_ij

    // Every warp must be done with the K_j and V_j of the last step before they are overwritten.
    __syncthreads();

    // 6: load K_j, V_j from HBM.
    for (int x = threadIdx.x; x < B_c * d; x += kThreads) {
      const int c = x / d, k = x % d;
      const bool inside = k0 + c < seqlen_k && k < head_dim;
      const size_t at = row_offset(sequence.first_k + k0 + c, shape.heads_k, head_k, head_dim) + k;
      K_j[c][k] = inside ? T(K[at]) : T(0.f);
      V_j[c][k] = inside ? T(V[at]) : T(0.f);
    }

    // 7: for each tile i of Q that holds a row which sees some column of K_j
    const int begin_row = max(0, k0 - shift - shape.window_right);
    const int end_row = min(seqlen_q, k0 + B_c - shift + shape.window_left);
    const int T_r = ceil_div(max(end_row, 0), B_r);
    for (int i = begin_row / B_r; i < T_r; i++) {
      const int q0 = i * B_r;     // first row of Q_i in its sequence

      // Every warp must be done with the Q_i, l_i and m_i of the last step before they are overwritten; and what it
      // stored to l and m in HBM must be there.
      __syncthreads();

      // 8: load Q_i, l_i, m_i from HBM (O_i at 12, where it is used). Rows beyond the sequence are zero.
      for (int x = threadIdx.x; x < B_r * d; x += kThreads) {
        const int r = x / d, k = x % d;
        const bool inside = q0 + r < seqlen_q && k < head_dim;
        Q_i[r][k] = inside ? T(Q[row_offset(sequence.first_q + q0 + r, shape.heads_q, head, head_dim) + k]) : T(0.f);
      }
      for (int r = threadIdx.x; r < B_r; r += kThreads) {
        l_i[r] = q0 + r < seqlen_q ? float(l[statistics + q0 + r]) : 0.f;
        m_i[r] = q0 + r < seqlen_q ? float(m[statistics + q0 + r]) : -INFINITY;
      }

      // The tiles are read below by other threads than those that stored them.
      __syncthreads();

      // 9: S_ij = Q_i K_j^T
      float S_ij[R][C];           // [B_r, B_c]
#pragma unroll
      for (int r = 0; r < R; r++) {
#pragma unroll
        for (int c = 0; c < C; c++) S_ij[r][c] = 0.f;
      }
      for (int k = 0; k < d; k++) {
#pragma unroll
        for (int c = 0; c < C; c++) {
          const float K_ck = float(K_j[c * 32 + lane][k]);
#pragma unroll
          for (int r = 0; r < R; r++) S_ij[r][c] += float(Q_i[first_row + r][k]) * K_ck;
        }
      }

      // Scale, and hide what a row must not see.
#pragma unroll
      for (int r = 0; r < R; r++) {
        const int row = q0 + first_row + r;
#pragma unroll
        for (int c = 0; c < C; c++) {
          const int column = k0 + c * 32 + lane;
          float score = S_ij[r][c] * shape.softmax_scale;
          if constexpr (Is_softcap) score = shape.softcap * tanhf(score / shape.softcap);
          if constexpr (Has_alibi) score -= slope * abs(row + shift - column);
          const bool visible = column < seqlen_k && column >= row + shift - shape.window_left &&
                               column <= row + shift + shape.window_right;
          S_ij[r][c] = visible ? score : -INFINITY;
        }
      }

      float alpha[R], beta[R];    // [B_r], weights of what was and of what this tile adds
      float l_new[R], m_new[R];   // [B_r]
#pragma unroll
      for (int r = 0; r < R; r++) {
        // 10: m_ij = rowmax(S_ij),  P_ij = exp(S_ij - m_ij),  l_ij = rowsum(P_ij)
        float m_ij = S_ij[r][0];
#pragma unroll
        for (int c = 1; c < C; c++) m_ij = fmaxf(m_ij, S_ij[r][c]);
        m_ij = warp_max(m_ij);
        // A row that sees nothing here: exp(-inf - 0) = 0 where exp(-inf - (-inf)) would be NaN.
        const float m_ij_safe = m_ij == -INFINITY ? 0.f : m_ij;
        float l_ij = 0.f;
#pragma unroll
        for (int c = 0; c < C; c++) {
          const float p = expf(S_ij[r][c] - m_ij_safe);
          P_ij[first_row + r][c * 32 + lane] = p;
          l_ij += p;
        }
        l_ij = warp_sum(l_ij);

        // 11: m_new = max(m_i, m_ij),  l_new = exp(m_i - m_new) l_i + exp(m_ij - m_new) l_ij
        m_new[r] = fmaxf(m_i[first_row + r], m_ij);
        const float m_safe = m_new[r] == -INFINITY ? 0.f : m_new[r];
        alpha[r] = expf(m_i[first_row + r] - m_safe);
        beta[r] = expf(m_ij - m_safe);
        l_new[r] = alpha[r] * l_i[first_row + r] + beta[r] * l_ij;
      }

      // A lane reads the P_ij of the other lanes of its warp.
      __syncwarp();

      // 12: P_ij V_j
      float PV_ij[R][D];          // [B_r, d]
#pragma unroll
      for (int r = 0; r < R; r++) {
#pragma unroll
        for (int t = 0; t < D; t++) PV_ij[r][t] = 0.f;
      }
      for (int c = 0; c < B_c; c++) {
#pragma unroll
        for (int t = 0; t < D; t++) {
          const float V_ct = float(V_j[c][t * 32 + lane]);
#pragma unroll
          for (int r = 0; r < R; r++) PV_ij[r][t] += P_ij[first_row + r][c] * V_ct;
        }
      }

      // 12: O_i = (l_i exp(m_i - m_new) O_i + exp(m_ij - m_new) P_ij V_j) / l_new, read and written in HBM
      // 13: l_i = l_new, m_i = m_new, written to HBM
      float O_i[R][D];            // [B_r, d]
#pragma unroll
      for (int r = 0; r < R; r++) {
        const int row = q0 + first_row + r;
        if (row >= seqlen_q) continue;
#pragma unroll
        for (int t = 0; t < D; t++) {
          const int k = t * 32 + lane;
          if (k >= head_dim) continue;
          const size_t at = row_offset(sequence.first_q + row, shape.heads_q, head, head_dim) + k;
          O_i[r][t] = float(O[at]);
          O_i[r][t] = l_i[first_row + r] * alpha[r] * O_i[r][t] + beta[r] * PV_ij[r][t];
          O_i[r][t] = l_new[r] == 0.f ? 0.f : O_i[r][t] / l_new[r];
          O[at] = O_i[r][t];
        }
        if (lane == 0) {
          l[statistics + row] = l_new[r];
          m[statistics + row] = m_new[r];
        }
      }
    }
  }
}
