// Runs a grid: blocks on OS threads, the CUDA threads of a block as fibers, and the reports of misuse.
//
// A fiber runs until it waits. Then the next fiber that can run gets its turn, first in the same warp, then in the
// whole block. If none can run, the block is deadlocked and the launch ends with a report instead of hanging.
//
// What a GPU leaves undefined is an error here: two threads meeting at different barriers, a thread that returns while
// others wait, shared memory read before it is written (it is filled with NaN before each block).
//
// What it cannot see: a missing __syncwarp, since a lane runs on until it waits and every shuffle is a barrier of its
// warp; orders of turns other than first to last and last to first; and whether the documented fragment layouts are
// those of a real GPU.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "block.h"
#include "fiber.h"

namespace cuda_on_cpu {

__thread ThreadView* thread = nullptr;
__thread BlockView* block = nullptr;

namespace {

bool same(const Site& a, const Site& b) {
  return a.line == b.line && (a.file == b.file || !std::strcmp(a.file, b.file));
}

std::string text(const Site& site) {
  const char* slash = std::strrchr(site.file, '/');
  return std::string(site.what) + " at " + (slash ? slash + 1 : site.file) + ":" + std::to_string(site.line);
}

enum class State { ready, waits_for_block, waits_for_warp, done };

// A copy into shared memory that has been started and not yet waited for.
struct PendingCopy {
  void* to;
  unsigned char data[16];
};

struct Fiber : Flow, ThreadView {
  State state = State::ready;
  Site site = {"", "", 0};
  std::vector<PendingCopy> copies;
};

struct Warp {
  int arrived = 0;
  Site site = {"", "", 0};
  unsigned epoch = 0;  // number of completed exchanges; its last bit chooses the slots
  Slot slots[2][kWarpSize];
};

// What all OS threads of one launch share: the work to hand out and the first report.
struct Launch {
  dim3 grid, block;
  size_t shared_bytes;
  bool reversed;
  void (*kernel)(const void*);
  const void* arguments;
  std::atomic<long> next_block{0};
  std::atomic<bool> failed{false};
  std::mutex report_lock;
  std::string report;
};

struct Block : BlockView {
  explicit Block(Launch& launch);
  ~Block() { std::free(shared); }
  Block(const Block&) = delete;

  void run(dim3 index);
  void wait(State why, Site site);
  void sync_threads(Site site);
  void sync_warp(Site site);
  void finish_fiber();
  [[noreturn]] void fail(const std::string& message);

