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

// torch's AdamW on the touched rows; the moments and the decay of the others stand still.
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
      for (Index k = 0; k < size; ++k) {
        float g = gradient[k];
        mean[k] += (1 - b1) * (g - mean[k]);
        square[k] = b2 * square[k] + (1 - b2) * g * g;
        weight[k] = kept * weight[k] - rate * mean[k] / (__builtin_sqrtf(square[k]) / root + eps);
      }
    }
  });
}

}  // namespace
