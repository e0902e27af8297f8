// The three warp-wide instructions that rung 4 is made of, and the layouts that go with them.
//
// On a GPU each function is one PTX instruction (PTX ISA, "Matrix multiply-accumulate operation using mma instruction",
// "ldmatrix", "cp.async"). On a CPU ../cpu/tensor_core.h does what their documentation says.
//
// A fragment is a small matrix spread over the 32 lanes of a warp. With g = lane / 4 and t = lane % 4, a lane holds
//   A [16, 16]  in 4 registers of two elements: register r holds row g + 8 * (r % 2), columns 2t + 8 * (r / 2) and + 1
//   B [16, 8]   in 2 registers of two elements: register r holds rows 2t + 8 * r and + 1, column g
//   D [16, 8]   in 4 floats: float e is row g + 8 * (e / 2), column 2t + e % 2
#pragma once
#include "device.cuh"

#ifdef __CUDACC__

// D += A B, element type T, sums in fp32.
template <typename T>
__device__ __forceinline__ void mma_m16n8k16(float (&D)[4], const uint32_t (&A)[4], const uint32_t (&B)[2]);

template <>
__device__ __forceinline__ void mma_m16n8k16<half_t>(float (&D)[4], const uint32_t (&A)[4], const uint32_t (&B)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(D[0]), "+f"(D[1]), "+f"(D[2]), "+f"(D[3])
      : "r"(A[0]), "r"(A[1]), "r"(A[2]), "r"(A[3]), "r"(B[0]), "r"(B[1]));
}

template <>
__device__ __forceinline__ void mma_m16n8k16<bf16_t>(float (&D)[4], const uint32_t (&A)[4], const uint32_t (&B)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(D[0]), "+f"(D[1]), "+f"(D[2]), "+f"(D[3])
      : "r"(A[0]), "r"(A[1]), "r"(A[2]), "r"(A[3]), "r"(B[0]), "r"(B[1]));
}

// Loads four 8 x 8 matrices. Lane n points at row n % 8 of matrix n / 8; register r of a lane receives, of matrix r,
// row g, columns 2t and 2t + 1.
template <typename T>
__device__ __forceinline__ void ldmatrix_x4(uint32_t (&R)[4], const T* row) {
  const uint32_t address = uint32_t(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(R[0]), "=r"(R[1]), "=r"(R[2]), "=r"(R[3]) : "r"(address) : "memory");
}

// The same, of each matrix transposed: register r receives rows 2t and 2t + 1, column g.
template <typename T>
__device__ __forceinline__ void ldmatrix_x4_transposed(uint32_t (&R)[4], const T* row) {
  const uint32_t address = uint32_t(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(R[0]), "=r"(R[1]), "=r"(R[2]), "=r"(R[3]) : "r"(address) : "memory");
}

// Starts to copy eight 16-bit elements from global to shared memory; eight zeros if not `inside`.
template <typename T>
__device__ __forceinline__ void copy_async(T* to, GlobalPtr<const T> from, size_t index, bool inside) {
  const uint32_t address = uint32_t(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               : : "r"(address), "l"(from.load_range(inside ? index : 0, 8)), "r"(inside ? 16 : 0) : "memory");
}

// Waits until this thread's copies have arrived; a barrier must follow before other threads' copies are read.
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;" : : : "memory");
}

// 2^x as the hardware computes it, to about two units in the last place.
__device__ __forceinline__ float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Two elements in one register, `low` in the lower half.
template <typename T>
__device__ __forceinline__ uint32_t pack(float low, float high) {
  const T pair[2] = {T(low), T(high)};
  return *reinterpret_cast<const uint32_t*>(pair);
}

#else
#include "../cpu/tensor_core.h"
#endif

// Where element (row, column) of a tile [.., d] of 16-bit elements lies.
//
// ldmatrix reads the same 16 bytes, 8 elements, of eight rows at once. Stored plainly they would lie in the same
// banks; so the 16-byte chunks of a row change places by the row's number, in groups of 8 chunks (128 bytes, all
// banks), or of 4 where a row is an odd multiple of 64 bytes and every second row is shifted by half the banks
// anyway.
template <int d>
__device__ __forceinline__ int swizzled(int row, int column) {
  const int moved = d % 64 == 0 ? row % 8 : row / 2 % 4;
  return row * d + (column ^ 8 * moved);
}

// Fragment A of rows [row, row + 16) and columns [column, column + 16) of a tile.
template <int d, typename T>
__device__ __forceinline__ void load_A(uint32_t (&A)[4], const T* tile, int row, int column) {
  const int lane = threadIdx.x % 32;
  ldmatrix_x4(A, tile + swizzled<d>(row + lane % 16, column + lane / 16 * 8));
}

// Two fragments B of the tile's transpose: [16, 8] and the next 8 columns. B[k][n] is element (row + n, column + k).
template <int d, typename T>
__device__ __forceinline__ void load_B_of_transpose(uint32_t (&B)[2][2], const T* tile, int row, int column) {
  const int lane = threadIdx.x % 32;
  uint32_t R[4];
  ldmatrix_x4(R, tile + swizzled<d>(row + lane % 8 + lane / 16 * 8, column + lane / 8 % 2 * 8));
  B[0][0] = R[0], B[0][1] = R[1], B[1][0] = R[2], B[1][1] = R[3];
}

// Two fragments B of the tile itself: [16, 8] and the next 8 columns. B[k][n] is element (row + k, column + n).
template <int d, typename T>
__device__ __forceinline__ void load_B(uint32_t (&B)[2][2], const T* tile, int row, int column) {
  const int lane = threadIdx.x % 32;
  uint32_t R[4];
  ldmatrix_x4_transposed(R, tile + swizzled<d>(row + lane % 16, column + lane / 16 * 8));
  B[0][0] = R[0], B[0][1] = R[1], B[1][0] = R[2], B[1][1] = R[3];
}

// Largest and sum of x over the four lanes that share a row of a fragment D; every lane of them gets the result.
__device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}

__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}
