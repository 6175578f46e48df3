// Forward: pack the weights, project the distinct vectors, run each block through time.
//
//   r = sigmoid(W_ir x + b_ir + W_hr h + b_hr)
//   z = sigmoid(W_iz x + b_iz + W_hz h + b_hz)
//   q = W_hn h + b_hn
//   n = tanh(W_in x + b_in + r q)
//   h' = (1 - z) n + z h
//
// Cho et al. 2014, arXiv:1406.1078, with the reset gate where torch has it: after the product.

#pragma once

#include "plan.h"
#include "products.h"
#include "team.h"

namespace {

// What one thread works with: a block's states before and after a step, and inputs projected ahead.
struct Runner {
  float *h, *h_next, *chunk;
  Word* words;  // states, or vectors to be projected, as the products take them
};

struct ForwardPlan {
  Shape shape;
  Blocks blocks;
  Index* start;                              // (T) number of the first token of every step
  Word *recurrent_panels, *input_panels;     // gate panels of W_hh, W_ih
  float *recurrent_bias, *input_bias;        // b_hn; the other biases
  float* table;                              // (U, projected_row), where tokens share vectors:
                                             // our own, or the one that was given
  Index runners, per_runner;                 // bytes before the first thread's memory; of each
};

Runner plan_runner(const GruCall& call, const Shape& shape, Arena& arena) {
  Runner runner{};
  runner.h = arena.take<float>(MAX_BLOCK * shape.padded);
  runner.h_next = arena.take<float>(MAX_BLOCK * shape.padded);
  if (!call.index) runner.chunk = arena.take<float>((CHUNK + MAX_BLOCK) * shape.projected_row);
  runner.words = arena.take<Word>(larger(CHUNK * room_of(shape.input),
                                         MAX_BLOCK * room_of(shape.padded)));
  return runner;
}

Runner runner_of(const GruCall& call, const ForwardPlan& plan, Member member) {
  Arena arena{call.scratch, plan.runners + member.number * plan.per_runner};
  return plan_runner(call, plan.shape, arena);
}

ForwardPlan plan_forward(const GruCall& call, Arena& arena) {
  ForwardPlan plan{};
  Shape shape = plan.shape = shape_of(call.input_size, call.hidden_size);
  plan.blocks = cut_into_blocks(call.batch, call.threads);
  plan.start = arena.take<Index>(call.steps);
  plan.recurrent_panels = arena.take<Word>(3 * shape.padded * words_of(shape.hidden));
  plan.recurrent_bias = arena.take<float>(shape.padded);
  plan.input_panels = arena.take<Word>(3 * shape.padded * words_of(shape.input));
  plan.input_bias = arena.take<float>(3 * shape.padded);
  plan.table = call.projected;
  if (call.index && !plan.table)
    plan.table = arena.take<float>(call.vectors * shape.projected_row);
  plan.runners = arena.used;
  plan_runner(call, shape, arena);
  plan.per_runner = arena.used - plan.runners;
  arena.used += (call.threads - 1) * plan.per_runner;
  return plan;
}

void pack_recurrence(const GruCall& call, const ForwardPlan& plan, Member member) {
  const Shape& shape = plan.shape;
  for (Index panel = member.number; panel < shape.groups; panel += member.of)
    pack_gate_panel(call.w_hh, shape.hidden, shape.hidden, RECURRENT_ORDER, panel,
                    plan.recurrent_panels + panel * 3 * LANES * words_of(shape.hidden));
  if (member.number == 0)
    pack_recurrent_bias(call.b_hh, shape.hidden, plan.recurrent_bias);
}

void pack_input(const GruCall& call, const ForwardPlan& plan, Member member) {
  const Shape& shape = plan.shape;
  for (Index panel = member.number; panel < shape.groups; panel += member.of)
    pack_gate_panel(call.w_ih, shape.hidden, shape.input, INPUT_ORDER, panel,
                    plan.input_panels + panel * 3 * LANES * words_of(shape.input));
  if (member.number == 0) pack_input_bias(call.b_ih, call.b_hh, shape.hidden, plan.input_bias);
}

Product projection(const ForwardPlan& plan) {
  return {1, plan.shape.input, 0, plan.input_panels, plan.shape.projected_row, plan.input_bias,
          false};
}

// Projects the vectors that tokens share, a chunk at a time for whichever thread is free.
void project_table(const GruCall& call, const ForwardPlan& plan, Member member, Index* next) {
  Runner memory = runner_of(call, plan, member);
  const float* from[CHUNK];
  float* to[CHUNK];
  for (Index first; (first = take_next(next) * CHUNK) < call.vectors;) {
    Index count = smaller(CHUNK, call.vectors - first);
    for (Index i = 0; i < count; ++i) {
      from[i] = call.vectors_in + (first + i) * plan.shape.input;
      to[i] = plan.table + (first + i) * plan.shape.projected_row;
    }
    multiply(projection(plan), count, from, to, memory.words);
  }
}

// One step of up to ROWS sequences, whose states and tokens lie next to each other.
struct Step {
  const float* projected[ROWS];  // what the input adds to the gates
  const float* upcoming[ROWS];   // the same of the next step, to be fetched meanwhile
  const float* h;                // (rows, padded)
  const Word* words[ROWS];       // the same to be multiplied
  float* h_next;                 // (rows, padded)
  float* states;                 // (rows, states_stride) or null
  float* gates;                  // (rows, gate_row) or null
  Index depth;                   // words of H, or 0 while the states are known to be zero
};

template <int R>
NOINLINE void step_panel(const Step& step, const ForwardPlan& plan, Index states_stride,
                         Index panel) {
  const Shape& shape = plan.shape;
  Index unit = panel * LANES;
  Vec sums[R][3];
  const float* input[R];
  UNROLL for (int r = 0; r < R; ++r) {
    input[r] = step.projected[r] + 3 * unit;
    prefetch(step.upcoming[r] + 3 * unit, 3 * LANES);
    sums[r][0] = load(input[r] + LANES);
    sums[r][1] = load(input[r] + 2 * LANES);
    sums[r][2] = load(plan.recurrent_bias + unit);
  }
  const Word* weights = plan.recurrent_panels + 3 * unit * words_of(shape.hidden);
  multiply_add<R, 3>(sums, step.words, weights, step.depth);
  UNROLL for (int row = 0; row < R; ++row) {
    Vec r = sums[row][0], z = sums[row][1], q = sums[row][2];
    two_sigmoids(r, z);
    Vec n = tanh_of(load(input[row]) + r * q);
    Vec next = n + z * (load(step.h + row * shape.padded + unit) - n);
    store(step.h_next + row * shape.padded + unit, next);
    if (step.states)
      store_part(step.states + row * states_stride + unit, next, shape.hidden - unit);
    if (step.gates) {
      float* saved = step.gates + row * shape.gate_row + 4 * unit;
      store(saved, n);
      store(saved + LANES, r);
      store(saved + 2 * LANES, z);
      store(saved + 3 * LANES, q);
    }
  }
}

// A block on its way through time. Inputs are projected a chunk of steps ahead, or looked up.
struct BlockRun {
  const GruCall& call;
  const ForwardPlan& plan;
  Block block;
  Runner memory;
  Index projected_until;  // steps, in the block's order, whose tokens are in the chunk
  Index in_chunk;         // tokens of the chunk before the current step

