// Choice of the vector path that runs.

#include <string.h>

#include "interface.h"
#include "team.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

// Features of the processor, from its own instructions. __builtin_cpu_supports needs support by the
// runtime of the compiler, which not every compiler has.
struct Processor {
  bool avx2, avx512, bfloat16;  // including all instructions that the vector path of this name uses
};

static Processor this_processor() {
  Processor found = {};
#if defined(__x86_64__)
  unsigned a, b, c, d, saved, high;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1)) return found;  // XSAVE is in use
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

// Returns the widest path that the processor has and `wanted` allows ("auto": any), or null.
static const Kernels* find(const char* wanted) {
  bool any = strcmp(wanted, "auto") == 0;
#if defined(HAS_avx512)
  Processor has = this_processor();
  if (has.avx512 && (any || strcmp(wanted, "avx512") == 0)) return &seqtrain_kernels_avx512;
  if (has.avx2 && (any || strcmp(wanted, "avx2") == 0)) return &seqtrain_kernels_avx2;
#endif
  return any || strcmp(wanted, BASE.name) == 0 ? &BASE : nullptr;
}

// Returns the same path with bfloat16 products if the processor has them. Saved layouts are equal.
static const Kernels* find_rounding(const Kernels* found) {
#if defined(HAS_bfloat16) && defined(HAS_avx512)
  if (found == &seqtrain_kernels_avx512 && this_processor().bfloat16)
    return &seqtrain_kernels_bfloat16;
#elif defined(HAS_bfloat16)
  if (this_processor().bfloat16) return &seqtrain_kernels_bfloat16;
#endif
  return found;
}

// Returns a path by name ("auto": the widest), whose products round to bfloat16 or don't, or null if
// the processor lacks it.
EXPORT const Kernels* seqtrain_find(const char* wanted, int64_t rounding) {
  const Kernels* found = find(wanted);
  return found && rounding ? find_rounding(found) : found;
}

// Returns the digest of the sources, as build.py computes it.
EXPORT const char* seqtrain_sources() { return SEQTRAIN_SOURCES; }
