#include <torch/csrc/stable/tensor.h>

namespace tiny {
int forward(int64_t rows) { return rows; }
int varlen_forward(int64_t rows) { return forward(rows); }
int dead(int64_t rows) { return rows; }
}  // namespace tiny
