// What the tensor-core instructions of ../kernels/tensor_core.cuh do, written out for a CPU after the PTX ISA.
//
// The layout of the fragments is written here a second time, as arithmetic on lanes. That loads and products agree here
// says nothing about a GPU; one product on a GPU does (refkernel/gpu.py).
#pragma once
#include "cuda_on_cpu.h"

template <typename T>
uint32_t pack(float low, float high) {
  const T pair[2] = {T(low), T(high)};
  uint32_t both;
  std::memcpy(&both, pair, sizeof both);
  return both;
}

namespace cuda_on_cpu {

template <typename T>
float unpack(uint32_t both, int index) {
  T pair[2];
  std::memcpy(pair, &both, sizeof pair);
  return float(pair[index]);
}

template <typename T>
void load_matrices(uint32_t (&R)[4], const T* row, bool transposed, Site site) {
  if (reinterpret_cast<uintptr_t>(row) % 16) fail_misaligned(row, 16);
  const Slot* rows = exchange_in_warp(row, site);
  const int g = thread->lane / 4, t = thread->lane % 4;
  for (int matrix = 0; matrix < 4; matrix++) {
    T pair[2];
    for (int i = 0; i < 2; i++) {
      const int r = transposed ? 2 * t + i : g, c = transposed ? g : 2 * t + i;
      pair[i] = value_of_lane<const T*>(rows, matrix * 8 + r)[c];
    }
    std::memcpy(&R[matrix], pair, sizeof pair);
  }
  // The instruction is done when all lanes have their registers: nobody may change the tile while another still reads.
  sync_warp(site);
}

}  // namespace cuda_on_cpu

template <typename T>
void ldmatrix_x4(uint32_t (&R)[4], const T* row, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  cuda_on_cpu::load_matrices(R, row, false, {"ldmatrix", file, line});
}

template <typename T>
void ldmatrix_x4_transposed(uint32_t (&R)[4], const T* row, const char* file = __builtin_FILE(),
                            int line = __builtin_LINE()) {
  cuda_on_cpu::load_matrices(R, row, true, {"ldmatrix.trans", file, line});
}

template <typename T>
void mma_m16n8k16(float (&D)[4], const uint32_t (&A)[4], const uint32_t (&B)[2], const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  struct Operands {
    float A[4][2], B[2][2];
  } mine;
  for (int i = 0; i < 2; i++) {
    for (int r = 0; r < 4; r++) mine.A[r][i] = cuda_on_cpu::unpack<T>(A[r], i);
    for (int r = 0; r < 2; r++) mine.B[r][i] = cuda_on_cpu::unpack<T>(B[r], i);
  }
  const cuda_on_cpu::Slot* all = cuda_on_cpu::exchange_in_warp(mine, {"mma.sync", file, line});
  const int g = cuda_on_cpu::thread->lane / 4, t = cuda_on_cpu::thread->lane % 4;
  const auto of_lane = [all](int other) -> const Operands& {
    return *reinterpret_cast<const Operands*>(all[other].bytes);
  };
  for (int e = 0; e < 4; e++) {
    const int row = g + 8 * (e / 2), column = 2 * t + e % 2;
    float sum = 0.f;
    for (int k = 0; k < 16; k++) {
      const float a = of_lane(row % 8 * 4 + k % 8 / 2).A[row / 8 + 2 * (k / 8)][k % 2];
      const float b = of_lane(column * 4 + k % 8 / 2).B[k / 8][k % 2];
      sum += a * b;
    }
    D[e] += sum;
  }
}

template <typename T>
void copy_async(T* to, GlobalPtr<const T> from, size_t index, bool inside) {
  if (reinterpret_cast<uintptr_t>(to) % 16) cuda_on_cpu::fail_misaligned(to, 16);
  const T* source = from.load_range(inside ? index : 0, inside ? 8 : 0);
  if (inside && reinterpret_cast<uintptr_t>(source) % 16) cuda_on_cpu::fail_misaligned(source, 16);
  cuda_on_cpu::start_copy(to, source, inside ? 16 : 0);
}

inline void wait_for_copies() { cuda_on_cpu::wait_for_copies(); }

inline float exp2_approx(float x) { return exp2f(x); }
