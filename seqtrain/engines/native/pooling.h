// Pooling of packed states by attention or by the maximum of each unit, and its gradients.
//
// The score of a state s is v . tanh(W s + b). The softmax of the scores over a sequence gives the
// weights of its states. W is packed as an RNN's input weights, with A padded to whole groups.

#pragma once

#include "backward.h"
#include "rows.h"

namespace {

constexpr Index TOGETHER = 8;  // largest number of sequences whose tokens are read together

// Sums of one thread over its tokens.
struct PoolWorker {
  float *sum_w, *sum_b, *sum_v, *slopes;  // (units, input_row), (units), (units), (DEPTH, units)
  Word *left, *right, *words;
};

struct PoolPlan {
  Shape shape;
  Index* start;
  Word* panels;
  float *bias, *vector, *mean;  // b and v, padded; (B) mean gradient of the weights of a sequence
  Index workers, per_worker;
};

PoolWorker plan_pool_worker(const Shape& shape, Arena& arena) {
  PoolWorker worker{};
  worker.sum_w = arena.take<float>(larger(shape.gates, TOGETHER) * shape.input_row);
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
  plan.mean = arena.take<float>(call.batch);
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

// A few adjacent sequences. Their tokens of a step are adjacent, too.
struct Rows {
  Index first, count;
};

// Calls f(rows) for groups of a few sequences of a thread.
template <class F>
INLINE void for_rows(const PoolCall& call, Part part, F f) {
  for (Index first = part.number * TOGETHER; first < call.batch; first += part.of * TOGETHER)
    f(Rows{first, smaller(TOGETHER, call.batch - first)});
}

// Calls f(token, row) for each token of some sequences; row counts from the first of them.
template <class F>
INLINE void for_tokens(const PoolCall& call, const Index* start, Rows rows, F f) {
  for (Index step = 0; step < call.steps && call.batch_sizes[step] > rows.first; ++step)
    for (Index r = 0; r < smaller(rows.count, call.batch_sizes[step] - rows.first); ++r)
      f(start[step] + rows.first + r, r);
}

// Calls f(first, count) for a thread's chunks of tokens, which depend only on the sizes.
template <class F>
INLINE void for_chunks(const PoolCall& call, Index size, Part part, F f) {
  for (Index first = part.number * size; first < call.tokens; first += part.of * size)
    f(first, smaller(size, call.tokens - first));
}

void score_tokens(const PoolCall& call, const PoolPlan& plan, Part part) {
  Index units = plan.shape.gates;
  Word* room = pool_worker_of(call, plan, part.number).words;
  Product product{1, call.width, 0, plan.panels, units, plan.bias, false};
  for_chunks(call, CHUNK, part, [&](Index first, Index count) {
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

void attend(const PoolCall& call, const PoolPlan& plan, Rows rows) {
  float *pooled = call.pooled + rows.first * call.width, peak[TOGETHER], total[TOGETHER] = {};
  memset(pooled, 0, rows.count * call.width * sizeof(float));
  for (Index r = 0; r < rows.count; ++r) peak[r] = call.weights[rows.first + r];
  for_tokens(call, plan.start, rows, [&](Index token, Index r) {
    peak[r] = call.weights[token] > peak[r] ? call.weights[token] : peak[r];
  });
  for_tokens(call, plan.start, rows, [&](Index token, Index r) {
    total[r] += call.weights[token] = exp_bounded(splat(call.weights[token] - peak[r]))[0];
  });
  for_tokens(call, plan.start, rows, [&](Index token, Index r) {
    call.weights[token] /= total[r];
    add_scaled(pooled + r * call.width, call.states + token * call.width, call.weights[token],
               call.width);
  });
}

NOINLINE void raise(float* __restrict to, const float* __restrict from, Index count) {
  for (Index k = 0; k < count; ++k) to[k] = from[k] > to[k] ? from[k] : to[k];
}

void largest(const PoolCall& call, const PoolPlan& plan, Rows rows) {
  float* pooled = call.pooled + rows.first * call.width;
  memcpy(pooled, call.states + rows.first * call.width, rows.count * call.width * sizeof(float));
  for_tokens(call, plan.start, rows, [&](Index token, Index r) {
    raise(pooled + r * call.width, call.states + token * call.width, call.width);
  });
}

void pool(const PoolCall* call) {
  Arena arena{call->scratch, 0};
  PoolPlan plan = begin_pool(*call, arena);
  auto pack = [&](Part part) {
    for_panels(plan.shape.gates / LANES, [&](Index at, Index width, Index number) {
      if (number % part.of == part.number)
        pack_gate_panel(plan.shape.cell, call->w, call->size, call->width,
                        plan.shape.cell.input_order, at, width,
                        plan.panels + at * LANES * words_of(call->width));
    });
  };
  auto score = [&](Part part) { score_tokens(*call, plan, part); };
  auto take = [&](Part part) {
    for_rows(*call, part, [&](Rows rows) {
      call->size ? attend(*call, plan, rows) : largest(*call, plan, rows);
    });
  };
  if (call->size) in_parts(call->threads, pack, score, take);
  else in_parts(call->threads, take);
  arena.give_back();
}

NOINLINE void put_scaled(float* __restrict to, const float* __restrict from, float by, Index count) {
  for (Index k = 0; k < count; ++k) to[k] = by * from[k];
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

// Equal largest states share the gradient. ties: (rows, H).
void largest_back(const PoolCall& call, const PoolPlan& plan, float* ties, Rows rows) {
  Index width = call.width, first = rows.first * width;
  memset(ties, 0, rows.count * width * sizeof(float));
  for_tokens(call, plan.start, rows, [&](Index token, Index r) {
    count_equal(ties + r * width, call.states + token * width, call.pooled + first + r * width,
                width);
  });
  for_tokens(call, plan.start, rows, [&](Index token, Index r) {
    share_maximum(call.d_states + token * width, call.states + token * width,
                  call.pooled + first + r * width, call.d_pooled + first + r * width,
                  ties + r * width, width);
  });
}

// Computes the gradients of the states, of W, b and v. The gradient of a weight is its state times
// d_pooled. The softmax subtracts their mean, which is the pooled state times d_pooled.
void back_through_scores(const PoolCall& call, const PoolPlan& plan, Part part) {
  Index units = plan.shape.gates;
  PoolWorker worker = pool_worker_of(call, plan, part.number);
  Product product{1, units, 0, plan.panels, call.width, nullptr, true};
  OuterProduct outer{{1, units / LANES, 0}, call.width, worker.sum_w, worker.left, worker.right};
  memset(worker.sum_w, 0, units * plan.shape.input_row * sizeof(float));
  memset(worker.sum_b, 0, units * sizeof(float));
  memset(worker.sum_v, 0, units * sizeof(float));
  Index step = 0;
  for_chunks(call, DEPTH, part, [&](Index first, Index count) {
    const float *slopes[DEPTH], *states[DEPTH];
    float* d_states[DEPTH];
    for (Index i = 0; i < count; ++i) {
      while (step + 1 < call.steps && plan.start[step + 1] <= first + i) ++step;
      Index row = first + i - plan.start[step];
      const float* hidden = call.hidden + (first + i) * units;
      const float* d_pooled = call.d_pooled + row * call.width;
      float *slope = worker.slopes + i * units, weight = call.weights[first + i];
      states[i] = call.states + (first + i) * call.width;
      d_states[i] = call.d_states + (first + i) * call.width;
      Vec change = splat(weight * (dot(states[i], d_pooled, call.width) - plan.mean[row]));
      for (Index k = 0; k < units; k += LANES) {
        Vec t = load(hidden + k), d = change * load(plan.vector + k) * (splat(1.f) - t * t);
        store(slope + k, d);
        store(worker.sum_b + k, load(worker.sum_b + k) + d);
        store(worker.sum_v + k, load(worker.sum_v + k) + change * t);
      }
      slopes[i] = slope;
      put_scaled(d_states[i], d_pooled, weight, call.width);
    }
    add_outer(outer, count, slopes, states);
    multiply(product, count, slopes, d_states, worker.words);
  });
}

void pool_back(const PoolCall* call) {
  Arena arena{call->scratch, 0};
  PoolPlan plan = begin_pool(*call, arena);
  const Shape& shape = plan.shape;
  auto share = [&](Part part) {
    PoolWorker worker = pool_worker_of(*call, plan, part.number);
    for_rows(*call, part, [&](Rows rows) { largest_back(*call, plan, worker.sum_w, rows); });
  };
  auto prepare = [&](Part part) {
    for_panels(shape.input_row / LANES, [&](Index at, Index width, Index number) {
      if (number % part.of == part.number)
        pack_column_panel(shape.cell, call->w, call->size, call->width, shape.cell.input_order,
                          at * LANES, width, plan.panels + at * LANES * words_of(shape.gates));
    });
    for (Index row = part.begin(call->batch); row < part.end(call->batch); ++row)
      plan.mean[row] = dot(call->pooled + row * call->width, call->d_pooled + row * call->width,
                           call->width);
  };
  auto go = [&](Part part) { back_through_scores(*call, plan, part); };
  auto add = [&](Part part) {
    PoolWorker first = pool_worker_of(*call, plan, 0);
    for (Index unit = part.begin(call->size); unit < part.end(call->size); ++unit) {
      add_rows(plan.per_worker, part.of, first.sum_w + unit * shape.input_row, call->width,
               call->d_w + unit * call->width);
      add_rows(plan.per_worker, part.of, first.sum_b + unit, 1, call->d_b + unit);
      add_rows(plan.per_worker, part.of, first.sum_v + unit, 1, call->d_v + unit);
    }
  };
  if (call->size) in_parts(call->threads, prepare, go, add);
  else in_parts(call->threads, share);
  arena.give_back();
}

int64_t pool_scratch(const PoolCall* call) {
  Arena arena{nullptr, 0};
  plan_pool(*call, arena);
  return arena.used;
}

}  // namespace
