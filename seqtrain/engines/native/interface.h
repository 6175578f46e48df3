// Interface to Python in plain C, without torch. library.py has the same structs, field by field.
//
// Shapes: N packed tokens, T longest length, B batch, U vectors, E input size, H hidden size.
// Sequences are sorted, longest first. The token of sequence b at step t has number start[t] + b,
// where start[t] is the sum of batch_sizes[0 .. t-1], as in torch's PackedSequence. Arrays are
// row-major.

#pragma once

#include <stdint.h>

// G gates: 3 of a GRU, 4 of an LSTM, 1 of an RNN.
enum CellKind { GRU, LSTM, RNN };

// One layer of a cell in one direction. A pointer may only be null if its comment says so. Fields of
// c, the second state, are only read for an LSTM.
struct LayerCall {
  int64_t cell;  // a CellKind
  int64_t threads;
  int64_t reverse;        // 1 if sequences are read from their last token to their first
  int64_t tokens;         // N
  int64_t steps;          // T
  int64_t batch;          // B
  int64_t vectors;        // U
  int64_t input_size;     // E
  int64_t hidden_size;    // H
  int64_t states_stride;  // numbers from one row of `states`, and of `d_states`, to the next

  const int64_t* batch_sizes;  // (T)
  const int64_t* index;        // (N) vector of each token, or null if vector i is token i
  const float* vectors_in;     // (U, E)
  const float* w_ih;           // (GH, E), gates in torch's order: r, z, n; i, f, g, o
  const float* w_hh;           // (GH, H)
  const float* b_ih;           // (GH)
  const float* b_hh;           // (GH)
  const float* h0;             // (B, H), or null for zeros
  const float* c0;             // (B, H), or null if h0 is null

  float* states;  // (N, H) all states; may be null in a forward pass without a backward pass
  float* gates;   // (N, gate_row) saved for backward, which overwrites it; or null
  float* last;    // (B, H) the state after each sequence's last token in this direction
  float* last_c;  // (B, H)
  char* scratch;  // as many bytes as seqtrain_scratch returns

  const float* d_states;  // (N, H) or null
  const float* d_last;    // (B, H) or null
  const float* d_last_c;  // (B, H) or null
  float* d_vectors;       // (U, E), or null if not needed
  int64_t add_d_vectors;  // add to d_vectors instead of writing them
  float* d_w_ih;
  float* d_w_hh;
  float* d_b_ih;
  float* d_b_hh;
  float* d_h0;  // (B, H), or null if not needed
  float* d_c0;  // (B, H), or null if d_h0 is null
};

// A weight that Adam updates, or a table of which it updates the rows that a batch touched.
struct Weight {
  int64_t rows, row_size;         // rows of row_size numbers; a vector is one row
  int64_t touched;                // number of rows with a gradient
  const int64_t* which;           // (touched) ascending, or null for all rows
  const float* gradient;          // (touched, row_size)
  float *weight, *mean, *square;  // (rows, row_size)
  float* step;                    // number of updates, which adam increases
  double decay, l2;               // decoupled weight decay; L2 term of the gradient
};

// An update of many weights.
struct Update {
  int64_t threads, count;
  const Weight* weights;  // (count)
  double lr, beta1, beta2, eps;
  double limit;  // largest norm of all gradients together
};

// Rows of a sparse matrix times a table: row r has the entries from offsets[r] to offsets[r + 1].
struct RowSums {
  int64_t threads, of, sums, rows, width;
  const int64_t *offsets, *chosen;  // (of + 1), (sums) rows of the matrix
  const int32_t* which;             // (entries) row of the table
  const float* weights;             // (entries)
  float* table;                     // (rows, width) read by sum_rows, added to by add_to_rows
  float* totals;                    // (sums, width) written by sum_rows, read by add_to_rows
  int32_t* place;                   // (rows) of summed_rows
};

// Pooling of packed states (N, H) to one vector (B, H) each: attention of A units, or the maximum.
struct PoolCall {
  int64_t threads;
  int64_t tokens, steps, batch, width, size;  // N, T, B, H; A, 0 for the maximum
  const int64_t* batch_sizes;                 // (T)
  const float *states, *w, *b, *v;            // (N, H), (A, H), (A), (A)
  float *hidden, *weights;                    // (N, pool_row) and (N): saved for backward
  float* pooled;                              // (B, H)
  char* scratch;                              // as many bytes as seqtrain_pool_scratch returns
  const float* d_pooled;                      // (B, H)
  float *d_states, *d_w, *d_b, *d_v;
};

// A tree of gradient boosting to grow: A binned columns of B examples, S = 2^depth - 1 splits.
struct TreeCall {
  int64_t threads, rows, used, depth;  // B; columns that may be used
  const uint8_t* bins;                 // (A, B) below TREE_BINS
  const int64_t* columns;              // (used) ascending
  const double *gradient, *hessian;    // (B)
  int64_t *column, *last;              // (S) column of each split, and the last bin that goes left
  int64_t* place;                      // (B) leaf of each example
  char* scratch;                       // 256 bytes for each thread
  double least_rows, ridge, least_gain;
};

#define HIDDEN extern "C" __attribute__((visibility("hidden")))

// The threads of a pass: see team.h.
HIDDEN void seqtrain_run(void (*run)(void*, int64_t number, int64_t of), void* data, int64_t threads);
HIDDEN void seqtrain_barrier();

// Kernels of one vector path. A second path may have products that round to bfloat16.
struct Kernels {
  const char* name;
  int64_t (*gate_row)(int64_t cell, int64_t hidden_size);
  int64_t (*scratch)(const LayerCall* call, int backward);
  void (*forward)(const LayerCall* call);
  void (*backward)(const LayerCall* call);
  float (*adam)(const Update* update);
  int64_t (*sum_rows)(const RowSums* call);
  int64_t (*summed_rows)(const RowSums* call, int64_t* unique);
  void (*add_to_rows)(const RowSums* call);
  void (*drop)(uint64_t seed, const int64_t* seeds, const int64_t* keys, int64_t rows,
               int64_t width, int64_t least, float scale, const float* from, float* to);
  int64_t (*pool_scratch)(const PoolCall* call);
  void (*pool)(const PoolCall* call);
  void (*pool_back)(const PoolCall* call);
  void (*grow_tree)(const TreeCall* call);
};
