// Pooling of packed states: attention, or each unit's maximum; and the gradients.
//
// Attention of a state s is v . tanh(W s + b); the softmax of these over a sequence weighs its
// states. W is packed as an RNN's input weights are, its A units padded to whole groups.

#pragma once

#include "backward.h"
#include "rows.h"

namespace {

// What one thread adds up over its tokens.
struct PoolWorker {
  float *sum_w, *sum_b, *sum_v, *slopes;  // (units, input_row), (units), (units), (DEPTH, units)
  Word *left, *right, *words;
};

struct PoolPlan {
  Shape shape;
  Index* start;
  Word* panels;
  float *bias, *vector, *changes;  // b and v, padded; (N) gradients of the scores
  Index workers, per_worker;
};

PoolWorker plan_pool_worker(const Shape& shape, Arena& arena) {
  PoolWorker worker{};
  worker.sum_w = arena.take<float>(larger(shape.gates, 1) * shape.input_row);
  worker.sum_b = arena.take<float>(shape.gates);
  worker.sum_v = arena.take<float>(shape.gates);
  worker.slopes = arena.take<float>(DEPTH * shape.gates);
  worker.left = arena.take<Word>(left_size(shape.gates, DEPTH));
  worker.right = arena.take<Word>(3 * LANES * words_of(DEPTH));
  worker.words = arena.take<Word>(CHUNK * room_of(larger(shape.input, shape.gates)));
  return worker;
}

PoolPlan plan_pool(const PoolCall& call, Arena& arena) {
  PoolPlan plan{};
  plan.shape = shape_of(Rnn::CELL, call.width, call.size);
  plan.start = arena.take<Index>(call.steps);
  plan.panels = arena.take<Word>(larger(plan.shape.gates * words_of(call.width),
                                        plan.shape.input_row * words_of(plan.shape.gates)));
  plan.bias = arena.take<float>(plan.shape.gates);
  plan.vector = arena.take<float>(plan.shape.gates);
  plan.changes = arena.take<float>(call.tokens);
  plan.workers = arena.used;
  plan_pool_worker(plan.shape, arena);
  plan.per_worker = arena.used - plan.workers;
  arena.used += (call.threads - 1) * plan.per_worker;
  return plan;
}

PoolPlan begin_pool(const PoolCall& call, Arena& arena) {
  PoolPlan plan = plan_pool(call, arena);
  Index step = 0, sum = 0;
  for (; step < call.steps; sum += call.batch_sizes[step++]) plan.start[step] = sum;
  for (Index unit = 0; unit < plan.shape.gates; ++unit) {
    plan.bias[unit] = unit < call.size ? call.b[unit] : 0.f;
    plan.vector[unit] = unit < call.size ? call.v[unit] : 0.f;
  }
  return plan;
}

PoolWorker pool_worker_of(const PoolCall& call, const PoolPlan& plan, Index thread) {
  Arena arena{call.scratch, plan.workers + thread * plan.per_worker};
  return plan_pool_worker(plan.shape, arena);
}

INLINE float dot(const float* a, const float* b, Index count) {
  Vec sum = {};
  for (Index k = 0; k < count; k += LANES) sum += load_part(a + k, count - k) * load_part(b + k, count - k);
  float total = 0;
  for (int lane = 0; lane < LANES; ++lane) total += sum[lane];
  return total;
}

// Calls f(token) for each token of a sequence.
template <class F>
INLINE void for_tokens(const PoolCall& call, const Index* start, Index row, F f) {
  for (Index step = 0; step < call.steps && call.batch_sizes[step] > row; ++step)
    f(start[step] + row);
}

// Calls f(first, count) for a thread's chunks of tokens: which they are depends on sizes alone.
template <class F>
INLINE void for_chunks(const PoolCall& call, Index size, Member member, F f) {
  for (Index first = member.number * size; first < call.tokens; first += member.of * size)
    f(first, smaller(size, call.tokens - first));
}

void score_tokens(const PoolCall& call, const PoolPlan& plan, Member member) {
  Index units = plan.shape.gates;
  Word* room = pool_worker_of(call, plan, member.number).words;
  Product product{1, call.width, 0, plan.panels, units, plan.bias, false};
  for_chunks(call, CHUNK, member, [&](Index first, Index count) {
    const float* from[CHUNK];
    float* to[CHUNK];
    for (Index i = 0; i < count; ++i) {
      from[i] = call.states + (first + i) * call.width;
      to[i] = call.hidden + (first + i) * units;
    }
    multiply(product, count, from, to, room);
    for (Index i = 0; i < count; ++i) {
      for (Index k = 0; k < units; k += LANES) store(to[i] + k, tanh_of(load(to[i] + k)));
      call.weights[first + i] = dot(to[i], plan.vector, units);
    }
  });
}

void attend(const PoolCall& call, const PoolPlan& plan, Index row) {
  float *pooled = call.pooled + row * call.width, peak = -__builtin_inff(), total = 0;
  memset(pooled, 0, call.width * sizeof(float));
  for_tokens(call, plan.start, row, [&](Index token) {
    peak = call.weights[token] > peak ? call.weights[token] : peak;
  });
  for_tokens(call, plan.start, row, [&](Index token) {
    total += call.weights[token] = exp_bounded(splat(call.weights[token] - peak))[0];
  });
  for_tokens(call, plan.start, row, [&](Index token) {
    call.weights[token] /= total;
    add_scaled(pooled, call.states + token * call.width, call.weights[token], call.width);
  });
}

NOINLINE void raise(float* __restrict to, const float* __restrict from, Index count) {
  for (Index k = 0; k < count; ++k) to[k] = from[k] > to[k] ? from[k] : to[k];
}

void largest(const PoolCall& call, const PoolPlan& plan, Index row) {
  float* pooled = call.pooled + row * call.width;
  memcpy(pooled, call.states + row * call.width, call.width * sizeof(float));
  for_tokens(call, plan.start, row, [&](Index token) {
    raise(pooled, call.states + token * call.width, call.width);
  });
}

void pool(const PoolCall* call) {
  Arena arena{call->scratch, 0};
  PoolPlan plan = begin_pool(*call, arena);
  as_team(call->threads, [&](Member member) {
    if (call->size) {
      for_panels(plan.shape.gates / LANES, [&](Index at, Index width, Index number) {
        if (number % member.of == member.number)
          pack_gate_panel(plan.shape.cell, call->w, call->size, call->width,
                          plan.shape.cell.input_order, at, width,
                          plan.panels + at * LANES * words_of(call->width));
      });
      wait_for_all(member);
      score_tokens(*call, plan, member);
      wait_for_all(member);
    }
    for (Index row = member.number; row < call->batch; row += member.of)
      call->size ? attend(*call, plan, row) : largest(*call, plan, row);
  });
  arena.give_back();
}

// The gradients of a sequence's scores; and of its states, but for the way through the scores.
void attend_back(const PoolCall& call, const PoolPlan& plan, Index row) {
  const float* d_pooled = call.d_pooled + row * call.width;
  float mean = 0;
  for_tokens(call, plan.start, row, [&](Index token) {
    plan.changes[token] = dot(call.states + token * call.width, d_pooled, call.width);
    mean += call.weights[token] * plan.changes[token];
  });
  for_tokens(call, plan.start, row, [&](Index token) {
    float* to = call.d_states + token * call.width;
    plan.changes[token] = call.weights[token] * (plan.changes[token] - mean);
    memset(to, 0, call.width * sizeof(float));
    add_scaled(to, d_pooled, call.weights[token], call.width);
  });
}

NOINLINE void share_maximum(float* __restrict to, const float* __restrict from,
                            const float* __restrict largest, const float* __restrict gradient,
                            const float* __restrict ties, Index count) {
  for (Index k = 0; k < count; ++k) to[k] = from[k] == largest[k] ? gradient[k] / ties[k] : 0.f;
}

NOINLINE void count_equal(float* __restrict ties, const float* __restrict from,
                          const float* __restrict largest, Index count) {
  for (Index k = 0; k < count; ++k) ties[k] += from[k] == largest[k] ? 1.f : 0.f;
}

// Equal ones share the gradient.
void largest_back(const PoolCall& call, const PoolPlan& plan, float* ties, Index row) {
  const float *pooled = call.pooled + row * call.width, *d_pooled = call.d_pooled + row * call.width;
  memset(ties, 0, call.width * sizeof(float));
  for_tokens(call, plan.start, row, [&](Index token) {
    count_equal(ties, call.states + token * call.width, pooled, call.width);
  });
  for_tokens(call, plan.start, row, [&](Index token) {
    share_maximum(call.d_states + token * call.width, call.states + token * call.width, pooled,
                  d_pooled, ties, call.width);
  });
}

void back_through_scores(const PoolCall& call, const PoolPlan& plan, Member member) {
  Index units = plan.shape.gates;
  PoolWorker worker = pool_worker_of(call, plan, member.number);
  Product product{1, units, 0, plan.panels, call.width, nullptr, true};
  OuterProduct outer{{1, units / LANES, 0}, call.width, worker.sum_w, worker.left, worker.right};
  for_chunks(call, DEPTH, member, [&](Index first, Index count) {
    const float *slopes[DEPTH], *states[DEPTH];
    float* d_states[DEPTH];
    for (Index i = 0; i < count; ++i) {
      const float* hidden = call.hidden + (first + i) * units;
      float* slope = worker.slopes + i * units;
      Vec change = splat(plan.changes[first + i]);
      for (Index k = 0; k < units; k += LANES) {
        Vec t = load(hidden + k), d = change * load(plan.vector + k) * (splat(1.f) - t * t);
        store(slope + k, d);
        store(worker.sum_b + k, load(worker.sum_b + k) + d);
        store(worker.sum_v + k, load(worker.sum_v + k) + change * t);
      }
      slopes[i] = slope;
      states[i] = call.states + (first + i) * call.width;
      d_states[i] = call.d_states + (first + i) * call.width;
    }
    add_outer(outer, count, slopes, states);
    multiply(product, count, slopes, d_states, worker.words);
  });
}

void pool_back(const PoolCall* call) {
  Arena arena{call->scratch, 0};
  PoolPlan plan = begin_pool(*call, arena);
  const Shape& shape = plan.shape;
  as_team(call->threads, [&](Member member) {
    PoolWorker worker = pool_worker_of(*call, plan, member.number);
    if (call->size) {
      memset(worker.sum_w, 0, shape.gates * shape.input_row * sizeof(float));
      memset(worker.sum_b, 0, shape.gates * sizeof(float));
      memset(worker.sum_v, 0, shape.gates * sizeof(float));
      for_panels(shape.input_row / LANES, [&](Index at, Index width, Index number) {
        if (number % member.of == member.number)
          pack_column_panel(shape.cell, call->w, call->size, call->width, shape.cell.input_order,
                            at * LANES, width, plan.panels + at * LANES * words_of(shape.gates));
      });
    }
    for (Index row = member.number; row < call->batch; row += member.of)
      call->size ? attend_back(*call, plan, row) : largest_back(*call, plan, worker.sum_w, row);
    if (!call->size) return;
    wait_for_all(member);
    back_through_scores(*call, plan, member);
    wait_for_all(member);
    worker = pool_worker_of(*call, plan, 0);
    for (Index unit = member.begin(call->size); unit < member.end(call->size); ++unit) {
      add_rows(plan.per_worker, member.of, worker.sum_w + unit * shape.input_row, call->width,
               call->d_w + unit * call->width);
      add_rows(plan.per_worker, member.of, worker.sum_b + unit, 1, call->d_b + unit);
      add_rows(plan.per_worker, member.of, worker.sum_v + unit, 1, call->d_v + unit);
    }
  });
  arena.give_back();
}

int64_t pool_scratch(const PoolCall* call) {
  Arena arena{nullptr, 0};
  plan_pool(*call, arena);
  return arena.used;
}

}  // namespace
