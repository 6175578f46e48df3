// Backward pass: each block back through time, then vectors that tokens share, then the sums of all
// threads.
//
// The work of each thread depends only on the sizes. Sums have the same order every time, and the
// results the same bits.

#pragma once

#include "through_time.h"

namespace {

// Handles vectors that tokens share: sums the gradients of a vector's tokens, then continues once.
template <class Cell>
void sum_occurrences(const LayerCall& call, const BackwardPlan& plan, Index vector, float* sum) {
  const Shape& shape = plan.shape;
  memset(sum, 0, shape.gate_row * sizeof(float));
  for (Index i = plan.occurrences[vector]; i < plan.occurrences[vector + 1]; ++i) {
    const float* gates = call.gates + plan.order[i] * shape.gate_row;
    if (i + 1 < call.tokens)
      prefetch(call.gates + plan.order[i + 1] * shape.gate_row, shape.gate_row);
    for (Index at = 0; at < shape.gate_row; at += Cell::SAVED * LANES) {
      UNROLL for (int v = 0; v < Cell::VECTORS; ++v) {
        Index from = at + v * LANES;
        store(sum + from, load(sum + from) + load(gates + from));
      }
    }
  }
}

// Returns the first vector of a thread's share. A vector costs as much as 16 of its tokens.
Index share_begin(const LayerCall& call, const BackwardPlan& plan, Index thread, Index of) {
  Index target = (call.tokens + 16 * call.vectors) * thread / of, low = 0, high = call.vectors;
  while (low < high) {
    Index middle = (low + high) / 2;
    if (plan.occurrences[middle] + 16 * middle < target) low = middle + 1;
    else high = middle;
  }
  return low;
}

template <class Cell>
void finish_vectors(const LayerCall& call, const BackwardPlan& plan, Worker& worker, Part part) {
  const Shape& shape = plan.shape;
  OuterProduct outer{gate_runs(shape), shape.input, worker.sum_ih, worker.left, worker.right};
  Index end = share_begin(call, plan, part.number + 1, part.of);
  for (Index u = share_begin(call, plan, part.number, part.of); u < end; u += DEPTH) {
    Index count = smaller(DEPTH, end - u);
    for (Index i = 0; i < count; ++i) {
      float* sum = worker.shared + i * shape.gate_row;
      sum_occurrences<Cell>(call, plan, u + i, sum);
      worker.gates[i] = sum;
      worker.inputs[i] = call.vectors_in + (u + i) * shape.input;
      worker.d_inputs[i] = call.d_vectors + (u + i) * shape.input;
    }
    add_outer(outer, count, worker.gates, worker.inputs);
    if (call.d_vectors)
      multiply(through_input(call, plan), count, worker.gates, worker.d_inputs, worker.words);
  }
}

// Sums a row over all parts, from the first part's row and the distance of their rows in bytes.
void add_rows(Index per_worker, Index threads, const float* first, Index count, float* to) {
  for (Index i = 0; i < count; ++i) to[i] = first[i];
  for (Index thread = 1; thread < threads; ++thread) {
    const float* row = (const float*)((const char*)first + thread * per_worker);
    for (Index i = 0; i < count; ++i) to[i] += row[i];
  }
}

void add_parts(const LayerCall& call, const BackwardPlan& plan, Part part) {
  const Shape& shape = plan.shape;
  const Cell& cell = shape.cell;
  Worker sums = worker_of(call, plan, 0);
  Index end = part.end(shape.hidden);
  for (Index unit = part.begin(shape.hidden); unit < end; ++unit) {
    Index group = unit / cell.units(), at = unit % cell.units();
    for (Index place = 0; place < cell.gates; ++place, at += cell.units()) {
      Index row = group * shape.panel + at, bias = group * cell.saved * LANES + at;
      Index to_hh = cell.recurrent_order[place] * shape.hidden + unit;
      Index to_ih = cell.input_order[place] * shape.hidden + unit;
      add_rows(plan.per_worker, part.of, sums.sum_hh + row * shape.hidden_row, shape.hidden,
               call.d_w_hh + to_hh * shape.hidden);
      add_rows(plan.per_worker, part.of, sums.sum_ih + row * shape.input_row, shape.input,
               call.d_w_ih + to_ih * shape.input);
      add_rows(plan.per_worker, part.of, sums.sum_bias + bias + cell.recurrent_at * LANES, 1,
               call.d_b_hh + to_hh);
      add_rows(plan.per_worker, part.of, sums.sum_bias + bias, 1, call.d_b_ih + to_ih);
    }
  }
}

template <class Cell>
void backward(const LayerCall* call) {
  Arena arena{call->scratch, 0};
  BackwardPlan plan = plan_backward(*call, arena);
  count_starts(*call, plan.start);
  memset(plan.zeros, 0, plan.shape.hidden * sizeof(float));
  if (call->index) sort_tokens(*call, plan);
  share_blocks(*call, plan, call->threads);
  auto pack = [&](Part part) { pack_backward(*call, plan, part); };
  auto go = [&](Part part) {
    Worker worker = worker_of(*call, plan, part.number);
    clear_sums(plan.shape, worker);
    for (Index number = 0; number < plan.blocks.count; ++number)
      if (plan.owner[number] == part.number) go_back<Cell>(*call, plan, worker, number);
    finish_waiting(*call, plan, worker);
  };
  auto finish = [&](Part part) {
    Worker worker = worker_of(*call, plan, part.number);
    if (call->index) finish_vectors<Cell>(*call, plan, worker, part);
  };
  auto add = [&](Part part) { add_parts(*call, plan, part); };
  in_parts(call->threads, pack, go, finish, add);
  arena.give_back();
}

}  // namespace
