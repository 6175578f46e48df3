// Kernels of one vector path. This file is compiled once per path, with the flags of the path, under
// the name SEQTRAIN_PATH.

#include "forward.h"
#include "pooling.h"
#include "trees.h"

namespace {

Shape shape_of(int64_t kind, int64_t hidden_size) {
  return shape_of(with_cell(kind, [](auto cell) { return cell.CELL; }), 1, hidden_size);
}

int64_t gate_row(int64_t cell, int64_t hidden_size) {
  return shape_of(cell, hidden_size).gate_row;
}

int64_t scratch(const LayerCall* call, int backward) {
  Arena arena{nullptr, 0};
  if (backward) plan_backward(*call, arena);
  else plan_forward(*call, arena);
  return arena.used;
}

void forward(const LayerCall* call) {
  with_cell(call->cell, [&](auto cell) { forward<decltype(cell)>(call); });
}

void backward(const LayerCall* call) {
  with_cell(call->cell, [&](auto cell) { backward<decltype(cell)>(call); });
}

}  // namespace

#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)
#define JOIN_OF(a, b) a##b
#define JOIN(a, b) JOIN_OF(a, b)

extern "C" const Kernels JOIN(seqtrain_kernels_, SEQTRAIN_PATH);
const Kernels JOIN(seqtrain_kernels_, SEQTRAIN_PATH) = {
    TEXT(SEQTRAIN_PATH), gate_row, scratch, forward, backward, adam,
    sum_rows, summed_rows, add_to_rows, drop, pool_scratch, pool, pool_back, grow_tree};
