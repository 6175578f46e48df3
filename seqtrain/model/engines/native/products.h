// The two matrix products: rows times a packed matrix, and sums of outer products.

#pragma once

#include "panels.h"

namespace {

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
  const float* bias;            // added to each row, in whole vectors; null: none
  bool add;                     // add to what is in C
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

// Panel by panel, so that a panel stays in the first cache while all rows pass.
void multiply_words(const Product& product, Index rows, const Word* const* a, float* const* c) {
  Index vectors = round_up(product.columns, LANES) / LANES;
  Index depth = product.pieces * words_of(product.depth);
  for (Index at = 0, width; (width = panel_width(vectors - at)) > 0; at += width) {
    const Word* panel = product.panels + at * LANES * depth;
    for (Index r = 0; r < rows; r += ROWS) {
      with_rows<ROWS>(smaller(ROWS, rows - r), [&](auto count) {
        constexpr int R = decltype(count)::value;
        Index column = at * LANES;
        if (width == 3) multiply_tile<R, 3>(product, a + r, c + r, column, panel);
        if (width == 2) multiply_tile<R, 2>(product, a + r, c + r, column, panel);
        if (width == 1) multiply_tile<R, 1>(product, a + r, c + r, column, panel);
      });
    }
  }
}

// A chunk of rows at a time is made words, in `room` for CHUNK rows of A.
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

// Words between two tiles of the packed left side, away from a power of two: tiles that lie a
// power of two apart share a few lines of the cache, and a line written goes to a tile each.
INLINE Index left_tile(Index depth) { return words_of(depth) * OUTER_ROWS + 16; }

INLINE Index left_size(Index gates, Index depth) { return gates / OUTER_ROWS * left_tile(depth); }

// Runs of vectors next to each other in a row: `count` of them, `stride` apart.
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

// Copies one panel's columns of rows that end after `columns` numbers.
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
  for (Index at = 0, width; (width = panel_width(vectors - at)) > 0; at += width) {
    pack_right(rows, depth, at * LANES, width, outer.columns, outer.right);
    for (Index i = 0; i < gates; i += OUTER_ROWS) {
      const Word* left = outer.left + i / OUTER_ROWS * left_tile(depth);
      float* sum = outer.sum + i * stride + at * LANES;
      if (width == 3) outer_tile<3>(left, outer.right, words_of(depth), sum, stride);
      if (width == 2) outer_tile<2>(left, outer.right, words_of(depth), sum, stride);
      if (width == 1) outer_tile<1>(left, outer.right, words_of(depth), sum, stride);
    }
  }
}

}  // namespace
