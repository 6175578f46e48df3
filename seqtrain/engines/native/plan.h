// Sizes, the layout of scratch memory, blocks of sequences that are computed together, and threads.

#pragma once

#include "interface.h"
#include "products.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace {

constexpr Index MAX_BLOCK = 32;  // largest number of sequences of a block
constexpr Index DEPTH = 128;    // tokens whose outer products are added together
constexpr Index WORTH_A_THREAD = 1 << 14;  // least number of floats that justifies a thread

struct Shape {
  Cell cell;
  Index input, hidden;  // E, H
  Index groups;         // groups of units
  Index padded;         // H in whole groups
  Index panel;          // numbers of a group's gates
  Index gates;          // numbers of all gates: of a projected vector
  Index gate_row;       // numbers saved for each token
  Index input_row;      // E in whole vectors
  Index hidden_row;     // H in whole vectors
};

Shape shape_of(const Cell& cell, Index input, Index hidden) {
  Index groups = round_up(hidden, cell.units()) / cell.units(), panel = cell.vectors() * LANES;
  return {cell, input, hidden, groups, groups * cell.units(), panel, groups * panel,
          groups * cell.saved * LANES, round_up(input, LANES), round_up(hidden, LANES)};
}

Shape shape_of(const LayerCall& call) {
  Cell cell = with_cell(call.cell, [](auto it) { return it.CELL; });
  return shape_of(cell, call.input_size, call.hidden_size);
}

// Under AddressSanitizer, bytes between pieces of scratch that must not be touched.
#if defined(__SANITIZE_ADDRESS__)
constexpr Index GAP = 64;
#else
#define ASAN_POISON_MEMORY_REGION(from, bytes)
#define ASAN_UNPOISON_MEMORY_REGION(from, bytes)
constexpr Index GAP = 0;
#endif

// Allocates pieces of scratch at cache lines. Without memory it only measures the size.
struct Arena {
  char* memory;
  Index used;

  template <class T>
  T* take(Index count) {
    T* piece = memory ? (T*)(memory + used) : nullptr;
    Index end = used + count * (Index)sizeof(T);
    used = round_up(end, 64) + GAP;
    if (memory) { ASAN_POISON_MEMORY_REGION(memory + end, used - end); }
    return piece;
  }

  void give_back() { ASAN_UNPOISON_MEMORY_REGION(memory, used); }
};

// Sequences first .. first + rows - 1, which one thread runs through time together.
struct Block {
  Index first, rows, steps;
};

struct Blocks {
  Index rows, count;  // sequences of each block except the last; number of blocks
};

// Returns the number of sequences of a block. With few sequences, states stay in the first cache and
// threads have equal work. But a block reads all recurrent weights at every step, so it has more
// sequences if the weights are in a slower cache.
Index most_rows(const Shape& shape) {
  Index bytes = shape.gates * shape.hidden * (Index)sizeof(float);
  return bytes <= 1 << 20 ? 8 : bytes <= 1 << 22 ? 16 : MAX_BLOCK;
}

// Returns the blocks of a batch, equally many for each thread.
Blocks cut_into_blocks(const Shape& shape, Index batch, Index threads) {
  Index most = most_rows(shape), count = round_up((batch + most - 1) / most, threads);
  Index rows = (batch + count - 1) / count;
  return {rows, (batch + rows - 1) / rows};
}

// Returns the length of a sequence: the number of steps that include it.
Index length_of(const LayerCall& call, Index sequence) {
  Index low = 0, high = call.steps;
  while (low < high) {
    Index middle = (low + high) / 2;
    if (call.batch_sizes[middle] > sequence) low = middle + 1;
    else high = middle;
  }
  return low;
}

Block block_at(const LayerCall& call, const Blocks& blocks, Index number) {
  Index first = number * blocks.rows;
  return {first, smaller(blocks.rows, call.batch - first), length_of(call, first)};
}

