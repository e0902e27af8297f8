#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include "params.h"

static int halved(int value) { return value / 2; }
static unsigned below_zero(unsigned value) { return value - 1; }
void run(at::Tensor &x, int choice) {
  Params params = {};
  params.rows = 1;
  const size_t size = x.size(0);
  if (choice == 0 && -1 < x.size(0)) { params.rows = 2; }
  if (choice == 1 && -1 < size) { params.rows = 2; }
  if (choice == 2 && below_zero(0) > 1000) { params.rows = 3; }
  if (choice == 3) { params.rows = halved(-7) + 10; }
  if (choice == 4) { params.rows = 0.1f == 0.1 ? 4 : 5; }
  if (choice == 5) { params.rows = (true ? -1 : 1u) > 0 ? 6 : 7; }
  if (choice == 6) { params.rows = float(16777217) == 16777216.f ? 8 : 9; }
  if (choice == 7) { params.rows = 7.9f; }
  if (choice == 8) { params.rows = (x.dim() == 2 ? x.stride(0) : 0) + 1; }
  launch<64, true>(params, nullptr);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run); }
