// The threads of a pass. They sleep soon when there is nothing to do: a thread that spins for long
// takes the processor from the one it waits for if other programs run, too. torch's own threads do
// this, depending on environment variables that are read when torch is loaded.
//
// There is one team in a process. A caller that finds it busy computes alone.

#pragma once

#include <pthread.h>
#include <signal.h>

#include "interface.h"

constexpr int SPINS = 500;         // a few 10 us, about as long as waking a thread takes
constexpr int64_t MOST_THREADS = 256;

struct Team {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool busy, forks;         // a pass runs; the handler of fork is registered
  int64_t workers;          // number of threads besides callers
  int64_t seen[MOST_THREADS];  // last pass that each worker knows
  int64_t pass, size, left;  // number of the pass, its members, and those that haven't finished
  int64_t stage, arrived;    // barriers that the pass has left behind; members at the next one
  void (*run)(void*, int64_t, int64_t);
  void* data;
};

static Team team = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER};

// A forked process has no workers. It starts new ones when it needs them.
static void after_fork() {
  Team fresh = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER};
  fresh.forks = true;
  team = fresh;
}

static void rest() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

// Waits until a number of the team differs from `old`, and returns the new value.
static int64_t next_value(const int64_t* number, int64_t old) {
  int64_t value;
  for (int spin = 0; spin < SPINS; ++spin, rest())
    if ((value = __atomic_load_n(number, __ATOMIC_ACQUIRE)) != old) return value;
  pthread_mutex_lock(&team.lock);
  while ((value = __atomic_load_n(number, __ATOMIC_ACQUIRE)) == old)
    pthread_cond_wait(&team.changed, &team.lock);
  pthread_mutex_unlock(&team.lock);
  return value;
}

static void wake_all() {
  pthread_mutex_lock(&team.lock);
  pthread_cond_broadcast(&team.changed);
  pthread_mutex_unlock(&team.lock);
}

static void* work(void* own_seen) {
  int64_t* seen = (int64_t*)own_seen;
  int64_t number = seen - team.seen;
  for (;;) {
    next_value(&team.pass, *seen);
    pthread_mutex_lock(&team.lock);  // a pass without this worker may just end, and the next begin
    *seen = team.pass;
    int64_t size = team.size;
    auto run = team.run;
    void* data = team.data;
    pthread_mutex_unlock(&team.lock);
    if (number >= size) continue;
    run(data, number, size);
    if (__atomic_sub_fetch(&team.left, 1, __ATOMIC_ACQ_REL) == 0) wake_all();
  }
  return nullptr;
}

// Starts workers up to this number of threads, with all signals blocked, which are Python's.
static void start_workers(int64_t threads) {
  if (!team.forks) team.forks = pthread_atfork(nullptr, nullptr, after_fork) == 0;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  // A usual stack of 8 MiB may not be had where memory is short.
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 1 << 20);
  for (; team.workers + 1 < threads; ++team.workers) {
    int64_t* seen = &team.seen[team.workers + 1];
    *seen = team.pass;
    pthread_t thread;
    if (pthread_create(&thread, &small, work, seen) != 0) break;
    pthread_detach(thread);
  }
  pthread_attr_destroy(&small);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// Runs a pass with up to this number of members, of which the caller is the first. There are fewer
// where a thread can't start, so the result of a pass must not depend on their number.
extern "C" void seqtrain_run(void (*run)(void*, int64_t, int64_t), void* data, int64_t threads) {
  if (threads > MOST_THREADS) threads = MOST_THREADS;
  if (threads <= 1 || __atomic_test_and_set(&team.busy, __ATOMIC_ACQUIRE)) return run(data, 0, 1);
  start_workers(threads);
  if (threads > team.workers + 1) threads = team.workers + 1;
  pthread_mutex_lock(&team.lock);
  team.run = run;
  team.data = data;
  team.size = threads;
  team.left = threads;
  __atomic_store_n(&team.pass, team.pass + 1, __ATOMIC_RELEASE);
  pthread_cond_broadcast(&team.changed);
  pthread_mutex_unlock(&team.lock);
  run(data, 0, threads);
  int64_t left = __atomic_sub_fetch(&team.left, 1, __ATOMIC_ACQ_REL);
  while (left) left = next_value(&team.left, left);
  __atomic_clear(&team.busy, __ATOMIC_RELEASE);
}

// Waits until all members of the pass are here.
extern "C" void seqtrain_barrier() {
  int64_t stage = __atomic_load_n(&team.stage, __ATOMIC_ACQUIRE);
  if (__atomic_add_fetch(&team.arrived, 1, __ATOMIC_ACQ_REL) < team.size) {
    next_value(&team.stage, stage);
    return;
  }
  team.arrived = 0;
  __atomic_store_n(&team.stage, stage + 1, __ATOMIC_RELEASE);
  wake_all();
}
