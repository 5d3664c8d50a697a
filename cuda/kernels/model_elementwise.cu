// The executor's element-wise operations (package model/op has their
// definitions), row copies and dropout. All take any grid. vec says that every
// matrix is aligned to 16 bytes and, where a kernel knows columns, that their
// number is a multiple of 4.
#include "philox.cuh"

// y[i] = f(a[i]) for i < n; y may be a.
template <class F> DEV void map(float *y, const float *a, i64 n, i32 vec, F f) {
  i64 i = grid_thread(), step = grid_threads();
  if (!vec) {
    for (; i < n; i += step) y[i] = f(a[i]);
    return;
  }
  i64 quads = n / 4;
  for (i64 q = i; q < quads; q += step) {
    float4 v = ((const float4 *)a)[q];
    ((float4 *)y)[q] = float4{f(v.x), f(v.y), f(v.z), f(v.w)};
  }
  i += 4 * quads;
  if (i < n) y[i] = f(a[i]);
}

// y[i] = f(a[i], b[i]) for i < n; y may be a or b.
template <class F> DEV void map(float *y, const float *a, const float *b, i64 n, i32 vec, F f) {
  i64 i = grid_thread(), step = grid_threads();
  if (!vec) {
    for (; i < n; i += step) y[i] = f(a[i], b[i]);
    return;
  }
  i64 quads = n / 4;
  for (i64 q = i; q < quads; q += step) {
    float4 v = ((const float4 *)a)[q], w = ((const float4 *)b)[q];
    ((float4 *)y)[q] = float4{f(v.x, w.x), f(v.y, w.y), f(v.z, w.z), f(v.w, w.w)};
  }
  i += 4 * quads;
  if (i < n) y[i] = f(a[i], b[i]);
}

struct Plus {
  __device__ float operator()(float a, float b) const { return a + b; }
};
// max(x, 0) as Go has it: NaN stays, -0 becomes 0.
struct Rectify {
  __device__ float operator()(float x) const { return x > 0.0f || x != x ? x : 0.0f; }
};
struct RectifyGrad {
  __device__ float operator()(float y, float dy) const { return y > 0.0f ? dy : 0.0f; }
};

KERNEL add(float *y, const float *a, const float *b, i64 n, i32 vec) { map(y, a, b, n, vec, Plus()); }
KERNEL relu(float *y, const float *x, i64 n, i32 vec) { map(y, x, n, vec, Rectify()); }
KERNEL relu_grad(float *dx, const float *y, const float *dy, i64 n, i32 vec) { map(dx, y, dy, n, vec, RectifyGrad()); }

// y = the n elements of x, then zeros up to total. With vec, n is a multiple of
// 4 or equal to total.
KERNEL copy_zero(float *y, const float *x, i64 n, i64 total, i32 vec) {
  i64 i = grid_thread(), step = grid_threads();
  if (vec) {
    i64 quads = total / 4;
    for (i64 q = i; q < quads; q += step)
      ((float4 *)y)[q] = q < n / 4 ? ((const float4 *)x)[q] : float4{0.0f, 0.0f, 0.0f, 0.0f};
    i += 4 * quads;
    if (i < total) y[i] = i < n ? x[i] : 0.0f;
    return;
  }
  for (; i < total; i += step) y[i] = i < n ? x[i] : 0.0f;
}

// A matrix whose rows have the given number of units (an element, a quad), cut
// among threads so that neighbours in a block take neighbouring units and a
// thread stays in its column: what belongs to the column is loaded once.
struct Cut {
  i64 row, row_step;
  i32 unit, unit_step;
};
DEV Cut cut(i32 units) {
  u32 width = (u32)imin(units, (i32)block_dim_x()), t = thread_x();
  u32 per = block_dim_x() / width, down = t / width;
  Cut c = {(i64)block_x() * per + down, (i64)grid_dim_x() * per, (i32)(t % width), (i32)width};
  if (down >= per) c.unit = units; // threads left over
  return c;
}

// y = x + bias in every row; y may be x.
KERNEL bias_add(float *y, const float *x, const float *bias, i64 rows, i32 cols, i32 vec) {
  i32 units = vec ? cols / 4 : cols;
  Cut c = cut(units);
  for (i32 u = c.unit; u < units; u += c.unit_step) {
    if (vec) {
      float4 b = ((const float4 *)bias)[u];
#pragma unroll 4
      for (i64 r = c.row; r < rows; r += c.row_step) {
        float4 v = ((const float4 *)x)[r * units + u];
        ((float4 *)y)[r * units + u] = float4{v.x + b.x, v.y + b.y, v.z + b.z, v.w + b.w};
      }
    } else {
      float b = bias[u];
#pragma unroll 4
      for (i64 r = c.row; r < rows; r += c.row_step) y[r * cols + u] = x[r * cols + u] + b;
    }
  }
}

// y = x*scale where word col of the row's node is at or above the threshold,
// else 0; y may be x. A Philox block decides four columns. Without ids, row r is
// node r.
KERNEL dropout(float *y, const float *x, const i32 *ids, i64 rows, i32 cols, u64 seed, u32 step, u32 site, u32 threshold,
               float scale, i32 vec) {
  i32 units = (cols + 3) / 4;
  Cut c = cut(units);
  for (i32 u = c.unit; u < units; u += c.unit_step)
    for (i64 r = c.row; r < rows; r += c.row_step) {
      u32 item = ids ? (u32)ids[r] : (u32)r;
      uint4 w = philox_block(uint4{item, step, (u32)u, site}, (u32)seed, (u32)(seed >> 32));
      if (vec) {
        i64 at = r * units + u;
        float4 v = ((const float4 *)x)[at];
        ((float4 *)y)[at] = float4{w.x >= threshold ? v.x * scale : 0.0f, w.y >= threshold ? v.y * scale : 0.0f,
                                   w.z >= threshold ? v.z * scale : 0.0f, w.w >= threshold ? v.w * scale : 0.0f};
        continue;
      }
      i64 at = r * cols + 4 * u;
      i32 n = cols - 4 * u;
      y[at] = w.x >= threshold ? x[at] * scale : 0.0f;
      if (n > 1) y[at + 1] = w.y >= threshold ? x[at + 1] * scale : 0.0f;
      if (n > 2) y[at + 2] = w.z >= threshold ? x[at + 2] * scale : 0.0f;
      if (n > 3) y[at + 3] = w.w >= threshold ? x[at + 3] * scale : 0.0f;
    }
}

// y[i] = row ids[i] of x, which has the given rows, for i < n. A row whose id
// lies outside is filled with NaN.
KERNEL gather_rows(float *y, const float *x, const i32 *ids, i64 n, i32 rows, i32 cols, i32 vec) {
  const float nan = bits_f32(0x7fc00000u);
  i32 units = vec ? cols / 4 : cols;
  Cut c = cut(units);
  for (i32 u = c.unit; u < units; u += c.unit_step)
#pragma unroll 4
    for (i64 i = c.row; i < n; i += c.row_step) {
      i32 r = ids[i];
      bool inside = (u32)r < (u32)rows;
      if (vec)
        ((float4 *)y)[i * units + u] = inside ? ((const float4 *)x)[(i64)r * units + u] : float4{nan, nan, nan, nan};
      else
        y[i * cols + u] = inside ? x[(i64)r * cols + u] : nan;
    }
}
