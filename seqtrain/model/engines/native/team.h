// The threads of a pass: torch's own. Python hands over the functions of the OpenMP library that
// torch has loaded (seqtrain_threads), so that a process never has the threads of two.
//
// A pass is one parallel region; its stages meet at barriers.

#pragma once

#include "plan.h"

namespace {

// As long as it lives, a thread takes numbers below 1.2e-38 for zero. A gradient that fades on its
// way back through a long sequence ends among them, where Intel's processors take a hundred cycles
// for a product.
class WithoutDenormals {
 public:
  WithoutDenormals() : before(read()) { write(before | BITS); }
  ~WithoutDenormals() { write(before); }

 private:
#if defined(__x86_64__)
  static constexpr uint64_t BITS = 0x8040;  // results to zero, operands as zero
  static uint64_t read() { return __builtin_ia32_stmxcsr(); }
  static void write(uint64_t bits) { __builtin_ia32_ldmxcsr((unsigned)bits); }
#elif defined(__aarch64__)
  static constexpr uint64_t BITS = 1 << 24;
  static uint64_t read() {
    uint64_t bits;
    __asm__ volatile("mrs %0, fpcr" : "=r"(bits));
    return bits;
  }
  static void write(uint64_t bits) { __asm__ volatile("msr fpcr, %0" : : "r"(bits)); }
#else
  static constexpr uint64_t BITS = 0;
  static uint64_t read() { return 0; }
  static void write(uint64_t) {}
#endif

  uint64_t before;
};

template <class F>
void run_member(void* run) {
  WithoutDenormals quick;
  (*(F*)run)(Member{seqtrain_threads.number(), seqtrain_threads.of()});
}

template <class F>
void as_team(Index threads, F run) {
  if (threads > 1 && seqtrain_threads.parallel) {
    seqtrain_threads.parallel(run_member<F>, &run, (unsigned)threads, 0);
  } else {
    WithoutDenormals quick;
    run(Member{0, 1});
  }
}

INLINE void wait_for_all(Member member) {
  if (member.of > 1) seqtrain_threads.barrier();
}

// The next number not yet taken by any thread.
INLINE Index take_next(Index* next) { return __atomic_fetch_add(next, 1, __ATOMIC_RELAXED); }

}  // namespace
