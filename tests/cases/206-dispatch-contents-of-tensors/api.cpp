#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include "params.h"

void run(at::Tensor &x, at::Tensor &lengths) {
  Params params = {};
  const int longest = lengths.max().item<int>();
  params.columns = longest;
  params.in_ptr = x.data_ptr();
  params.rows = params.in_ptr == nullptr ? 1 : 2;
  if (x.size(0) > 8) {
    if (longest > 100) { params.rows = 3; }
  }
  launch<64, true>(params, nullptr);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run); }
