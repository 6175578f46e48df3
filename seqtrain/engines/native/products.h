// Two matrix products: rows times a packed matrix, and sums of outer products. Weights are packed so
// that the innermost loops read them in one stream.
//
// A product is computed for ROWS rows and one panel at a time. A panel has up to three vectors of
// columns. A line of the panel, at depth k, has the columns of row k of the right-hand matrix:
//
//                vector 0       vector 1       vector 2
//   depth 0   [c0 ... c15 ][c16 ... c31 ][c32 ... c47 ]     multiplied by number 0 of each row
//   depth 1   [c0 ... c15 ][c16 ... c31 ][c32 ... c47 ]     multiplied by number 1 of each row
//   ...
//
// If words are pairs (words.h), a line has two depths of each column: c0 at depth 0, c0 at depth 1,
// c1 at depth 0, and so on. An odd depth ends with zeros.
//
// In a panel of recurrent weights the vectors are the gates of one group of units, so that registers
// hold all gates of a unit at once. Input weights have the same order of columns, but their own
// order of gates, as cells.h explains. This is the order of a GRU. Units beyond H have zero weights.
//
//   recurrent weights    [r of u0 ... u15][z of u0 ... u15][n of u0 ... u15]
//   input weights        [n of u0 ... u15][r of u0 ... u15][z of u0 ... u15]

#pragma once

#include "cells.h"
#include "words.h"

