// A stand-in for cuda/kernels/device.cuh that lets clang compile kernels for the
// host, so that tests run them without a GPU. Blocks run one after another, each
// thread of a block on a stack of its own; a barrier or an exchange within a warp
// hands the processor to the next thread until all that have not ended have come.
// Atomics and loads are plain, since one thread runs at a time. x86-64 only.
#pragma once
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <utility>

typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;
struct alignas(8) uint2 { u32 x, y; };
struct alignas(16) uint4 { u32 x, y, z, w; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };

#define ZG_SM 90
#define ZG_PTX 81
#define DEV static inline
#define KERNEL extern "C" void
#define __global__
#define __device__
#define __host__
#define __shared__ static // one block at a time
#define __constant__ static
#define __launch_bounds__(...)
#define __forceinline__ inline

enum { kWarp = 32, kFullMask = -1 };

// Saves the callee-saved registers and the stack pointer in *from and goes on
// with the stack to.
extern "C" void emu_switch(void **from, void *to);
asm(".text\nemu_switch:\n"
    "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
    "mov %rsp, (%rdi)\nmov %rsi, %rsp\n"
    "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n");

namespace emu {
enum { kMaxThreads = 1024, kStack = 32 << 10 };
struct Barrier { u32 come = 0, turn = 0, gone = 0; };
typedef void (*Body)(const u64 *args);
static void *stacks[kMaxThreads], *scheduler;
static char *memory;
static bool ended[kMaxThreads];
static u32 current, threads, block, block2, grid;
static Barrier all, warps[kMaxThreads / kWarp];
static u64 exchanged[kMaxThreads];
static Body body;
static const u64 *args;

static void pause() { emu_switch(&stacks[current], scheduler); }
// Opens the barrier if all n threads have come or ended.
static void check(Barrier &b, u32 n) {
  if (b.come && b.come + b.gone == n) {
    b.come = 0;
    b.turn++;
  }
}
static void wait(Barrier &b, u32 n) {
  u32 turn = b.turn;
  b.come++;
  check(b, n);
  while (b.turn == turn) pause();
}
static void wait_warp() { wait(warps[current / kWarp], kWarp); }
static void thread_main() {
  body(args);
  ended[current] = true;
  all.gone++;
  check(all, threads);
  warps[current / kWarp].gone++;
  check(warps[current / kWarp], kWarp);
  for (;;) pause();
}
static u64 exchange(u64 v, u32 lane) {
  exchanged[current] = v;
  wait_warp();
  v = exchanged[current / kWarp * kWarp + lane % kWarp];
  wait_warp();
  return v;
}
static u32 lane() { return current % kWarp; }

// Calls a kernel with arguments of its own types, each in the low bytes of its
// 64-bit value.
template <class T> T take(const u64 *a) {
  T v;
  memcpy(&v, a, sizeof v);
  return v;
}
template <class... P, size_t... I> void call(void (*f)(P...), const u64 *a, std::index_sequence<I...>) { f(take<P>(a + I)...); }
template <class... P> void call(void (*f)(P...), const u64 *a) { call(f, a, std::index_sequence_for<P...>{}); }
} // namespace emu

