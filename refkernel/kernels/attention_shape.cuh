// The sizes of one attention call, and where a sequence lies in its tensors.
//
// Layouts, all contiguous:
//   Q, O, dO, dQ   [batch, seqlen_q, heads_q, head_dim]     or, with cu_seqlens, [total_q, heads_q, head_dim]
//   K, V           [batch, seqlen_k, heads_k, head_dim]     or [total_k, heads_k, head_dim]
//   LSE, l, m, D   [batch, heads_q, seqlen_q]               or [heads_q, total_q]
#pragma once
#include "device.cuh"

struct AttentionShape {
  int batch;
  int seqlen_q, seqlen_k;  // of every sequence; with cu_seqlens, of the longest
  int total_q;             // rows of Q over all sequences
  int heads_q, heads_k;    // heads_q is a multiple of heads_k: query head h reads key head h / (heads_q / heads_k)
  int head_dim;            // at most the kernel's template parameter d
  int is_varlen;           // sequence b holds rows cu_seqlens[b] to cu_seqlens[b + 1] - 1
  int window_left;         // row i sees column j if  i + shift - window_left <= j <= i + shift + window_right,
  int window_right;        // where shift = seqlen_k - seqlen_q; causal is window_right = 0, no window is a huge one
  float softmax_scale;
  float softcap;
};

// One sequence of the batch.
struct Sequence {
  int first_q, first_k;    // its first row in Q and in K
  int seqlen_q, seqlen_k;
};

__device__ __forceinline__ Sequence sequence_of_batch(const AttentionShape& shape, GlobalPtr<const int> cu_seqlens_q,
                                                      GlobalPtr<const int> cu_seqlens_k, int batch) {
  if (!shape.is_varlen) {
    return {batch * shape.seqlen_q, batch * shape.seqlen_k, shape.seqlen_q, shape.seqlen_k};
  }
  const int first_q = int(cu_seqlens_q[batch]), end_q = int(cu_seqlens_q[batch + 1]);
  const int first_k = int(cu_seqlens_k[batch]), end_k = int(cu_seqlens_k[batch + 1]);
  return {first_q, first_k, end_q - first_q, end_k - first_k};
}

// Element of [.., heads, head_dim] where row `row` of head `head` begins.
__device__ __forceinline__ size_t row_offset(int row, int heads, int head, int head_dim) {
  return (size_t(row) * heads + head) * head_dim;
}

// Element of LSE, l, m and D that belongs to the first row of a sequence.
__device__ __forceinline__ size_t statistics_offset(const AttentionShape& shape, const Sequence& sequence, int batch,
                                                    int head) {
  if (shape.is_varlen) return size_t(head) * shape.total_q + sequence.first_q;
  return (size_t(batch) * shape.heads_q + head) * shape.seqlen_q;
}

__host__ __device__ constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }
