// Rung 4: rung 2 on tensor cores.
//
// What it adds: the two products run as mma instructions on 16-bit elements, which fixes where a lane's numbers lie
// (tensor_core.cuh). P_ij never leaves the registers: the layout of a product's result is that of a left operand. While
// one product runs, the tile for the next is on its way from HBM (cp.async). The softmax is computed with powers of
// two, with scale and log2(e) in one factor.
//
// One block is 4 warps. A warp owns B_r / 64 row tiles of 16 rows; a lane holds two rows of each, g and g + 8, and of
// each row two columns in every eight. l_i is a lane's share of the row sum until the end, where the four lanes of a
// row add up.
//
// Template parameters: T half_t or bf16_t; B_r, B_c rows of a Q and of a K/V tile; d head dimension, rounded up to a
// multiple of 32 (columns beyond head_dim are zero; head_dim is a multiple of 8); Is_softcap, Has_alibi whether the
// scores are changed before the softmax.
#pragma once
#include "attention_shape.cuh"
#include "tensor_core.cuh"

constexpr int kMmaThreads = 128;

// The tiles in shared memory; element (row, column) lies at swizzled<d>(row, column).
template <typename T, int B_r, int B_c, int d>
struct MmaTiles {
  T Q_i[B_r * d];
  T K_j[B_c * d];
  T V_j[B_c * d];
};

// Starts to copy `rows` rows of one head, from row `row` of a tensor on, into a tile. Those from `end_row` on become
// zero.
template <int rows, int d, typename T>
__device__ __forceinline__ void copy_tile_async(T* tile, GlobalPtr<const T> tensor, int row, int end_row, int heads,
                                                int head, int head_dim) {
  const size_t first = row_offset(row, heads, head, head_dim);
#pragma unroll 4  // all at once would keep as many addresses in registers
  for (int x = threadIdx.x; x < rows * d / 8; x += kMmaThreads) {
    const int r = x / (d / 8), k = x % (d / 8) * 8;
    copy_async(tile + swizzled<d>(r, k), tensor, first + r * heads * head_dim + k, row + r < end_row && k < head_dim);
  }
}

