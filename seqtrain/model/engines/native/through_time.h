// A block back through time.
//
// With dh the gradient of the state after a step, from later steps and from outside:
//
//   dn = dh (1 - z) (1 - n^2)      dq = dn r
//   dr = dq q (1 - r)              dz = dh (h - n) z (1 - z)
//   dh of the step before = dh z + (dr, dz, dq) W_hh
//   dx = (dn, dr, dz) W_ih         dW_hh += (dr, dz, dq)^T h     dW_ih += (dn, dr, dz)^T x
//
// The four gradients overwrite the four numbers saved for them. Every DEPTH tokens, while theirs
// are still in the cache, their outer products are added to the thread's own sum of dW.

#pragma once

#include "backward_plan.h"

namespace {

// One step's sequences of a block: pointers to rows.
struct StepBack {
  Index rows, earlier;  // how many, and how many of them have a step before this one
  float *gates[MAX_BLOCK], *dh[MAX_BLOCK];
  const float* before[MAX_BLOCK];  // the states before the step
  // What the step before this one will read, to be fetched meanwhile.
  const float *gates_next[MAX_BLOCK], *before_next[MAX_BLOCK];
};

// Turns what was saved of a step's tokens into gradients; leaves dh z in dh.
void gate_gradients(const Shape& shape, const StepBack& step, float* sum_bias) {
  for (Index row = 0; row < step.rows; ++row) {
    for (Index unit = 0; unit < shape.padded; unit += LANES) {
      prefetch(step.gates_next[row] + 4 * unit, 4 * LANES);
      prefetch(step.before_next[row] + unit, LANES);
      float *at = step.gates[row] + 4 * unit, *d = step.dh[row] + unit;
      Vec n = load(at), r = load(at + LANES), z = load(at + 2 * LANES), q = load(at + 3 * LANES);
      Vec h = load_part(step.before[row] + unit, shape.hidden - unit);
      Vec kept = load(d) * z, one = splat(1.f);
      Vec dn = (load(d) - kept) * (one - n * n), dq = dn * r;
      Vec dr = dq * q * (one - r), dz = kept * (one - z) * (h - n);
      store(d, kept);
      Vec gradients[4] = {dn, dr, dz, dq};
      UNROLL for (int i = 0; i < 4; ++i) {
        store(at + i * LANES, gradients[i]);
        float* sum = sum_bias + 4 * unit + i * LANES;
        store(sum, load(sum) + gradients[i]);
      }
    }
  }
}

Product through_recurrence(const BackwardPlan& plan) {
  return {plan.shape.groups,     3 * LANES,         4 * LANES, plan.recurrent_panels,
          plan.shape.padded, nullptr, true};
}

Product through_input(const GruCall& call, const BackwardPlan& plan) {
  return {plan.shape.groups, 3 * LANES, 4 * LANES,
          plan.input_panels, plan.shape.input, nullptr, call.add_d_vectors != 0};
}

// Adds the outer products of the tokens that wait, and finds their inputs' gradients.
void finish_waiting(const GruCall& call, const BackwardPlan& plan, Worker& worker) {
  const Shape& shape = plan.shape;
  const float* recurrent[DEPTH + MAX_BLOCK];
  for (Index i = 0; i < worker.waiting; ++i) recurrent[i] = worker.gates[i] + LANES;
  OuterProduct outer{shape.groups, shape.hidden, worker.sum_hh, worker.left, worker.right};
  add_outer(outer, worker.waiting, recurrent, worker.before);
  if (!call.index) {
    OuterProduct outer_in{shape.groups, shape.input, worker.sum_ih, worker.left, worker.right};
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
  const GruCall& call;
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
  const GruCall& call = back.call;
  Index row_of_gates = back.plan.shape.gate_row, stride = call.states_stride;
  StepBack step;
  step.rows = back.rows(i);
  step.earlier = smaller(step.rows, back.rows(i - 1));
  Index twice_earlier = smaller(step.earlier, back.rows(i - 2));
  for (Index row = 0; row < step.rows; ++row) {
    step.gates[row] = call.gates + (back.first_token(i) + row) * row_of_gates;
    step.dh[row] = back.worker.dh + row * back.plan.shape.padded;
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
  const GruCall& call = back.call;
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
  const GruCall& call = back.call;
  for (Index row = 0; row < step.rows; ++row) {
    const float* outside = call.d_states + (back.first_token(i) + row) * call.states_stride;
    for (Index unit = 0; unit < call.hidden_size; ++unit) step.dh[row][unit] += outside[unit];
  }
}

void step_back(const BlockBack& back, Index i) {
  const GruCall& call = back.call;
  StepBack step = find_rows(back, i);
  if (call.d_states) add_outside_gradients(back, i, step);
  gate_gradients(back.plan.shape, step, back.worker.recent_bias);
  const float* recurrent[MAX_BLOCK];
  for (Index row = 0; row < step.rows; ++row) recurrent[row] = step.gates[row] + LANES;
  Index rows = call.d_h0 ? step.rows : step.earlier;
  multiply(through_recurrence(back.plan), rows, recurrent, step.dh, back.worker.words);
  let_wait(back, i, step);
  if (back.worker.waiting >= DEPTH) finish_waiting(call, back.plan, back.worker);
}

// The gradient of a sequence's last state waits in dh until its last step is due; that of its
// initial state remains there once its first step is done.
void go_back(const GruCall& call, const BackwardPlan& plan, Worker& worker, Index number) {
  const Shape& shape = plan.shape;
  BlockBack back{call, plan, worker, block_at(call, plan.blocks, number)};
  memset(worker.dh, 0, MAX_BLOCK * shape.padded * sizeof(float));
  Index size = shape.hidden * sizeof(float), at = back.block.first * shape.hidden;
  for (Index row = 0; call.d_last && row < back.block.rows; ++row)
    memcpy(worker.dh + row * shape.padded, call.d_last + at + row * shape.hidden, size);
  for (Index i = back.block.steps - 1; i >= 0; --i) step_back(back, i);
  for (Index row = 0; call.d_h0 && row < back.block.rows; ++row)
    memcpy(call.d_h0 + at + row * shape.hidden, worker.dh + row * shape.padded, size);
}

}  // namespace
