// Words of 32 bits, the factors of the products. A word is a float or, on the bfloat16 path, two
// numbers that are adjacent along the depth of the product, rounded to bfloat16:
//
//   float       word k  = a[k]                    sum += a[k] b[k]
//   bfloat16    word k  = a[2k] | a[2k + 1]       sum += a[2k] b[2k] + a[2k + 1] b[2k + 1]
//
// On both paths, sums and all other numbers are float32.

#pragma once

#include "vector.h"

#if defined(__AVX512BF16__)
#include <immintrin.h>
#elif defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
#include <arm_neon.h>
#endif

namespace {

#if defined(__AVX512BF16__) || defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)

constexpr Index PAIR = 2;   // numbers of a word
using Number = uint16_t;    // one of them
using Word = int32_t;
using WordVec = IntVec;

INLINE WordVec splat(Word word) { return word - WordVec{}; }

#if defined(__AVX512BF16__)

INLINE Number to_number(float x) {
  return (Number)_mm_cvtsi128_si32((__m128i)_mm_cvtneps_pbh(_mm_set_ss(x)));
}

INLINE Vec add_products(Vec sum, WordVec a, WordVec b) {
  return (Vec)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b);
}

// Joins lane by lane: a in the low half, b in the high half.
INLINE WordVec join(Vec a, Vec b) {
  WordVec low = (WordVec)_mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh((__m512)a));
  WordVec high = (WordVec)_mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh((__m512)b));
  return low | high << 16;
}

// Converts two consecutive vectors.
INLINE WordVec pairs_of(Vec low, Vec high) {
  return (WordVec)_mm512_cvtne2ps_pbh((__m512)high, (__m512)low);
}

#else

INLINE Number to_number(float x) {
  bfloat16_t rounded = vcvth_bf16_f32(x);
  Number bits;
  memcpy(&bits, &rounded, sizeof bits);
  return bits;
}

INLINE Vec add_products(Vec sum, WordVec a, WordVec b) {
  return (Vec)vbfdotq_f32((float32x4_t)sum, (bfloat16x8_t)a, (bfloat16x8_t)b);
}

INLINE WordVec join(Vec a, Vec b) {
  WordVec low = (WordVec)vmovl_u16((uint16x4_t)vcvt_bf16_f32((float32x4_t)a));
  WordVec high = (WordVec)vmovl_u16((uint16x4_t)vcvt_bf16_f32((float32x4_t)b));
  return low | high << 16;
}

INLINE WordVec pairs_of(Vec low, Vec high) {
  return (WordVec)vcvtq_high_bf16_f32(vcvtq_low_bf16_f32((float32x4_t)low), (float32x4_t)high);
}

#endif

#else

constexpr Index PAIR = 1;
using Number = float;
using Word = float;
using WordVec = Vec;

INLINE Number to_number(float x) { return x; }

INLINE Vec add_products(Vec sum, WordVec a, WordVec b) { return sum + a * b; }

INLINE WordVec join(Vec a, Vec) { return a; }

INLINE WordVec pairs_of(Vec low, Vec) { return low; }

#endif

// Returns the number of words for this many numbers.
INLINE Index words_of(Index numbers) { return (numbers + PAIR - 1) / PAIR; }

typedef WordVec UnalignedWords __attribute__((aligned(4), may_alias));

INLINE WordVec load_words(const Word* from) { return *(const UnalignedWords*)from; }
INLINE void store_words(Word* to, WordVec v) { *(UnalignedWords*)to = v; }

// Returns the words of memory for a row as words. Floats need none: they are read in place.
INLINE Index room_of(Index numbers) {
  return PAIR == 1 ? 0 : round_up(words_of(numbers), LANES);
}

// Returns a row as words, in place or in `room`. Zeros follow its last number.
INLINE const Word* to_words(const float* row, Index numbers, Word* room) {
  if (PAIR == 1) return (const Word*)row;
  for (Index i = 0; i < numbers; i += 2 * LANES) {
    Vec low = load_part(row + i, numbers - i), high = load_part(row + i + LANES, numbers - i - LANES);
    store_words(room + i / 2, pairs_of(low, high));
  }
  return room;
}

// Returns one word of each of LANES columns: from row k and, if words are pairs, from row k + 1.
INLINE WordVec words_across(const float* const* rows, Index k, Index depth, Index at, Index count) {
  Vec second = {};
  if (PAIR == 2 && k + 1 < depth) second = load_part(rows[k + 1] + at, count);
  return join(load_part(rows[k] + at, count), second);
}

}  // namespace
