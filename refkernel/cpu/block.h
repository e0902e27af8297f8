// One thread block on one OS thread: its fibers, its barriers, its shared memory, and the reports of misuse.
//
// A fiber runs until it waits. Then the next fiber that can run gets its turn, first in the same warp, then in the
// whole block. If none can run, the block is deadlocked and the launch ends with a report instead of hanging.
//
// What a GPU leaves undefined is an error here: two threads meeting at different barriers, a thread that returns
// while others wait, shared memory read before it is written (it is filled with NaN before each block).
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fiber.h"

struct dim3 {
  unsigned x, y, z;
  dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

namespace cuda_on_cpu {

constexpr int kWarpSize = 32;
constexpr int kMaxTensors = 32;
constexpr size_t kSlotBytes = 64;  // the most that one lane passes to its warp in one exchange

// Bytes that the kernel asked for, per tensor.
struct ByteCounts {
  long long loaded[kMaxTensors] = {};
  long long stored[kMaxTensors] = {};
};

// A line of kernel source where a fiber waits. `what` is the CUDA function that stands there.
struct Site {
  const char* what = "";
  const char* file = "";
  int line = 0;
  bool operator==(const Site& other) const { return line == other.line && !std::strcmp(file, other.file); }
  std::string text() const {
    const char* slash = std::strrchr(file, '/');
    return std::string(what) + " at " + (slash ? slash + 1 : file) + ":" + std::to_string(line);
  }
};

enum class State { ready, waits_for_block, waits_for_warp, done };

// cp.async moves data later than it is issued. The copy is kept here until the thread waits for it.
struct PendingCopy {
  void* to;
  unsigned char data[16];
  int group;
};

struct Fiber : Flow {
  dim3 threadIdx;
  int id = 0, warp = 0, lane = 0;
  State state = State::ready;
  Site site;
  std::vector<PendingCopy> copies;
  int open_copy_group = 0;
};

// What one lane hands to its warp.
struct Slot {
  alignas(16) unsigned char bytes[kSlotBytes];
};

struct Warp {
  int arrived = 0;
  Site site;
  unsigned epoch = 0;  // number of completed exchanges; its last bit chooses the slots, so one barrier is enough
  Slot slots[2][kWarpSize];
};

// What all OS threads of one launch share: the work to hand out and the first report.
struct Launch {
  dim3 grid, block;
  size_t shared_bytes = 0;
  bool reversed = false;  // let the fibers take turns from the last to the first
  void (*kernel)(const void*) = nullptr;
  const void* kernel_arguments = nullptr;
  std::atomic<long> next_block{0};
  std::atomic<bool> failed{false};
  std::mutex report_lock;
  std::string report;
};

struct Block {
  explicit Block(Launch& launch)
      : launch(launch),
        threads(int(launch.block.x * launch.block.y * launch.block.z)),
        fibers(threads),
        warps((threads + kWarpSize - 1) / kWarpSize),
        stacks(new char[threads * kStackBytes]),
        shared(static_cast<unsigned char*>(std::malloc(launch.shared_bytes ? launch.shared_bytes : 1))) {}
  ~Block() { std::free(shared); }
  Block(const Block&) = delete;

  void run(dim3 index);
  void wait(State why, Site site);
  void sync_threads(Site site);
  void sync_warp(Site site);
  void finish_fiber();
  [[noreturn]] void fail(const std::string& message);

  Fiber* next_ready(int first, int count, int after);
  Fiber* next_ready_after(const Fiber& fiber);
  int warp_width(int warp) const { return std::min(kWarpSize, threads - warp * kWarpSize); }
  void set_ready(int first, int count, State was);
  std::string waiting_threads() const;

