// Aggregation over the edges of a block (op.Aggregate, op.AggregateGrad):
//
//   out_r = row_r · Σ_e column_j(e) · edge_e · x_j(e) + self_r · x_r
//
// over a CSR matrix. Forward, rows are targets; the gradient is the same sum over
// the transposed form, with the coefficients of rows and columns exchanged.
// Edges are added in their order: the same bits every time.
#include "device.cuh"

// op.Agg's numbers.
enum Mode { kMean = 0, kSum = 1, kSelfMean = 2, kSymNorm = 3 };

// What a node's coefficients depend on. indptr is the block's forward form;
// scale and degree may be null.
struct Nodes {
  i32 mode;
  const i32 *indptr;
  const float *scale;
  const i32 *degree;
};

// D: the full in-degree with the self loop.
DEV float degree_of(Nodes n, i64 i) { return (float)((n.degree ? n.degree[i] : n.indptr[i + 1] - n.indptr[i]) + 1); }

// The coefficient of a target in the sum over edges.
DEV float of_target(Nodes n, i64 i) {
  if (n.mode == kMean) {
    i32 k = n.indptr[i + 1] - n.indptr[i];
    return k > 0 ? 1.0f / (float)k : 0.0f;
  }
  float s = n.scale ? n.scale[i] : 1.0f;
  if (n.mode == kSelfMean) return s / degree_of(n, i);
  if (n.mode == kSymNorm) return s / sqrt_rn(degree_of(n, i));
  return s;
}

// The coefficient of a source.
DEV float of_source(Nodes n, i64 j) { return n.mode == kSymNorm ? 1.0f / sqrt_rn(degree_of(n, j)) : 1.0f; }

DEV float of_self(Nodes n, i64 i) { return n.mode == kSelfMean || n.mode == kSymNorm ? 1.0f / degree_of(n, i) : 0.0f; }

// out[i] = the coefficient of target i, or of source i, for i < count: read once
// an edge, which is cheaper than made once an edge.
KERNEL aggregate_factors(float *out, i32 count, i32 sources, i32 mode, const i32 *indptr, const float *scale,
                         const i32 *degree) {
  Nodes n = {mode, indptr, scale, degree};
  for (i64 i = grid_thread(); i < count; i += grid_threads()) out[i] = sources ? of_source(n, i) : of_target(n, i);
}

template <int W> DEV void load(float *v, const float *p) {
  if constexpr (W == 4) {
    float4 q = *(const float4 *)p;
    v[0] = q.x, v[1] = q.y, v[2] = q.z, v[3] = q.w;
  } else if constexpr (W == 2) {
    float2 q = *(const float2 *)p;
    v[0] = q.x, v[1] = q.y;
  } else {
    v[0] = *p;
  }
}
template <int W> DEV void store(float *p, const float *v) {
  if constexpr (W == 4)
    *(float4 *)p = float4{v[0], v[1], v[2], v[3]};
  else if constexpr (W == 2)
    *(float2 *)p = float2{v[0], v[1]};
  else
    *p = v[0];
}

// A group of 2^shift lanes takes a row, each lane V units of W columns at a time
// and U edges at once: U*V loads are under way before the first is used.
template <int W, int V, int U>
DEV void aggregate(float *out, const float *x, i32 rows, i32 cols, i32 shift, const i32 *indptr, const i32 *indices,
                   const i32 *edges, const float *edge_scale, const float *column, i32 grad, i32 self_rows, Nodes n) {
  i64 r = grid_thread() >> shift;
  if (r >= rows) return;
  i32 group = 1 << shift, lane = (i32)thread_x() & (group - 1), units = cols / W;
  i32 lo = indptr[r], hi = indptr[r + 1];
  float row = grad ? of_source(n, r) : of_target(n, r);
  float self = r < self_rows ? of_self(n, r) : 0.0f;
  for (i32 first = lane; first < units; first += group * V) {
    float acc[V][W] = {};
    for (i32 e = lo; e < hi; e += U) {
      float f[U], v[U][V][W];
#pragma unroll
      for (int q = 0; q < U; q++) {
        bool in = e + q < hi;
        i32 j = in ? indices[e + q] : 0;
        f[q] = in && column ? column[j] : 1.0f;
        if (in && edge_scale) f[q] *= edge_scale[edges ? edges[e + q] : e + q];
#pragma unroll
        for (int k = 0; k < V; k++) {
          i32 u = first + k * group;
#pragma unroll
          for (int w = 0; w < W; w++) v[q][k][w] = 0.0f;
          if (in && u < units) load<W>(v[q][k], x + (i64)j * cols + u * W);
        }
      }
#pragma unroll
      for (int q = 0; q < U; q++)
#pragma unroll
        for (int k = 0; k < V; k++)
#pragma unroll
          for (int w = 0; w < W; w++) acc[k][w] = fma_(f[q], v[q][k][w], acc[k][w]);
    }
#pragma unroll
    for (int k = 0; k < V; k++) {
      i32 u = first + k * group;
      if (u >= units) continue;
      float own[W];
      if (self != 0.0f) load<W>(own, x + r * cols + u * W);
#pragma unroll
      for (int w = 0; w < W; w++) {
        acc[k][w] *= row;
        if (self != 0.0f) acc[k][w] = fma_(self, own[w], acc[k][w]);
      }
      store<W>(out + r * cols + u * W, acc[k]);
    }
  }
}

