#include <torch/csrc/stable/library.h>
#include "kernel.h"

// Here the work is done a little otherwise.
void run(Params &params) {
  launch<64>(params);
  launch<64>(params);
}

int forward_stable(int64_t rows) {
  Params params{round_up(rows)};
  run(params);
  return 0;
}

STABLE_TORCH_LIBRARY(tiny, m) { m.def("forward(int rows) -> int"); }
STABLE_TORCH_LIBRARY_IMPL(tiny, CUDA, m) { m.impl("forward", TORCH_BOX(&forward_stable)); }
