// Backward: each block back through time, then what its tokens share, then the threads' sums.
//
// With dh the gradient of the state after a step, from later steps and from outside:
//
//   dn = dh (1 - z) (1 - n^2)      dq = dn r
//   dr = dq q (1 - r)              dz = dh (h - n) z (1 - z)
//   dh of the step before = dh z + (dr, dz, dq) W_hh
//   dx = (dn, dr, dz) W_ih         dW_hh += (dr, dz, dq)^T h     dW_ih += (dn, dr, dz)^T x
//
// The four gradients overwrite the four numbers saved for them. Every DEPTH tokens, while theirs
// are still in the cache, their outer products are added to the thread's own sum of dW. Which
// thread computes what depends on the sizes alone: the same sums in the same order every time.

#pragma once

#include "plan.h"
#include "products.h"
#include "team.h"

namespace {

// What one thread works with. A row of tokens that wait for their outer products is given by
// pointers: gate gradients, state before, and where tokens share no vectors input and its gradient.
struct Worker {
  float *sum_hh, *sum_ih, *sum_bias;  // (3 * padded, padded), (3 * padded, input_padded), gate_row
  float *dh, *left, *right, *shared;
  const float **gates, **before, **inputs;
  float** d_inputs;
  Index waiting;
};

struct BackwardPlan {
  Shape shape;
  Blocks blocks;
  Index* start;                            // (T) number of the first token of every step
  Index *owner, *work;                     // (blocks) the thread that computes it; (threads)
  Index *occurrences, *order;              // (U + 1), (N) tokens by vector
  float *recurrent_panels, *input_panels;  // column panels of W_hh, W_ih
  float* zeros;                            // (H) the initial state, where none is given
  Index workers, per_worker;               // bytes before the first thread's memory; of each
};

Worker plan_worker(const GruCall& call, const Shape& shape, Arena& arena) {
  Worker worker{};
  Index tokens = DEPTH + MAX_BLOCK, gates = 3 * shape.padded;
  worker.sum_hh = arena.take<float>(gates * shape.padded);
  worker.sum_ih = arena.take<float>(gates * shape.input_padded);
  worker.sum_bias = arena.take<float>(shape.gate_row);
  worker.dh = arena.take<float>(MAX_BLOCK * shape.padded);
  worker.left = arena.take<float>(left_size(gates, tokens));
  worker.right = arena.take<float>(3 * LANES * tokens);
  if (call.index) worker.shared = arena.take<float>(DEPTH * shape.gate_row);
  worker.gates = arena.take<const float*>(tokens);
  worker.before = arena.take<const float*>(tokens);
  worker.inputs = arena.take<const float*>(tokens);
  worker.d_inputs = arena.take<float*>(tokens);
  return worker;
}

BackwardPlan plan_backward(const GruCall& call, Arena& arena) {
  BackwardPlan plan{};
  Shape shape = plan.shape = shape_of(call.input_size, call.hidden_size);
  plan.blocks = cut_into_blocks(call.batch, call.threads);
  plan.start = arena.take<Index>(call.steps);
  plan.owner = arena.take<Index>(plan.blocks.count);
  plan.work = arena.take<Index>(call.threads);
  if (call.index) plan.occurrences = arena.take<Index>(call.vectors + 1);
  if (call.index) plan.order = arena.take<Index>(call.tokens);
  plan.recurrent_panels = arena.take<float>(3 * shape.padded * shape.padded);
  plan.input_panels = arena.take<float>(3 * shape.padded * shape.input_padded);
  plan.zeros = arena.take<float>(shape.hidden);
  plan.workers = arena.used;
  plan_worker(call, shape, arena);
  plan.per_worker = arena.used - plan.workers;
  arena.used += (call.threads - 1) * plan.per_worker;
  return plan;
}

Worker worker_of(const GruCall& call, const BackwardPlan& plan, Index thread) {
  Arena arena{call.scratch, plan.workers + thread * plan.per_worker};
  return plan_worker(call, plan.shape, arena);
}

// --- before the blocks

void pack_backward(const GruCall& call, const BackwardPlan& plan, Member member) {
  const Shape& shape = plan.shape;
  Index gates = 3 * shape.padded, number = 0;
  for (Index at = 0, width; (width = panel_width(shape.groups - at)) > 0; at += width) {
    if (number++ % member.of == member.number)
      pack_column_panel(call.w_hh, shape.hidden, shape.hidden, RECURRENT_ORDER, at * LANES, width,
                        plan.recurrent_panels + at * LANES * gates);
  }
  Index vectors = shape.input_padded / LANES;
  for (Index at = 0, width; (width = panel_width(vectors - at)) > 0; at += width) {
    if (call.d_vectors && number++ % member.of == member.number)
      pack_column_panel(call.w_ih, shape.hidden, shape.input, INPUT_ORDER, at * LANES, width,
                        plan.input_panels + at * LANES * gates);
  }
}

// Gives each block, longest first, to the thread with the least work.
void share_blocks(const GruCall& call, const BackwardPlan& plan, Index threads) {
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

// Sorts the tokens by vector: those of vector u are order[occurrences[u] .. occurrences[u + 1]).
void sort_tokens(const GruCall& call, const BackwardPlan& plan) {
  Index* end = plan.occurrences;
  memset(end, 0, (call.vectors + 1) * sizeof(Index));
  for (Index i = 0; i < call.tokens; ++i) ++end[call.index[i]];
  for (Index u = 1; u <= call.vectors; ++u) end[u] += end[u - 1];
  for (Index i = call.tokens - 1; i >= 0; --i) plan.order[--end[call.index[i]]] = i;
}

// --- a block, back through time

// Turns what was saved of a step's tokens into gradients; leaves dh z in dh.
void gate_gradients(const Shape& shape, Index rows, float* gates, const float* const* before,
                    float* dh, float* sum_bias) {
  for (Index unit = 0; unit < shape.padded; unit += LANES) {
    Vec sums[4] = {};
    for (Index row = 0; row < rows; ++row) {
      float* at = gates + row * shape.gate_row + 4 * unit;
      float* d = dh + row * shape.padded + unit;
      Vec n = load(at), r = load(at + LANES), z = load(at + 2 * LANES), q = load(at + 3 * LANES);
      Vec h = load_part(before[row] + unit, shape.hidden - unit);
      Vec kept = load(d) * z, one = splat(1.f);
      Vec dn = (load(d) - kept) * (one - n * n), dq = dn * r;
      Vec dr = dq * q * (one - r), dz = kept * (one - z) * (h - n);
      store(d, kept);
      Vec gradients[4] = {dn, dr, dz, dq};
      UNROLL for (int i = 0; i < 4; ++i) {
        store(at + i * LANES, gradients[i]);
        sums[i] += gradients[i];
      }
    }
    UNROLL for (int i = 0; i < 4; ++i) {
      float* sum = sum_bias + 4 * unit + i * LANES;
      store(sum, load(sum) + sums[i]);
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
      multiply(through_input(call, plan), worker.waiting, worker.gates, worker.d_inputs);
  }
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

void prefetch_step(const BlockBack& back, Index i) {
  const Shape& shape = back.plan.shape;
  for (Index row = 0; row < back.rows(i); ++row)
    prefetch(back.call.gates + (back.first_token(i) + row) * shape.gate_row, shape.gate_row);
  for (Index row = 0; row < back.rows(i - 1); ++row)
    prefetch(back.call.states + (back.first_token(i - 1) + row) * back.call.states_stride,
             shape.hidden);
}

// Finds the state before the step of each sequence; returns how many had an earlier step.
Index find_states_before(const BlockBack& back, Index i, const float** before) {
  const GruCall& call = back.call;
  Index rows = back.rows(i), earlier = smaller(rows, back.rows(i - 1));
  for (Index row = 0; row < rows; ++row) {
    if (row < earlier)
      before[row] = call.states + (back.first_token(i - 1) + row) * call.states_stride;
    else
      before[row] = call.h0 ? call.h0 + (back.block.first + row) * call.hidden_size
                            : back.plan.zeros;
  }
  return earlier;
}

// Adds tokens to those that wait. Outer products with initial states of zero add nothing.
void let_wait(const BlockBack& back, Index i, Index rows, const float* const* before) {
  const GruCall& call = back.call;
  Worker& worker = back.worker;
  for (Index row = 0; row < rows; ++row) {
    Index token = back.first_token(i) + row, at = worker.waiting++;
    worker.gates[at] = call.gates + token * back.plan.shape.gate_row;
    worker.before[at] = before[row];
    if (call.index) continue;
    worker.inputs[at] = call.vectors_in + token * call.input_size;
    worker.d_inputs[at] = call.d_vectors + token * call.input_size;
  }
}

void step_back(const BlockBack& back, Index i) {
  const GruCall& call = back.call;
  const Shape& shape = back.plan.shape;
  Index rows = back.rows(i), token = back.first_token(i);
  if (i > 0) prefetch_step(back, i - 1);
  const float *before[MAX_BLOCK], *recurrent[MAX_BLOCK];
  float *dh[MAX_BLOCK], *gates = call.gates + token * shape.gate_row;
  Index earlier = find_states_before(back, i, before);
  for (Index row = 0; row < rows; ++row) {
    dh[row] = back.worker.dh + row * shape.padded;
    recurrent[row] = gates + row * shape.gate_row + LANES;
    if (!call.d_states) continue;
    const float* outside = call.d_states + (token + row) * call.states_stride;
    for (Index unit = 0; unit < shape.hidden; ++unit) dh[row][unit] += outside[unit];
  }
  gate_gradients(shape, rows, gates, before, back.worker.dh, back.worker.sum_bias);
  multiply(through_recurrence(back.plan), call.d_h0 ? rows : earlier, recurrent, dh);
  let_wait(back, i, call.h0 || !call.index ? rows : earlier, before);
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

// --- vectors that tokens share: the gradients of a vector's tokens are summed, then it is done once

void sum_occurrences(const GruCall& call, const BackwardPlan& plan, Index vector, float* sum) {
  const Shape& shape = plan.shape;
  memset(sum, 0, shape.gate_row * sizeof(float));
  for (Index i = plan.occurrences[vector]; i < plan.occurrences[vector + 1]; ++i) {
    const float* gates = call.gates + plan.order[i] * shape.gate_row;
    if (i + 1 < call.tokens)
      prefetch(call.gates + plan.order[i + 1] * shape.gate_row, shape.gate_row);
    for (Index at = 0; at < shape.gate_row; at += 4 * LANES) {
      UNROLL for (int v = 0; v < 3 * LANES; v += LANES)
        store(sum + at + v, load(sum + at + v) + load(gates + at + v));
    }
  }
}

// First vector of a thread's share, where a vector costs as much as 16 of its tokens.
Index share_begin(const GruCall& call, const BackwardPlan& plan, Index thread, Index of) {
  Index target = (call.tokens + 16 * call.vectors) * thread / of, low = 0, high = call.vectors;
  while (low < high) {
    Index middle = (low + high) / 2;
    if (plan.occurrences[middle] + 16 * middle < target) low = middle + 1;
    else high = middle;
  }
  return low;
}

void finish_vectors(const GruCall& call, const BackwardPlan& plan, Worker& worker, Member member) {
  const Shape& shape = plan.shape;
  OuterProduct outer{shape.groups, shape.input, worker.sum_ih, worker.left, worker.right};
  Index end = share_begin(call, plan, member.number + 1, member.of);
  for (Index u = share_begin(call, plan, member.number, member.of); u < end; u += DEPTH) {
    Index count = smaller(DEPTH, end - u);
    for (Index i = 0; i < count; ++i) {
      float* sum = worker.shared + i * shape.gate_row;
      sum_occurrences(call, plan, u + i, sum);
      worker.gates[i] = sum;
      worker.inputs[i] = call.vectors_in + (u + i) * shape.input;
      worker.d_inputs[i] = call.d_vectors + (u + i) * shape.input;
    }
    add_outer(outer, count, worker.gates, worker.inputs);
    if (call.d_vectors)
      multiply(through_input(call, plan), count, worker.gates, worker.d_inputs);
  }
}

// --- the threads' sums, in torch's order of gates

// The sum of a row over all threads, given the first thread's.
void add_rows(const BackwardPlan& plan, Index threads, const float* first, Index count, float* to) {
  for (Index i = 0; i < count; ++i) to[i] = first[i];
  for (Index thread = 1; thread < threads; ++thread) {
    const float* row = (const float*)((const char*)first + thread * plan.per_worker);
    for (Index i = 0; i < count; ++i) to[i] += row[i];
  }
}

void add_threads(const GruCall& call, const BackwardPlan& plan, Member member) {
  const Shape& shape = plan.shape;
  Worker sums = worker_of(call, plan, 0);
  Index end = member.end(shape.hidden);
  for (Index unit = member.begin(shape.hidden); unit < end; ++unit) {
    Index panel = unit / LANES, lane = unit % LANES;
    for (Index place = 0; place < 3; ++place) {
      Index row = (panel * 3 + place) * LANES + lane, bias = (panel * 4 + place) * LANES + lane;
      Index to_hh = RECURRENT_ORDER[place] * shape.hidden + unit;
      Index to_ih = INPUT_ORDER[place] * shape.hidden + unit;
      add_rows(plan, member.of, sums.sum_hh + row * shape.padded, shape.hidden,
               call.d_w_hh + to_hh * shape.hidden);
      add_rows(plan, member.of, sums.sum_ih + row * shape.input_padded, shape.input,
               call.d_w_ih + to_ih * shape.input);
      add_rows(plan, member.of, sums.sum_bias + bias + LANES, 1, call.d_b_hh + to_hh);
      add_rows(plan, member.of, sums.sum_bias + bias, 1, call.d_b_ih + to_ih);
    }
  }
}

void backward(const GruCall* call) {
  Arena arena{call->scratch, 0};
  BackwardPlan plan = plan_backward(*call, arena);
  count_starts(*call, plan.start);
  memset(plan.zeros, 0, plan.shape.hidden * sizeof(float));
  if (call->index) sort_tokens(*call, plan);
  as_team(call->threads, [&](Member member) {
    Worker worker = worker_of(*call, plan, member.number);
    memset(worker.sum_hh, 0, (char*)worker.dh - (char*)worker.sum_hh);
    if (member.number == 0) share_blocks(*call, plan, member.of);
    pack_backward(*call, plan, member);
    wait_for_all();
    for (Index number = 0; number < plan.blocks.count; ++number)
      if (plan.owner[number] == member.number) go_back(*call, plan, worker, number);
    finish_waiting(*call, plan, worker);
    wait_for_all();
    if (call->index) finish_vectors(*call, plan, worker, member);
    wait_for_all();
    add_threads(*call, plan, member);
  });
}

}  // namespace
