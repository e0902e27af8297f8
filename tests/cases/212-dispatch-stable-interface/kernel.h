#pragma once
#include <c10/cuda/CUDAException.h>
#include "params.h"
template <int kBlock, bool Even> __global__ void scale_rows(const Params params) {}
