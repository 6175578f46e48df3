// Growing one tree of gradient boosting on binned columns, level by level.

#pragma once

#include "plan.h"

namespace {

constexpr Index TREE_BINS = 64;
constexpr Index TREE_NODES = 8;  // nodes of a level, at most

struct BinSums {
  double gradient, hessian, rows;
};

struct Split {
  double gain;
  int64_t column, last;
};

INLINE double score_of(const BinSums& sums, double ridge) {
  return sums.gradient * sums.gradient / (sums.hessian + ridge);
}

// The best split of a node by one column, whose bins have these sums; the first one among equals.
INLINE void improve(Split& best, const BinSums* bins, int64_t column, const TreeCall& call) {
  BinSums all = {};
  for (Index bin = 0; bin < TREE_BINS; ++bin) {
    all.gradient += bins[bin].gradient;
    all.hessian += bins[bin].hessian;
    all.rows += bins[bin].rows;
  }
  double before = score_of(all, call.ridge);
  BinSums left = {};
  for (Index bin = 0; bin < TREE_BINS; ++bin) {
    left.gradient += bins[bin].gradient;
    left.hessian += bins[bin].hessian;
    left.rows += bins[bin].rows;
    BinSums right = {all.gradient - left.gradient, all.hessian - left.hessian, all.rows - left.rows};
    if (left.rows < call.least_rows || right.rows < call.least_rows) continue;
    double gain = score_of(left, call.ridge) + score_of(right, call.ridge) - before;
    if (gain > best.gain) best = {gain, column, bin};
  }
}

// Grows a tree. `found` has room for TREE_NODES splits of each part.
void grow_tree(const TreeCall* call) {
  Split* found = (Split*)call->scratch;
  memset(call->place, 0, call->rows * sizeof(int64_t));
  int64_t *column = call->column, *last = call->last;
  for (Index level = 0; level < call->depth; ++level) {
    Index nodes = (Index)1 << level;
    auto search = [&](Part part) {
      BinSums sums[TREE_NODES * TREE_BINS];
      Split* own = found + part.number * TREE_NODES;
      for (Index node = 0; node < nodes; ++node) own[node] = {call->least_gain, call->columns[0], TREE_BINS};
      for (Index i = part.begin(call->used); i < part.end(call->used); ++i) {
        const uint8_t* bins = call->bins + call->columns[i] * call->rows;
        memset(sums, 0, nodes * TREE_BINS * sizeof(BinSums));
        for (Index row = 0; row < call->rows; ++row) {
          BinSums& sum = sums[call->place[row] * TREE_BINS + bins[row]];
          sum.gradient += call->gradient[row];
          sum.hessian += call->hessian[row];
          sum.rows += 1;
        }
        for (Index node = 0; node < nodes; ++node)
          improve(own[node], sums + node * TREE_BINS, call->columns[i], *call);
      }
    };
    auto choose = [&](Part part) {
      for (Index node = part.number; node < nodes; node += part.of) {
        Split best = found[node];
        for (Index other = 1; other < part.of; ++other)
          if (found[other * TREE_NODES + node].gain > best.gain) best = found[other * TREE_NODES + node];
        column[node] = best.column;
        last[node] = best.last;
      }
    };
    auto divide = [&](Part part) {
      for (Index row = part.begin(call->rows); row < part.end(call->rows); ++row) {
        int64_t node = call->place[row];
        call->place[row] = 2 * node + (call->bins[column[node] * call->rows + row] > last[node]);
      }
    };
    in_parts(call->threads, search, choose, divide);
    column += nodes;
    last += nodes;
  }
}

}  // namespace
