#pragma once
#include <cuda_runtime.h>
struct Params {
  void *in_ptr;
  int rows;
  int columns;
  float scale;
};
template <int kBlock, bool Even> void launch(Params &params, cudaStream_t stream);
