// Library of rung 2.
#include "flash_attention_2_forward.cuh"

#include "launch.cuh"

EXPORT size_t shared_bytes() { return sizeof(Forward2Tiles<Element, TILE_ROWS, TILE_COLUMNS, HEAD_DIM>); }

EXPORT int run(AttentionCall* call) {
  const AttentionShape& shape = call->shape;
  return launch(call, flash_attention_2_forward<Element, TILE_ROWS, TILE_COLUMNS, HEAD_DIM, SOFTCAP, ALIBI>,
                dim3(ceil_div(shape.seqlen_q, TILE_ROWS), shape.heads_q, shape.batch), 2 * TILE_ROWS, shared_bytes(),
                TENSOR(const Element, Q), TENSOR(const Element, K), TENSOR(const Element, V), TENSOR(Element, O),
                TENSOR(float, LSE), TENSOR(const int, cu_seqlens_q), TENSOR(const int, cu_seqlens_k),
                TENSOR(const float, alibi_slopes), shape);
}
