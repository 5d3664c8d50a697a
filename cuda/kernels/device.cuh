// The device side's vocabulary: what a kernel needs of CUDA's headers, so that
// clang alone compiles it (-nocudainc -nocudalib, no NVIDIA toolkit). nvcc
// compiles the same file; there each name maps to CUDA's own intrinsic.
//
// Set by build.sh: ZG_SM (70, 80, 90) and ZG_PTX (60, 74, 81), the oldest GPU
// and PTX ISA that the variant runs on. Floating point is neither contracted
// nor flushed: a*b+c rounds twice unless it is written fma_(a, b, c), so a Go
// reference gives the same bits.
#pragma once

typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;

#ifndef ZG_SM
#define ZG_SM 70
#endif
#ifndef ZG_PTX
#define ZG_PTX 60
#endif

#if defined(__clang__)
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __forceinline__ __inline__ __attribute__((always_inline))
struct alignas(8) uint2 { u32 x, y; };
struct alignas(16) uint4 { u32 x, y, z, w; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
#endif

#define DEV static __device__ __forceinline__
#define KERNEL extern "C" __global__ void

enum { kWarp = 32, kFullMask = -1 };

// Position in the grid. Kernels here use one dimension.
#if defined(__clang__)
DEV u32 thread_x() { return __nvvm_read_ptx_sreg_tid_x(); }
DEV u32 block_x() { return __nvvm_read_ptx_sreg_ctaid_x(); }
DEV u32 block_y() { return __nvvm_read_ptx_sreg_ctaid_y(); }
DEV u32 block_dim_x() { return __nvvm_read_ptx_sreg_ntid_x(); }
DEV u32 grid_dim_x() { return __nvvm_read_ptx_sreg_nctaid_x(); }
#else
DEV u32 thread_x() { return threadIdx.x; }
DEV u32 block_x() { return blockIdx.x; }
DEV u32 block_y() { return blockIdx.y; }
DEV u32 block_dim_x() { return blockDim.x; }
DEV u32 grid_dim_x() { return gridDim.x; }
#endif
DEV u32 lane_x() { return thread_x() & (kWarp - 1); }
DEV i64 grid_thread() { return (i64)block_x() * block_dim_x() + thread_x(); }
DEV i64 grid_threads() { return (i64)grid_dim_x() * block_dim_x(); }
DEV i64 grid_warp() { return grid_thread() / kWarp; }
DEV i64 grid_warps() { return grid_threads() / kWarp; }

// Barriers and warp exchanges; every lane of the warp must take part.
#if defined(__clang__)
DEV void sync_block() { __syncthreads(); }
DEV void sync_warp() { __nvvm_bar_warp_sync(0xffffffffu); }
DEV void fence_device() { __nvvm_membar_gl(); }
DEV float shfl(float v, int l) { return __nvvm_shfl_sync_idx_f32(0xffffffffu, v, l, 31); }
DEV i32 shfl(i32 v, int l) { return __nvvm_shfl_sync_idx_i32(0xffffffffu, v, l, 31); }
DEV float shfl_xor(float v, int m) { return __nvvm_shfl_sync_bfly_f32(0xffffffffu, v, m, 31); }
DEV i32 shfl_xor(i32 v, int m) { return __nvvm_shfl_sync_bfly_i32(0xffffffffu, v, m, 31); }
DEV float shfl_up(float v, int d) { return __nvvm_shfl_sync_up_f32(0xffffffffu, v, d, 0); }
DEV i32 shfl_up(i32 v, int d) { return __nvvm_shfl_sync_up_i32(0xffffffffu, v, d, 0); }
DEV u32 warp_ballot(int p) { return __nvvm_vote_ballot_sync(0xffffffffu, p); }
#else
DEV void sync_block() { __syncthreads(); }
DEV void sync_warp() { __syncwarp(); }
DEV void fence_device() { __threadfence(); }
DEV float shfl(float v, int l) { return __shfl_sync(0xffffffffu, v, l); }
DEV i32 shfl(i32 v, int l) { return __shfl_sync(0xffffffffu, v, l); }
DEV float shfl_xor(float v, int m) { return __shfl_xor_sync(0xffffffffu, v, m); }
DEV i32 shfl_xor(i32 v, int m) { return __shfl_xor_sync(0xffffffffu, v, m); }
DEV float shfl_up(float v, int d) { return __shfl_up_sync(0xffffffffu, v, d); }
DEV i32 shfl_up(i32 v, int d) { return __shfl_up_sync(0xffffffffu, v, d); }
DEV u32 warp_ballot(int p) { return __ballot_sync(0xffffffffu, p); }
#endif
DEV i64 shfl(i64 v, int l) {
  u32 lo = (u32)shfl((i32)(u32)v, l), hi = (u32)shfl((i32)(u32)((u64)v >> 32), l);
  return (i64)((u64)hi << 32 | lo);
}
// The sum of v over the warp, in every lane, in the butterfly's order.
DEV float warp_sum(float v) {
#pragma unroll
  for (int m = 16; m; m >>= 1) v += shfl_xor(v, m);
  return v;
}
DEV i32 warp_sum(i32 v) {
#pragma unroll
  for (int m = 16; m; m >>= 1) v += shfl_xor(v, m);
  return v;
}
DEV float warp_max(float v) {
#pragma unroll
  for (int m = 16; m; m >>= 1) {
    float o = shfl_xor(v, m);
    v = o > v ? o : v;
  }
  return v;
}

// Bits and integers.
#if defined(__clang__)
DEV int popc(u32 v) { return __builtin_popcount(v); }
DEV int popc(u64 v) { return __builtin_popcountll(v); }
DEV int clz32(u32 v) { return v ? __builtin_clz(v) : 32; }
DEV int ffs32(u32 v) { return __builtin_ffs((int)v); } // 1-based, 0 for none
#else
DEV int popc(u32 v) { return __popc(v); }
DEV int popc(u64 v) { return __popcll(v); }
DEV int clz32(u32 v) { return __clz((int)v); }
DEV int ffs32(u32 v) { return __ffs((int)v); }
#endif
DEV u32 mulhi32(u32 a, u32 b) { return (u32)(((u64)a * b) >> 32); }
DEV int imin(int a, int b) { return a < b ? a : b; }
DEV int imax(int a, int b) { return a > b ? a : b; }

// Floating point. The approximate ones name themselves; their errors are those
// of the PTX instructions (ISA, "Floating-Point Instructions").
#if defined(__clang__)
DEV float fma_(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
DEV float sqrt_rn(float x) { return __nvvm_sqrt_rn_f(x); }
DEV float rsqrt_approx(float x) { return __nvvm_rsqrt_approx_f(x); }
DEV float ex2_approx(float x) { return __nvvm_ex2_approx_f(x); }
DEV float lg2_approx(float x) { return __nvvm_lg2_approx_f(x); }
DEV u32 f32_bits(float x) { return __builtin_bit_cast(u32, x); }
DEV float bits_f32(u32 x) { return __builtin_bit_cast(float, x); }
#else
DEV float fma_(float a, float b, float c) { return __fmaf_rn(a, b, c); }
DEV float sqrt_rn(float x) { return __fsqrt_rn(x); }
DEV float rsqrt_approx(float x) { float r; asm("rsqrt.approx.f32 %0,%1;" : "=f"(r) : "f"(x)); return r; }
DEV float ex2_approx(float x) { float r; asm("ex2.approx.f32 %0,%1;" : "=f"(r) : "f"(x)); return r; }
DEV float lg2_approx(float x) { float r; asm("lg2.approx.f32 %0,%1;" : "=f"(r) : "f"(x)); return r; }
DEV u32 f32_bits(float x) { return __float_as_uint(x); }
DEV float bits_f32(u32 x) { return __uint_as_float(x); }
#endif

// Storage types, bit-equal to package dtype: rounding to nearest, ties to even.
DEV float bf16_f32(u16 h) { return bits_f32((u32)h << 16); }
DEV u16 f32_bf16(float v) {
  u32 b = f32_bits(v);
  if ((b & 0x7fffffffu) > 0x7f800000u) return (u16)(b >> 16) | 0x40;
  return (u16)((b + 0x7fffu + (b >> 16 & 1)) >> 16);
}
DEV float f16_f32(u16 h) { float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h)); return f; }
DEV u16 f32_f16(float v) { u16 h; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(v)); return h; }

