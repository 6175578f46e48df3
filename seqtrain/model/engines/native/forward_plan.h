// Forward's memory, and what is prepared before the blocks run: weights packed, vectors projected.

#pragma once

#include "plan.h"
#include "products.h"
#include "team.h"

namespace {

// What one thread works with: a block's states before and after a step, and inputs projected ahead.
struct Runner {
  float *h, *h_next, *c, *chunk;
  Word* words;  // states, or vectors to be projected, as the products take them
};

struct ForwardPlan {
  Shape shape;
  Blocks blocks;
  Index* start;                              // (T) number of the first token of every step
  Word *recurrent_panels, *input_panels;     // gate panels of W_hh, W_ih
  float *recurrent_bias, *input_bias;        // a GRU's b_hn; the other biases
  float* table;                              // (U, gates), where tokens share vectors:
                                             // our own, or the one that was given
  Index runners, per_runner;                 // bytes before the first thread's memory; of each
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

Runner runner_of(const LayerCall& call, const ForwardPlan& plan, Member member) {
  Arena arena{call.scratch, plan.runners + member.number * plan.per_runner};
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
  plan.table = call.projected;
  if (call.index && !plan.table)
    plan.table = arena.take<float>(call.vectors * shape.gates);
  plan.runners = arena.used;
  plan_runner(call, shape, arena);
  plan.per_runner = arena.used - plan.runners;
  arena.used += (call.threads - 1) * plan.per_runner;
  return plan;
}

void pack_recurrence(const LayerCall& call, const ForwardPlan& plan, Member member) {
  const Shape& shape = plan.shape;
  for (Index group = member.number; group < shape.groups; group += member.of)
    pack_gate_panel(shape.cell, call.w_hh, shape.hidden, shape.hidden, shape.cell.recurrent_order,
                    group * shape.cell.vectors(), shape.cell.vectors(),
                    plan.recurrent_panels + group * shape.panel * words_of(shape.hidden));
  if (member.number == 0)
    pack_recurrent_bias(shape.cell, call.b_hh, shape.hidden, shape.padded, plan.recurrent_bias);
}

void pack_input(const LayerCall& call, const ForwardPlan& plan, Member member) {
  const Shape& shape = plan.shape;
  Index number = 0, vectors = shape.gates / LANES;
  for (Index at = 0, width; (width = panel_width(vectors - at)) > 0; at += width) {
    if (number++ % member.of == member.number)
      pack_gate_panel(shape.cell, call.w_ih, shape.hidden, shape.input, shape.cell.input_order, at,
                      width, plan.input_panels + at * LANES * words_of(shape.input));
  }
  if (member.number == 0)
    pack_input_bias(shape.cell, call.b_ih, call.b_hh, shape.hidden, shape.groups, plan.input_bias);
}

Product projection(const ForwardPlan& plan) {
  return {1, plan.shape.input, 0, plan.input_panels, plan.shape.gates, plan.input_bias,
          false};
}

// Projects the vectors that tokens share, a chunk at a time for whichever thread is free.
void project_table(const LayerCall& call, const ForwardPlan& plan, Member member, Index* next) {
  Runner memory = runner_of(call, plan, member);
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

}  // namespace
