#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include "params.h"

#define CHECK_ON_GPU(x) TORCH_CHECK(x.is_cuda(), #x " must be on CUDA")
#define CHECK_SIZES(x, ...) \
  TORCH_CHECK(x.sizes() == torch::IntArrayRef({__VA_ARGS__}), #x " must have shape (" #__VA_ARGS__ ")")
void run(at::Tensor &x, std::optional<at::Tensor> &bias_, double scale) {
  CHECK_ON_GPU(x);
  TORCH_CHECK(x.dtype() == torch::kFloat16 || x.dtype() == torch::kBFloat16, "16-bit numbers only");
  const int rows = x.size(0);
  if (bias_.has_value()) {
    auto bias = bias_.value();
    CHECK_SIZES(bias, rows, 2);
    TORCH_CHECK(bias.stride(-1) == 1);
  }
  TORCH_CHECK(scale > 0, "the scale of ", rows, " rows must be positive");
  Params params = {};
  params.rows = rows;
  launch<64, true>(params, nullptr);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run); }
