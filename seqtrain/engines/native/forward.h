// Forward pass: pack the weights, project the distinct vectors, run each block through time. cells.h
// has the arithmetic of a step.

#pragma once

#include "plan.h"

namespace {

// Memory of one thread: states of a block before and after a step, and inputs projected ahead.
struct Runner {
  float *h, *h_next, *c, *chunk;
  Word* words;  // states, or vectors to project, as words for the products
};

struct ForwardPlan {
  Shape shape;
  Blocks blocks;
  Index* start;                              // (T) number of the first token of every step
  Word *recurrent_panels, *input_panels;     // gate panels of W_hh, W_ih
  float *recurrent_bias, *input_bias;        // a GRU's b_hn; the other biases
  float* table;                              // (U, gates), if tokens share vectors
  Index runners, per_runner;                 // bytes before the first thread; bytes per thread
};

Runner plan_runner(const LayerCall& call, const Shape& shape, Arena& arena) {
  Runner runner{};
  runner.h = arena.take<float>(MAX_BLOCK * shape.padded);
  runner.h_next = arena.take<float>(MAX_BLOCK * shape.padded);
  if (shape.cell.second_state) runner.c = arena.take<float>(MAX_BLOCK * shape.padded);
  if (!call.index) runner.chunk = arena.take<float>((CHUNK + MAX_BLOCK) * shape.gates);
  runner.words = arena.take<Word>(larger(CHUNK * room_of(shape.input),
                                         MAX_BLOCK * room_of(shape.padded)));
  return runner;
}

Runner runner_of(const LayerCall& call, const ForwardPlan& plan, Part part) {
  Arena arena{call.scratch, plan.runners + part.number * plan.per_runner};
  return plan_runner(call, plan.shape, arena);
}

ForwardPlan plan_forward(const LayerCall& call, Arena& arena) {
  ForwardPlan plan{};
  Shape shape = plan.shape = shape_of(call);
  plan.blocks = cut_into_blocks(shape, call.batch, call.threads);
  plan.start = arena.take<Index>(call.steps);
  plan.recurrent_panels = arena.take<Word>(shape.gates * words_of(shape.hidden));
  plan.recurrent_bias = arena.take<float>(shape.padded);
  plan.input_panels = arena.take<Word>(shape.gates * words_of(shape.input));
  plan.input_bias = arena.take<float>(shape.gates);
  if (call.index) plan.table = arena.take<float>(call.vectors * shape.gates);
  plan.runners = arena.used;
  plan_runner(call, shape, arena);
  plan.per_runner = arena.used - plan.runners;
  arena.used += (call.threads - 1) * plan.per_runner;
  return plan;
}

void pack_recurrence(const LayerCall& call, const ForwardPlan& plan, Part part) {
  const Shape& shape = plan.shape;
  for (Index group = part.number; group < shape.groups; group += part.of)
    pack_gate_panel(shape.cell, call.w_hh, shape.hidden, shape.hidden, shape.cell.recurrent_order,
                    group * shape.cell.vectors(), shape.cell.vectors(),
                    plan.recurrent_panels + group * shape.panel * words_of(shape.hidden));
  if (part.number == 0)
    pack_recurrent_bias(shape.cell, call.b_hh, shape.hidden, shape.padded, plan.recurrent_bias);
}

void pack_input(const LayerCall& call, const ForwardPlan& plan, Part part) {
  const Shape& shape = plan.shape;
  for_panels(shape.gates / LANES, [&](Index at, Index width, Index number) {
    if (number % part.of == part.number)
      pack_gate_panel(shape.cell, call.w_ih, shape.hidden, shape.input, shape.cell.input_order, at,
                      width, plan.input_panels + at * LANES * words_of(shape.input));
  });
  if (part.number == 0)
    pack_input_bias(shape.cell, call.b_ih, call.b_hh, shape.hidden, shape.groups, plan.input_bias);
}

Product projection(const ForwardPlan& plan) {
  return {1, plan.shape.input, 0, plan.input_panels, plan.shape.gates, plan.input_bias,
          false};
}

// Projects the vectors that tokens share. The next free thread takes the next chunk.
void project_table(const LayerCall& call, const ForwardPlan& plan, Part part, Index* next) {
  Runner memory = runner_of(call, plan, part);
  const float* from[CHUNK];
  float* to[CHUNK];
  for (Index first; (first = take_next(next) * CHUNK) < call.vectors;) {
    Index count = smaller(CHUNK, call.vectors - first);
    for (Index i = 0; i < count; ++i) {
      from[i] = call.vectors_in + (first + i) * plan.shape.input;
      to[i] = plan.table + (first + i) * plan.shape.gates;
    }
    multiply(projection(plan), count, from, to, memory.words);
  }
}

// One step of adjacent sequences, as many as fit into registers.
struct Step {
  const float* projected[ROWS];  // contribution of the input to the gates
  const float* upcoming[ROWS];   // the same for the next step, to prefetch
  const float* h;                // (rows, padded)
  const Word* words[ROWS];       // h as words
  float *h_next, *c;             // (rows, padded)
  float* states;                 // (rows, states_stride) or null
  float* gates;                  // (rows, gate_row) or null
  Index depth;                   // words of H, or 0 if the states are zero
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

// Runs a block through time. Inputs are projected a chunk of steps ahead, or looked up.
struct BlockRun {
  Way way;
  const ForwardPlan& plan;
  Runner memory;
  Index projected_until;  // steps in the block's order up to the end of the chunk
  Index in_chunk;         // tokens of the chunk before the current step
};

void project_chunk(BlockRun& run, Index i) {
  const float* from[CHUNK + MAX_BLOCK];
  float* to[CHUNK + MAX_BLOCK];
  Index count = 0;
  for (; i < run.way.block.steps && count < CHUNK; ++i) {
    const float* vectors = run.way.call.vectors_in + run.way.first_token(i) * run.plan.shape.input;
    for (Index r = 0; r < run.way.rows(i); ++r, ++count) {
      from[count] = vectors + r * run.plan.shape.input;
      to[count] = run.memory.chunk + count * run.plan.shape.gates;
    }
  }
  multiply(projection(run.plan), count, from, to, run.memory.words);
  run.projected_until = i;
  run.in_chunk = 0;
}

const float* projected_token(const BlockRun& run, Index i, Index row) {
  const LayerCall& call = run.way.call;
  Index which = call.index ? call.index[run.way.first_token(i) + row] : run.in_chunk + row;
  return (call.index ? run.plan.table : run.memory.chunk) + which * run.plan.shape.gates;
}

template <class Cell>
void run_step(BlockRun& run, Index i) {
  constexpr Index most = Cell::ROWS_AT_ONCE;
  const LayerCall& call = run.way.call;
  const Shape& shape = run.plan.shape;
  const Runner& memory = run.memory;
  Index rows = run.way.rows(i), upcoming = call.index ? run.way.rows(i + 1) : 0;
  Index token = run.way.first_token(i), padded = shape.padded;
  Step steps[(MAX_BLOCK + most - 1) / most];
  for (Index row = 0; row < rows; ++row) {
    Step& step = steps[row / most];
    step.projected[row % most] = projected_token(run, i, row);
    step.upcoming[row % most] =
        row < upcoming ? projected_token(run, i + 1, row) : step.projected[row % most];
    step.words[row % most] =
        to_words(memory.h + row * padded, padded, memory.words + row * room_of(padded));
  }
  for (Index row = 0; row < rows; row += most) {
    Step& step = steps[row / most];
    step.h = memory.h + row * padded;
    step.h_next = memory.h_next + row * padded;
    step.c = memory.c ? memory.c + row * padded : nullptr;
    step.states = call.states ? call.states + (token + row) * call.states_stride : nullptr;
    step.gates = call.gates ? call.gates + (token + row) * shape.gate_row : nullptr;
    step.depth = i == 0 && !call.h0 ? 0 : words_of(shape.hidden);
  }
  for (Index group = 0; group < shape.groups; ++group) {
    for (Index row = 0; row < rows; row += most) {
      with_constant<most>(smaller(most, rows - row), [&](auto count) {
        step_panel<Cell, decltype(count)::value>(steps[row / most], run.plan, call.states_stride,
                                                 group);
      });
    }
  }
}

// In reverse, short sequences begin later. Their initial state is in both buffers.
template <class Cell>
void run_block(const LayerCall& call, const ForwardPlan& plan, Part part, Index number) {
  Way way{call, plan.start, block_at(call, plan.blocks, number)};
  BlockRun run{way, plan, runner_of(call, plan, part), 0, 0};
  Runner& memory = run.memory;
  Index padded = plan.shape.padded;
  way.take(call.h0, padded, memory.h);
  way.take(call.h0, padded, memory.h_next);
  if (memory.c) way.take(call.c0, padded, memory.c);
  for (Index i = 0; i < way.block.steps; ++i) {
    if (!call.index && i == run.projected_until) project_chunk(run, i);
    run_step<Cell>(run, i);
    run.in_chunk += way.rows(i);
    // States of the sequences that end with this step.
    way.put(memory.h_next, padded, way.rows(i + 1), way.rows(i), call.last);
    if (memory.c) way.put(memory.c, padded, way.rows(i + 1), way.rows(i), call.last_c);
    float* swapped = memory.h;
    memory.h = memory.h_next;
    memory.h_next = swapped;
  }
}

template <class Cell>
void forward(const LayerCall* call) {
  Arena arena{call->scratch, 0};
  ForwardPlan plan = plan_forward(*call, arena);
  count_starts(*call, plan.start);
  Index next_chunk = 0, next_block = 0;
  auto pack = [&](Part part) {
    pack_recurrence(*call, plan, part);
    pack_input(*call, plan, part);
  };
  auto project = [&](Part part) {
    if (call->index) project_table(*call, plan, part, &next_chunk);
  };
  auto run = [&](Part part) {  // longest blocks first; the next free thread takes the next block
    for (Index number; (number = take_next(&next_block)) < plan.blocks.count;)
      run_block<Cell>(*call, plan, part, number);
  };
  in_parts(call->threads, pack, project, run);
  arena.give_back();
}

}  // namespace
