#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include "params.h"

struct Helper { int count() const { return 1; } };
void run(at::Tensor &x, int choice) {
  Params params = {};
  params.rows = 1;
  if (choice == 1) {
    switch (params.rows) { case 1: params.rows = 2; break; default: params.rows = 3; }
  }
  if (choice == 2) {
    std::vector<int> sizes = {1, 2};
    for (auto size : sizes) { params.rows += size; }
  }
  if (choice == 3) { params.rows = atoi("3"); }
  if (choice == 4) { params.rows = x.nbytes(); }
  if (choice == 5) {
    int never;
    if (x.size(0) > 100) { never = 1; }
    params.rows = never;
  }
  if (choice == 6) {
    Params other;
    params.rows = other.columns;
  }
  if (choice == 7) {
    Helper helper;
    params.rows = helper.count();
  }
  if (choice == 8) { while (true) { params.rows = 1; } }
  if (choice == 9) { params.rows = 2147483647 + x.size(0) * 1 > 0 ? 1 : 2; }
  if (choice == 10) { params.columns = 1 << 30; params.columns = params.columns + params.columns; }
  if (choice == 11 && params.columns == 0) { int big = 1 << 30; if (big + big > 0) { params.rows = 5; } }
  if (choice == 12) { again: params.rows = 2; }
  launch<64, true>(params, nullptr);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run); }
