// CUDA's language, as far as the kernels of this package use it, for an ordinary C++ compiler.
//
// The kernels include this file in place of <cuda_runtime.h> when they are not compiled by nvcc. It gives them
// threadIdx and its kind, barriers, shuffles and dynamic shared memory, on top of block.h.
#pragma once
#include <cmath>

#include "block.h"
#include "global_memory.h"
#include "numbers.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)

#define threadIdx (cuda_on_cpu::thread->threadIdx)
#define blockIdx (cuda_on_cpu::block->blockIdx)
#define blockDim (cuda_on_cpu::block->blockDim)
#define gridDim (cuda_on_cpu::block->gridDim)

// Not thread_local arrays, as __shared__ variables would have to be: a library that needs that much thread-local
// storage cannot be loaded by dlopen.
#define DYNAMIC_SHARED(name) unsigned char* name = cuda_on_cpu::block->shared

constexpr int max(int a, int b) { return a > b ? a : b; }
constexpr int min(int a, int b) { return a < b ? a : b; }

// The default arguments are evaluated where the kernel calls, so a report names that line.
inline void __syncthreads(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  cuda_on_cpu::sync_threads({"__syncthreads()", file, line});
}

inline void __syncwarp(unsigned = ~0u, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  cuda_on_cpu::sync_warp({"__syncwarp()", file, line});
}

template <typename T>
T __shfl_xor_sync(unsigned, T value, int lane_mask, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  const cuda_on_cpu::Slot* slots = cuda_on_cpu::exchange_in_warp(value, {"__shfl_xor_sync()", file, line});
  return cuda_on_cpu::value_of_lane<T>(slots, cuda_on_cpu::thread->lane ^ lane_mask);
}
