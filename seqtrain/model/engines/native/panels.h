// How weights are packed, so that the innermost loops read them in one stream.
//
// A product is computed for ROWS rows and one panel at a time. A panel is up to three vectors of
// columns wide; a line of it, at depth k, holds what row k of the right-hand matrix has there:
//
//                vector 0       vector 1       vector 2
//   depth 0   [c0 ... c15 ][c16 ... c31 ][c32 ... c47 ]     multiplied by number 0 of each row
//   depth 1   [c0 ... c15 ][c16 ... c31 ][c32 ... c47 ]     multiplied by number 1 of each row
//   ...
//
// Where words are pairs (words.h), a line holds two depths of each column: c0 at depth 0, c0 at
// depth 1, c1 at depth 0, ...; a depth of odd length ends with zeros.
//
// In a gate panel the three vectors are the three gates of the same LANES units:
//
//   recurrent weights    [r of u0 ... u15][z of u0 ... u15][n of u0 ... u15]
//   input weights        [n of u0 ... u15][r of u0 ... u15][z of u0 ... u15]
//
// so that the accumulators of a unit's gates meet in registers and are joined there. The orders
// differ for the sake of what forward saves for backward, four vectors for each LANES units:
//
//                       n        r        z        q          q = W_hn h + b_hn
//   backward makes     dn       dr       dz       dq
//                     |--- for the input ---|
//                               |- for the recurrence -|
//
// each matrix needs three vectors next to each other. Units beyond H count as ones whose weights
// are zero.

#pragma once

#include "words.h"

namespace {

// Which of torch's gates (r 0, z 1, n 2) stands in each vector of a gate panel.
constexpr int RECURRENT_ORDER[3] = {0, 1, 2};
constexpr int INPUT_ORDER[3] = {2, 0, 1};

constexpr Index CHUNK = 64;  // rows multiplied at once, panel by panel

// Width of the next panel, in vectors, where `left` remain: 4 are two twos, not a three and a one.
INLINE Index panel_width(Index left) { return left == 4 ? 2 : smaller(left, 3); }

// Where a panel of this many columns has the number of a column at depth k.
INLINE Number* panel_number(Word* panel, Index columns, Index k, Index column) {
  return (Number*)(panel + k / PAIR * columns + column) + k % PAIR;
}

// One gate panel of W (3H, depth).
void pack_gate_panel(const float* w, Index hidden, Index depth, const int* order, Index panel,
                     Word* to) {
  for (int gate = 0; gate < 3; ++gate) {
    for (int lane = 0; lane < LANES; ++lane) {
      Index unit = panel * LANES + lane, column = gate * LANES + lane;
      const float* row = w + (order[gate] * hidden + unit) * depth;
      for (Index k = 0; k < words_of(depth) * PAIR; ++k) {
        float number = unit < hidden && k < depth ? row[k] : 0.f;
        *panel_number(to, 3 * LANES, k, column) = to_number(number);
      }
    }
  }
}

// One panel of W (3H, columns) from column `first` on, for gradients of gates times W: its depth
// runs over the gates as they lie in a gate row, LANES units of each gate in turn.
void pack_column_panel(const float* w, Index hidden, Index columns, const int* order, Index first,
                       Index width, Word* to) {
  Index count = smaller(width * LANES, columns - first), k = 0;
  for (Index group = 0; group < round_up(hidden, LANES); group += LANES) {
    for (int gate = 0; gate < 3; ++gate) {
      for (Index unit = group; unit < group + LANES; ++unit, ++k) {
        const float* row = w + (order[gate] * hidden + unit) * columns + first;
        for (Index i = 0; i < width * LANES; ++i) {
          float number = unit < hidden && i < count ? row[i] : 0.f;
          *panel_number(to, width * LANES, k, i) = to_number(number);
        }
      }
    }
  }
}

// Numbers per unit in the order of a gate panel: to[panel][gate][lane]. r and z add both biases;
// n's recurrent one stays inside r * (...).
void pack_input_bias(const float* b_ih, const float* b_hh, Index hidden, float* to) {
  for (Index unit = 0; unit < round_up(hidden, LANES); ++unit) {
    Index panel = unit / LANES, lane = unit % LANES;
    for (int gate = 0; gate < 3; ++gate) {
      Index from = INPUT_ORDER[gate] * hidden + unit;
      float b = unit < hidden ? b_ih[from] + (gate == 0 ? 0.f : b_hh[from]) : 0.f;
      to[(panel * 3 + gate) * LANES + lane] = b;
    }
  }
}

void pack_recurrent_bias(const float* b_hh, Index hidden, float* to) {
  for (Index unit = 0; unit < round_up(hidden, LANES); ++unit)
    to[unit] = unit < hidden ? b_hh[2 * hidden + unit] : 0.f;
}

}  // namespace
