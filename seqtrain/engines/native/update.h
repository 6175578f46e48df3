// Adam: the norm of all gradients, and an update of all weights in one pass. Of a table only the
// touched rows are updated.

#pragma once

#include "plan.h"

namespace {

constexpr Index AHEAD = 8;        // number of rows of a table that are prefetched ahead
constexpr Index PIECES = 64;      // partial sums of a norm, independent of the number of threads

Index numbers_of(const Update& update) {
  Index sum = 0;
  for (Index i = 0; i < update.count; ++i)
    sum += update.weights[i].touched * update.weights[i].row_size;
  return sum;
}

Index threads_for(const Update& update) {
  return larger(1, smaller(update.threads, numbers_of(update) / WORTH_A_THREAD));
}

// Calls f(weight, begin, end) for the touched rows that belong to a part's share of all numbers.
template <class F>
INLINE void for_share(const Update& update, Index numbers, Part part, F f) {
  Index begin = part.begin(numbers), end = part.end(numbers), before = 0;
  for (Index i = 0; i < update.count; ++i) {
    const Weight& weight = update.weights[i];
    Index size = weight.row_size, all = weight.touched * size;
    Index from = smaller(all, larger(0, begin - before)), to = smaller(all, larger(0, end - before));
    if (from < to) f(weight, (from + size - 1) / size, (to + size - 1) / size);
    before += all;
  }
}

// Returns true if the touched rows of each weight are valid, unique, and in ascending order.
bool rows_ascend(const Update& update) {
  for (Index i = 0; i < update.count; ++i) {
    const Weight& weight = update.weights[i];
    for (Index k = 0; weight.which && k < weight.touched; ++k)
      if (weight.which[k] <= (k ? weight.which[k - 1] : -1) || weight.which[k] >= weight.rows)
        return false;
  }
  return true;
}

// Returns the norm of all gradients together.
double gradient_norm(const Update& update) {
  double pieces[PIECES] = {};
  Index numbers = numbers_of(update);
  in_parts(threads_for(update), [&](Part part) {
    for (Index piece = part.number; piece < PIECES; piece += part.of)
      for_share(update, numbers, {piece, PIECES}, [&](const Weight& weight, Index begin, Index end) {
        for (Index i = begin; i < end; ++i) {
          const float* row = weight.gradient + i * weight.row_size;
          pieces[piece] += dot(row, row, weight.row_size);
        }
      });
  });
  double sum = 0;
  for (double piece : pieces) sum += piece;
  return __builtin_sqrt(sum);
}

// Updates a row. The pointers are arguments of a function of their own, so that the compiler knows
// that they don't overlap, and vectorizes the loop.
struct AdamRule {
  float rate, root, eps, kept, b1, b2, scale, l2;
};

NOINLINE void adam_row(AdamRule rule, Index size, const float* __restrict gradient,
                       float* __restrict weight, float* __restrict mean, float* __restrict square) {
  for (Index k = 0; k < size; ++k) {
    float g = gradient[k] * rule.scale + rule.l2 * weight[k];
    mean[k] += (1 - rule.b1) * (g - mean[k]);
    square[k] = rule.b2 * square[k] + (1 - rule.b2) * g * g;
    float move = rule.rate * mean[k] / (__builtin_sqrtf(square[k]) * rule.root + rule.eps);
    weight[k] = rule.kept * weight[k] - move;
  }
}

// Returns 1 - beta^step, also exact for small steps.
double correction(double beta, double step) { return 1 - __builtin_pow(beta, step); }

// Applies torch's AdamW (decay) or Adam (l2) to the touched rows, with gradients scaled to the limit
// of their norm. Returns the norm before scaling. Nothing is updated if it isn't finite, or if it is
// -1 because rows don't ascend.
float adam(const Update* update) {
  if (!rows_ascend(*update)) return -1;
  float norm = gradient_norm(*update);
  if (!(norm - norm == 0)) return norm;
  double limit = update->limit / (norm + 1e-6);
  for (Index i = 0; i < update->count; ++i) *update->weights[i].step += 1;
  Index numbers = numbers_of(*update);
  in_parts(threads_for(*update), [&](Part part) {
    for_share(*update, numbers, part, [&](const Weight& weight, Index begin, Index end) {
      double step = *weight.step;
      AdamRule rule{};
      rule.rate = update->lr / correction(update->beta1, step);
      rule.root = 1 / __builtin_sqrt(correction(update->beta2, step));
      rule.eps = update->eps, rule.kept = 1 - update->lr * weight.decay;
      rule.b1 = update->beta1, rule.b2 = update->beta2;
      rule.scale = limit < 1 ? limit : 1, rule.l2 = weight.l2;
      for (Index i = begin; i < end; ++i) {
        Index size = weight.row_size, at = (weight.which ? weight.which[i] : i) * size;
        if (weight.which && i + AHEAD < weight.touched) {
          Index next = weight.which[i + AHEAD] * size;
          prefetch(weight.weight + next, size);
          prefetch(weight.mean + next, size);
          prefetch(weight.square + next, size);
        }
        adam_row(rule, size, weight.gradient + i * size, weight.weight + at,
                 weight.mean + at, weight.square + at);
      }
    });
  });
  return norm;
}

}  // namespace
