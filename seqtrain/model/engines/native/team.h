// The threads of a pass: torch's own, where both use the same OpenMP library.
//
// A pass is one parallel region; its stages meet at barriers.

#pragma once

#if defined(_OPENMP)
#include <omp.h>
#endif

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
void as_team(Index threads, F run) {
#if defined(_OPENMP)
#pragma omp parallel num_threads(threads)
  {
    WithoutDenormals quick;
    run(Member{omp_get_thread_num(), omp_get_num_threads()});
  }
#else
  WithoutDenormals quick;
  run(Member{0, 1});
#endif
}

INLINE void wait_for_all() {
#if defined(_OPENMP)
#pragma omp barrier
#endif
}

// The next number not yet taken by any thread.
INLINE Index take_next(Index* next) { return __atomic_fetch_add(next, 1, __ATOMIC_RELAXED); }

}  // namespace
