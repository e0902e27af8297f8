// CUDA's language, as far as the kernels of this package use it, for an ordinary C++ compiler.
//
// The kernels include this file in place of <cuda_runtime.h> when they are not compiled by nvcc. It gives them
// threadIdx and its kind, barriers, shuffles, dynamic shared memory and a launch, on top of block.h.
#pragma once
#include <algorithm>
#include <cmath>
#include <thread>

#include "block.h"
#include "global_memory.h"
#include "numbers.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)

#define threadIdx (cuda_on_cpu::fiber->threadIdx)
#define blockIdx (cuda_on_cpu::block->blockIdx)
#define blockDim (cuda_on_cpu::block->launch.block)
#define gridDim (cuda_on_cpu::block->launch.grid)

// Not thread_local arrays, as __shared__ variables would have to be: a library that needs that much thread-local
// storage cannot be loaded by dlopen.
#define DYNAMIC_SHARED(name) unsigned char* name = cuda_on_cpu::block->shared

using std::max;
using std::min;

// The default arguments are evaluated where the kernel calls, so a report names that line.
inline void __syncthreads(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  cuda_on_cpu::block->sync_threads({"__syncthreads()", file, line});
}

inline void __syncwarp(unsigned = ~0u, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  cuda_on_cpu::block->sync_warp({"__syncwarp()", file, line});
}

template <typename T>
T __shfl_xor_sync(unsigned, T value, int lane_mask, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  const auto slots = cuda_on_cpu::exchange_in_warp(value, {"__shfl_xor_sync()", file, line});
  return cuda_on_cpu::value_of_lane<T>(slots, cuda_on_cpu::fiber->lane ^ lane_mask);
}

namespace cuda_on_cpu {

// How to run a launch; none of it may change the result.
struct Execution {
  int os_threads = 0;    // 0: one per processor
  int reversed = 0;      // fibers take turns from the last to the first
};

// Runs kernel() for every CUDA thread of the grid. Returns "" or the report of what went wrong.
template <typename Kernel>
std::string run_grid(dim3 grid, dim3 block_size, size_t shared_bytes, Execution how, ByteCounts& counts,
                     const Kernel& kernel) {
  Launch launch;
  launch.grid = grid;
  launch.block = block_size;
  launch.shared_bytes = shared_bytes;
  launch.reversed = how.reversed != 0;
  launch.kernel = [](const void* arguments) { (*static_cast<const Kernel*>(arguments))(); };
  launch.kernel_arguments = &kernel;

  const long blocks = long(grid.x) * grid.y * grid.z;
  const long wanted = how.os_threads > 0 ? how.os_threads : long(std::thread::hardware_concurrency());
  const int os_threads = int(std::max(1L, std::min(wanted, blocks)));
  std::vector<ByteCounts> parts(os_threads);
  auto work = [&](int part) {
    Block mine(launch);
    block = &mine;
    for (long b; !launch.failed && (b = launch.next_block++) < blocks;)
      mine.run(dim3(b % grid.x, b / grid.x % grid.y, b / (long(grid.x) * grid.y)));
    block = nullptr;
    parts[part] = mine.counts;
  };
  std::vector<std::thread> others;
  for (int part = 1; part < os_threads; part++) others.emplace_back(work, part);
  work(0);
  for (std::thread& other : others) other.join();
  for (const ByteCounts& part : parts) {
    for (int i = 0; i < kMaxTensors; i++) {
      counts.loaded[i] += part.loaded[i];
      counts.stored[i] += part.stored[i];
    }
  }
  return launch.report;
}

}  // namespace cuda_on_cpu
