// Runs one layer, forward and backward, as a file describes it, and writes down the results:
// driver LIBRARY INPUT OUTPUT. For processors that are emulated, where there is no Python.
//
// INPUT: path's name (16 bytes); int64 cell, bfloat16, reverse, N, T, B, U, E, H; int64 batch_sizes,
// index; float vectors, w_ih, w_hh, b_ih, b_hh, h0, c0, d_states, d_last, d_last_c.
// OUTPUT: float states, last, last_c, d_vectors, d_w_ih, d_w_hh, d_b_ih, d_b_hh, d_h0, d_c0.

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "interface.h"

static FILE *input, *output;

template <class T>
static T* room(int64_t count) { return (T*)calloc(count + 64, sizeof(T)); }

template <class T>
static T* read(int64_t count) {
  T* numbers = room<T>(count);
  if ((int64_t)fread(numbers, sizeof(T), count, input) != count) exit(3);
  return numbers;
}

static void* library;

template <class F>
static F* function(const char* name) {
  F* found = (F*)dlsym(library, name);
  if (!found) exit(4);
  return found;
}

int main(int, char** given) {
  library = dlopen(given[1], RTLD_NOW);
  if (!library) return fprintf(stderr, "%s\n", dlerror()), 2;
  input = fopen(given[2], "rb"), output = fopen(given[3], "wb");
  const char* path = read<char>(16);
  const int64_t gates[] = {3, 4, 1}, *sizes = read<int64_t>(9);
  LayerCall call = {};
  call.threads = 1, call.cell = sizes[0], call.reverse = sizes[2];
  auto find = function<const Kernels*(const char*, int64_t)>("seqtrain_find");
  const Kernels* kernels = find(path, sizes[1]);
  if (!kernels || (sizes[1] && kernels == find(path, 0))) return 5;
  int64_t tokens = call.tokens = sizes[3], steps = call.steps = sizes[4];
  int64_t batch = call.batch = sizes[5], vectors = call.vectors = sizes[6];
  int64_t width = call.input_size = sizes[7], hidden = call.hidden_size = sizes[8];
  int64_t all = gates[call.cell] * hidden;
  call.states_stride = hidden;
  call.batch_sizes = read<int64_t>(steps), call.index = read<int64_t>(tokens);
  call.vectors_in = read<float>(vectors * width);
  call.w_ih = read<float>(all * width), call.w_hh = read<float>(all * hidden);
  call.b_ih = read<float>(all), call.b_hh = read<float>(all);
  call.h0 = read<float>(batch * hidden), call.c0 = read<float>(batch * hidden);
  call.d_states = read<float>(tokens * hidden);
  call.d_last = read<float>(batch * hidden), call.d_last_c = read<float>(batch * hidden);

  int64_t gate_row = kernels->gate_row(call.cell, hidden);
  call.states = room<float>(tokens * hidden), call.gates = room<float>(tokens * gate_row);
  call.last = room<float>(batch * hidden), call.last_c = room<float>(batch * hidden);
  call.scratch = room<char>(kernels->scratch(&call, 0));
  kernels->forward(&call);
  call.d_vectors = room<float>(vectors * width);
  call.d_w_ih = room<float>(all * width), call.d_w_hh = room<float>(all * hidden);
  call.d_b_ih = room<float>(all), call.d_b_hh = room<float>(all);
  call.d_h0 = room<float>(batch * hidden), call.d_c0 = room<float>(batch * hidden);
  call.scratch = room<char>(kernels->scratch(&call, 1));
  kernels->backward(&call);

  auto write = [](const float* from, int64_t count) { fwrite(from, 4, count, output); };
  write(call.states, tokens * hidden), write(call.last, batch * hidden);
  write(call.last_c, batch * hidden), write(call.d_vectors, vectors * width);
  write(call.d_w_ih, all * width), write(call.d_w_hh, all * hidden);
  write(call.d_b_ih, all), write(call.d_b_hh, all);
  write(call.d_h0, batch * hidden), write(call.d_c0, batch * hidden);
  return fclose(output);
}
