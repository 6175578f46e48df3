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

// torch's AdamW on the touched rows alone.
void adam_rows(const AdamRows* call) {
  const float b1 = call->beta1, b2 = call->beta2, eps = call->eps;
  const float rate = call->lr / call->correction1, root = call->root_correction2;
  const float kept = 1 - call->lr * call->weight_decay;
  as_team(call->threads, [&](Member member) {
    Index end = member.end(call->touched), size = call->row_size;
    for (Index i = member.begin(call->touched); i < end; ++i) {
      float* __restrict weight = call->weight + call->rows[i] * size;
      float* __restrict mean = call->mean + call->rows[i] * size;
      float* __restrict square = call->square + call->rows[i] * size;
      const float* __restrict gradient = call->gradient + i * size;
      call->up_to_date[call->rows[i]] = call->step;
      for (Index k = 0; k < size; ++k) {
        float g = gradient[k];
        mean[k] += (1 - b1) * (g - mean[k]);
        square[k] = b2 * square[k] + (1 - b2) * g * g;
        weight[k] = kept * weight[k] - rate * mean[k] / (__builtin_sqrtf(square[k]) / root + eps);
      }
    }
  });
}

// What dense AdamW would have done to these rows in the steps since they were last up to date, when
// they had no gradient: moments fade by their factors, and with m / sqrt(v) fading by
// ratio = beta1 / sqrt(beta2) a step, the moves of `idle` steps are a geometric series. Taken as
// constant meanwhile: lr, the corrections, and eps beside sqrt(v); decay comes after the moves, most of
// which are made in the first steps.
void adam_idle(const AdamRows* call) {
  const double ratio = call->beta1 / __builtin_sqrt(call->beta2);
  const float eps = call->eps, root = call->root_correction2;
  as_team(call->threads, [&](Member member) {
    Index end = member.end(call->touched), size = call->row_size;
    for (Index i = member.begin(call->touched); i < end; ++i) {
      Index row = call->rows[i];
      double idle = call->step - call->up_to_date[row];
      if (idle <= 0) continue;
      call->up_to_date[row] = call->step;
      double series = ratio * (1 - __builtin_pow(ratio, idle)) / (1 - ratio);
      const float moves = series * call->lr / call->correction1;
      const float b1 = __builtin_pow(call->beta1, idle), b2 = __builtin_pow(call->beta2, idle);
      const float kept = __builtin_pow(1 - call->lr * call->weight_decay, idle);
      float* __restrict weight = call->weight + row * size;
      float* __restrict mean = call->mean + row * size;
      float* __restrict square = call->square + row * size;
      for (Index k = 0; k < size; ++k) {
        weight[k] = kept * (weight[k] - moves * mean[k] / (__builtin_sqrtf(square[k]) / root + eps));
        mean[k] *= b1;
        square[k] *= b2;
      }
    }
  });
}

}  // namespace
