#include <torch/library.h>
#include "kernel.h"

void run(Params &params) { launch<64>(params); }

int forward(int64_t rows) {
  Params params{round_up(rows)};
  run(params);
  return 0;
}

TORCH_LIBRARY(tiny, m) {
  m.def("forward(int rows) -> int");
  m.def("only_here", &forward);
}
TORCH_LIBRARY_IMPL(tiny, CUDA, m) { m.impl("forward", &forward); }