  Index rows(Index i) const {
    return i < block.steps ? rows_at(call, block, step_at(call, block, i)) : 0;
  }

  Index first_token(Index i) const {
    return plan.start[step_at(call, block, i)] + block.first;
  }
};

// Sequences that begin later than others (in reverse) find their initial state in both buffers.
void set_initial_states(BlockRun& run) {
  const Shape& shape = run.plan.shape;
  Index size = run.block.rows * shape.padded;
  memset(run.memory.h, 0, size * sizeof(float));
  if (run.call.h0) {
    for (Index r = 0; r < run.block.rows; ++r)
      memcpy(run.memory.h + r * shape.padded, run.call.h0 + (run.block.first + r) * shape.hidden,
             shape.hidden * sizeof(float));
  }
  memcpy(run.memory.h_next, run.memory.h, size * sizeof(float));
}

void project_chunk(BlockRun& run, Index i) {
  const float* from[CHUNK + MAX_BLOCK];
  float* to[CHUNK + MAX_BLOCK];
  Index count = 0;
  for (; i < run.block.steps && count < CHUNK; ++i) {
    for (Index r = 0; r < run.rows(i); ++r, ++count) {
      from[count] = run.call.vectors_in + (run.first_token(i) + r) * run.plan.shape.input;
      to[count] = run.memory.chunk + count * run.plan.shape.projected_row;
    }
  }
  multiply(projection(run.plan), count, from, to, run.memory.words);
  run.projected_until = i;
  run.in_chunk = 0;
}

const float* projected_token(const BlockRun& run, Index i, Index row) {
  Index which = run.call.index ? run.call.index[run.first_token(i) + row] : run.in_chunk + row;
  return (run.call.index ? run.plan.table : run.memory.chunk) + which * run.plan.shape.projected_row;
}

void run_step(BlockRun& run, Index i) {
  const GruCall& call = run.call;
  const Shape& shape = run.plan.shape;
  Index rows = run.rows(i), upcoming = call.index ? run.rows(i + 1) : 0;
  Index token = run.first_token(i);
  Step steps[MAX_BLOCK / ROWS];
  for (Index row = 0; row < rows; ++row) {
    Step& step = steps[row / ROWS];
    step.projected[row % ROWS] = projected_token(run, i, row);
    step.upcoming[row % ROWS] =
        row < upcoming ? projected_token(run, i + 1, row) : step.projected[row % ROWS];
    step.words[row % ROWS] = to_words(run.memory.h + row * shape.padded, shape.padded,
                                      run.memory.words + row * room_of(shape.padded));
  }
  for (Index row = 0; row < rows; row += ROWS) {
    Step& step = steps[row / ROWS];
    step.h = run.memory.h + row * shape.padded;
    step.h_next = run.memory.h_next + row * shape.padded;
    step.states = call.states ? call.states + (token + row) * call.states_stride : nullptr;
    step.gates = call.gates ? call.gates + (token + row) * shape.gate_row : nullptr;
    step.depth = i == 0 && !call.h0 ? 0 : words_of(shape.hidden);
  }
  for (Index panel = 0; panel < shape.groups; ++panel) {
    for (Index row = 0; row < rows; row += ROWS) {
      with_rows(smaller(ROWS, rows - row), [&](auto count) {
        step_panel<decltype(count)::value>(steps[row / ROWS], run.plan, call.states_stride, panel);
      });
    }
  }
}

void run_block(const GruCall& call, const ForwardPlan& plan, Member member, Index number) {
  BlockRun run{call, plan, block_at(call, plan.blocks, number), runner_of(call, plan, member), 0, 0};
  set_initial_states(run);
  for (Index i = 0; i < run.block.steps; ++i) {
    if (!call.index && i == run.projected_until) project_chunk(run, i);
    run_step(run, i);
    run.in_chunk += run.rows(i);
    for (Index r = run.rows(i + 1); r < run.rows(i); ++r)
      memcpy(call.last + (run.block.first + r) * plan.shape.hidden,
             run.memory.h_next + r * plan.shape.padded, plan.shape.hidden * sizeof(float));
    float* swapped = run.memory.h;
    run.memory.h = run.memory.h_next;
    run.memory.h_next = swapped;
  }
}

// Projects a table once, for many forwards.
void project(const GruCall* call) {
  Arena arena{call->scratch, 0};
  ForwardPlan plan = plan_forward(*call, arena);
  Index next_chunk = 0;
  as_team(call->threads, [&](Member member) {
    pack_input(*call, plan, member);
    wait_for_all();
    project_table(*call, plan, member, &next_chunk);
  });
  arena.give_back();
}

void forward(const GruCall* call) {
  Arena arena{call->scratch, 0};
  ForwardPlan plan = plan_forward(*call, arena);
  count_starts(*call, plan.start);
  Index next_chunk = 0, next_block = 0;
  as_team(call->threads, [&](Member member) {
    pack_recurrence(*call, plan, member);
    if (!call->projected) pack_input(*call, plan, member);
    wait_for_all();
    if (call->index && !call->projected) project_table(*call, plan, member, &next_chunk);
    wait_for_all();
    // Blocks are taken longest first: who is free takes the next.
    for (Index number; (number = take_next(&next_block)) < plan.blocks.count;)
      run_block(*call, plan, member, number);
  });
  arena.give_back();
}

}  // namespace