namespace {

constexpr Index CHUNK = 64;  // rows multiplied at once, panel by panel

// Returns the width of the next panel in vectors if `left` remain: 4 is 2 + 2 rather than 3 + 1.
INLINE Index panel_width(Index left) { return left == 4 ? 2 : smaller(left, 3); }

// Calls f(first vector, width, number) for each panel of a number of vectors.
template <class F>
INLINE void for_panels(Index vectors, F f) {
  Index number = 0;
  for (Index at = 0, width; (width = panel_width(vectors - at)) > 0; at += width)
    f(at, width, number++);
}

// Returns the place of a column at depth k in a panel with this many columns.
INLINE Number* panel_number(Word* panel, Index columns, Index k, Index column) {
  return (Number*)(panel + k / PAIR * columns + column) + k % PAIR;
}

// Returns the row of torch's matrices (GH, ...) for a lane of a group's vector, or -1 beyond H.
INLINE Index row_of(const Cell& cell, const int* order, Index hidden, Index group,
                    Index vector, int lane) {
  Index unit = (group * cell.spread + vector % cell.spread) * LANES + lane;
  return unit < hidden ? order[vector / cell.spread] * hidden + unit : -1;
}

// Packs one panel of W (GH, depth): `width` vectors of gates from number `first`, group by group.
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

// Packs one panel of W (GH, columns) from column `first`, for products of gate gradients with W. Its
// depth is in the order of a gate row: group by group, vector by vector.
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

// Packs the biases in the order of a gate panel. Both biases are added, except for the gate whose
// recurrent bias is separate.
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

// Packs the separate recurrent bias of every unit.
void pack_recurrent_bias(const Cell& cell, const float* b_hh, Index hidden, Index padded,
                         float* to) {
  if (cell.bias_apart < 0) return;
  for (Index unit = 0; unit < padded; ++unit)
    to[unit] = unit < hidden ? b_hh[cell.bias_apart * hidden + unit] : 0.f;
}

// sums[row][vector] += a[row][0 .. depth-1] times a panel W vectors wide; depth counts words.
template <int R, int W>
INLINE void multiply_add(Vec (&sums)[R][W], const Word* const* a, const Word* panel, Index depth) {
  for (Index k = 0; k < depth; ++k, panel += W * LANES) {
    WordVec weight[W];
    UNROLL for (int v = 0; v < W; ++v) weight[v] = load_words(panel + v * LANES);
    UNROLL for (int r = 0; r < R; ++r) {
      WordVec x = in_register(splat(a[r][k]));
      UNROLL for (int v = 0; v < W; ++v) sums[r][v] = add_products(sums[r][v], x, weight[v]);
    }
  }
}

// C = A B, the rows of A and C given by pointers.
struct Product {
  Index pieces, depth, stride;  // a row of A: `pieces` runs of `depth` numbers, `stride` apart
  const Word* panels;           // B, packed
  Index columns;                // of C
  const float* bias;            // added to each row, in whole vectors, or null
  bool add;                     // add to C instead of replacing it
};

template <int R, int W>
NOINLINE void multiply_tile(const Product& product, const Word* const* a, float* const* c,
                            Index column, const Word* panel) {
  Vec sums[R][W];
  UNROLL for (int r = 0; r < R; ++r) {
    UNROLL for (int v = 0; v < W; ++v) {
      Index at = column + v * LANES;
      sums[r][v] = product.bias ? load(product.bias + at) : Vec{};
      if (product.add) sums[r][v] += load_part(c[r] + at, product.columns - at);
    }
  }
  const Word* row[R];
  for (int r = 0; r < R; ++r) row[r] = a[r];
  for (Index piece = 0; piece < product.pieces; ++piece) {
    multiply_add<R, W>(sums, row, panel, words_of(product.depth));
    panel += words_of(product.depth) * W * LANES;
    for (int r = 0; r < R; ++r) row[r] += product.stride / PAIR;
  }
  UNROLL for (int r = 0; r < R; ++r) {
    UNROLL for (int v = 0; v < W; ++v) {
      Index at = column + v * LANES;
      store_part(c[r] + at, sums[r][v], product.columns - at);
    }
  }
}

// Panel by panel, so that a panel stays in the first cache for all rows.
void multiply_words(const Product& product, Index rows, const Word* const* a, float* const* c) {
  Index vectors = round_up(product.columns, LANES) / LANES;
  Index depth = product.pieces * words_of(product.depth);
  for_panels(vectors, [&](Index at, Index width, Index) {
    const Word* panel = product.panels + at * LANES * depth;
    for (Index r = 0; r < rows; r += ROWS)
      with_constant<ROWS>(smaller(ROWS, rows - r), [&](auto count) {
        constexpr int R = decltype(count)::value;
        with_constant<3>(width, [&](auto wide) {
          constexpr int W = decltype(wide)::value;
          multiply_tile<R, W>(product, a + r, c + r, at * LANES, panel);
        });
      });
  });
}

// Converts a chunk of rows to words at a time, in `room` for CHUNK rows of A.
void multiply(const Product& product, Index rows, const float* const* a, float* const* c,
              Word* room) {
  Index numbers = (product.pieces - 1) * product.stride + product.depth;
  const Word* words[CHUNK];
  for (Index first = 0; first < rows; first += CHUNK) {
    Index count = smaller(CHUNK, rows - first);
    for (Index i = 0; i < count; ++i)
      words[i] = to_words(a[first + i], numbers, room + i * room_of(numbers));
    multiply_words(product, count, words, c + first);
  }
}

// sum (OUTER_ROWS, W vectors) += left (depth, OUTER_ROWS)^T right (depth, W vectors); depth counts words.
template <int W>
NOINLINE void outer_tile(const Word* left, const Word* right, Index depth, float* sum,
                         Index stride) {
  Vec sums[OUTER_ROWS][W] = {};
  for (Index k = 0; k < depth; ++k, left += OUTER_ROWS, right += W * LANES) {
    WordVec y[W];
    UNROLL for (int v = 0; v < W; ++v) y[v] = load_words(right + v * LANES);
    UNROLL for (int r = 0; r < OUTER_ROWS; ++r) {
      WordVec x = in_register(splat(left[r]));
      UNROLL for (int v = 0; v < W; ++v) sums[r][v] = add_products(sums[r][v], x, y[v]);
    }
  }
  UNROLL for (int r = 0; r < OUTER_ROWS; ++r) {
    UNROLL for (int v = 0; v < W; ++v) {
      float* at = sum + r * stride + v * LANES;
      store(at, load(at) + sums[r][v]);
    }
  }
}

// Words between two tiles of the packed left side. The distance isn't a power of two, because such
// tiles would share a few lines of the cache, and each line is written to all tiles.
INLINE Index left_tile(Index depth) { return words_of(depth) * OUTER_ROWS + 16; }

INLINE Index left_size(Index gates, Index depth) { return gates / OUTER_ROWS * left_tile(depth); }

// Runs of adjacent vectors in a row: `count` vectors per run, runs `stride` apart.
struct Runs {
  Index count, vectors, stride;
};

// Copies the runs of gate rows into tiles of OUTER_ROWS columns.
void pack_left(const float* const* rows, Index depth, const Runs& runs, Word* to) {
  Index tile = left_tile(depth);
  for (Index k = 0; k < depth; k += PAIR) {
    Word* at = to + k / PAIR * OUTER_ROWS;
    for (Index run = 0; run < runs.count; ++run) {
      for (Index v = 0; v < runs.vectors; ++v) {
        WordVec words = words_across(rows, k, depth, (runs.stride * run + v) * LANES, LANES);
        UNROLL for (int i = 0; i < LANES; i += OUTER_ROWS, at += tile)
          memcpy(at, (const Word*)&words + i, OUTER_ROWS * sizeof(Word));
      }
    }
  }
}

// Copies the columns of one panel from rows of `columns` numbers.
void pack_right(const float* const* rows, Index depth, Index first, Index width, Index columns,
                Word* to) {
  for (Index k = 0; k < depth; k += PAIR) {
    for (Index at = first; at < first + width * LANES; at += LANES, to += LANES)
      store_words(to, words_across(rows, k, depth, at, columns - at));
  }
}

// Adds the outer products of pairs of rows: the runs of gate rows, and plain rows.
// sum (numbers of the runs, columns in whole vectors); left, right: room for the packed rows.
struct OuterProduct {
  Runs runs;
  Index columns;
  float* sum;
  Word *left, *right;
};

void add_outer(const OuterProduct& outer, Index depth, const float* const* gate_rows,
               const float* const* rows) {
  Index vectors = round_up(outer.columns, LANES) / LANES, stride = vectors * LANES;
  Index gates = outer.runs.count * outer.runs.vectors * LANES;
  pack_left(gate_rows, depth, outer.runs, outer.left);
  for_panels(vectors, [&](Index at, Index width, Index) {
    pack_right(rows, depth, at * LANES, width, outer.columns, outer.right);
    for (Index i = 0; i < gates; i += OUTER_ROWS) {
      const Word* left = outer.left + i / OUTER_ROWS * left_tile(depth);
      float* sum = outer.sum + i * stride + at * LANES;
      with_constant<3>(width, [&](auto wide) {
        outer_tile<decltype(wide)::value>(left, outer.right, words_of(depth), sum, stride);
      });
    }
  });
}

}  // namespace