// Runs a kernel on a grid of grid × grid2 blocks: the way in for tests. Returns 0,
// or 1 if the block's threads wait for each other at different barriers (or the
// block is too large).
extern "C" u64 emu_launch(emu::Body body, u32 grid, u32 grid2, u32 threads, const u64 *args) {
  using namespace emu;
  if (threads > kMaxThreads || threads % kWarp) return 1;
  if (!memory) memory = (char *)malloc((size_t)kMaxThreads * kStack);
  emu::body = body, emu::grid = grid, emu::threads = threads, emu::args = args;
  for (block2 = 0; block2 < grid2; block2++)
  for (block = 0; block < grid; block++) {
    all = Barrier();
    for (u32 w = 0; w < threads / kWarp; w++) warps[w] = Barrier();
    for (u32 t = 0; t < threads; t++) {
      ended[t] = false;
      // As if thread_main had been called: at its first instruction the stack
      // pointer is 8 below a multiple of 16.
      void **top = (void **)(((u64)memory + (size_t)(t + 1) * kStack) & ~15ull);
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
DEV u32 block_y() { return emu::block2; }
DEV u32 block_dim_x() { return emu::threads; }
DEV u32 grid_dim_x() { return emu::grid; }
DEV u32 lane_x() { return thread_x() & (kWarp - 1); }
DEV i64 grid_thread() { return (i64)block_x() * block_dim_x() + thread_x(); }
DEV i64 grid_threads() { return (i64)grid_dim_x() * block_dim_x(); }
DEV i64 grid_warp() { return grid_thread() / kWarp; }
DEV i64 grid_warps() { return grid_threads() / kWarp; }

DEV float bits_f32(u32 x) { return __builtin_bit_cast(float, x); }
DEV u32 f32_bits(float x) { return __builtin_bit_cast(u32, x); }

DEV void sync_block() { emu::wait(emu::all, emu::threads); }
DEV void sync_warp() { emu::wait_warp(); }
DEV void fence_device() {}
DEV i32 shfl(i32 v, int l) { return (i32)emu::exchange((u32)v, l); }
DEV i64 shfl(i64 v, int l) { return (i64)emu::exchange((u64)v, l); }
DEV float shfl(float v, int l) { return bits_f32((u32)emu::exchange(f32_bits(v), l)); }
DEV i32 shfl_xor(i32 v, int m) { return shfl(v, emu::lane() ^ m); }
DEV float shfl_xor(float v, int m) { return shfl(v, emu::lane() ^ m); }
DEV i32 shfl_up(i32 v, int d) { return shfl(v, (int)emu::lane() >= d ? emu::lane() - d : emu::lane()); }
DEV float shfl_up(float v, int d) { return shfl(v, (int)emu::lane() >= d ? emu::lane() - d : emu::lane()); }
DEV u32 warp_ballot(int p) {
  emu::exchanged[emu::current] = p != 0;
  emu::wait_warp();
  u32 mask = 0, first = emu::current / kWarp * kWarp;
  for (u32 l = 0; l < kWarp; l++)
    if (!emu::ended[first + l]) mask |= (u32)emu::exchanged[first + l] << l;
  emu::wait_warp();
  return mask;
}
DEV float warp_sum(float v) {
  for (int m = 16; m; m >>= 1) v += shfl_xor(v, m);
  return v;
}
DEV i32 warp_sum(i32 v) {
  for (int m = 16; m; m >>= 1) v += shfl_xor(v, m);
  return v;
}
DEV float warp_max(float v) {
  for (int m = 16; m; m >>= 1) {
    float o = shfl_xor(v, m);
    v = o > v ? o : v;
  }
  return v;
}

DEV int popc(u32 v) { return __builtin_popcount(v); }
DEV int popc(u64 v) { return __builtin_popcountll(v); }
DEV int clz32(u32 v) { return v ? __builtin_clz(v) : 32; }
DEV int ffs32(u32 v) { return __builtin_ffs((int)v); }
DEV u32 mulhi32(u32 a, u32 b) { return (u32)(((u64)a * b) >> 32); }
DEV int imin(int a, int b) { return a < b ? a : b; }
DEV int imax(int a, int b) { return a > b ? a : b; }

DEV float fma_(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
DEV float sqrt_rn(float x) { return sqrtf(x); }
DEV float rsqrt_approx(float x) { return 1 / sqrtf(x); }
DEV float ex2_approx(float x) { return exp2f(x); }
DEV float lg2_approx(float x) { return log2f(x); }

DEV float bf16_f32(u16 h) { return bits_f32((u32)h << 16); }
DEV u16 f32_bf16(float v) {
  u32 b = f32_bits(v);
  if ((b & 0x7fffffffu) > 0x7f800000u) return (u16)(b >> 16) | 0x40;
  return (u16)((b + 0x7fffu + (b >> 16 & 1)) >> 16);
}
DEV float f16_f32(u16 h) { return (float)__builtin_bit_cast(_Float16, h); }
DEV u16 f32_f16(float v) { return __builtin_bit_cast(u16, (_Float16)v); }

template <class T> DEV T atomic_add(T *p, T v) { T old = *p; *p += v; return old; }
template <class T> DEV T atomic_or(T *p, T v) { T old = *p; *p |= v; return old; }
template <class T> DEV T atomic_min(T *p, T v) { T old = *p; if (v < old) *p = v; return old; }
template <class T> DEV T atomic_max(T *p, T v) { T old = *p; if (v > old) *p = v; return old; }
DEV i32 atomic_cas(i32 *p, i32 old, i32 v) { i32 was = *p; if (was == old) *p = v; return was; }
DEV u32 shared_address(const void *) { abort(); }

template <class T> DEV T load_once(const T *p) {
  T v;
  memcpy(&v, p, sizeof v);
  return v;
}
DEV void load_shared4(float *v, const float *p) { memcpy(v, p, 4 * sizeof *v); }
DEV void red_add4(float *p, float4 v) { p[0] += v.x, p[1] += v.y, p[2] += v.z, p[3] += v.w; }
DEV u64 clock_ns() { return 0; }