template <typename T, int B_r, int B_c, int d, bool Is_softcap, bool Has_alibi>
__global__ void __launch_bounds__(kMmaThreads)
flash_attention_2_forward_mma(GlobalPtr<const T> Q, GlobalPtr<const T> K, GlobalPtr<const T> V,
                              GlobalPtr<T> O, GlobalPtr<float> LSE,
                              GlobalPtr<const int> cu_seqlens_q, GlobalPtr<const int> cu_seqlens_k,
                              GlobalPtr<const float> alibi_slopes, AttentionShape shape) {
  constexpr int A_t = B_r / 64;  // row tiles of a warp, 16 rows each
  constexpr int N_t = B_c / 8;   // column tiles of S_ij, 8 columns each
  constexpr int D_t = d / 8;     // column tiles of O_i

  // The last tiles see the most under a causal mask: they go first.
  const int i = gridDim.x - 1 - blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
  const int head_k = head / (shape.heads_q / shape.heads_k);
  const int head_dim = shape.head_dim;
  const int first_row = threadIdx.x / 32 * 16 * A_t;  // of this warp, in the tile
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;

  const Sequence sequence = sequence_of_batch(shape, cu_seqlens_q, cu_seqlens_k, batch);
  const int seqlen_q = sequence.seqlen_q, seqlen_k = sequence.seqlen_k;
  const int end_q = sequence.first_q + seqlen_q, end_k = sequence.first_k + seqlen_k;
  const int q0 = i * B_r;         // first row of Q_i in its sequence
  if (q0 >= seqlen_q) return;     // this sequence is shorter than the longest; the whole block leaves

  DYNAMIC_SHARED(shared);
  auto& tiles = *reinterpret_cast<MmaTiles<T, B_r, B_c, d>*>(shared);
  T* Q_i = tiles.Q_i;             // [B_r, d]
  T* K_j = tiles.K_j;             // [B_c, d]
  T* V_j = tiles.V_j;             // [B_c, d]

  // Initialise O_i = 0, l_i = 0, m_i = -inf.
  float O_i[A_t][D_t][4];         // [B_r, d]
  float m_i[A_t][2], l_i[A_t][2]; // [B_r]
#pragma unroll
  for (int a = 0; a < A_t; a++) {
#pragma unroll
    for (int h = 0; h < 2; h++) {
      m_i[a][h] = -INFINITY;
      l_i[a][h] = 0.f;
    }
#pragma unroll
    for (int n = 0; n < D_t; n++) {
#pragma unroll
      for (int e = 0; e < 4; e++) O_i[a][n][e] = 0.f;
    }
  }

  // The tiles j that hold a column which some row of Q_i sees.
  const int shift = seqlen_k - seqlen_q;
  const int first_column = max(0, q0 + shift - shape.window_left);
  const int end_column = min(seqlen_k, q0 + B_r + shift + shape.window_right);
  const int first_j = first_column / B_c, T_c = ceil_div(max(end_column, 0), B_c);

  // exp(scale x) = 2^(scale_log2 x). Softcap and ALiBi need the scores scaled before; then only log2(e) is left.
  constexpr float kLog2e = 1.44269504088896f;
  const float scale_log2 = (Is_softcap || Has_alibi ? 1.f : shape.softmax_scale) * kLog2e;
  const float slope = Has_alibi ? float(alibi_slopes[batch * shape.heads_q + head]) : 0.f;

  // Start to load Q_i and the first K_j from HBM.
  if (first_j < T_c) {
    copy_tile_async<B_r, d>(Q_i, Q, sequence.first_q + q0, end_q, shape.heads_q, head, head_dim);
    copy_tile_async<B_c, d>(K_j, K, sequence.first_k + first_j * B_c, end_k, shape.heads_k, head_k, head_dim);
  }

  for (int j = first_j; j < T_c; j++) {
    const int k0 = j * B_c;       // first row of K_j and V_j, and first column of S_ij

    // K_j (and at first Q_i) must have arrived, all threads' parts of it; and every warp must be done with the V_j of
    // the last step before it is overwritten.
    wait_for_copies();
    __syncthreads();

    // Start to load V_j from HBM.
    copy_tile_async<B_c, d>(V_j, V, sequence.first_k + k0, end_k, shape.heads_k, head_k, head_dim);

    // S_ij = Q_i K_j^T
    float S_ij[A_t][N_t][4];      // [B_r, B_c]
#pragma unroll
    for (int a = 0; a < A_t; a++) {
#pragma unroll
      for (int n = 0; n < N_t; n++) {
#pragma unroll
        for (int e = 0; e < 4; e++) S_ij[a][n][e] = 0.f;
      }
    }
#pragma unroll
    for (int k = 0; k < d; k += 16) {
      uint32_t Q_a[A_t][4];
#pragma unroll
      for (int a = 0; a < A_t; a++) load_A<d>(Q_a[a], Q_i, first_row + 16 * a, k);
#pragma unroll
      for (int n = 0; n < N_t; n += 2) {
        uint32_t K_n[2][2];
        load_B_of_transpose<d>(K_n, K_j, 8 * n, k);
#pragma unroll
        for (int a = 0; a < A_t; a++) {
          mma_m16n8k16<T>(S_ij[a][n], Q_a[a], K_n[0]);
          mma_m16n8k16<T>(S_ij[a][n + 1], Q_a[a], K_n[1]);
        }
      }
    }

    // Softcap, ALiBi, and hide what a row must not see. A tile that every row sees in full needs no look at columns.
    const bool all_visible = k0 + B_c <= seqlen_k && k0 + B_c - 1 <= q0 + shift + shape.window_right &&
                             k0 >= q0 + B_r - 1 + shift - shape.window_left;
    if (Is_softcap || Has_alibi || !all_visible) {
#pragma unroll
      for (int a = 0; a < A_t; a++) {
#pragma unroll
        for (int n = 0; n < N_t; n++) {
#pragma unroll
          for (int e = 0; e < 4; e++) {
            const int row = q0 + first_row + 16 * a + g + 8 * (e / 2), column = k0 + 8 * n + 2 * t + e % 2;
            float score = S_ij[a][n][e];
            if constexpr (Is_softcap || Has_alibi) score *= shape.softmax_scale;
            if constexpr (Is_softcap) score = shape.softcap * tanhf(score / shape.softcap);
            if constexpr (Has_alibi) score -= slope * abs(row + shift - column);
            const bool visible = column < seqlen_k && column >= row + shift - shape.window_left &&
                                 column <= row + shift + shape.window_right;
            S_ij[a][n][e] = visible ? score : -INFINITY;
          }
        }
      }
    }

    // V_j must have arrived, all threads' parts of it; and every warp must be done with K_j before it is overwritten.
    wait_for_copies();
    __syncthreads();

    // Start to load the next K_j from HBM.
    if (j + 1 < T_c) {
      copy_tile_async<B_c, d>(K_j, K, sequence.first_k + k0 + B_c, end_k, shape.heads_k, head_k, head_dim);
    }

    float alpha[A_t][2];          // [B_r]
    uint32_t P_ij[A_t][N_t][2];   // [B_r, B_c], two neighbouring columns in one register
#pragma unroll
    for (int a = 0; a < A_t; a++) {
#pragma unroll
      for (int h = 0; h < 2; h++) {
        // m_ij = rowmax(S_ij)
        float m_ij = -INFINITY;
#pragma unroll
        for (int n = 0; n < N_t; n++) m_ij = fmaxf(m_ij, fmaxf(S_ij[a][n][2 * h], S_ij[a][n][2 * h + 1]));
        m_ij = quad_max(m_ij);

        // m_new = max(m_i, m_ij)
        const float m_new = fmaxf(m_i[a][h], m_ij);
        // A row that has seen nothing yet: 2^(-inf - 0) = 0 where 2^(-inf - (-inf)) would be NaN.
        const float m_safe = m_new == -INFINITY ? 0.f : m_new;
        alpha[a][h] = exp2_approx((m_i[a][h] - m_safe) * scale_log2);

        // P_ij = exp(S_ij - m_new), rounded to T;  l_ij = rowsum(P_ij), this lane's share. The difference is taken
        // first: with the scale first, as one multiply-add, scores of 1e4 would be off by their rounding, and l_i,
        // which is not rounded to T, would not match P_ij.
        float l_ij = 0.f;
#pragma unroll
        for (int n = 0; n < N_t; n++) {
          const float p0 = exp2_approx((S_ij[a][n][2 * h] - m_safe) * scale_log2);
          const float p1 = exp2_approx((S_ij[a][n][2 * h + 1] - m_safe) * scale_log2);
          P_ij[a][n][h] = pack<T>(p0, p1);
          l_ij += p0 + p1;
        }

        // l_i = alpha l_i + l_ij
        l_i[a][h] = alpha[a][h] * l_i[a][h] + l_ij;
        m_i[a][h] = m_new;
      }
    }

    // O_i = alpha O_i + P_ij V_j
#pragma unroll
    for (int a = 0; a < A_t; a++) {
#pragma unroll
      for (int n = 0; n < D_t; n++) {
#pragma unroll
        for (int e = 0; e < 4; e++) O_i[a][n][e] = alpha[a][e / 2] * O_i[a][n][e];
      }
    }
#pragma unroll
    for (int k = 0; k < B_c; k += 16) {
#pragma unroll
      for (int n = 0; n < D_t; n += 2) {
        uint32_t V_n[2][2];
        load_B<d>(V_n, V_j, k, 8 * n);
#pragma unroll
        for (int a = 0; a < A_t; a++) {
          const uint32_t P_a[4] = {P_ij[a][k / 8][0], P_ij[a][k / 8][1], P_ij[a][k / 8 + 1][0], P_ij[a][k / 8 + 1][1]};
          mma_m16n8k16<T>(O_i[a][n], P_a, V_n[0]);
          mma_m16n8k16<T>(O_i[a][n + 1], P_a, V_n[1]);
        }
      }
    }
  }

  // O_i = O_i / l_i,  LSE = m_i + log(l_i), written once. A row that has seen nothing gets O = 0, LSE = +inf.
#pragma unroll
  for (int a = 0; a < A_t; a++) {
#pragma unroll
    for (int h = 0; h < 2; h++) {
      l_i[a][h] = quad_sum(l_i[a][h]);
      const int row = q0 + first_row + 16 * a + g + 8 * h;
      if (row >= seqlen_q) continue;
      const float inverse = l_i[a][h] == 0.f ? 0.f : 1.f / l_i[a][h];
#pragma unroll
      for (int n = 0; n < D_t; n++) {
        const int k = 8 * n + 2 * t;
        if (k >= head_dim) continue;
        const T pair[2] = {T(O_i[a][n][2 * h] * inverse), T(O_i[a][n][2 * h + 1] * inverse)};
        O.store_range(row_offset(sequence.first_q + row, shape.heads_q, head, head_dim) + k, pair, 2);
      }
      if (t == 0) {
        const float scale = Is_softcap || Has_alibi ? 1.f : shape.softmax_scale;
        LSE[statistics_offset(shape, sequence, batch, head) + row] =
            l_i[a][h] == 0.f ? INFINITY : scale * m_i[a][h] + logf(l_i[a][h]);
      }
    }
  }
}
