#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include "params.h"

extern template void launch<32, true>(Params &, cudaStream_t);
void run(at::Tensor &x) {
  Params params = {};
  params.rows = x.size(0);
  if (params.rows == 64) { launch<64, true>(params, nullptr); }
  else if (params.rows == 224) { launch<224, true>(params, nullptr); }
  else { launch<32, true>(params, nullptr); }
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run); }
