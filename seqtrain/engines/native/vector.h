// Vectors of floats, as GCC and Clang have them: one source for every width.
//
// All code of a vector path has internal linkage: an unnamed namespace, and nothing from the C++
// library. The linker keeps one copy of an inline function that two paths share, and a processor
// without AVX-512 could get the copy that needs it.

#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define INLINE inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

namespace {

using Index = ptrdiff_t;

// A vector has LANES floats. ROWS x 3 accumulators, three vectors of weights and one of the state fit
// into the registers: 32 with AVX-512 and NEON, 16 otherwise. Six rows of accumulators four vectors
// wide (ROWS_OF_FOUR) would fit into 32 registers, but four rows divide a block of eight sequences,
// which is faster than blocks of six. OUTER_ROWS, of outer products, divides LANES.
#if defined(__AVX512F__)
constexpr int LANES = 16, ROWS = 8, ROWS_OF_FOUR = 4;
#elif defined(__AVX2__)
constexpr int LANES = 8, ROWS = 4, ROWS_OF_FOUR = 2;
#elif defined(__aarch64__)
constexpr int LANES = 4, ROWS = 8, ROWS_OF_FOUR = 4;
#else
constexpr int LANES = 4, ROWS = 4, ROWS_OF_FOUR = 2;
#endif
constexpr int OUTER_ROWS = ROWS < LANES ? ROWS : LANES;

typedef float Vec __attribute__((vector_size(4 * LANES)));
typedef int32_t IntVec __attribute__((vector_size(4 * LANES)));
typedef float UnalignedVec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

INLINE Vec load(const float* from) { return (Vec) * (const UnalignedVec*)from; }
INLINE void store(float* to, Vec v) { *(UnalignedVec*)to = (UnalignedVec)v; }
INLINE Vec splat(float x) { return x - Vec{}; }

// Loads the first `count` lanes, at the end of a row that fills no whole vector.
NOINLINE Vec load_lanes(const float* from, Index count) {
  float lanes[LANES] = {};
  for (Index i = 0; i < count; ++i) lanes[i] = from[i];
  return load(lanes);
}

NOINLINE void store_lanes(float* to, Vec v, Index count) {
  for (Index i = 0; i < count; ++i) to[i] = v[i];
}

INLINE Vec load_part(const float* from, Index count) {
  return count >= LANES ? load(from) : load_lanes(from, count);
}

INLINE void store_part(float* to, Vec v, Index count) {
  if (count >= LANES) store(to, v);
  else store_lanes(to, v, count);
}

// Keeps a broadcast number in a register. Otherwise the compiler folds the broadcast into each of the
// three products that use it, and loads it three times.
template <class V>
INLINE V in_register(V v) {
#if defined(__x86_64__)
  __asm__("" : "+v"(v));
#endif
  return v;
}

INLINE void prefetch(const float* from, Index count) {
  for (Index i = 0; i < count; i += 16) __builtin_prefetch(from + i);
}

// Returns e^x for x clamped to [-40, 40]. NaN stays NaN. The relative error is 1.5e-7 near 0.
// x log2(e) = whole + f with |f| <= 1/2. A minimax polynomial of degree 6 gives 2^f, and adding to
// the bits of the exponent gives 2^whole.
INLINE Vec exp_bounded(Vec x) {
  const Vec low = splat(-40.f), high = splat(40.f), log2_e = splat(1.44269504f);
  x = low > x ? low : x;
  x = high < x ? high : x;
  const Vec to_integer = splat(12582912.f);  // 1.5 * 2^23: adding it rounds to a whole number
  Vec shifted = x * log2_e + to_integer;
  Vec f = x * log2_e - (shifted - to_integer);
  Vec power = splat(1.5353362e-4f);
  power = power * f + splat(1.3398875e-3f);
  power = power * f + splat(9.61843692e-3f);
  power = power * f + splat(5.55033237e-2f);
  power = power * f + splat(2.40226477e-1f);
  power = power * f + splat(6.93147182e-1f);
  power = power * f + splat(1.f);
  return (Vec)((IntVec)power + ((IntVec)shifted << 23));
}

INLINE Vec sigmoid(Vec x) { return splat(1.f) / (splat(1.f) + exp_bounded(-x)); }

INLINE Vec tanh_of(Vec x) {
  return splat(1.f) - splat(2.f) / (exp_bounded(x + x) + splat(1.f));
}

INLINE float dot(const float* a, const float* b, Index count) {
  Vec sum = {};
  for (Index k = 0; k < count; k += LANES)
    sum += load_part(a + k, count - k) * load_part(b + k, count - k);
  float total = 0;
  for (int lane = 0; lane < LANES; ++lane) total += sum[lane];
  return total;
}

INLINE Index smaller(Index a, Index b) { return a < b ? a : b; }
INLINE Index larger(Index a, Index b) { return a > b ? a : b; }
INLINE Index round_up(Index n, Index to) { return (n + to - 1) / to * to; }

// Calls f with a number from 1 to MOST as a constant, so that its loops are unrolled.
template <int N>
struct Constant {
  static constexpr int value = N;
};

template <int MOST, class F>
INLINE void with_constant(Index number, F f) {
  if constexpr (MOST == 1) return f(Constant<1>());
  else if (number == MOST) return f(Constant<MOST>());
  else with_constant<MOST - 1>(number, f);
}

}  // namespace
