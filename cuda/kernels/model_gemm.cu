// Matrix products for machines without cuBLAS: float32 throughout, the same bits
// every time. A block of 256 threads makes a tile of 128 × 64 of the result, 8 × 4
// a thread, from slices of 16 of the inner dimension that shared memory holds
// twice: one is multiplied while the next is under way.
#include "device.cuh"

enum { kM = 128, kN = 64, kK = 16, kThreads = 256, kPad = 4 };
enum { kA = kM * kK / kThreads, kB = kN * kK / kThreads };

struct Slices {
  alignas(16) float a[2][kK][kM + kPad];
  alignas(16) float b[2][kK][kN + kPad];
};

// Position of the i-th element that a thread moves of a slice that is `size`
// wide across the inner dimension; neighbours are neighbours in memory.
template <bool kInnerFirst, int kSize> DEV void place(int i, int *across, int *inner) {
  int e = (int)thread_x() + i * kThreads;
  if (kInnerFirst) {
    *inner = e % kK;
    *across = e / kK;
  } else {
    *across = e % kSize;
    *inner = e / kSize;
  }
}

// Loads a thread's part of a slice of a factor into registers: positions
// [first, ...) across and [at, hi) of the inner dimension, zeros beyond.
template <bool kInnerFirst, int kSize, int kCount>
DEV void fetch(float (&to)[kCount], const float *from, i32 ld, i32 first, i32 limit, i32 at, i32 hi) {
#pragma unroll
  for (int i = 0; i < kCount; i++) {
    int x, y;
    place<kInnerFirst, kSize>(i, &x, &y);
    i32 across = first + x, inner = at + y;
    to[i] = across < limit && inner < hi ? from[kInnerFirst ? (i64)across * ld + inner : (i64)inner * ld + across] : 0.0f;
  }
}
template <bool kInnerFirst, int kSize, int kCount> DEV void store(float (&to)[kK][kSize + kPad], const float (&from)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; i++) {
    int x, y;
    place<kInnerFirst, kSize>(i, &x, &y);
    to[y][x] = from[i];
  }
}

// c[split] = op(a)·op(b) over inner positions [split*inner, ...), where c holds a
// matrix m × n for each split. block_x is the tile, block_y the split.
template <bool kTA, bool kTB>
DEV void gemm(float *c, const float *a, const float *b, i32 m, i32 n, i32 k, i32 lda, i32 ldb, i32 inner) {
  __shared__ Slices sh;
  i32 across = (n + kN - 1) / kN;
  i32 m0 = (i32)(block_x() / across) * kM, n0 = (i32)(block_x() % across) * kN;
  i32 lo = (i32)block_y() * inner, hi = k - lo < inner ? k : lo + inner;
  int ty = (int)thread_x() / 16, tx = (int)thread_x() % 16;
  float ra[kA], rb[kB], acc[8][4] = {};

  fetch<!kTA, kM>(ra, a, lda, m0, m, lo, hi);
  fetch<kTB, kN>(rb, b, ldb, n0, n, lo, hi);
  store<!kTA, kM>(sh.a[0], ra);
  store<kTB, kN>(sh.b[0], rb);
  sync_block();
  int s = 0;
  for (i32 k0 = lo; k0 < hi; k0 += kK) {
    bool more = k0 + kK < hi;
    if (more) {
      fetch<!kTA, kM>(ra, a, lda, m0, m, k0 + kK, hi);
      fetch<kTB, kN>(rb, b, ldb, n0, n, k0 + kK, hi);
    }
#pragma unroll
    for (int kk = 0; kk < kK; kk++) {
      float av[8], bv[4];
      load_shared4(av, sh.a[s][kk] + ty * 8);
      load_shared4(av + 4, sh.a[s][kk] + ty * 8 + 4);
      load_shared4(bv, sh.b[s][kk] + tx * 4);
#pragma unroll
      for (int i = 0; i < 8; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) acc[i][j] = fma_(av[i], bv[j], acc[i][j]);
    }
    if (more) {
      s ^= 1;
      store<!kTA, kM>(sh.a[s], ra);
      store<kTB, kN>(sh.b[s], rb);
      sync_block();
    }
  }
  c += (i64)block_y() * m * n;
#pragma unroll
  for (int i = 0; i < 8; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) {
      i32 row = m0 + ty * 8 + i, col = n0 + tx * 4 + j;
      if (row < m && col < n) c[(i64)row * n + col] = acc[i][j];
    }
}

#define GEMM(name, ta, tb)                                                                                             \
  KERNEL __launch_bounds__(kThreads) name(float *c, const float *a, const float *b, i32 m, i32 n, i32 k, i32 lda, i32 ldb, i32 inner) { \
    gemm<ta, tb>(c, a, b, m, n, k, lda, ldb, inner);                                                                   \
  }
GEMM(gemm_nn, false, false)
GEMM(gemm_nt, false, true)
GEMM(gemm_tn, true, false)
GEMM(gemm_tt, true, true)

// c[i] = the sum of the splits' c, in their order, for i < n.
KERNEL gemm_sum(float *c, const float *part, i64 n, i32 splits) {
  for (i64 i = grid_thread(); i < n; i += grid_threads()) {
    float s = part[i];
#pragma unroll 8
    for (i32 p = 1; p < splits; p++) s += part[p * n + i];
    c[i] = s;
  }
}
