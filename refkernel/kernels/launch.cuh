// The C interface that every rung's library has, and the launch of a kernel behind it.
//
// A library is one kernel with one set of template arguments, given by the macros of the compile command:
//   ELEMENT         float, half_t or bf16_t
//   TILE_ROWS       B_r
//   TILE_COLUMNS    B_c
//   HEAD_DIM        d
//   SOFTCAP, ALIBI  0 or 1
#pragma once
#include <cstdio>

#include "attention_shape.cuh"

using Element = ELEMENT;

#define EXPORT extern "C" __attribute__((visibility("default")))

// The tensors a rung may touch. The caller fills two tables by this order, which it reads from tensor_names().
#define FOR_EACH_TENSOR(X) \
  X(Q) X(K) X(V) X(O) X(LSE) X(l) X(m) X(dO) X(D) X(dQ) X(dK) X(dV) X(cu_seqlens_q) X(cu_seqlens_k) X(alibi_slopes)

#define AS_ENUMERATOR(name) tensor_##name,
enum TensorNumber { FOR_EACH_TENSOR(AS_ENUMERATOR) kTensors };
#undef AS_ENUMERATOR

#define AS_TEXT(name) #name ","
EXPORT const char* tensor_names() { return FOR_EACH_TENSOR(AS_TEXT); }
#undef AS_TEXT

// One call, filled in by the caller.
struct AttentionCall {
  void* data[kTensors];         // null where the rung does not use the tensor
  long long elements[kTensors];
  AttentionShape shape;
  void* stream;                 // GPU: the CUDA stream
  int os_threads;               // CPU: 0 for one per processor
  int reversed;                 // CPU: fibers take turns from the last to the first
  long long loaded[kTensors];   // CPU: filled in with the bytes the kernel asked for
  long long stored[kTensors];
  char report[4096];            // filled in with what went wrong; "" otherwise
};

EXPORT size_t attention_call_bytes() { return sizeof(AttentionCall); }

// The kernel argument for tensor NAME of element type T.
#define TENSOR(T, NAME) \
  GlobalPtr<T>(static_cast<T*>(call->data[tensor_##NAME]), call->elements[tensor_##NAME], tensor_##NAME, #NAME)

// Runs kernel(arguments...) on a grid. Returns 0, or 1 with call->report filled in.
#ifdef __CUDACC__

template <typename Kernel, typename... Arguments>
int launch(AttentionCall* call, Kernel kernel, dim3 grid, int threads, size_t shared_bytes, Arguments... arguments) {
  call->report[0] = 0;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return 0;
  // A kernel gets more than 48 KB of dynamic shared memory only when it asks for it.
  cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(shared_bytes));
  if (error == cudaSuccess) {
    kernel<<<grid, threads, shared_bytes, static_cast<cudaStream_t>(call->stream)>>>(arguments...);
    error = cudaGetLastError();
  }
  if (error == cudaSuccess) return 0;
  std::snprintf(call->report, sizeof call->report, "%s (%zu bytes of shared memory, %d threads a block)",
                cudaGetErrorString(error), shared_bytes, threads);
  return 1;
}

#else

template <typename Kernel, typename... Arguments>
int launch(AttentionCall* call, Kernel kernel, dim3 grid, int threads, size_t shared_bytes, Arguments... arguments) {
  call->report[0] = 0;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return 0;
  const auto run_thread = [=] { kernel(arguments...); };
  const auto call_it = [](const void* it) { (*static_cast<decltype(&run_thread)>(it))(); };
  cuda_on_cpu::ByteCounts counts = {};
  cuda_on_cpu::run_grid(grid, dim3(threads), shared_bytes, {call->os_threads, call->reversed}, call_it, &run_thread,
                        counts, call->report, sizeof call->report);
  for (int i = 0; i < kTensors; i++) {
    call->loaded[i] += counts.loaded[i];
    call->stored[i] += counts.stored[i];
  }
  return call->report[0] != 0;
}

#endif