// Atomics at device scope, relaxed. Where the result is unused the compiler
// emits the cheaper red.
#if defined(__clang__)
DEV float atomic_add(float *p, float v) { return __nvvm_atom_add_gen_f(p, v); }
DEV i32 atomic_add(i32 *p, i32 v) { return __nvvm_atom_add_gen_i(p, v); }
DEV u32 atomic_add(u32 *p, u32 v) { return (u32)__nvvm_atom_add_gen_i((i32 *)p, (i32)v); }
DEV u64 atomic_add(u64 *p, u64 v) { return (u64)__nvvm_atom_add_gen_ll((i64 *)p, (i64)v); }
DEV u32 atomic_or(u32 *p, u32 v) { return (u32)__nvvm_atom_or_gen_i((i32 *)p, (i32)v); }
DEV u32 atomic_min(u32 *p, u32 v) { return __nvvm_atom_min_gen_ui(p, v); }
DEV u64 atomic_min(u64 *p, u64 v) { return __nvvm_atom_min_gen_ull(p, v); }
DEV i32 atomic_max(i32 *p, i32 v) { return __nvvm_atom_max_gen_i(p, v); }
DEV i32 atomic_cas(i32 *p, i32 old, i32 v) { return __nvvm_atom_cas_gen_i(p, old, v); }
DEV u32 shared_address(const void *p) {
  return (u32)(__SIZE_TYPE__)(const __attribute__((address_space(3))) void *)p;
}
#else
DEV float atomic_add(float *p, float v) { return atomicAdd(p, v); }
DEV i32 atomic_add(i32 *p, i32 v) { return atomicAdd(p, v); }
DEV u32 atomic_add(u32 *p, u32 v) { return atomicAdd(p, v); }
DEV u64 atomic_add(u64 *p, u64 v) { return atomicAdd(p, v); }
DEV u32 atomic_or(u32 *p, u32 v) { return atomicOr(p, v); }
DEV u32 atomic_min(u32 *p, u32 v) { return atomicMin(p, v); }
DEV u64 atomic_min(u64 *p, u64 v) { return atomicMin(p, v); }
DEV i32 atomic_max(i32 *p, i32 v) { return atomicMax(p, v); }
DEV i32 atomic_cas(i32 *p, i32 old, i32 v) { return atomicCAS(p, old, v); }
DEV u32 shared_address(const void *p) { return (u32)__cvta_generic_to_shared(p); }
#endif

