#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include "params.h"

void run(at::Tensor &x) {
  Params params = {};
  params.rows = x.size(0);
  if (params.rows > 100) {
    params.rows = nobody_knows_this;
  }
  if (params.rows == 99) {
    params.no_such_field = 3;
  }
  if (params.rows == 98) {
    TORCH_CHECK(x.no_such_method(), "a check that would vanish");
  }
  launch<64, true>(params, nullptr);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run); }