#define AGGREGATE(name, W, V, U)                                                                                        \
  KERNEL __launch_bounds__(256) name(float *__restrict__ out, const float *__restrict__ x, i32 rows, i32 cols, i32 shift,   \
                                     const i32 *__restrict__ indptr, const i32 *__restrict__ indices,                  \
                                     const i32 *__restrict__ edges, const float *__restrict__ edge_scale,              \
                                     const float *__restrict__ column, i32 grad, i32 self_rows, i32 mode,              \
                                     const i32 *__restrict__ forward, const float *__restrict__ scale,                 \
                                     const i32 *__restrict__ degree) {                                                 \
    aggregate<W, V, U>(out, x, rows, cols, shift, indptr, indices, edges, edge_scale, column, grad, self_rows,         \
                       Nodes{mode, forward, scale, degree});                                                           \
  }
AGGREGATE(aggregate_w4_v1, 4, 1, 8)
AGGREGATE(aggregate_w4_v2, 4, 2, 4)
AGGREGATE(aggregate_w4_v4, 4, 4, 2)
AGGREGATE(aggregate_w2_v1, 2, 1, 8)
AGGREGATE(aggregate_w2_v2, 2, 2, 4)
AGGREGATE(aggregate_w2_v4, 2, 4, 4)
AGGREGATE(aggregate_w1_v1, 1, 1, 8)
AGGREGATE(aggregate_w1_v2, 1, 2, 8)
AGGREGATE(aggregate_w1_v4, 1, 4, 4)

// The gradient by atomic additions, which needs no transposed form and fixes no
// order of sums: first out = the self term, or 0 ...
KERNEL aggregate_init(float *out, const float *dy, i64 rows, i32 cols, i32 self_rows, i32 mode, const i32 *indptr,
                      const i32 *degree) {
  Nodes n = {mode, indptr, nullptr, degree};
  for (i64 r = grid_warp(); r < rows; r += grid_warps()) {
    float self = r < self_rows ? of_self(n, r) : 0.0f;
    for (i32 c = (i32)lane_x(); c < cols; c += kWarp) out[r * cols + c] = self != 0.0f ? self * dy[r * cols + c] : 0.0f;
  }
}

// ... then each target's row, a warp a row, added to its sources.
template <int W>
DEV void scatter(float *out, const float *dy, i32 rows, i32 cols, const i32 *indices, const float *edge_scale, Nodes n) {
  for (i64 r = grid_warp(); r < rows; r += grid_warps()) {
    i32 lo = n.indptr[r], hi = n.indptr[r + 1];
    float row = of_target(n, r);
    for (i32 u = (i32)lane_x(); u < cols / W; u += kWarp) {
      float v[W];
      load<W>(v, dy + r * cols + u * W);
      for (i32 e = lo; e < hi; e++) {
        i32 j = indices[e];
        float f = row * of_source(n, j);
        if (edge_scale) f *= edge_scale[e];
        float *to = out + (i64)j * cols + u * W;
        if constexpr (W == 4)
          red_add4(to, float4{f * v[0], f * v[1], f * v[2], f * v[3]});
        else
          atomic_add(to, f * v[0]);
      }
    }
  }
}
#define SCATTER(name, W)                                                                                                \
  KERNEL name(float *out, const float *dy, i32 rows, i32 cols, const i32 *indices, const float *edge_scale, i32 mode,  \
              const i32 *forward, const float *scale, const i32 *degree) {                                             \
    scatter<W>(out, dy, rows, cols, indices, edge_scale, Nodes{mode, forward, scale, degree});                         \
  }
SCATTER(aggregate_scatter_w4, 4)
SCATTER(aggregate_scatter_w1, 1)