// Read-only loads that leave no line in L1: for data that is read once, such as
// rows in host memory. The hint needs PTX 7.4; without it the load is plain nc.
// They are volatile so that the compiler keeps them in the order written, all
// of a row's loads before its first store.
#if ZG_PTX >= 74
#define ZG_NC "ld.global.nc.L1::no_allocate"
#else
#define ZG_NC "ld.global.nc"
#endif
DEV uint4 load_once(const uint4 *p) {
  uint4 v;
  asm volatile(ZG_NC ".v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
  return v;
}
DEV float4 load_once(const float4 *p) {
  float4 v;
  asm volatile(ZG_NC ".v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(p));
  return v;
}
DEV uint2 load_once(const uint2 *p) {
  uint2 v;
  asm volatile(ZG_NC ".v2.u32 {%0,%1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(p));
  return v;
}
DEV u32 load_once(const u32 *p) { u32 v; asm volatile(ZG_NC ".u32 %0, [%1];" : "=r"(v) : "l"(p)); return v; }
DEV float load_once(const float *p) { float v; asm volatile(ZG_NC ".f32 %0, [%1];" : "=f"(v) : "l"(p)); return v; }
DEV u16 load_once(const u16 *p) { u16 v; asm volatile(ZG_NC ".u16 %0, [%1];" : "=h"(v) : "l"(p)); return v; }
DEV u8 load_once(const u8 *p) { u32 v; asm volatile(ZG_NC ".u8 %0, [%1];" : "=r"(v) : "l"(p)); return (u8)v; }

// Four floats of shared memory, aligned to 16 bytes: clang-19 makes four loads of
// a float4 there.
DEV void load_shared4(float *v, const float *p) {
  asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]) : "r"(shared_address(p)) : "memory");
}

// Four float additions in global memory; p is 16-byte aligned. One instruction
// on sm_90 (PTX 8.1), 2.5 to 3.5 times as fast as four there.
DEV void red_add4(float *p, float4 v) {
#if ZG_SM >= 90 && ZG_PTX >= 81
  asm volatile("red.global.v4.f32.add [%0], {%1,%2,%3,%4};" ::"l"(p), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w) : "memory");
#else
  asm volatile("red.global.add.f32 [%0], %1;" ::"l"(p), "f"(v.x) : "memory");
  asm volatile("red.global.add.f32 [%0], %1;" ::"l"(p + 1), "f"(v.y) : "memory");
  asm volatile("red.global.add.f32 [%0], %1;" ::"l"(p + 2), "f"(v.z) : "memory");
  asm volatile("red.global.add.f32 [%0], %1;" ::"l"(p + 3), "f"(v.w) : "memory");
#endif
}

// Nanoseconds of the device's clock.
DEV u64 clock_ns() { u64 t; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)); return t; }
