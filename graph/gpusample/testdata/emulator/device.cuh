// A stand-in for cuda/kernels/device.cuh that lets clang compile kernels for the
// host, so that tests run them without a GPU. Blocks run one after another, each
// thread of a block on a stack of its own; a barrier or an exchange within a warp
// hands the processor to the next thread until all have come. Only what sample*.cu
// use is here. x86-64 only.
#pragma once
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef int8_t i8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef int32_t i32;
typedef unsigned long long u64;
typedef long long i64;
struct alignas(16) uint4 { u32 x, y, z, w; };

#define DEV static inline
#define KERNEL extern "C" void
#define __shared__ static // one block at a time

enum { kWarp = 32 };

// Saves the callee-saved registers and the stack pointer in *from and goes on
// with the stack to.
extern "C" void emu_switch(void **from, void *to);
asm(".text\nemu_switch:\n"
    "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
    "mov %rsp, (%rdi)\nmov %rsi, %rsp\n"
    "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n");

namespace emu {
enum { kMaxThreads = 256, kStack = 64 << 10 };
struct Barrier { u32 come = 0, turn = 0; };
typedef void (*Body)(u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64);
static void *stacks[kMaxThreads], *scheduler;
static char *memory;
static bool ended[kMaxThreads];
static u32 current, threads, block, grid;
static Barrier all, warps[kMaxThreads / kWarp];
static u64 exchanged[kMaxThreads];
static Body body;
static const u64 *args;

static void pause() { emu_switch(&stacks[current], scheduler); }
static void wait(Barrier &b, u32 n) {
  u32 turn = b.turn;
  if (++b.come == n) {
    b.come = 0;
    b.turn++;
  }
  while (b.turn == turn) pause();
}
static void wait_warp() { wait(warps[current / kWarp], kWarp); }
static void thread_main() {
  const u64 *a = args;
  body(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13], a[14], a[15], a[16], a[17],
       a[18], a[19]);
  ended[current] = true;
  for (;;) pause();
}
static u64 exchange(u64 v, u32 lane) {
  exchanged[current] = v;
  wait_warp();
  v = exchanged[current / kWarp * kWarp + lane % kWarp];
  wait_warp();
  return v;
}
} // namespace emu

// Runs a kernel: the way in for tests. Returns 0, or 1 if the block's threads
// disagree on a barrier (or the block is too large).
extern "C" u64 emu_launch(emu::Body body, u32 grid, u32 threads, const u64 *args) {
  using namespace emu;
  if (threads > kMaxThreads || threads % kWarp) return 1;
  if (!memory) memory = (char *)malloc((size_t)kMaxThreads * kStack);
  emu::body = body, emu::grid = grid, emu::threads = threads, emu::args = args;
  for (block = 0; block < grid; block++) {
    all = Barrier();
    for (u32 w = 0; w < threads / kWarp; w++) warps[w] = Barrier();
    for (u32 t = 0; t < threads; t++) {
      ended[t] = false;
      // As if thread_main had been called: at its first instruction the stack
      // pointer is 8 below a multiple of 16.
      void **top = (void **)(memory + (size_t)(t + 1) * kStack);
      *--top = 0;
      *--top = (void *)thread_main;
      for (int r = 0; r < 6; r++) *--top = 0;
      stacks[t] = top;
    }
    for (u32 running = threads; running;) {
      u32 before = running, turns = all.turn, come = all.come;
      for (u32 w = 0; w < threads / kWarp; w++) turns += warps[w].turn, come += warps[w].come;
      for (current = 0; current < threads; current++) {
        if (ended[current]) continue;
        emu_switch(&scheduler, stacks[current]);
        running -= ended[current];
      }
      u32 turns2 = all.turn, come2 = all.come;
      for (u32 w = 0; w < threads / kWarp; w++) turns2 += warps[w].turn, come2 += warps[w].come;
      if (running == before && turns == turns2 && come == come2) return 1;
    }
  }
  return 0;
}

DEV u32 thread_x() { return emu::current; }
DEV u32 block_x() { return emu::block; }
DEV u32 block_dim_x() { return emu::threads; }
DEV u32 grid_dim_x() { return emu::grid; }
DEV u32 lane_x() { return thread_x() & (kWarp - 1); }
DEV i64 grid_thread() { return (i64)block_x() * block_dim_x() + thread_x(); }
DEV i64 grid_threads() { return (i64)grid_dim_x() * block_dim_x(); }
DEV i64 grid_warp() { return grid_thread() / kWarp; }
DEV i64 grid_warps() { return grid_threads() / kWarp; }
DEV void sync_block() { emu::wait(emu::all, emu::threads); }
DEV void sync_warp() { emu::wait_warp(); }
DEV i32 shfl(i32 v, int l) { return (i32)emu::exchange((u32)v, l); }
DEV i64 shfl(i64 v, int l) { return (i64)emu::exchange((u64)v, l); }
DEV u32 warp_ballot(int p) {
  emu::exchanged[emu::current] = p != 0;
  emu::wait_warp();
  u32 mask = 0;
  for (u32 l = 0; l < kWarp; l++) mask |= (u32)emu::exchanged[emu::current / kWarp * kWarp + l] << l;
  emu::wait_warp();
  return mask;
}
DEV int popc(u32 v) { return __builtin_popcount(v); }
DEV int ffs32(u32 v) { return __builtin_ffs((int)v); }
DEV u32 mulhi32(u32 a, u32 b) { return (u32)(((u64)a * b) >> 32); }
DEV int imin(int a, int b) { return a < b ? a : b; }
DEV i32 atomic_add(i32 *p, i32 v) { i32 old = *p; *p += v; return old; }
DEV u32 atomic_or(u32 *p, u32 v) { u32 old = *p; *p |= v; return old; }
DEV u64 atomic_min(u64 *p, u64 v) { u64 old = *p; if (v < old) *p = v; return old; }
