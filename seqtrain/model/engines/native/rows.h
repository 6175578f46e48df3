// Which rows of an embedding a batch has.

#pragma once

#include "vector.h"

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

}  // namespace