// Number of the first token of every step.
void count_starts(const LayerCall& call, Index* start) {
  Index sum = 0;
  for (Index step = 0; step < call.steps; ++step) {
    start[step] = sum;
    sum += call.batch_sizes[step];
  }
}

// Steps of a block, counted in the order in which forward runs.
struct Way {
  const LayerCall& call;
  const Index* start;  // (T) number of the first token of every step
  Block block;

  Index step(Index i) const { return call.reverse ? block.steps - 1 - i : i; }

  // Number of the block's sequences that have a step; 0 before the first and after the last step.
  INLINE Index rows(Index i) const {
    if (i < 0 || i >= block.steps) return 0;
    return smaller(block.rows, call.batch_sizes[step(i)] - block.first);
  }

  Index first_token(Index i) const { return start[step(i)] + block.first; }

  // Copies the block's rows of states (B, H), or zeros if null, to the working memory.
  void take(const float* from, Index padded, float* to) const {
    Index hidden = call.hidden_size;
    memset(to, 0, block.rows * padded * sizeof(float));
    for (Index r = 0; from && r < block.rows; ++r)
      memcpy(to + r * padded, from + (block.first + r) * hidden, hidden * sizeof(float));
  }

  // Copies some of its rows back, unless the destination is null.
  void put(const float* from, Index padded, Index begin, Index end, float* to) const {
    Index hidden = call.hidden_size;
    for (Index r = begin; to && r < end; ++r)
      memcpy(to + (block.first + r) * hidden, from + r * padded, hidden * sizeof(float));
  }
};

// A part of the work of a pass. Sums of parts have an order, so results depend on their number. It
// is the number of threads that was asked for, however many threads there are.
struct Part {
  Index number, of;

  // This part's share of `count` things: from begin to end.
  Index begin(Index count) const { return count * number / of; }
  Index end(Index count) const { return count * (number + 1) / of; }
};

// During its lifetime the thread treats numbers below 1.2e-38 as zero. Gradients that fade in long
// sequences become that small, and Intel's processors then take a hundred cycles for a product.
class WithoutDenormals {
 public:
  WithoutDenormals() : before(read()) { write(before | BITS); }
  ~WithoutDenormals() { write(before); }

 private:
#if defined(__x86_64__)
  static constexpr uint64_t BITS = 0x8040;  // results to zero, operands as zero
  static uint64_t read() { return __builtin_ia32_stmxcsr(); }
  static void write(uint64_t bits) { __builtin_ia32_ldmxcsr((unsigned)bits); }
#elif defined(__aarch64__)
  static constexpr uint64_t BITS = 1 << 24;
  static uint64_t read() {
    uint64_t bits;
    __asm__ volatile("mrs %0, fpcr" : "=r"(bits));
    return bits;
  }
  static void write(uint64_t bits) { __asm__ volatile("msr fpcr, %0" : : "r"(bits)); }
#else
  static constexpr uint64_t BITS = 0;
  static uint64_t read() { return 0; }
  static void write(uint64_t) {}
#endif

  uint64_t before;
};

// Computes all parts of each phase, by up to as many threads. A phase begins when all parts of the
// phase before are done.
template <class... F>
void in_parts(Index parts, F... phases) {
  auto all = [&](Index thread, Index threads) {
    WithoutDenormals quick;
    Index left = sizeof...(phases);
    auto compute = [&](auto& phase) {
      for (Index part = thread; part < parts; part += threads) phase(Part{part, parts});
      if (--left && threads > 1) seqtrain_barrier();
    };
    (compute(phases), ...);
  };
  auto run = [](void* data, Index thread, Index threads) { (*(decltype(all)*)data)(thread, threads); };
  seqtrain_run(run, &all, parts);
}

// Returns the next number that no thread has taken.
INLINE Index take_next(Index* next) { return __atomic_fetch_add(next, 1, __ATOMIC_RELAXED); }

}  // namespace
