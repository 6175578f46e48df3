// Forward: pack the weights, project the distinct vectors, run each block through time. What a
// step does to a cell's states stands in cells.h.

#pragma once

#include "forward_plan.h"

namespace {

// One step of a few sequences, as many as fit into registers, whose states and tokens lie next to each other.
struct Step {
  const float* projected[ROWS];  // what the input adds to the gates
  const float* upcoming[ROWS];   // the same of the next step, to be fetched meanwhile
  const float* h;                // (rows, padded)
  const Word* words[ROWS];       // the same to be multiplied
  float *h_next, *c;             // (rows, padded)
  float* states;                 // (rows, states_stride) or null
  float* gates;                  // (rows, gate_row) or null
  Index depth;                   // words of H, or 0 while the states are known to be zero
};

template <class Cell, int R>
NOINLINE void step_panel(const Step& step, const ForwardPlan& plan, Index states_stride,
                         Index group) {
  constexpr Index panel = Cell::VECTORS * LANES, units = Cell::SPREAD * LANES;
  const Shape& shape = plan.shape;
  Index unit = group * units;
  Vec sums[R][Cell::VECTORS];
  const float* input[R];
  UNROLL for (int r = 0; r < R; ++r) {
    input[r] = step.projected[r] + group * panel;
    prefetch(step.upcoming[r] + group * panel, panel);
    Cell::begin(sums[r], input[r], plan.recurrent_bias + unit);
  }
  const Word* weights = plan.recurrent_panels + group * panel * words_of(shape.hidden);
  multiply_add<R, Cell::VECTORS>(sums, step.words, weights, step.depth);
  UNROLL for (int r = 0; r < R; ++r) {
    Index at = r * shape.padded + unit;
    float* saved =
        step.gates ? step.gates + r * shape.gate_row + group * Cell::SAVED * LANES : nullptr;
    Vec next[Cell::SPREAD];
    Cell::finish(sums[r], {input[r], step.h + at, step.c ? step.c + at : nullptr, saved}, next);
    UNROLL for (int v = 0; v < Cell::SPREAD; ++v) {
      Index lane = v * LANES;
      store(step.h_next + at + lane, next[v]);
      if (step.states)
        store_part(step.states + r * states_stride + unit + lane, next[v],
                   shape.hidden - unit - lane);
    }
  }
}

// A block on its way through time. Inputs are projected a chunk of steps ahead, or looked up.
struct BlockRun {
  const LayerCall& call;
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

// A block's initial states (B, H), zeros for none, as they are computed with.
void set_rows(const BlockRun& run, const float* from, float* to) {
  const Shape& shape = run.plan.shape;
  memset(to, 0, run.block.rows * shape.padded * sizeof(float));
  for (Index r = 0; from && r < run.block.rows; ++r)
    memcpy(to + r * shape.padded, from + (run.block.first + r) * shape.hidden,
           shape.hidden * sizeof(float));
}

// Sequences that begin later than others (in reverse) find their initial state in both buffers.
void set_initial_states(BlockRun& run) {
  set_rows(run, run.call.h0, run.memory.h);
  set_rows(run, run.call.h0, run.memory.h_next);
  if (run.memory.c) set_rows(run, run.call.c0, run.memory.c);
}

// The states of sequences that step i was the last of.
void keep_last(const BlockRun& run, Index i) {
  const Shape& shape = run.plan.shape;
  for (Index r = run.rows(i + 1); r < run.rows(i); ++r) {
    Index to = (run.block.first + r) * shape.hidden, from = r * shape.padded;
    memcpy(run.call.last + to, run.memory.h_next + from, shape.hidden * sizeof(float));
    if (run.memory.c)
      memcpy(run.call.last_c + to, run.memory.c + from, shape.hidden * sizeof(float));
  }
}

void project_chunk(BlockRun& run, Index i) {
  const float* from[CHUNK + MAX_BLOCK];
  float* to[CHUNK + MAX_BLOCK];
  Index count = 0;
  for (; i < run.block.steps && count < CHUNK; ++i) {
    for (Index r = 0; r < run.rows(i); ++r, ++count) {
      from[count] = run.call.vectors_in + (run.first_token(i) + r) * run.plan.shape.input;
      to[count] = run.memory.chunk + count * run.plan.shape.gates;
    }
  }
  multiply(projection(run.plan), count, from, to, run.memory.words);
  run.projected_until = i;
  run.in_chunk = 0;
}

const float* projected_token(const BlockRun& run, Index i, Index row) {
  Index which = run.call.index ? run.call.index[run.first_token(i) + row] : run.in_chunk + row;
  return (run.call.index ? run.plan.table : run.memory.chunk) + which * run.plan.shape.gates;
}

template <class Cell>
void run_step(BlockRun& run, Index i) {
  constexpr Index most = Cell::ROWS_AT_ONCE;
  const LayerCall& call = run.call;
  const Shape& shape = run.plan.shape;
  Index rows = run.rows(i), upcoming = call.index ? run.rows(i + 1) : 0;
  Index token = run.first_token(i);
  Step steps[(MAX_BLOCK + most - 1) / most];
  for (Index row = 0; row < rows; ++row) {
    Step& step = steps[row / most];
    step.projected[row % most] = projected_token(run, i, row);
    step.upcoming[row % most] =
        row < upcoming ? projected_token(run, i + 1, row) : step.projected[row % most];
    step.words[row % most] = to_words(run.memory.h + row * shape.padded, shape.padded,
                                      run.memory.words + row * room_of(shape.padded));
  }
  for (Index row = 0; row < rows; row += most) {
    Step& step = steps[row / most];
    step.h = run.memory.h + row * shape.padded;
    step.h_next = run.memory.h_next + row * shape.padded;
    step.c = run.memory.c ? run.memory.c + row * shape.padded : nullptr;
    step.states = call.states ? call.states + (token + row) * call.states_stride : nullptr;
    step.gates = call.gates ? call.gates + (token + row) * shape.gate_row : nullptr;
    step.depth = i == 0 && !call.h0 ? 0 : words_of(shape.hidden);
  }
  for (Index group = 0; group < shape.groups; ++group) {
    for (Index row = 0; row < rows; row += most) {
      with_rows<most>(smaller(most, rows - row), [&](auto count) {
        step_panel<Cell, decltype(count)::value>(steps[row / most], run.plan, call.states_stride,
                                                 group);
      });
    }
  }
}

template <class Cell>
void run_block(const LayerCall& call, const ForwardPlan& plan, Member member, Index number) {
  BlockRun run{call, plan, block_at(call, plan.blocks, number), runner_of(call, plan, member), 0, 0};
  set_initial_states(run);
  for (Index i = 0; i < run.block.steps; ++i) {
    if (!call.index && i == run.projected_until) project_chunk(run, i);
    run_step<Cell>(run, i);
    run.in_chunk += run.rows(i);
    keep_last(run, i);
    float* swapped = run.memory.h;
    run.memory.h = run.memory.h_next;
    run.memory.h_next = swapped;
  }
}

// Projects a table once, for many forwards.
void project(const LayerCall* call) {
  Arena arena{call->scratch, 0};
  ForwardPlan plan = plan_forward(*call, arena);
  Index next_chunk = 0;
  as_team(call->threads, [&](Member member) {
    pack_input(*call, plan, member);
    wait_for_all(member);
    project_table(*call, plan, member, &next_chunk);
  });
  arena.give_back();
}

template <class Cell>
void forward(const LayerCall* call) {
  Arena arena{call->scratch, 0};
  ForwardPlan plan = plan_forward(*call, arena);
  count_starts(*call, plan.start);
  Index next_chunk = 0, next_block = 0;
  as_team(call->threads, [&](Member member) {
    pack_recurrence(*call, plan, member);
    if (!call->projected) pack_input(*call, plan, member);
    wait_for_all(member);
    if (call->index && !call->projected) project_table(*call, plan, member, &next_chunk);
    wait_for_all(member);
    // Blocks are taken longest first: who is free takes the next.
    for (Index number; (number = take_next(&next_block)) < plan.blocks.count;)
      run_block<Cell>(*call, plan, member, number);
  });
  arena.give_back();
}

}  // namespace
