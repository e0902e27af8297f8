// Rung 3: the backward pass of FlashAttention-2 (Dao 2023, arXiv 2307.08691, Algorithm 2).
//
// What it adds to rung 2: nothing of size N x N was kept by the forward pass, so S_ij is computed again and P_ij
// follows from it and LSE without a running maximum. A block owns one tile K_j, V_j and walks over all Q_i, dO_i;
// dK_j and dV_j stay in registers. Every block adds to every dQ_i, so dQ is summed in HBM, in fp32, with atomic adds;
// whoever calls sets it to zero first. A second, small kernel prepares D = rowsum(dO * O).
//
// One block is 8 warps. For S_ij, P_ij, dP_ij, dS_ij and dQ_i a warp owns B_r / 8 rows, for dK_j and dV_j it owns B_c
// / 8 rows. Lane n holds the columns n, n + 32, n + 64, … of a row. P_ij and dS_ij pass through shared memory,
// because their transposes are needed.
//
// With fewer key than query heads, dK and dV have one head per query head here; their sums over the query heads that
// share a key head are the gradients.
//
// Template parameters: T element type; B_r, B_c rows of a Q and of a K/V tile; d head dimension, rounded up to a
// multiple of 32 (columns beyond head_dim are zero); Is_softcap, Has_alibi whether the scores are changed before the
// softmax.
#pragma once
#include "attention_shape.cuh"

constexpr int kBackwardWarps = 8;

// D = rowsum(dO * O): one warp per row.
template <typename T>
__global__ void __launch_bounds__(32 * kBackwardWarps)
flash_attention_2_backward_D(GlobalPtr<const T> O, GlobalPtr<const T> dO, GlobalPtr<float> D,
                             GlobalPtr<const int> cu_seqlens_q, GlobalPtr<const int> cu_seqlens_k,
                             AttentionShape shape) {
  const int row = blockIdx.x * kBackwardWarps + threadIdx.x / 32, head = blockIdx.y, batch = blockIdx.z;
  const int lane = threadIdx.x % 32;
  const Sequence sequence = sequence_of_batch(shape, cu_seqlens_q, cu_seqlens_k, batch);
  if (row >= sequence.seqlen_q) return;  // the whole warp leaves

  const size_t at = row_offset(sequence.first_q + row, shape.heads_q, head, shape.head_dim);
  float D_i = 0.f;
  for (int k = lane; k < shape.head_dim; k += 32) D_i += float(T(dO[at + k])) * float(T(O[at + k]));
  D_i = warp_sum(D_i);
  if (lane == 0) D[statistics_offset(shape, sequence, batch, head) + row] = D_i;
}

// The tiles in shared memory. Rows of K_j and V_j are longer by one 4-byte bank, so that the same column of 32 rows,
// which the 32 lanes of a warp read at once, lies in 32 different banks.
template <typename T, int B_r, int B_c, int d>
struct BackwardTiles {
  float P_ij[B_r][B_c], dS_ij[B_r][B_c];
  float LSE_i[B_r], D_i[B_r];
  T Q_i[B_r][d], dO_i[B_r][d];
  T K_j[B_c][d + 4 / sizeof(T)], V_j[B_c][d + 4 / sizeof(T)];
};

