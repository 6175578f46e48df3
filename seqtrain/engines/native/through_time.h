// Memory and preparation of the backward pass, and a block's way back through time.
//
// dh is the gradient of the state after a step, from later steps and from outside. From it the cell
// (cells.h) computes da, the gradients of the sums before the gates, and `left`, the part of dh that
// bypasses the gates, such as dh z of a GRU. da_x are the gradients for the input, da_h those for
// the recurrence. They differ only in a GRU:
//
//   dh of the step before = left + da_h W_hh
//   dx = da_x W_ih         dW_hh += da_h^T h     dW_ih += da_x^T x
//
// Gradients overwrite the saved numbers. After every DEPTH tokens, while these are still in the
// cache, their outer products are added to the thread's sum of dW.

#pragma once

#include "plan.h"

namespace {

// Memory of one thread. Tokens whose outer products are pending are given by pointers: gate
// gradients, previous state, and, if tokens share no vectors, input and its gradient.
struct Worker {
  float *sum_hh, *sum_ih;         // (gates, hidden_row), (gates, input_row)
  float *sum_bias, *recent_bias;  // (gate_row) of all tokens, and of pending ones
  float *dh, *dc, *shared;
  Word *left, *right, *words;  // packed outer products; gate gradients as words
  const float **gates, **before, **inputs;
  float** d_inputs;
  Index waiting;
};

struct BackwardPlan {
  Shape shape;
  Blocks blocks;
  Index* start;                            // (T) number of the first token of every step
  Index *owner, *work;                     // (blocks) thread of each block; (threads) its work
  Index *occurrences, *order;              // (U + 1), (N) tokens by vector
  Word *recurrent_panels, *input_panels;   // column panels of W_hh, W_ih
  float* zeros;                            // (H) the initial state if it is null
  Index workers, per_worker;               // bytes before the first thread; bytes per thread
};

Worker plan_worker(const LayerCall& call, const Shape& shape, Arena& arena) {
  Worker worker{};
  Index tokens = DEPTH + MAX_BLOCK;
  worker.sum_hh = arena.take<float>(shape.gates * shape.hidden_row);
  worker.sum_ih = arena.take<float>(shape.gates * shape.input_row);
  worker.sum_bias = arena.take<float>(shape.gate_row);
  worker.recent_bias = arena.take<float>(shape.gate_row);
  worker.dh = arena.take<float>(MAX_BLOCK * shape.padded);
  if (shape.cell.second_state) worker.dc = arena.take<float>(MAX_BLOCK * shape.padded);
  worker.left = arena.take<Word>(left_size(shape.gates, tokens));
  worker.right = arena.take<Word>(3 * LANES * words_of(tokens));
  worker.words = arena.take<Word>(CHUNK * room_of(shape.gate_row));
  if (call.index) worker.shared = arena.take<float>(DEPTH * shape.gate_row);
  worker.gates = arena.take<const float*>(tokens);
  worker.before = arena.take<const float*>(tokens);
  worker.inputs = arena.take<const float*>(tokens);
  worker.d_inputs = arena.take<float*>(tokens);
  return worker;
}

BackwardPlan plan_backward(const LayerCall& call, Arena& arena) {
  BackwardPlan plan{};
  Shape shape = plan.shape = shape_of(call);
  plan.blocks = cut_into_blocks(shape, call.batch, call.threads);
  plan.start = arena.take<Index>(call.steps);
  plan.owner = arena.take<Index>(plan.blocks.count);
  plan.work = arena.take<Index>(call.threads);
  if (call.index) plan.occurrences = arena.take<Index>(call.vectors + 1);
  if (call.index) plan.order = arena.take<Index>(call.tokens);
  plan.recurrent_panels = arena.take<Word>(words_of(shape.gates) * shape.padded);
  plan.input_panels = arena.take<Word>(words_of(shape.gates) * shape.input_row);
  plan.zeros = arena.take<float>(shape.hidden);
  plan.workers = arena.used;
  plan_worker(call, shape, arena);
  plan.per_worker = arena.used - plan.workers;
  arena.used += (call.threads - 1) * plan.per_worker;
  return plan;
}

Worker worker_of(const LayerCall& call, const BackwardPlan& plan, Index thread) {
  Arena arena{call.scratch, plan.workers + thread * plan.per_worker};
  return plan_worker(call, plan.shape, arena);
}

void clear_sums(const Shape& shape, Worker& worker) {
  memset(worker.sum_hh, 0, shape.gates * shape.hidden_row * sizeof(float));
  memset(worker.sum_ih, 0, shape.gates * shape.input_row * sizeof(float));
  memset(worker.sum_bias, 0, shape.gate_row * sizeof(float));
  memset(worker.recent_bias, 0, shape.gate_row * sizeof(float));
}

void pack_backward(const LayerCall& call, const BackwardPlan& plan, Part part) {
  const Shape& shape = plan.shape;
  const Cell& cell = shape.cell;
  Index depth = words_of(shape.gates);
  for_panels(shape.padded / LANES, [&](Index at, Index width, Index number) {
    if (number % part.of == part.number)
      pack_column_panel(cell, call.w_hh, shape.hidden, shape.hidden, cell.recurrent_order,
                        at * LANES, width, plan.recurrent_panels + at * LANES * depth);
  });
  if (!call.d_vectors) return;
  for_panels(shape.input_row / LANES, [&](Index at, Index width, Index number) {
    if (number % part.of == part.number)
      pack_column_panel(cell, call.w_ih, shape.hidden, shape.input, cell.input_order, at * LANES,
                        width, plan.input_panels + at * LANES * depth);
  });
}

// Gives each block, longest first, to the thread with the least work.
void share_blocks(const LayerCall& call, const BackwardPlan& plan, Index threads) {
  memset(plan.work, 0, threads * sizeof(Index));
  for (Index number = 0; number < plan.blocks.count; ++number) {
    Index least = 0;
    for (Index thread = 1; thread < threads; ++thread)
      if (plan.work[thread] < plan.work[least]) least = thread;
    Block block = block_at(call, plan.blocks, number);
    plan.owner[number] = least;
    plan.work[least] += block.steps * (block.rows + 2);
  }
}

// Sorts the tokens by vector. Vector u has tokens order[occurrences[u] .. occurrences[u + 1]).
void sort_tokens(const LayerCall& call, const BackwardPlan& plan) {
  Index* end = plan.occurrences;
  memset(end, 0, (call.vectors + 1) * sizeof(Index));
  for (Index i = 0; i < call.tokens; ++i) ++end[call.index[i]];
  for (Index u = 1; u <= call.vectors; ++u) end[u] += end[u - 1];
  for (Index i = call.tokens - 1; i >= 0; --i) plan.order[--end[call.index[i]]] = i;
}

// Sequences of a block at one step, as pointers to rows.
struct StepBack {
  Index rows, earlier;  // number of sequences; number of those with a previous step
  float *gates[MAX_BLOCK], *dh[MAX_BLOCK], *dc[MAX_BLOCK];
  const float* before[MAX_BLOCK];  // previous states
  // Numbers that the previous step will read, to prefetch.
  const float *gates_next[MAX_BLOCK], *before_next[MAX_BLOCK];
};

// Replaces the saved numbers of a step's tokens by gradients.
template <class Cell>
void gate_gradients(const Shape& shape, const StepBack& step, float* sum_bias) {
  constexpr Index saved = Cell::SAVED * LANES, units = Cell::SPREAD * LANES;
  for (Index row = 0; row < step.rows; ++row) {
    for (Index group = 0; group < shape.groups; ++group) {
      Index unit = group * units;
      prefetch(step.gates_next[row] + group * saved, saved);
      prefetch(step.before_next[row] + unit, units);
      float* gates = step.gates[row] + group * saved;
      float* dc = step.dc[row] ? step.dc[row] + unit : nullptr;
      Vec gradients[Cell::GRADIENTS];
      Cell::back({gates, step.before[row] + unit, shape.hidden - unit, step.dh[row] + unit, dc},
                 gradients);
      UNROLL for (int i = 0; i < Cell::GRADIENTS; ++i) {
        store(gates + i * LANES, gradients[i]);
        float* sum = sum_bias + group * saved + i * LANES;
        store(sum, load(sum) + gradients[i]);
      }
    }
  }
}

Product through_recurrence(const BackwardPlan& plan) {
  const Shape& shape = plan.shape;
  return {shape.groups, shape.panel,  shape.cell.saved * LANES, plan.recurrent_panels,
          shape.padded, nullptr,      shape.cell.keeps_gradient};
}

Product through_input(const LayerCall& call, const BackwardPlan& plan) {
  const Shape& shape = plan.shape;
  return {shape.groups, shape.panel, shape.cell.saved * LANES, plan.input_panels,
          shape.input,  nullptr,     call.add_d_vectors != 0};
}

Runs gate_runs(const Shape& shape) {
  return {shape.groups, shape.cell.vectors(), shape.cell.saved};
}

// Adds the outer products of pending tokens, and computes the gradients of their inputs.
void finish_waiting(const LayerCall& call, const BackwardPlan& plan, Worker& worker) {
  const Shape& shape = plan.shape;
  const float* recurrent[DEPTH + MAX_BLOCK];
  for (Index i = 0; i < worker.waiting; ++i)
    recurrent[i] = worker.gates[i] + shape.cell.recurrent_at * LANES;
  OuterProduct outer{gate_runs(shape), shape.hidden, worker.sum_hh, worker.left, worker.right};
  add_outer(outer, worker.waiting, recurrent, worker.before);
  if (!call.index) {
    OuterProduct outer_in{gate_runs(shape), shape.input, worker.sum_ih, worker.left, worker.right};
    add_outer(outer_in, worker.waiting, worker.gates, worker.inputs);
    if (call.d_vectors)
      multiply(through_input(call, plan), worker.waiting, worker.gates, worker.d_inputs, worker.words);
  }
  for (Index i = 0; i < shape.gate_row; ++i) worker.sum_bias[i] += worker.recent_bias[i];
  memset(worker.recent_bias, 0, shape.gate_row * sizeof(float));
  worker.waiting = 0;
}

// Runs a block back through time.
struct BlockBack {
  Way way;
  const BackwardPlan& plan;
  Worker& worker;
};

StepBack find_rows(const BlockBack& back, Index i) {
  const Way& way = back.way;
  const LayerCall& call = way.call;
  Index row_of_gates = back.plan.shape.gate_row, stride = call.states_stride;
  StepBack step;
  step.rows = way.rows(i);
  step.earlier = smaller(step.rows, way.rows(i - 1));
  Index twice_earlier = smaller(step.earlier, way.rows(i - 2));
  for (Index row = 0; row < step.rows; ++row) {
    step.gates[row] = call.gates + (way.first_token(i) + row) * row_of_gates;
    step.dh[row] = back.worker.dh + row * back.plan.shape.padded;
    step.dc[row] = back.worker.dc ? back.worker.dc + row * back.plan.shape.padded : nullptr;
    step.before[row] = call.h0 ? call.h0 + (way.block.first + row) * call.hidden_size
                               : back.plan.zeros;
    step.gates_next[row] = step.gates[row];
    if (row < step.earlier) {
      step.before[row] = call.states + (way.first_token(i - 1) + row) * stride;
      step.gates_next[row] = call.gates + (way.first_token(i - 1) + row) * row_of_gates;
    }
    step.before_next[row] = step.before[row];
    if (row < twice_earlier)
      step.before_next[row] = call.states + (way.first_token(i - 2) + row) * stride;
  }
  return step;
}

// Adds a step's tokens to the pending ones. If initial states are zero, the outer products of first
// steps are zero, too.
void let_wait(const BlockBack& back, Index i, const StepBack& step) {
  const Way& way = back.way;
  const LayerCall& call = way.call;
  Worker& worker = back.worker;
  Index rows = call.h0 || !call.index ? step.rows : step.earlier;
  for (Index row = 0; row < rows; ++row) {
    Index token = way.first_token(i) + row, at = worker.waiting++;
    worker.gates[at] = step.gates[row];
    worker.before[at] = step.before[row];
    if (call.index) continue;
    worker.inputs[at] = call.vectors_in + token * call.input_size;
    worker.d_inputs[at] = call.d_vectors + token * call.input_size;
  }
}

void add_outside_gradients(const Way& way, Index i, const StepBack& step) {
  const LayerCall& call = way.call;
  for (Index row = 0; row < step.rows; ++row) {
    const float* outside = call.d_states + (way.first_token(i) + row) * call.states_stride;
    for (Index unit = 0; unit < call.hidden_size; ++unit) step.dh[row][unit] += outside[unit];
  }
}

template <class Cell>
void step_back(const BlockBack& back, Index i) {
  const LayerCall& call = back.way.call;
  StepBack step = find_rows(back, i);
  if (call.d_states) add_outside_gradients(back.way, i, step);
  gate_gradients<Cell>(back.plan.shape, step, back.worker.recent_bias);
  const float* recurrent[MAX_BLOCK];
  for (Index row = 0; row < step.rows; ++row)
    recurrent[row] = step.gates[row] + Cell::CELL.recurrent_at * LANES;
  Index rows = call.d_h0 ? step.rows : step.earlier;
  multiply(through_recurrence(back.plan), rows, recurrent, step.dh, back.worker.words);
  let_wait(back, i, step);
  if (back.worker.waiting >= DEPTH) finish_waiting(call, back.plan, back.worker);
}

// dh has the gradient of a sequence's last state until its last step, and the gradient of its initial
// state after its first step. The same holds for dc.
template <class Cell>
void go_back(const LayerCall& call, const BackwardPlan& plan, Worker& worker, Index number) {
  Way way{call, plan.start, block_at(call, plan.blocks, number)};
  BlockBack back{way, plan, worker};
  Index padded = plan.shape.padded, rows = way.block.rows;
  way.take(call.d_last, padded, worker.dh);
  if (worker.dc) way.take(call.d_last_c, padded, worker.dc);
  for (Index i = way.block.steps - 1; i >= 0; --i) step_back<Cell>(back, i);
  way.put(worker.dh, padded, 0, rows, call.d_h0);
  if (worker.dc) way.put(worker.dc, padded, 0, rows, call.d_c0);
}

}  // namespace
