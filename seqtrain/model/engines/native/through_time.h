// A block back through time.
//
// With dh the gradient of the state after a step, from later steps and from outside, the cell
// (cells.h) makes of it da, the gradients of the sums before the gates, and what is left of dh for
// the step before without passing the gates: a GRU's dh z. a_x names those for the input and a_h
// those for the recurrence, which differ in a GRU alone:
//
//   dh of the step before = left + da_h W_hh
//   dx = da_x W_ih         dW_hh += da_h^T h     dW_ih += da_x^T x
//
// Gradients overwrite what was saved for them. Every DEPTH tokens, while theirs are still in the
// cache, their outer products are added to the thread's own sum of dW.

#pragma once

#include "backward_plan.h"

namespace {

// One step's sequences of a block: pointers to rows.
struct StepBack {
  Index rows, earlier;  // how many, and how many of them have a step before this one
  float *gates[MAX_BLOCK], *dh[MAX_BLOCK], *dc[MAX_BLOCK];
  const float* before[MAX_BLOCK];  // the states before the step
  // What the step before this one will read, to be fetched meanwhile.
  const float *gates_next[MAX_BLOCK], *before_next[MAX_BLOCK];
};

// Turns what was saved of a step's tokens into gradients.
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

// Adds the outer products of the tokens that wait, and finds their inputs' gradients.
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

// A block on its way back; step `i` counts in the order in which forward ran.
struct BlockBack {
  const LayerCall& call;
  const BackwardPlan& plan;
  Worker& worker;
  Block block;

  Index rows(Index i) const {
    return i < 0 ? 0 : rows_at(call, block, step_at(call, block, i));
  }

  Index first_token(Index i) const {
    return plan.start[step_at(call, block, i)] + block.first;
  }
};

StepBack find_rows(const BlockBack& back, Index i) {
  const LayerCall& call = back.call;
  Index row_of_gates = back.plan.shape.gate_row, stride = call.states_stride;
  StepBack step;
  step.rows = back.rows(i);
  step.earlier = smaller(step.rows, back.rows(i - 1));
  Index twice_earlier = smaller(step.earlier, back.rows(i - 2));
  for (Index row = 0; row < step.rows; ++row) {
    step.gates[row] = call.gates + (back.first_token(i) + row) * row_of_gates;
    step.dh[row] = back.worker.dh + row * back.plan.shape.padded;
    step.dc[row] = back.worker.dc ? back.worker.dc + row * back.plan.shape.padded : nullptr;
    step.before[row] = call.h0 ? call.h0 + (back.block.first + row) * call.hidden_size
                               : back.plan.zeros;
    step.gates_next[row] = step.gates[row];
    if (row < step.earlier) {
      step.before[row] = call.states + (back.first_token(i - 1) + row) * stride;
      step.gates_next[row] = call.gates + (back.first_token(i - 1) + row) * row_of_gates;
    }
    step.before_next[row] = step.before[row];
    if (row < twice_earlier)
      step.before_next[row] = call.states + (back.first_token(i - 2) + row) * stride;
  }
  return step;
}

// Adds a step's tokens to those that wait. With initial states of zero, the outer products of
// first steps add nothing.
void let_wait(const BlockBack& back, Index i, const StepBack& step) {
  const LayerCall& call = back.call;
  Worker& worker = back.worker;
  Index rows = call.h0 || !call.index ? step.rows : step.earlier;
  for (Index row = 0; row < rows; ++row) {
    Index token = back.first_token(i) + row, at = worker.waiting++;
    worker.gates[at] = step.gates[row];
    worker.before[at] = step.before[row];
    if (call.index) continue;
    worker.inputs[at] = call.vectors_in + token * call.input_size;
    worker.d_inputs[at] = call.d_vectors + token * call.input_size;
  }
}

void add_outside_gradients(const BlockBack& back, Index i, const StepBack& step) {
  const LayerCall& call = back.call;
  for (Index row = 0; row < step.rows; ++row) {
    const float* outside = call.d_states + (back.first_token(i) + row) * call.states_stride;
    for (Index unit = 0; unit < call.hidden_size; ++unit) step.dh[row][unit] += outside[unit];
  }
}

template <class Cell>
void step_back(const BlockBack& back, Index i) {
  const LayerCall& call = back.call;
  StepBack step = find_rows(back, i);
  if (call.d_states) add_outside_gradients(back, i, step);
  gate_gradients<Cell>(back.plan.shape, step, back.worker.recent_bias);
  const float* recurrent[MAX_BLOCK];
  for (Index row = 0; row < step.rows; ++row)
    recurrent[row] = step.gates[row] + Cell::CELL.recurrent_at * LANES;
  Index rows = call.d_h0 ? step.rows : step.earlier;
  multiply(through_recurrence(back.plan), rows, recurrent, step.dh, back.worker.words);
  let_wait(back, i, step);
  if (back.worker.waiting >= DEPTH) finish_waiting(call, back.plan, back.worker);
}

// Puts rows of gradients (B, H) where they wait, zeros for none; or takes them from there.
void put_rows(const BlockBack& back, const float* from, float* waiting) {
  const Shape& shape = back.plan.shape;
  memset(waiting, 0, MAX_BLOCK * shape.padded * sizeof(float));
  for (Index row = 0; from && row < back.block.rows; ++row)
    memcpy(waiting + row * shape.padded, from + (back.block.first + row) * shape.hidden,
           shape.hidden * sizeof(float));
}

void take_rows(const BlockBack& back, const float* waiting, float* to) {
  const Shape& shape = back.plan.shape;
  for (Index row = 0; to && row < back.block.rows; ++row)
    memcpy(to + (back.block.first + row) * shape.hidden, waiting + row * shape.padded,
           shape.hidden * sizeof(float));
}

// The gradient of a sequence's last state waits in dh until its last step is due; that of its
// initial state remains there once its first step is done. So do those of c.
template <class Cell>
void go_back(const LayerCall& call, const BackwardPlan& plan, Worker& worker, Index number) {
  BlockBack back{call, plan, worker, block_at(call, plan.blocks, number)};
  put_rows(back, call.d_last, worker.dh);
  if (worker.dc) put_rows(back, call.d_last_c, worker.dc);
  for (Index i = back.block.steps - 1; i >= 0; --i) step_back<Cell>(back, i);
  take_rows(back, worker.dh, call.d_h0);
  if (worker.dc) take_rows(back, worker.dc, call.d_c0);
}

}  // namespace