template <typename T, int B_r, int B_c, int d, bool Is_softcap, bool Has_alibi>
__global__ void __launch_bounds__(32 * kBackwardWarps, 1)
flash_attention_2_backward(GlobalPtr<const T> Q, GlobalPtr<const T> K, GlobalPtr<const T> V, GlobalPtr<const T> dO,
                           GlobalPtr<const float> LSE, GlobalPtr<const float> D,
                           GlobalPtr<float> dQ, GlobalPtr<T> dK, GlobalPtr<T> dV,
                           GlobalPtr<const int> cu_seqlens_q, GlobalPtr<const int> cu_seqlens_k,
                           GlobalPtr<const float> alibi_slopes, AttentionShape shape) {
  constexpr int kThreads = 32 * kBackwardWarps;
  constexpr int R = B_r / kBackwardWarps;    // rows of S_ij of a warp
  constexpr int R_k = B_c / kBackwardWarps;  // rows of dK_j and dV_j of a warp
  constexpr int C = B_c / 32;                // columns of S_ij per lane
  constexpr int N_t = d / 32;                // columns of dQ_i, dK_j and dV_j per lane

  const int j = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
  const int head_k = head / (shape.heads_q / shape.heads_k);
  const int head_dim = shape.head_dim;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

  const Sequence sequence = sequence_of_batch(shape, cu_seqlens_q, cu_seqlens_k, batch);
  const int seqlen_q = sequence.seqlen_q, seqlen_k = sequence.seqlen_k;
  const int shift = seqlen_k - seqlen_q;
  const int k0 = j * B_c;         // first row of K_j and V_j, and first column of S_ij
  if (k0 >= seqlen_k) return;     // this sequence is shorter than the longest; the whole block leaves
  const size_t statistics = statistics_offset(shape, sequence, batch, head);  // where LSE and D begin
  const float slope = Has_alibi ? float(alibi_slopes[batch * shape.heads_q + head]) : 0.f;

  DYNAMIC_SHARED(shared);
  auto& tiles = *reinterpret_cast<BackwardTiles<T, B_r, B_c, d>*>(shared);
  T (&Q_i)[B_r][d] = tiles.Q_i;
  T (&dO_i)[B_r][d] = tiles.dO_i;
  T (&K_j)[B_c][d + 4 / sizeof(T)] = tiles.K_j;
  T (&V_j)[B_c][d + 4 / sizeof(T)] = tiles.V_j;
  float (&P_ij)[B_r][B_c] = tiles.P_ij;
  float (&dS_ij)[B_r][B_c] = tiles.dS_ij;
  float (&LSE_i)[B_r] = tiles.LSE_i;
  float (&D_i)[B_r] = tiles.D_i;

  // Load K_j, V_j from HBM, once. Rows beyond the sequence are zero.
  for (int x = threadIdx.x; x < B_c * d; x += kThreads) {
    const int c = x / d, k = x % d;
    const bool inside = k0 + c < seqlen_k && k < head_dim;
    const size_t at = row_offset(sequence.first_k + k0 + c, shape.heads_k, head_k, head_dim) + k;
    K_j[c][k] = inside ? T(K[at]) : T(0.f);
    V_j[c][k] = inside ? T(V[at]) : T(0.f);
  }

  // Initialise dK_j = 0, dV_j = 0.
  float dK_j[R_k][N_t], dV_j[R_k][N_t];      // [B_c, d]
#pragma unroll
  for (int c = 0; c < R_k; c++) {
#pragma unroll
    for (int t = 0; t < N_t; t++) {
      dK_j[c][t] = 0.f;
      dV_j[c][t] = 0.f;
    }
  }

  // The tiles i that hold a row which sees some column of K_j.
  const int begin_row = max(0, k0 - shift - shape.window_right);
  const int end_row = min(seqlen_q, k0 + B_c - shift + shape.window_left);
  const int T_r = ceil_div(max(end_row, 0), B_r);

  for (int i = begin_row / B_r; i < T_r; i++) {
    const int q0 = i * B_r;       // first row of Q_i in its sequence

    // Every warp must be done with the Q_i, dO_i, P_ij and dS_ij of the last step before they are overwritten.
    __syncthreads();

    // Load Q_i, dO_i, LSE_i, D_i from HBM. A row beyond the sequence has LSE = +inf, so that its P_ij is 0.
    for (int x = threadIdx.x; x < B_r * d; x += kThreads) {
      const int r = x / d, k = x % d;
      const bool inside = q0 + r < seqlen_q && k < head_dim;
      const size_t at = row_offset(sequence.first_q + q0 + r, shape.heads_q, head, head_dim) + k;
      Q_i[r][k] = inside ? T(Q[at]) : T(0.f);
      dO_i[r][k] = inside ? T(dO[at]) : T(0.f);
    }
    for (int r = threadIdx.x; r < B_r; r += kThreads) {
      LSE_i[r] = q0 + r < seqlen_q ? float(LSE[statistics + q0 + r]) : INFINITY;
      D_i[r] = q0 + r < seqlen_q ? float(D[statistics + q0 + r]) : 0.f;
    }

    // The tiles are read below by other threads than those that stored them.
    __syncthreads();

    // S_ij = Q_i K_j^T,  dP_ij = dO_i V_j^T
    float S_ij[R][C], dP_ij[R][C];           // [B_r, B_c]
#pragma unroll
    for (int r = 0; r < R; r++) {
#pragma unroll
      for (int c = 0; c < C; c++) {
        S_ij[r][c] = 0.f;
        dP_ij[r][c] = 0.f;
      }
    }
    for (int k = 0; k < d; k++) {
#pragma unroll
      for (int c = 0; c < C; c++) {
        const float K_ck = float(K_j[c * 32 + lane][k]), V_ck = float(V_j[c * 32 + lane][k]);
#pragma unroll
        for (int r = 0; r < R; r++) {
          S_ij[r][c] += float(Q_i[warp * R + r][k]) * K_ck;
          dP_ij[r][c] += float(dO_i[warp * R + r][k]) * V_ck;
        }
      }
    }

    // Scale and hide as in the forward pass.
    // P_ij = exp(S_ij - LSE_i),  dS_ij = P_ij * (dP_ij - D_i)
#pragma unroll
    for (int r = 0; r < R; r++) {
      const int row = q0 + warp * R + r;
#pragma unroll
      for (int c = 0; c < C; c++) {
        const int column = k0 + c * 32 + lane;
        float score = S_ij[r][c] * shape.softmax_scale;
        float slope_of_cap = 1.f;            // derivative of the capped by the uncapped score
        if constexpr (Is_softcap) {
          const float ratio = tanhf(score / shape.softcap);
          score = shape.softcap * ratio;
          slope_of_cap = 1.f - ratio * ratio;
        }
        if constexpr (Has_alibi) score -= slope * abs(row + shift - column);
        const bool visible = column < seqlen_k && column >= row + shift - shape.window_left &&
                             column <= row + shift + shape.window_right;
        S_ij[r][c] = visible ? score : -INFINITY;

        const float p = expf(S_ij[r][c] - LSE_i[warp * R + r]);
        P_ij[warp * R + r][c * 32 + lane] = p;
        dS_ij[warp * R + r][c * 32 + lane] = p * (dP_ij[r][c] - D_i[warp * R + r]) * slope_of_cap;
      }
    }

    // dV_j and dK_j need all rows of P_ij and dS_ij, those of the other warps too.
    __syncthreads();

    // dV_j += P_ij^T dO_i,  dK_j += dS_ij^T Q_i      (dK_j lacks the factor softmax_scale until it is written)
    for (int r = 0; r < B_r; r++) {
#pragma unroll
      for (int t = 0; t < N_t; t++) {
        const float dO_rt = float(dO_i[r][t * 32 + lane]), Q_rt = float(Q_i[r][t * 32 + lane]);
#pragma unroll
        for (int c = 0; c < R_k; c++) {
          dV_j[c][t] += P_ij[r][warp * R_k + c] * dO_rt;
          dK_j[c][t] += dS_ij[r][warp * R_k + c] * Q_rt;
        }
      }
    }

    // dQ_i += softmax_scale dS_ij K_j, in HBM
    float dQ_i[R][N_t];                      // [B_r, d]
#pragma unroll
    for (int r = 0; r < R; r++) {
#pragma unroll
      for (int t = 0; t < N_t; t++) dQ_i[r][t] = 0.f;
    }
    for (int c = 0; c < B_c; c++) {
#pragma unroll
      for (int t = 0; t < N_t; t++) {
        const float K_ct = float(K_j[c][t * 32 + lane]);
#pragma unroll
        for (int r = 0; r < R; r++) dQ_i[r][t] += dS_ij[warp * R + r][c] * K_ct;
      }
    }
#pragma unroll
    for (int r = 0; r < R; r++) {
      const int row = q0 + warp * R + r;
      if (row >= seqlen_q) continue;
#pragma unroll
      for (int t = 0; t < N_t; t++) {
        const int k = t * 32 + lane;
        if (k >= head_dim) continue;
        const size_t at = row_offset(sequence.first_q + row, shape.heads_q, head, head_dim) + k;
        dQ.atomic_add(at, shape.softmax_scale * dQ_i[r][t]);
      }
    }
  }

  // Write dK_j, dV_j, once.
#pragma unroll
  for (int c = 0; c < R_k; c++) {
    const int row = k0 + warp * R_k + c;
    if (row >= seqlen_k) continue;
#pragma unroll
    for (int t = 0; t < N_t; t++) {
      const int k = t * 32 + lane;
      if (k >= head_dim) continue;
      const size_t at = row_offset(sequence.first_k + row, shape.heads_q, head, head_dim) + k;
      dK[at] = T(shape.softmax_scale * dK_j[c][t]);
      dV[at] = T(dV_j[c][t]);
    }
  }
}
