// Which vector path runs.

#include <string.h>

#include "interface.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

// What the processor has, asked of itself: __builtin_cpu_supports needs a runtime that answers, and
// not every compiler's does.
struct Processor {
  bool avx2, avx512, bfloat16;  // with all that the vector path of this name is compiled to
};

static Processor this_processor() {
  Processor found = {};
#if defined(__x86_64__)
  unsigned a, b, c, d, saved, high;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1)) return found;  // XSAVE, in use
  bool fma = c >> 12 & 1;
  __asm__("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));  // registers that the system saves
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return found;
  const unsigned parts = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;  // F, DQ, BW, VL
  found.avx2 = fma && (saved & 0x6) == 0x6 && (b >> 5 & 1);
  found.avx512 = found.avx2 && (saved & 0xe6) == 0xe6 && (b & parts) == parts;
  if (found.avx512 && a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d))
    found.bfloat16 = a >> 5 & 1;
#elif defined(__aarch64__) && defined(__linux__)
  found.bfloat16 = getauxval(AT_HWCAP2) >> 14 & 1;
#endif
  return found;
}

#define EXPORT extern "C" __attribute__((visibility("default")))

#if defined(__aarch64__)
#define BASE seqtrain_kernels_neon
#else
#define BASE seqtrain_kernels_portable
#endif
extern "C" const Kernels BASE;
#if defined(HAS_avx512)
extern "C" const Kernels seqtrain_kernels_avx2;
extern "C" const Kernels seqtrain_kernels_avx512;
#endif
#if defined(HAS_bfloat16)
extern "C" const Kernels seqtrain_kernels_bfloat16;
#endif

// The widest path that the processor has and `wanted` allows ("auto": any); null where none is.
static const Kernels* find(const char* wanted) {
  bool any = strcmp(wanted, "auto") == 0;
#if defined(HAS_avx512)
  Processor has = this_processor();
  if (has.avx512 && (any || strcmp(wanted, "avx512") == 0)) return &seqtrain_kernels_avx512;
  if (has.avx2 && (any || strcmp(wanted, "avx2") == 0)) return &seqtrain_kernels_avx2;
#endif
  return any || strcmp(wanted, BASE.name) == 0 ? &BASE : nullptr;
}

// The same path with bfloat16 products where the processor has them; both save the same layouts.
static const Kernels* find_rounding(const Kernels* found) {
#if defined(HAS_bfloat16) && defined(HAS_avx512)
  if (found == &seqtrain_kernels_avx512 && this_processor().bfloat16)
    return &seqtrain_kernels_bfloat16;
#elif defined(HAS_bfloat16)
  if (this_processor().bfloat16) return &seqtrain_kernels_bfloat16;
#endif
  return found;
}

Threads seqtrain_threads = {};

// Says what runs several threads; without, one computes.
EXPORT void seqtrain_use_threads(const Threads* threads) { seqtrain_threads = *threads; }

// The path that is wanted ("auto": the widest), for calls that round or don't; null where the
// processor lacks it.
EXPORT const Kernels* seqtrain_find(const char* wanted, int64_t rounding) {
  const Kernels* found = find(wanted);
  return found && rounding ? find_rounding(found) : found;
}

// What the library was built from: build.py's digest of the sources.
EXPORT const char* seqtrain_sources() { return SEQTRAIN_SOURCES; }
