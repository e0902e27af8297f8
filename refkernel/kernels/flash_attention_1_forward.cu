// Library of rung 1.
#include "flash_attention_1_forward.cuh"

#include "launch.cuh"

EXPORT size_t shared_bytes() { return sizeof(Forward1Tiles<Element, TILE_ROWS, TILE_COLUMNS, HEAD_DIM>); }

EXPORT int run(AttentionCall* call) {
  const AttentionShape& shape = call->shape;
  return launch(call, flash_attention_1_forward<Element, TILE_ROWS, TILE_COLUMNS, HEAD_DIM, SOFTCAP, ALIBI>,
                dim3(shape.heads_q, shape.batch), 4 * TILE_ROWS, shared_bytes(),
                TENSOR(const Element, Q), TENSOR(const Element, K), TENSOR(const Element, V), TENSOR(float, O),
                TENSOR(float, l), TENSOR(float, m), TENSOR(const int, cu_seqlens_q), TENSOR(const int, cu_seqlens_k),
                TENSOR(const float, alibi_slopes), shape);
}
