// Rows of tables: weighted sums of them with their gradient, and which units dropout keeps.

#pragma once

#include "plan.h"

namespace {

constexpr Index WORTH_A_THREAD = 1 << 15;  // numbers below which a thread isn't worth waking

Index threads_for(const RowSums& call) {
  return larger(1, smaller(call.threads, call.entries * call.width / WORTH_A_THREAD));
}

INLINE Index end_of(const RowSums& call, Index sum) {
  return sum + 1 < call.sums ? call.offsets[sum + 1] : call.entries;
}

// W vectors of a sum from column `at` on. Reading goes on beyond a row's end where a row follows.
template <int W>
NOINLINE void sum_columns(const RowSums& call, Index sum, Index at) {
  Vec total[W] = {};
  Index end = end_of(call, sum), last = call.rows * call.width - W * LANES;
  for (Index i = call.offsets[sum]; i < end; ++i) {
    Index from = call.which[i] * call.width + at;
    if (i + 2 < call.entries) prefetch(call.table + call.which[i + 2] * call.width + at, W * LANES);
    Vec weight = splat(call.weights ? call.weights[i] : 1.f);
    UNROLL for (int v = 0; v < W; ++v) {
      const float* row = call.table + from + v * LANES;
      Index left = from > last ? call.width - at - v * LANES : LANES;
      total[v] += weight * load_part(row, left);
    }
  }
  UNROLL for (int v = 0; v < W; ++v)
    store_part(call.totals + sum * call.width + at + v * LANES, total[v],
               call.width - at - v * LANES);
}

// Returns -1 where an entry is no row of the table, having done nothing.
int64_t sum_rows(const RowSums* call) {
  for (Index i = 0; i < call->entries; ++i)
    if (call->which[i] < 0 || call->which[i] >= call->rows) return -1;
  Index vectors = round_up(call->width, LANES) / LANES;
  as_team(threads_for(*call), [&](Member member) {
    Index end = member.end(call->sums);
    for (Index sum = member.begin(call->sums); sum < end; ++sum)
      for (Index at = 0; at < vectors; at += 4)
        with_constant<4>(smaller(4, vectors - at), [&](auto wide) {
          sum_columns<decltype(wide)::value>(*call, sum, at * LANES);
        });
  });
  return 0;
}

NOINLINE void add_scaled(float* __restrict to, const float* __restrict from, float by, Index count) {
  for (Index k = 0; k < count; ++k) to[k] += by * from[k];
}

// The gradient: adds to the table's rows those of the totals. A thread has some of the columns.
void add_to_rows(const RowSums* call) {
  Index vectors = round_up(call->width, LANES) / LANES;
  as_team(smaller(threads_for(*call), vectors), [&](Member member) {
    Index at = member.begin(vectors) * LANES;
    Index count = smaller(member.end(vectors) * LANES, call->width) - at;
    for (Index sum = 0; sum < call->sums; ++sum)
      for (Index i = call->offsets[sum]; i < end_of(*call, sum); ++i)
        add_scaled(call->table + call->which[i] * call->width + at,
                   call->totals + sum * call->width + at, call->weights ? call->weights[i] : 1.f,
                   count);
  });
}

// Number of a stream of SplitMix64, as `numbers` of randomness.py.
INLINE uint64_t mixed(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

// Multiplies units by `scale` or 0: the 16 bits from 16 (k % 4) on of number k / 4 of a row's stream
// are a signed number, at least `least` for a unit k that is kept.
void drop(const int64_t* seeds, int64_t rows, int64_t width, int64_t least, float scale,
          const float* from, float* to) {
  for (Index row = 0; row < rows; ++row, from += width, to += width) {
    for (Index k = 0; k < width; k += 4) {
      uint64_t bits = mixed(seeds[row] + (k / 4 + 1) * 0x9E3779B97F4A7C15u);
      for (Index i = k; i < smaller(k + 4, width); ++i, bits >>= 16)
        to[i] = (int16_t)bits >= least ? scale * from[i] : 0.f;
    }
  }
}

}  // namespace
