// The threads of a pass: torch's own, where both use the same OpenMP library.
//
// A pass is one parallel region; its stages meet at barriers.

#pragma once

#if defined(_OPENMP)
#include <omp.h>
#endif

#include "plan.h"

namespace {

template <class F>
void as_team(Index threads, F run) {
#if defined(_OPENMP)
#pragma omp parallel num_threads(threads)
  run(Member{omp_get_thread_num(), omp_get_num_threads()});
#else
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
