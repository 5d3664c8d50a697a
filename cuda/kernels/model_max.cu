// Maxima over the edges of a block (op.AggregateMax, op.AggregateMaxGrad): a warp
// takes a row, its lanes the columns.
#include "device.cuh"

enum { kEdges = 4 }; // loads under way before the first is used

// out_i = for each column the largest of the rows x_j of target i's sources, the
// first on ties; 0 without sources.
KERNEL aggregate_max(float *out, const float *__restrict__ x, i32 rows, i32 cols, const i32 *__restrict__ indptr,
                     const i32 *__restrict__ indices) {
  for (i64 r = grid_warp(); r < rows; r += grid_warps()) {
    i32 lo = indptr[r], hi = indptr[r + 1];
    for (i32 c = (i32)lane_x(); c < cols; c += kWarp) {
      float top = lo < hi ? x[(i64)indices[lo] * cols + c] : 0.0f;
      for (i32 e = lo; e < hi; e += kEdges) {
        float v[kEdges];
#pragma unroll
        for (int q = 0; q < kEdges; q++) v[q] = e + q < hi ? x[(i64)indices[e + q] * cols + c] : top;
#pragma unroll
        for (int q = 0; q < kEdges; q++) top = v[q] > top ? v[q] : top;
      }
      out[r * cols + c] = top;
    }
  }
}

// share_i = dy_i divided among the sources of target i that tie for the maximum y_i.
KERNEL aggregate_max_share(float *share, const float *__restrict__ x, const float *__restrict__ y,
                           const float *__restrict__ dy, i32 rows, i32 cols, const i32 *__restrict__ indptr,
                           const i32 *__restrict__ indices) {
  for (i64 r = grid_warp(); r < rows; r += grid_warps()) {
    i32 lo = indptr[r], hi = indptr[r + 1];
    for (i32 c = (i32)lane_x(); c < cols; c += kWarp) {
      float top = y[r * cols + c];
      i32 ties = 0;
#pragma unroll 4
      for (i32 e = lo; e < hi; e++) ties += x[(i64)indices[e] * cols + c] == top;
      share[r * cols + c] = ties ? dy[r * cols + c] / (float)ties : 0.0f;
    }
  }
}

// dx_j = the shares of the targets that source j feeds and is largest in, in the
// order of the transposed form.
KERNEL aggregate_max_grad(float *dx, const float *__restrict__ x, const float *__restrict__ y,
                          const float *__restrict__ share, i32 rows, i32 cols, const i32 *__restrict__ indptr,
                          const i32 *__restrict__ indices) {
  for (i64 r = grid_warp(); r < rows; r += grid_warps()) {
    i32 lo = indptr[r], hi = indptr[r + 1];
    for (i32 c = (i32)lane_x(); c < cols; c += kWarp) {
      float own = x[r * cols + c], s = 0.0f;
#pragma unroll 4
      for (i32 e = lo; e < hi; e++) {
        i64 at = (i64)indices[e] * cols + c;
        if (y[at] == own) s += share[at];
      }
      dx[r * cols + c] = s;
    }
  }
}
