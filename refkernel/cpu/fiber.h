// Fibers: several call stacks that take turns on one OS thread.
//
// A CUDA thread of a block runs as one fiber. It gives up the OS thread only where it waits for other CUDA threads,
// so a switch is a handful of instructions instead of a trip through the kernel's scheduler. This file knows stacks
// and registers and nothing about CUDA.
#pragma once
#include <cstddef>
#include <cstdint>

#if !(defined(__x86_64__) && defined(__ELF__))
#include <ucontext.h>
#endif

#if defined(__SANITIZE_ADDRESS__)
#define CUDA_ON_CPU_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CUDA_ON_CPU_ASAN 1
#endif
#endif

#ifdef CUDA_ON_CPU_ASAN
// AddressSanitizer must be told of every change of stack, or it reports the next frame as an overflow.
extern "C" void __sanitizer_start_switch_fiber(void** fake_stack, const void* stack, size_t bytes);
extern "C" void __sanitizer_finish_switch_fiber(void* fake_stack, const void** old_stack, size_t* old_bytes);
extern "C" void __asan_unpoison_memory_region(const volatile void* address, size_t bytes);
#endif

namespace cuda_on_cpu {

#ifdef CUDA_ON_CPU_ASAN
constexpr size_t kStackBytes = 1 << 20;  // AddressSanitizer's frames are larger
#else
constexpr size_t kStackBytes = 64 << 10;
#endif

// Where a stack lies. The OS thread's own stack is described too, so that a fiber can return to it under
// AddressSanitizer; there `bottom` is filled in by the first fiber that is entered from it.
struct Stack {
  const void* bottom = nullptr;
  size_t bytes = 0;
};

#if defined(__x86_64__) && defined(__ELF__)

using SavedRegisters = void*;  // the stack pointer; everything else lies on that stack

// Pushes the registers that a callee must preserve, exchanges the stack pointer, pops the other side's registers.
extern "C" void cuda_on_cpu_switch(void** from, void* to);
__asm__(
    ".text\n"
    ".weak cuda_on_cpu_switch\n"
    ".hidden cuda_on_cpu_switch\n"
    ".type cuda_on_cpu_switch, @function\n"
    "cuda_on_cpu_switch:\n"
    "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
    "  movq %rsp, (%rdi)\n"
    "  movq %rsi, %rsp\n"
    "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
    "  ret\n"
    ".size cuda_on_cpu_switch, .-cuda_on_cpu_switch\n");

inline void exchange_registers(SavedRegisters& from, SavedRegisters& to) { cuda_on_cpu_switch(&from, to); }

// Lays out a stack as cuda_on_cpu_switch leaves it: six registers, then the address to "return" to.
inline void prepare_registers(SavedRegisters& saved, char* stack, void (*entry)()) {
  const uintptr_t top = (reinterpret_cast<uintptr_t>(stack) + kStackBytes) & ~uintptr_t(15);
  void** slot = reinterpret_cast<void**>(top);
  *--slot = nullptr;  // return address of `entry`, never used; also aligns the stack as a call would
  *--slot = reinterpret_cast<void*>(entry);
  for (int i = 0; i < 6; i++) *--slot = nullptr;
  saved = slot;
}

#else  // any other platform: slower by a system call per switch, but portable

using SavedRegisters = ucontext_t;

inline void exchange_registers(SavedRegisters& from, SavedRegisters& to) { swapcontext(&from, &to); }

inline void prepare_registers(SavedRegisters& saved, char* stack, void (*entry)()) {
  getcontext(&saved);
  saved.uc_stack.ss_sp = stack;
  saved.uc_stack.ss_size = kStackBytes;
  saved.uc_link = nullptr;
  makecontext(&saved, entry, 0);
}

#endif

// A suspended flow of control: the OS thread itself, or one fiber.
struct Flow {
  SavedRegisters registers;
  Stack stack;
  void* fake_stack = nullptr;  // AddressSanitizer's; null where it is not in use
};

// Makes `flow` start in `entry` when it is first switched to.
inline void prepare(Flow& flow, char* stack, void (*entry)()) {
#ifdef CUDA_ON_CPU_ASAN
  __asan_unpoison_memory_region(stack, kStackBytes);  // an earlier fiber ended in the middle of its frames
#endif
  flow.stack = {stack, kStackBytes};
  flow.fake_stack = nullptr;
  prepare_registers(flow.registers, stack, entry);
}

// First statement of an entry function. `caller` is the flow that switched here if its stack is not known yet.
inline void entered([[maybe_unused]] Flow* caller) {
#ifdef CUDA_ON_CPU_ASAN
  const void* bottom = nullptr;
  size_t bytes = 0;
  __sanitizer_finish_switch_fiber(nullptr, &bottom, &bytes);
  if (caller && !caller->stack.bottom) caller->stack = {bottom, bytes};
#endif
}

// Suspends `from` and resumes `to`. Returns when something switches back to `from`.
inline void switch_flow(Flow& from, Flow& to, [[maybe_unused]] bool from_is_done = false) {
#ifdef CUDA_ON_CPU_ASAN
  __sanitizer_start_switch_fiber(from_is_done ? nullptr : &from.fake_stack, to.stack.bottom, to.stack.bytes);
#endif
  exchange_registers(from.registers, to.registers);
#ifdef CUDA_ON_CPU_ASAN
  __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
#endif
}

}  // namespace cuda_on_cpu
