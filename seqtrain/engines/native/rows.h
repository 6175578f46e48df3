// Rows of tables: weighted sums with their gradient, and dropout.

#pragma once

#include "update.h"

namespace {

INLINE Index begin_of(const RowSums& call, Index sum) { return call.offsets[call.chosen[sum]]; }
INLINE Index end_of(const RowSums& call, Index sum) { return call.offsets[call.chosen[sum] + 1]; }

Index threads_for(const RowSums& call) {
  Index entries = 0;
  for (Index sum = 0; sum < call.sums; ++sum) entries += end_of(call, sum) - begin_of(call, sum);
  return larger(1, smaller(call.threads, entries * call.width / WORTH_A_THREAD));
}

NOINLINE void add_scaled(float* __restrict to, const float* __restrict from, float by, Index count) {
  for (Index k = 0; k < count; ++k) to[k] += by * from[k];
}

// Returns -1 without doing anything if a chosen row or an entry is out of range.
int64_t sum_rows(const RowSums* call) {
  for (Index sum = 0; sum < call->sums; ++sum) {
    if (call->chosen[sum] < 0 || call->chosen[sum] >= call->of) return -1;
    for (Index i = begin_of(*call, sum); i < end_of(*call, sum); ++i)
      if (call->which[i] < 0 || call->which[i] >= call->rows) return -1;
  }
  in_parts(threads_for(*call), [&](Part part) {
    for (Index sum = part.begin(call->sums); sum < part.end(call->sums); ++sum) {
      float* total = call->totals + sum * call->width;
      memset(total, 0, call->width * sizeof(float));
      for (Index i = begin_of(*call, sum), end = end_of(*call, sum); i < end; ++i) {
        if (i + AHEAD < end) prefetch(call->table + call->which[i + AHEAD] * call->width, call->width);
        add_scaled(total, call->table + call->which[i] * call->width, call->weights[i], call->width);
      }
    }
  });
  return 0;
}

// Finds the rows of the table that occur in the sums, in ascending order. Writes them to `unique`, and
// the place of each row among them to `place` (rows). Returns their number.
int64_t summed_rows(const RowSums* call, int64_t* unique) {
  memset(call->place, 0, call->rows * sizeof(int32_t));
  for (Index sum = 0; sum < call->sums; ++sum)
    for (Index i = begin_of(*call, sum); i < end_of(*call, sum); ++i)
      call->place[call->which[i]] = 1;
  int32_t found = 0;
  for (Index row = 0; row < call->rows; ++row) {
    if (!call->place[row]) continue;
    unique[found] = row;
    call->place[row] = found++;
  }
  return found;
}

// Computes the gradient: adds the gradients of the totals to the rows that `summed_rows` found, which
// `table` then consists of. Each thread has some of the columns.
void add_to_rows(const RowSums* call) {
  Index vectors = round_up(call->width, LANES) / LANES;
  in_parts(smaller(threads_for(*call), vectors), [&](Part part) {
    Index at = part.begin(vectors) * LANES;
    Index count = smaller(part.end(vectors) * LANES, call->width) - at;
    for (Index sum = 0; sum < call->sums; ++sum)
      for (Index i = begin_of(*call, sum); i < end_of(*call, sum); ++i)
        add_scaled(call->table + call->place[call->which[i]] * call->width + at,
                   call->totals + sum * call->width + at, call->weights[i], count);
  });
}

constexpr Index WORDS = 64;  // random numbers that are computed together; each decides about four units

// SplitMix64, as in splitmix64.py: number i of a stream is mixed(seed + (i + 1) GOLDEN).
constexpr uint64_t GOLDEN = 0x9E3779B97F4A7C15;

INLINE uint64_t mixed(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
  return value ^ (value >> 31);
}

NOINLINE void mix(uint64_t seed, Index begin, uint64_t* __restrict to) {
  for (Index i = 0; i < WORDS; ++i) to[i] = mixed(seed + (begin + i + 1) * GOLDEN);
}

NOINLINE void keep(const int16_t* __restrict bits, Index count, int16_t least, float scale,
                   const float* __restrict from, float* __restrict to) {
  for (Index k = 0; k < count; ++k) to[k] = bits[k] >= least ? scale * from[k] : 0.f;
}

// Multiplies each unit by `scale` or 0. Unit k is kept if its 16 bits, as a signed number, are at least
// `least`. They are bits 16 (k % 4) and following of number k / 4 of the row's stream. The seed of
// that stream is number keys[row] of the stream of seeds[row], or of `seed` if `seeds` is null.
void drop(uint64_t seed, const int64_t* seeds, const int64_t* keys, int64_t rows, int64_t width,
          int64_t least, float scale, const float* from, float* to) {
  uint64_t numbers[WORDS];
  int16_t bits[4 * WORDS];
  for (Index row = 0; row < rows; ++row, from += width, to += width) {
    for (Index at = 0; at < width; at += 4 * WORDS) {
      uint64_t own = mixed((seeds ? (uint64_t)seeds[row] : seed) + (keys[row] + 1) * GOLDEN);
      mix(own, at / 4, numbers);
      memcpy(bits, numbers, sizeof bits);
      keep(bits, smaller(4 * WORDS, width - at), (int16_t)least, scale, from + at, to + at);
    }
  }
}

}  // namespace
