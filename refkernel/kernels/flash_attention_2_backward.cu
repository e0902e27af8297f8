// Library of rung 3: D = rowsum(dO * O), then the gradients.
#include "flash_attention_2_backward.cuh"

#include "launch.cuh"

EXPORT size_t shared_bytes() { return sizeof(BackwardTiles<Element, TILE_ROWS, TILE_COLUMNS, HEAD_DIM>); }

EXPORT int run(AttentionCall* call) {
  const AttentionShape& shape = call->shape;
  const int failed = launch(call, flash_attention_2_backward_D<Element>,
                            dim3(ceil_div(shape.seqlen_q, kBackwardWarps), shape.heads_q, shape.batch),
                            32 * kBackwardWarps, 0,
                            TENSOR(const Element, O), TENSOR(const Element, dO), TENSOR(float, D),
                            TENSOR(const int, cu_seqlens_q), TENSOR(const int, cu_seqlens_k), shape);
  if (failed) return failed;
  return launch(call, flash_attention_2_backward<Element, TILE_ROWS, TILE_COLUMNS, HEAD_DIM, SOFTCAP, ALIBI>,
                dim3(ceil_div(shape.seqlen_k, TILE_COLUMNS), shape.heads_q, shape.batch), 32 * kBackwardWarps,
                shared_bytes(),
                TENSOR(const Element, Q), TENSOR(const Element, K), TENSOR(const Element, V), TENSOR(const Element, dO),
                TENSOR(const float, LSE), TENSOR(const float, D), TENSOR(float, dQ), TENSOR(Element, dK),
                TENSOR(Element, dV), TENSOR(const int, cu_seqlens_q), TENSOR(const int, cu_seqlens_k),
                TENSOR(const float, alibi_slopes), shape);
}
