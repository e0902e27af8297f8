// What a kernel sees of the thread block it runs in, on the CPU. The machinery behind it is runtime.cpp, compiled once;
// this file is part of every kernel and therefore small.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

namespace cuda_on_cpu {

constexpr int kWarpSize = 32;
constexpr int kMaxTensors = 32;
constexpr size_t kSlotBytes = 64;  // the most that one lane passes to its warp in one exchange

// Bytes that the kernel asked for, per tensor.
struct ByteCounts {
  long long loaded[kMaxTensors];
  long long stored[kMaxTensors];
};

// A line of kernel source where a thread waits. `what` is the CUDA function that stands there.
struct Site {
  const char* what;
  const char* file;
  int line;
};

// What one lane hands to its warp.
struct Slot {
  alignas(16) unsigned char bytes[kSlotBytes];
};

struct ThreadView {
  dim3 threadIdx;
  int id, warp, lane;
};

struct BlockView {
  dim3 blockIdx, blockDim, gridDim;
  unsigned char* shared;  // the block's dynamic shared memory
  ByteCounts counts;      // of all blocks that this OS thread has run
};

// The CUDA thread that is running now on this OS thread, and its block. __thread, because thread_local would have every
// use ask first whether the variable has been constructed.
extern __thread ThreadView* thread;
extern __thread BlockView* block;

void sync_threads(Site site);
void sync_warp(Site site);

// The slots of this warp for its next exchange.
Slot* next_slots();

// A copy of 16 bytes, those beyond `bytes` zero. They arrive in `to` when the thread waits, not before.
void start_copy(void* to, const void* from, size_t bytes);
void wait_for_copies();

// End the launch with a report. They do not return.
[[noreturn]] void fail_out_of_bounds(const char* tensor, size_t index, long long elements);
[[noreturn]] void fail_misaligned(const void* address, int alignment);

// How to run a launch; none of it may change the result.
struct Execution {
  int os_threads;  // 0: one per processor
  int reversed;    // fibers take turns from the last to the first
};

// Calls kernel(arguments) once for every CUDA thread of the grid, adds to `counts`, and fills in `report`: "" or what
// went wrong.
void run_grid(dim3 grid, dim3 block, size_t shared_bytes, Execution how, void (*kernel)(const void*),
              const void* arguments, ByteCounts& counts, char* report, size_t report_bytes);

// Every lane hands in `mine` and gets the slots of all lanes. One barrier per exchange is enough: the next exchange
// uses other slots, and cannot complete before every lane has come back for it.
template <typename T>
const Slot* exchange_in_warp(const T& mine, Site site) {
  static_assert(sizeof(T) <= kSlotBytes);
  Slot* slots = next_slots();
  std::memcpy(slots[thread->lane].bytes, &mine, sizeof(T));
  sync_warp(site);
  return slots;
}

template <typename T>
T value_of_lane(const Slot* slots, int lane) {
  T value;
  std::memcpy(&value, slots[lane].bytes, sizeof(T));
  return value;
}

}  // namespace cuda_on_cpu