  Fiber& current() const { return *static_cast<Fiber*>(thread); }
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
  Flow os_thread;
  int alive = 0, arrived = 0;
  Site barrier = {"", "", 0};
};

Block& running() { return *static_cast<Block*>(block); }

void fiber_entry() {
  entered(&running().os_thread);
  running().launch.kernel(running().launch.arguments);
  running().finish_fiber();
}

Block::Block(Launch& launch)
    : BlockView{dim3(), launch.block, launch.grid, nullptr, {}},
      launch(launch),
      threads(int(launch.block.x * launch.block.y * launch.block.z)),
      fibers(threads),
      warps((threads + kWarpSize - 1) / kWarpSize),
      stacks(new char[threads * kStackBytes]) {
  // The exact size, so that AddressSanitizer sees an overrun.
  void* memory = nullptr;
  if (posix_memalign(&memory, 128, launch.shared_bytes)) std::abort();
  shared = static_cast<unsigned char*>(memory);
}

void Block::run(dim3 index) {
  blockIdx = index;
  alive = threads;
  arrived = 0;
  std::memset(shared, 0xff, launch.shared_bytes);  // 0xffff is a NaN in fp16 and bf16, 0xffffffff in fp32
  for (Warp& warp : warps) warp.arrived = 0;
  for (int i = 0; i < threads; i++) {
    Fiber& fiber = fibers[i];
    fiber.id = i, fiber.warp = i / kWarpSize, fiber.lane = i % kWarpSize;
    fiber.threadIdx = dim3(i % blockDim.x, i / blockDim.x % blockDim.y, i / (blockDim.x * blockDim.y));
    fiber.state = State::ready;
    fiber.copies.clear();
    prepare(fiber, stacks.get() + i * kStackBytes, fiber_entry);
  }
  Fiber& first = fibers[launch.reversed ? threads - 1 : 0];
  thread = &first;
  switch_flow(os_thread, first);
}

// The next fiber that can run in fibers[first … first + count), in ring order after `after`; null if there is none.
Fiber* Block::next_ready(int first, int count, int after) {
  for (int n = 1, i = after - first; n <= count; n++) {
    i += launch.reversed ? -1 : 1;
    if (i >= count) i -= count;
    if (i < 0) i += count;
    if (fibers[first + i].state == State::ready) return &fibers[first + i];
  }
  return nullptr;
}

Fiber* Block::next_ready_after(const Fiber& fiber) {
  Fiber* mate = next_ready(fiber.warp * kWarpSize, warp_width(fiber.warp), fiber.id);
  return mate ? mate : next_ready(0, threads, fiber.id);
}

void Block::wait(State why, Site site) {
  Fiber& me = current();
  me.state = why;
  me.site = site;
  Fiber* next = next_ready_after(me);
  if (!next) fail("deadlock: every thread of the block waits");
  thread = next;
  switch_flow(me, *next);
}

void Block::set_ready(int first, int count, State was) {
  for (int i = first; i < first + count; i++)
    if (fibers[i].state == was) fibers[i].state = State::ready;
}

void Block::sync_threads(Site site) {
  Fiber& me = current();
  if (arrived > 0 && !same(site, barrier)) {
    me.state = State::waits_for_block, me.site = site;
    fail("divergent barrier: threads of one block wait at different barriers");
  }
  if (alive < threads) {
    me.state = State::waits_for_block, me.site = site;
    fail("a thread waits at a barrier after another thread of its block has returned");
  }
  barrier = site;
  if (++arrived < threads) return wait(State::waits_for_block, site);
  arrived = 0;
  set_ready(0, threads, State::waits_for_block);
}

void Block::sync_warp(Site site) {
  Fiber& me = current();
  Warp& warp = warps[me.warp];
  if (warp.arrived > 0 && !same(site, warp.site)) {
    me.state = State::waits_for_warp, me.site = site;
    fail("divergent warp: lanes of one warp wait at different warp operations");
  }
  warp.site = site;
  if (++warp.arrived < warp_width(me.warp)) return wait(State::waits_for_warp, site);
  warp.arrived = 0;
  warp.epoch++;
  set_ready(me.warp * kWarpSize, warp_width(me.warp), State::waits_for_warp);
}

void Block::finish_fiber() {
  Fiber& me = current();
  me.state = State::done;
  alive--;
  if (alive == 0) {
    switch_flow(me, os_thread, true);
  } else {
    Fiber* next = next_ready_after(me);
    if (!next) fail("a thread returned while the rest of its block waits");
    thread = next;
    switch_flow(me, *next, true);
  }
  std::abort();  // nothing switches back to a finished fiber
}

// Threads grouped by where they stand, first thread of each group named.
std::string Block::waiting_threads() const {
  std::string lines;
  std::vector<bool> told(threads, false);
  for (int i = 0; i < threads; i++) {
    const Fiber& fiber = fibers[i];
    if (told[i] || fiber.state == State::ready) continue;
    int alike = 0;
    for (int k = i; k < threads; k++) {
      if (told[k] || fibers[k].state != fiber.state) continue;
      if (fiber.state != State::done && !same(fibers[k].site, fiber.site)) continue;
      told[k] = true;
      alike++;
    }
    lines += "\n  thread " + std::to_string(i);
    if (alike > 1) lines += " and " + std::to_string(alike - 1) + " more";
    lines += fiber.state == State::done ? " returned" : (alike > 1 ? " wait in " : " waits in ") + text(fiber.site);
  }
  return lines;
}

// Ends the launch. The fibers of this block are left where they stand: kernels own nothing that must be freed.
void Block::fail(const std::string& message) {
  {
    const std::lock_guard<std::mutex> hold(launch.report_lock);
    if (!launch.failed.exchange(true)) {
      launch.report = message + " (block " + std::to_string(blockIdx.x) + "," + std::to_string(blockIdx.y) + "," +
                      std::to_string(blockIdx.z) + ", thread " + std::to_string(thread->id) + ")" + waiting_threads();
    }
  }
  switch_flow(current(), os_thread, true);
  std::abort();  // nothing switches back to a failed fiber
}

}  // namespace

void sync_threads(Site site) { running().sync_threads(site); }
void sync_warp(Site site) { running().sync_warp(site); }

Slot* next_slots() {
  Warp& warp = running().warps[thread->warp];
  return warp.slots[warp.epoch & 1];
}

void start_copy(void* to, const void* from, size_t bytes) {
  PendingCopy copy = {to, {}};
  std::memcpy(copy.data, from, bytes);
  std::memset(to, 0xff, sizeof copy.data);  // whoever reads before the wait reads NaN
  running().current().copies.push_back(copy);
}

void wait_for_copies() {
  Fiber& me = running().current();
  for (const PendingCopy& copy : me.copies) std::memcpy(copy.to, copy.data, sizeof copy.data);
  me.copies.clear();
}

void fail_out_of_bounds(const char* tensor, size_t index, long long elements) {
  running().fail("out of bounds: element " + std::to_string((long long)index) + " of " + tensor + ", which has " +
                 std::to_string(elements));
}

void fail_misaligned(const void* address, int alignment) {
  char where[32];
  std::snprintf(where, sizeof where, "%p", address);
  running().fail(std::string("misaligned: address ") + where + " is not a multiple of " + std::to_string(alignment));
}

void run_grid(dim3 grid, dim3 block_size, size_t shared_bytes, Execution how, void (*kernel)(const void*),
              const void* arguments, ByteCounts& counts, char* report, size_t report_bytes) {
  Launch launch;
  launch.grid = grid;
  launch.block = block_size;
  launch.shared_bytes = shared_bytes;
  launch.reversed = how.reversed != 0;
  launch.kernel = kernel;
  launch.arguments = arguments;

  const long blocks = long(grid.x) * grid.y * grid.z;
  const long wanted = how.os_threads > 0 ? how.os_threads : long(std::thread::hardware_concurrency());
  const int os_threads = int(std::max(1L, std::min(wanted, blocks)));
  std::mutex counts_lock;
  const auto work = [&] {
    Block mine(launch);
    block = &mine;
    for (long b; !launch.failed && (b = launch.next_block++) < blocks;)
      mine.run(dim3(unsigned(b % grid.x), unsigned(b / grid.x % grid.y), unsigned(b / (long(grid.x) * grid.y))));
    block = nullptr;
    const std::lock_guard<std::mutex> hold(counts_lock);
    for (int i = 0; i < kMaxTensors; i++) {
      counts.loaded[i] += mine.counts.loaded[i];
      counts.stored[i] += mine.counts.stored[i];
    }
  };
  std::vector<std::thread> others;
  for (int i = 1; i < os_threads; i++) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  std::snprintf(report, report_bytes, "%s", launch.report.c_str());
}

}  // namespace cuda_on_cpu