  Launch& launch;
  const int threads;
  std::vector<Fiber> fibers;
  std::vector<Warp> warps;
  std::unique_ptr<char[]> stacks;  // not initialised: pages a fiber never touches are never mapped
  unsigned char* shared;           // malloc of the exact size, so that AddressSanitizer sees an overrun
  Flow os_thread;
  dim3 blockIdx;
  int alive = 0, arrived = 0;
  Site barrier;
  ByteCounts counts;
};

inline thread_local Block* block = nullptr;
inline thread_local Fiber* fiber = nullptr;

inline void fiber_entry() {
  entered(&block->os_thread);
  block->launch.kernel(block->launch.kernel_arguments);
  block->finish_fiber();
}

inline void Block::run(dim3 index) {
  blockIdx = index;
  alive = threads;
  arrived = 0;
  std::memset(shared, 0xff, launch.shared_bytes);  // 0xffff is a NaN in fp16 and bf16, 0xffffffff in fp32
  for (Warp& warp : warps) warp.arrived = 0;
  for (int i = 0; i < threads; i++) {
    Fiber& f = fibers[i];
    f.id = i, f.warp = i / kWarpSize, f.lane = i % kWarpSize;
    f.threadIdx = dim3(i % launch.block.x, i / launch.block.x % launch.block.y, i / (launch.block.x * launch.block.y));
    f.state = State::ready;
    f.copies.clear();
    f.open_copy_group = 0;
    prepare(f, stacks.get() + i * kStackBytes, fiber_entry);
  }
  fiber = &fibers[launch.reversed ? threads - 1 : 0];
  switch_flow(os_thread, *fiber);
}

// The next fiber that can run in fibers[first … first + count), in ring order after `after`; null if there is none.
inline Fiber* Block::next_ready(int first, int count, int after) {
  for (int n = 1, i = after - first; n <= count; n++) {
    i += launch.reversed ? -1 : 1;
    if (i >= count) i -= count;
    if (i < 0) i += count;
    if (fibers[first + i].state == State::ready) return &fibers[first + i];
  }
  return nullptr;
}

inline Fiber* Block::next_ready_after(const Fiber& f) {
  Fiber* mate = next_ready(f.warp * kWarpSize, warp_width(f.warp), f.id);
  return mate ? mate : next_ready(0, threads, f.id);
}

inline void Block::wait(State why, Site site) {
  Fiber& me = *fiber;
  me.state = why;
  me.site = site;
  Fiber* next = next_ready_after(me);
  if (!next) fail("deadlock: every thread of the block waits");
  fiber = next;
  switch_flow(me, *next);
}

inline void Block::set_ready(int first, int count, State was) {
  for (int i = first; i < first + count; i++)
    if (fibers[i].state == was) fibers[i].state = State::ready;
}

inline void Block::sync_threads(Site site) {
  if (arrived > 0 && !(site == barrier)) {
    fiber->state = State::waits_for_block, fiber->site = site;
    fail("divergent barrier: threads of one block wait at different barriers");
  }
  barrier = site;
  if (alive < threads) {
    fiber->state = State::waits_for_block, fiber->site = site;
    fail("a thread waits at a barrier after another thread of its block has returned");
  }
  if (++arrived < threads) return wait(State::waits_for_block, site);
  arrived = 0;
  set_ready(0, threads, State::waits_for_block);
}

inline void Block::sync_warp(Site site) {
  Warp& warp = warps[fiber->warp];
  if (warp.arrived > 0 && !(site == warp.site)) {
    fiber->state = State::waits_for_warp, fiber->site = site;
    fail("divergent warp: lanes of one warp wait at different warp operations");
  }
  warp.site = site;
  if (++warp.arrived < warp_width(fiber->warp)) return wait(State::waits_for_warp, site);
  warp.arrived = 0;
  warp.epoch++;
  set_ready(fiber->warp * kWarpSize, warp_width(fiber->warp), State::waits_for_warp);
}

inline void Block::finish_fiber() {
  Fiber& me = *fiber;
  me.state = State::done;
  alive--;
  if (alive == 0) {
    switch_flow(me, os_thread, true);
  } else {
    Fiber* next = next_ready_after(me);
    if (!next) fail("a thread returned while the rest of its block waits");
    fiber = next;
    switch_flow(me, *next, true);
  }
  std::abort();  // nothing switches back to a finished fiber
}

// Threads grouped by where they stand, first thread of each group named.
inline std::string Block::waiting_threads() const {
  std::string text;
  std::vector<bool> told(threads, false);
  for (int i = 0; i < threads; i++) {
    const Fiber& f = fibers[i];
    if (told[i] || f.state == State::ready) continue;
    int same = 0;
    for (int k = i; k < threads; k++) {
      if (told[k] || fibers[k].state != f.state) continue;
      if (f.state != State::done && !(fibers[k].site == f.site)) continue;
      told[k] = true;
      same++;
    }
    text += "\n  thread " + std::to_string(i);
    if (same > 1) text += " and " + std::to_string(same - 1) + " more";
    text += f.state == State::done ? " returned" : (same > 1 ? " wait in " : " waits in ") + f.site.text();
  }
  return text;
}

// Ends the launch. The fibers of this block are left where they stand: kernels own nothing that must be freed.
inline void Block::fail(const std::string& message) {
  {
    const std::lock_guard<std::mutex> hold(launch.report_lock);
    if (!launch.failed.exchange(true)) {
      launch.report = message + " (block " + std::to_string(blockIdx.x) + "," + std::to_string(blockIdx.y) + "," +
                      std::to_string(blockIdx.z) + ", thread " + std::to_string(fiber->id) + ")" + waiting_threads();
    }
  }
  switch_flow(*fiber, os_thread, true);
  std::abort();  // nothing switches back to a failed fiber
}

// Every lane hands in `mine` and gets the table of all lanes' values. One barrier per exchange: the next exchange
// writes the other half of the slots, and cannot complete before every lane has come back for it.
template <typename T>
const Slot* exchange_in_warp(const T& mine, Site site) {
  static_assert(sizeof(T) <= kSlotBytes);
  Warp& warp = block->warps[fiber->warp];
  Slot* slots = warp.slots[warp.epoch & 1];
  std::memcpy(slots[fiber->lane].bytes, &mine, sizeof(T));
  block->sync_warp(site);
  return slots;
}

template <typename T>
T value_of_lane(const Slot* slots, int lane) {
  T value;
  std::memcpy(&value, slots[lane].bytes, sizeof(T));
  return value;
}

}  // namespace cuda_on_cpu
