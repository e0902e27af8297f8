#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include "params.h"

void run(at::Tensor &x) {
  Params params = {};
  params.rows = x.size(0);
  if (params.rows > 100) {
    TORCH_CHECK(nobody_knows_this(x), "never seen by the parser");
    params.rows = 100;
  }
  launch<64, true>(params, nullptr);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run); }
