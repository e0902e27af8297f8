// What every kernel needs from its device, on a GPU and on a CPU.
//
// Under nvcc this is CUDA and two thin names: GlobalPtr<T> is a pointer, DYNAMIC_SHARED a declaration. Under any other
// compiler ../cpu/cuda_on_cpu.h gives the same names a meaning there (and GlobalPtr counts and checks its accesses).
#pragma once
#include <cstddef>
#include <cstdint>

#ifdef __CUDACC__

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

using half_t = __half;
using bf16_t = __nv_bfloat16;

// A tensor in global memory (the paper's HBM).
template <typename T>
class GlobalPtr {
 public:
  __host__ __device__ GlobalPtr(T* data, long long /*elements*/, int /*tensor*/, const char* /*name*/) : data_(data) {}
  __device__ __forceinline__ T& operator[](size_t index) const { return data_[index]; }
  __device__ __forceinline__ const T* load_range(size_t index, size_t /*count*/) const { return data_ + index; }
  // Stores two neighbouring 16-bit elements at once; `index` is even.
  __device__ __forceinline__ void store_range(size_t index, const T (&values)[2], size_t /*count*/) const {
    static_assert(sizeof(T) == 2);
    *reinterpret_cast<uint32_t*>(data_ + index) = *reinterpret_cast<const uint32_t*>(values);
  }
  __device__ __forceinline__ void atomic_add(size_t index, float value) const { atomicAdd(data_ + index, value); }

 private:
  T* data_;
};

// The block's shared memory (the paper's SRAM), whose size the launch decides.
#define DYNAMIC_SHARED(name) extern __shared__ __align__(128) unsigned char name[]

#else
#include "../cpu/cuda_on_cpu.h"
#endif

// Largest and sum of x over the 32 lanes of a warp; every lane gets the result.
__device__ __forceinline__ float warp_max(float x) {
#pragma unroll
  for (int lane_mask = 16; lane_mask > 0; lane_mask /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, lane_mask));
  return x;
}

__device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
  for (int lane_mask = 16; lane_mask > 0; lane_mask /= 2) x += __shfl_xor_sync(~0u, x, lane_mask);
  return x;
}
