// What the processor has, asked of itself: __builtin_cpu_supports needs a runtime that answers, and
// not every compiler's does.

#pragma once

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

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
