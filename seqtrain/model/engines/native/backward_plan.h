// Backward's memory, and what is prepared before the blocks run: weights packed, work shared out.

#pragma once

#include "plan.h"
#include "products.h"

namespace {

// What one thread works with. A row of tokens that wait for their outer products is given by
// pointers: gate gradients, state before, and where tokens share no vectors input and its gradient.
struct Worker {
  float *sum_hh, *sum_ih;         // (gates, hidden_row), (gates, input_row)
  float *sum_bias, *recent_bias;  // (gate_row) of all tokens, and of those that wait
  float *dh, *dc, *shared;
  Word *left, *right, *words;  // packed outer products; gate gradients as the products take them
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
  Word *recurrent_panels, *input_panels;   // column panels of W_hh, W_ih
  float* zeros;                            // (H) the initial state, where none is given
  Index workers, per_worker;               // bytes before the first thread's memory; of each
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

void pack_backward(const LayerCall& call, const BackwardPlan& plan, Member member) {
  const Shape& shape = plan.shape;
  const Cell& cell = shape.cell;
  Index number = 0, vectors = shape.padded / LANES;
  for (Index at = 0, width; (width = panel_width(vectors - at)) > 0; at += width) {
    if (number++ % member.of == member.number)
      pack_column_panel(cell, call.w_hh, shape.hidden, shape.hidden, cell.recurrent_order,
                        at * LANES, width,
                        plan.recurrent_panels + at * LANES * words_of(shape.gates));
  }
  vectors = shape.input_row / LANES;
  for (Index at = 0, width; (width = panel_width(vectors - at)) > 0; at += width) {
    if (call.d_vectors && number++ % member.of == member.number)
      pack_column_panel(cell, call.w_ih, shape.hidden, shape.input, cell.input_order, at * LANES,
                        width, plan.input_panels + at * LANES * words_of(shape.gates));
  }
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

// Sorts the tokens by vector: those of vector u are order[occurrences[u] .. occurrences[u + 1]).
void sort_tokens(const LayerCall& call, const BackwardPlan& plan) {
  Index* end = plan.occurrences;
  memset(end, 0, (call.vectors + 1) * sizeof(Index));
  for (Index i = 0; i < call.tokens; ++i) ++end[call.index[i]];
  for (Index u = 1; u <= call.vectors; ++u) end[u] += end[u - 1];
  for (Index i = call.tokens - 1; i >= 0; --i) plan.order[--end[call.index[i]]] = i;
}

}  // namespace
