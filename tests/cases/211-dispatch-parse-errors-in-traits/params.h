#pragma once
#include <cuda_runtime.h>
struct Params { int rows; bool half; };
void launch(Params &params, cudaStream_t stream);
