// Cells: their gates, the layout of the gates in memory, and their arithmetic on vectors.
//
// Units are divided into groups of SPREAD vectors. The gates of a group are adjacent in memory, as
// VECTORS = GATES x SPREAD vectors, so that registers hold all gates of a unit at once. For each
// token and group, forward saves SAVED vectors, which backward overwrites with gradients. There, the
// gradients of the gates for the input are VECTORS adjacent vectors, and so are the gradients for
// the recurrence. Products read both in place:
//
//   GRU   forward saves   n   r   z   q           q = W_hn h + b_hn
//         backward makes  dn  dr  dz  dq
//                        |- input -|
//                            |- recur. -|
//
//   LSTM  forward saves   i   f   g   o   c       c of the step before
//         backward makes  di  df  dg  do
//
//   RNN   forward saves   h'  h'                  of two vectors of units
//         backward makes  da  da                  a = W_ih x + W_hh h + biases

#pragma once

#include "interface.h"
#include "vector.h"

namespace {

// Constants of a cell.
struct Cell {
  int gates, spread, saved;
  int recurrent_at;     // first saved vector for the recurrence; for the input it is 0
  int input_order[4];   // torch's gate at each place of a group, for the input
  int recurrent_order[4];
  int bias_apart;       // gate whose two biases aren't added up, or -1
  bool second_state;    // c
  bool keeps_gradient;  // true if a part of dh bypasses the gates

  int vectors() const { return gates * spread; }
  int units() const { return spread * LANES; }
};

// Inputs and outputs of the step of one token for one group of units.
struct Forth {
  const float *input, *h;  // contribution of the input to the gates; the previous state
  float *c, *saved;        // the second state, which is replaced; the saved vectors, or null
};

struct Back {
  const float *gates, *h;  // the saved vectors; the previous state
  Index left;              // remaining units of h
  float *dh, *dc;          // gradients of the next states; replaced by the part that bypasses
                           // the gates
};

// Cho et al. 2014, arXiv:1406.1078, with the reset gate after the product, as in torch.
struct Gru {
  static constexpr int VECTORS = 3, SPREAD = 1, SAVED = 4, GRADIENTS = 4, ROWS_AT_ONCE = ROWS;
  static constexpr Cell CELL = {3, 1, 4, 1, {2, 0, 1}, {0, 1, 2}, 2, false, true};

  // r and z start from the contribution of the input, q from its bias, which is inside r * (...).
  static INLINE void begin(Vec* sums, const float* input, const float* bias) {
    sums[0] = load(input + LANES);
    sums[1] = load(input + 2 * LANES);
    sums[2] = load(bias);
  }

  static INLINE void finish(const Vec* sums, const Forth& at, Vec* next) {
    Vec r = sigmoid(sums[0]), z = sigmoid(sums[1]), q = sums[2];
    Vec n = tanh_of(load(at.input) + r * q);
    *next = n + z * (load(at.h) - n);
    if (!at.saved) return;
    store(at.saved, n);
    store(at.saved + LANES, r);
    store(at.saved + 2 * LANES, z);
    store(at.saved + 3 * LANES, q);
  }

  //   dn = dh (1 - z) (1 - n^2)      dq = dn r
  //   dr = dq q (1 - r)              dz = dh (h - n) z (1 - z)
  static INLINE void back(const Back& at, Vec* gradients) {
    Vec n = load(at.gates), r = load(at.gates + LANES);
    Vec z = load(at.gates + 2 * LANES), q = load(at.gates + 3 * LANES);
    Vec h = load_part(at.h, at.left), dh = load(at.dh);
    Vec kept = dh * z, one = splat(1.f);
    Vec dn = (dh - kept) * (one - n * n), dq = dn * r;
    store(at.dh, kept);
    gradients[0] = dn;
    gradients[1] = dq * q * (one - r);
    gradients[2] = kept * (one - z) * (h - n);
    gradients[3] = dq;
  }
};

// Hochreiter & Schmidhuber 1997, with the forget gate of Gers et al. 2000; gates i, f, g, o.
struct Lstm {
  static constexpr int VECTORS = 4, SPREAD = 1, SAVED = 5, GRADIENTS = 4;
  static constexpr int ROWS_AT_ONCE = ROWS_OF_FOUR;
  static constexpr Cell CELL = {4, 1, 5, 0, {0, 1, 2, 3}, {0, 1, 2, 3}, -1, true, false};

  static INLINE void begin(Vec* sums, const float* input, const float*) {
    UNROLL for (int v = 0; v < VECTORS; ++v) sums[v] = load(input + v * LANES);
  }

  static INLINE void finish(const Vec* sums, const Forth& at, Vec* next) {
    Vec i = sigmoid(sums[0]), f = sigmoid(sums[1]), g = tanh_of(sums[2]), o = sigmoid(sums[3]);
    Vec c = load(at.c);
    Vec c_next = f * c + i * g;
    *next = o * tanh_of(c_next);
    store(at.c, c_next);
    if (!at.saved) return;
    store(at.saved, i);
    store(at.saved + LANES, f);
    store(at.saved + 2 * LANES, g);
    store(at.saved + 3 * LANES, o);
    store(at.saved + 4 * LANES, c);
  }

  // With t = tanh(c') and dc the whole gradient of c':
  //   dc += dh o (1 - t^2)           do = dh t o (1 - o)
  //   di = dc g i (1 - i)            df = dc c f (1 - f)         dg = dc i (1 - g^2)
  static INLINE void back(const Back& at, Vec* gradients) {
    Vec i = load(at.gates), f = load(at.gates + LANES), g = load(at.gates + 2 * LANES);
    Vec o = load(at.gates + 3 * LANES), c = load(at.gates + 4 * LANES);
    Vec t = tanh_of(f * c + i * g), dh = load(at.dh), one = splat(1.f);
    Vec through_o = dh * o, dc = load(at.dc) + through_o * (one - t * t);
    Vec dc_f = dc * f, dc_i = dc * i;
    store(at.dc, dc_f);
    gradients[0] = dc_i * g * (one - i);
    gradients[1] = dc_f * c * (one - f);
    gradients[2] = dc_i * (one - g * g);
    gradients[3] = through_o * t * (one - o);
  }
};

// Elman 1990, with tanh. A single gate would leave registers unused, so two vectors of units share
// each number that is loaded of the state.
struct Rnn {
  static constexpr int VECTORS = 2, SPREAD = 2, SAVED = 2, GRADIENTS = 2, ROWS_AT_ONCE = ROWS;
  static constexpr Cell CELL = {1, 2, 2, 0, {0}, {0}, -1, false, false};

  static INLINE void begin(Vec* sums, const float* input, const float*) {
    UNROLL for (int v = 0; v < VECTORS; ++v) sums[v] = load(input + v * LANES);
  }

  static INLINE void finish(const Vec* sums, const Forth& at, Vec* next) {
    UNROLL for (int v = 0; v < VECTORS; ++v) {
      next[v] = tanh_of(sums[v]);
      if (at.saved) store(at.saved + v * LANES, next[v]);
    }
  }

  //   da = dh (1 - h'^2)
  static INLINE void back(const Back& at, Vec* gradients) {
    UNROLL for (int v = 0; v < VECTORS; ++v) {
      Vec after = load(at.gates + v * LANES);
      gradients[v] = load(at.dh + v * LANES) * (splat(1.f) - after * after);
    }
  }
};

// Calls f with the cell of this kind.
template <class F>
INLINE auto with_cell(int64_t kind, F f) {
  if (kind == LSTM) return f(Lstm());
  if (kind == RNN) return f(Rnn());
  return f(Gru());
}

}  // namespace
