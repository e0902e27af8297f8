// Rung 2: the forward pass of FlashAttention-2 (Dao 2023, arXiv 2307.08691, Algorithm 1).
//
// What it adds to rung 1: the loops are exchanged. A thread block owns one tile Q_i and walks over all K_j, V_j, so
// O_i, m_i and l_i stay in registers for the whole walk. O_i is kept unnormalised: it is divided by l_i once, at the
// end, and written once, together with LSE = m_i + log(l_i). Blocks need nothing from each other.
//
// One block is B_r / 16 warps. A warp owns 16 rows of Q_i. Its 32 lanes share the columns of a row: lane n holds the
// columns n, n + 32, n + 64, … of S_ij, P_ij and O_i, so a sum or maximum over a row is one over the lanes.
//
// Template parameters: T element type; B_r, B_c rows of a Q and of a K/V tile; d head dimension, rounded up to a
// multiple of 32 (columns beyond head_dim are zero); Is_softcap, Has_alibi whether the scores are changed before the
// softmax.
#pragma once
#include "attention_shape.cuh"

// The tiles in shared memory. Each row of K_j is longer by one 4-byte bank, so that the same column of 32 rows, which
// the 32 lanes of a warp read at once, lies in 32 different banks.
template <typename T, int B_r, int B_c, int d>
struct Forward2Tiles {
  float P_ij[B_r][B_c];
  T Q_i[B_r][d];
  T K_j[B_c][d + 4 / sizeof(T)];
  T V_j[B_c][d];
};

