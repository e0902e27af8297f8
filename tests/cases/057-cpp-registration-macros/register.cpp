#include "registering.h"

namespace tiny {
int varlen_forward(int64_t rows);
int dead(int64_t rows);
}  // namespace tiny

REGISTER_EXPANDED(TORCH_EXTENSION_NAME, ops) { ops.def("varlen_forward(int rows) -> int"); }

REGISTER_IMPL_EXPANDED(TORCH_EXTENSION_NAME, CUDA, ops) {
  ops.impl("varlen_forward", TORCH_BOX(&tiny::varlen_forward));
}
