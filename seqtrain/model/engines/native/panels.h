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
// In a panel of recurrent weights the vectors are the gates of one group of units, as many as the
// cell has, so that the accumulators of a unit's gates meet in registers and are joined there. The
// columns of input weights come in the same order, but for that of the gates: here a GRU's, and
// cells.h says why they differ. Units beyond H count as ones whose weights are zero.
//
//   recurrent weights    [r of u0 ... u15][z of u0 ... u15][n of u0 ... u15]
//   input weights        [n of u0 ... u15][r of u0 ... u15][z of u0 ... u15]

#pragma once

#include "cells.h"
#include "words.h"

namespace {

constexpr Index CHUNK = 64;  // rows multiplied at once, panel by panel

// Width of the next panel, in vectors, where `left` remain: 4 are two twos, not a three and a one.
INLINE Index panel_width(Index left) { return left == 4 ? 2 : smaller(left, 3); }

// Where a panel of this many columns has the number of a column at depth k.
INLINE Number* panel_number(Word* panel, Index columns, Index k, Index column) {
  return (Number*)(panel + k / PAIR * columns + column) + k % PAIR;
}

// Row of torch's matrices (GH, ...) of a lane of one of a group's vectors; -1 beyond H.
INLINE Index row_of(const Cell& cell, const int* order, Index hidden, Index group,
                    Index vector, int lane) {
  Index unit = (group * cell.spread + vector % cell.spread) * LANES + lane;
  return unit < hidden ? order[vector / cell.spread] * hidden + unit : -1;
}

// One panel of W (GH, depth): `width` vectors of gates from number `first` on, all groups' in turn.
void pack_gate_panel(const Cell& cell, const float* w, Index hidden, Index depth, const int* order,
                     Index first, Index width, Word* to) {
  const float* rows[4 * LANES];
  Index columns = width * LANES;
  for (Index column = 0; column < columns; ++column) {
    Index at = first + column / LANES, group = at / cell.vectors(), vector = at % cell.vectors();
    Index row = row_of(cell, order, hidden, group, vector, column % LANES);
    rows[column] = row < 0 ? nullptr : w + row * depth;
  }
  for (Index k = 0; k < words_of(depth) * PAIR; ++k) {
    for (Index column = 0; column < columns; ++column) {
      float number = rows[column] && k < depth ? rows[column][k] : 0.f;
      *panel_number(to, columns, k, column) = to_number(number);
    }
  }
}

// One panel of W (GH, columns) from column `first` on, for gradients of gates times W: its depth
// runs over the gates as they lie in a gate row, group by group, vector by vector.
void pack_column_panel(const Cell& cell, const float* w, Index hidden, Index columns,
                       const int* order, Index first, Index width, Word* to) {
  Index count = smaller(width * LANES, columns - first), k = 0;
  for (Index group = 0; group * cell.units() < hidden; ++group) {
    for (int vector = 0; vector < cell.vectors(); ++vector) {
      for (int lane = 0; lane < LANES; ++lane, ++k) {
        Index row = row_of(cell, order, hidden, group, vector, lane);
        for (Index i = 0; i < width * LANES; ++i) {
          float number = row >= 0 && i < count ? w[row * columns + first + i] : 0.f;
          *panel_number(to, width * LANES, k, i) = to_number(number);
        }
      }
    }
  }
}

// The biases in the order of a gate panel: both together, but for the gate whose recurrent one
// stays apart.
void pack_input_bias(const Cell& cell, const float* b_ih, const float* b_hh, Index hidden,
                     Index groups, float* to) {
  for (Index group = 0; group < groups; ++group) {
    for (int vector = 0; vector < cell.vectors(); ++vector) {
      bool apart = cell.input_order[vector / cell.spread] == cell.bias_apart;
      for (int lane = 0; lane < LANES; ++lane, ++to) {
        Index row = row_of(cell, cell.input_order, hidden, group, vector, lane);
        *to = row < 0 ? 0.f : b_ih[row] + (apart ? 0.f : b_hh[row]);
      }
    }
  }
}

// The recurrent bias that stays apart, of every unit.
void pack_recurrent_bias(const Cell& cell, const float* b_hh, Index hidden, Index padded,
                         float* to) {
  if (cell.bias_apart < 0) return;
  for (Index unit = 0; unit < padded; ++unit)
    to[unit] = unit < hidden ? b_hh[cell.bias_apart * hidden + unit] : 0.f;
}

}  // namespace
