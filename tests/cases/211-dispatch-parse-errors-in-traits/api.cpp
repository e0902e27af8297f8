#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include "params.h"

void run(at::Tensor &x) {
  Params params = {};
  params.rows = x.size(0);
  params.half = x.scalar_type() == at::ScalarType::Half;
  launch(params, nullptr);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run); }
