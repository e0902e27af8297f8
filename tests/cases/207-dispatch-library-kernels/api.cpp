#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include "params.h"

void run(at::Tensor &x, bool clear) {
  at::Tensor padded = torch::nn::functional::pad(x, torch::nn::functional::PadFuncOptions({0, 8 - x.size(-1) % 8}));
  if (clear) { padded.zero_(); }
  auto turned = padded.transpose(0, 1).reshape({padded.size(1), padded.size(0)});
  Params params = {};
  params.rows = turned.size(0);
  launch<64, true>(params, nullptr);
  padded.fill_(1.0);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run); }
