// Rows of an embedding: which of them a batch has, and Adam for those alone.

#pragma once

#include "team.h"

namespace {

// Sorts out repeated ids: `unique` gets them ascending, `inverse` where each id stands among them.
// place (size): scratch. Returns how many there are; -1 for an id below 0 or not below `size`.
int64_t distinct(const int64_t* ids, int64_t count, int64_t size, int32_t* place, int64_t* unique,
                 int64_t* inverse) {
  memset(place, 0, size * sizeof(int32_t));
  for (Index i = 0; i < count; ++i) {
    if (ids[i] < 0 || ids[i] >= size) return -1;
    place[ids[i]] = 1;
  }
  int32_t found = 0;
  for (Index id = 0; id < size; ++id) {
    if (!place[id]) continue;
    unique[found] = id;
    place[id] = found++;
  }
  for (Index i = 0; i < count; ++i) inverse[i] = place[ids[i]];
  return found;
}

// What a step of Adam does to a row, and what idle steps do. The pointers are a function's own
// arguments, so that the compiler knows them apart and takes a vector at a time.
struct AdamRule {
  float rate, root, eps, kept, b1, b2;
};

NOINLINE void adam_row(AdamRule rule, Index size, const float* __restrict gradient,
                       float* __restrict weight, float* __restrict mean, float* __restrict square) {
  for (Index k = 0; k < size; ++k) {
    float g = gradient[k];
    mean[k] += (1 - rule.b1) * (g - mean[k]);
    square[k] = rule.b2 * square[k] + (1 - rule.b2) * g * g;
    float move = rule.rate * mean[k] / (__builtin_sqrtf(square[k]) * rule.root + rule.eps);
    weight[k] = rule.kept * weight[k] - move;
  }
}

NOINLINE void idle_row(AdamRule rule, Index size, float* __restrict weight,
                       float* __restrict mean, float* __restrict square) {
  for (Index k = 0; k < size; ++k) {
    float move = rule.rate * mean[k] / (__builtin_sqrtf(square[k]) * rule.root + rule.eps);
    weight[k] = rule.kept * weight[k] - move;
    mean[k] *= rule.b1;
    square[k] *= rule.b2;
  }
}

// torch's AdamW on the touched rows alone.
void adam_rows(const AdamRows* call) {
  AdamRule rule{};
  rule.rate = call->lr / call->correction1, rule.root = 1 / call->root_correction2;
  rule.eps = call->eps, rule.kept = 1 - call->lr * call->weight_decay;
  rule.b1 = call->beta1, rule.b2 = call->beta2;
  as_team(call->threads, [&](Member member) {
    Index end = member.end(call->touched), size = call->row_size;
    for (Index i = member.begin(call->touched); i < end; ++i) {
      Index row = call->rows[i], at = row * size;
      call->up_to_date[row] = call->step;
      adam_row(rule, size, call->gradient + i * size, call->weight + at, call->mean + at,
               call->square + at);
    }
  });
}

// What dense AdamW would have done to these rows in the steps since they were last up to date, when
// they had no gradient: moments fade by their factors. Each step keeps the fraction
// kept = 1 - lr * decay of the weight (below 0 where lr * decay is above 1) and then moves it by
// m / sqrt(v), which fades by ratio = beta1 / sqrt(beta2) per step; so that after `idle` steps
// w = kept^idle w - (sum over i = 1 … idle of kept^(idle - i) ratio^i) move. Taken as constant
// meanwhile: lr, the corrections, and eps beside sqrt(v).
void adam_idle(const AdamRows* call) {
  const double log_b1 = __builtin_log(call->beta1), log_b2 = __builtin_log(call->beta2);
  const double log_ratio = log_b1 - log_b2 / 2, ratio = __builtin_exp(log_ratio);
  const double kept = 1 - call->lr * call->weight_decay;
  const bool alike = __builtin_fabs(kept - ratio) < 1e-6;
  as_team(call->threads, [&](Member member) {
    AdamRule rule{};
    rule.root = 1 / call->root_correction2, rule.eps = call->eps;
    Index end = member.end(call->touched), size = call->row_size;
    for (Index i = member.begin(call->touched); i < end; ++i) {
      Index row = call->rows[i], at = row * size;
      double idle = call->step - call->up_to_date[row];
      if (idle <= 0) continue;
      call->up_to_date[row] = call->step;
      double fading = __builtin_exp(idle * log_ratio), keeping = __builtin_pow(kept, idle);
      double series = alike ? idle * fading : ratio * (keeping - fading) / (kept - ratio);
      rule.rate = series * call->lr / call->correction1, rule.kept = keeping;
      rule.b1 = __builtin_exp(idle * log_b1), rule.b2 = __builtin_exp(idle * log_b2);
      idle_row(rule, size, call->weight + at, call->mean + at, call->square + at);
    }
  });
}

}  // namespace