template <typename T, int B_r, int B_c, int d, bool Is_softcap, bool Has_alibi>
__global__ void __launch_bounds__(2 * B_r, 1)
flash_attention_2_forward(GlobalPtr<const T> Q, GlobalPtr<const T> K, GlobalPtr<const T> V,
                          GlobalPtr<T> O, GlobalPtr<float> LSE,
                          GlobalPtr<const int> cu_seqlens_q, GlobalPtr<const int> cu_seqlens_k,
                          GlobalPtr<const float> alibi_slopes, AttentionShape shape) {
  constexpr int kThreads = 2 * B_r;
  constexpr int R = 16;        // rows of a warp
  constexpr int C = B_c / 32;  // columns of S_ij and P_ij per lane
  constexpr int D = d / 32;    // columns of O_i per lane

  const int i = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
  const int head_k = head / (shape.heads_q / shape.heads_k);
  const int head_dim = shape.head_dim;
  const int first_row = threadIdx.x / 32 * R;  // of this warp, in the tile
  const int lane = threadIdx.x % 32;

  const Sequence sequence = sequence_of_batch(shape, cu_seqlens_q, cu_seqlens_k, batch);
  const int seqlen_q = sequence.seqlen_q, seqlen_k = sequence.seqlen_k;
  const int q0 = i * B_r;         // first row of Q_i in its sequence
  if (q0 >= seqlen_q) return;     // this sequence is shorter than the longest; the whole block leaves

  DYNAMIC_SHARED(shared);
  auto& tiles = *reinterpret_cast<Forward2Tiles<T, B_r, B_c, d>*>(shared);
  T (&Q_i)[B_r][d] = tiles.Q_i;
  T (&K_j)[B_c][d + 4 / sizeof(T)] = tiles.K_j;
  T (&V_j)[B_c][d] = tiles.V_j;
  float (&P_ij)[B_r][B_c] = tiles.P_ij;

  // Load Q_i from HBM, once. Rows beyond the sequence are zero.
  for (int x = threadIdx.x; x < B_r * d; x += kThreads) {
    const int r = x / d, k = x % d;
    const bool inside = q0 + r < seqlen_q && k < head_dim;
    Q_i[r][k] = inside ? T(Q[row_offset(sequence.first_q + q0 + r, shape.heads_q, head, head_dim) + k]) : T(0.f);
  }

  // Initialise O_i = 0, l_i = 0, m_i = -inf.
  float O_i[R][D];                // [B_r, d]
  float m_i[R], l_i[R];           // [B_r]
#pragma unroll
  for (int r = 0; r < R; r++) {
    m_i[r] = -INFINITY;
    l_i[r] = 0.f;
#pragma unroll
    for (int t = 0; t < D; t++) O_i[r][t] = 0.f;
  }

  const float slope = Has_alibi ? float(alibi_slopes[batch * shape.heads_q + head]) : 0.f;

  // The tiles j that hold a column which some row of Q_i sees.
  const int shift = seqlen_k - seqlen_q;
  const int first_column = max(0, q0 + shift - shape.window_left);
  const int end_column = min(seqlen_k, q0 + B_r + shift + shape.window_right);
  const int T_c = ceil_div(max(end_column, 0), B_c);

  for (int j = first_column / B_c; j < T_c; j++) {
    const int k0 = j * B_c;       // first row of K_j and V_j, and first column of S_ij

    // Every warp must be done with the K_j and V_j of the last step before they are overwritten.
    __syncthreads();

    // Load K_j, V_j from HBM.
    for (int x = threadIdx.x; x < B_c * d; x += kThreads) {
      const int c = x / d, k = x % d;
      const bool inside = k0 + c < seqlen_k && k < head_dim;
      const size_t at = row_offset(sequence.first_k + k0 + c, shape.heads_k, head_k, head_dim) + k;
      K_j[c][k] = inside ? T(K[at]) : T(0.f);
      V_j[c][k] = inside ? T(V[at]) : T(0.f);
    }

    // Q_i, K_j and V_j are read below by other threads than those that stored them.
    __syncthreads();

    // S_ij = Q_i K_j^T
    float S_ij[R][C];             // [B_r, B_c]
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

    float alpha[R];               // [B_r]
#pragma unroll
    for (int r = 0; r < R; r++) {
      // m_ij = rowmax(S_ij)
      float m_ij = S_ij[r][0];
#pragma unroll
      for (int c = 1; c < C; c++) m_ij = fmaxf(m_ij, S_ij[r][c]);
      m_ij = warp_max(m_ij);

      // m_new = max(m_i, m_ij)
      const float m_new = fmaxf(m_i[r], m_ij);
      // A row that has seen nothing yet: exp(-inf - 0) = 0 where exp(-inf - (-inf)) would be NaN.
      const float m_safe = m_new == -INFINITY ? 0.f : m_new;
      alpha[r] = expf(m_i[r] - m_safe);

      // P_ij = exp(S_ij - m_new),  l_ij = rowsum(P_ij)
      float l_ij = 0.f;
#pragma unroll
      for (int c = 0; c < C; c++) {
        const float p = expf(S_ij[r][c] - m_safe);
        P_ij[first_row + r][c * 32 + lane] = p;
        l_ij += p;
      }
      l_ij = warp_sum(l_ij);

      // l_i = alpha l_i + l_ij
      l_i[r] = alpha[r] * l_i[r] + l_ij;
      m_i[r] = m_new;
    }

    // A lane reads the P_ij of the other lanes of its warp.
    __syncwarp();

    // O_i = alpha O_i + P_ij V_j
#pragma unroll
    for (int r = 0; r < R; r++) {
#pragma unroll
      for (int t = 0; t < D; t++) O_i[r][t] = alpha[r] * O_i[r][t];
    }
    for (int c = 0; c < B_c; c++) {
#pragma unroll
      for (int t = 0; t < D; t++) {
        const float V_ct = float(V_j[c][t * 32 + lane]);
#pragma unroll
        for (int r = 0; r < R; r++) O_i[r][t] += P_ij[first_row + r][c] * V_ct;
      }
    }
    // The next step overwrites P_ij; the barrier at its start waits for all lanes that still read it.
  }

  // O_i = O_i / l_i,  LSE = m_i + log(l_i), written once. A row that has seen nothing gets O = 0, LSE = +inf.
#pragma unroll
  for (int r = 0; r < R; r++) {
    const int row = q0 + first_row + r;
    if (row >= seqlen_q) continue;
#pragma unroll
    for (int t = 0; t < D; t++) {
      const int k = t * 32 + lane;
      if (k >= head_dim) continue;
      O[row_offset(sequence.first_q + row, shape.heads_q, head, head_dim) + k] =
          T(l_i[r] == 0.f ? 0.f : O_i[r][t] / l_i[r]);
    }
    if (lane == 0) {
      LSE[statistics_offset(shape, sequence, batch, head) + row] =
          l_i[r] == 0.f ? INFINITY : m_i[r] + logf(l_i[r]);
    }
  }
}
