// The executor's reductions: column sums, softmax cross-entropy with its
// gradient, and counts of correct predictions. Sums are cut by shape and added
// in order, so a result has the same bits every time.
#include "device.cuh"

// y[tile] = the column sums of rows [tile*tile_rows, ...) of x. A block of
// 32 columns × (threads/32) lanes sums its lanes' rows, then its lanes in order;
// the grid has (cols+31)/32 blocks a tile. Run again on its own result, with one
// tile, it gives the sums of all rows.
KERNEL column_sum(float *y, const float *x, i64 rows, i32 cols, i64 tile_rows) {
  __shared__ float part[1024];
  i32 groups = (cols + kWarp - 1) / kWarp;
  i64 tile = block_x() / groups;
  i32 c = (i32)(block_x() % groups) * kWarp + (i32)lane_x();
  i32 lane = (i32)thread_x() / kWarp, lanes = (i32)block_dim_x() / kWarp;
  i64 lo = tile * tile_rows, hi = lo + tile_rows < rows ? lo + tile_rows : rows;
  float s = 0.0f;
  if (c < cols) {
#pragma unroll 8
    for (i64 r = lo + lane; r < hi; r += lanes) s += x[r * cols + c];
  }
  part[thread_x()] = s;
  sync_block();
  if (lane == 0 && c < cols) {
    for (i32 l = 1; l < lanes; l++) s += part[l * kWarp + lane_x()];
    y[tile * cols + c] = s;
  }
}

// Natural logarithm of x >= 1, within 1 ulp: the reduction and polynomial of
// FreeBSD's logf (Remez on [2^-1/2, 2^1/2]).
DEV float log_f(float x) {
  u32 b = f32_bits(x);
  if (b >= 0x7f800000u) return x; // infinity and NaN
  u32 t = b - 0x3f3504f3u; // √½ goes to exponent 0
  i32 k = (i32)t >> 23;
  float f = bits_f32((t & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
  float s = f / (2.0f + f), z = s * s, w = z * z;
  float r = z * (0.66666662693f + w * 0.28498786688f) + w * (0.40000972152f + w * 0.24279078841f);
  float half = 0.5f * f * f, dk = (float)k;
  return s * (half + r) + dk * 9.0580006145e-06f - half + f + dk * 6.9313812256e-01f;
}

// The largest of a row and the sum of exp(row - largest), in every lane of the
// warp. NaN ends up in the sum.
struct Stats {
  float top, sum;
};
DEV float exp_f(float x) { return ex2_approx(x * 1.4426950409f); }
DEV Stats stats(const float *row, i32 cols) {
  float top = bits_f32(0xff800000u), sum = 0.0f;
  for (i32 j = (i32)lane_x(); j < cols; j += kWarp) top = row[j] > top ? row[j] : top;
  top = warp_max(top);
  for (i32 j = (i32)lane_x(); j < cols; j += kWarp) sum += exp_f(row[j] - top);
  return Stats{top, warp_sum(sum)};
}

// partial[tile] = the summed loss of rows [tile*tile_rows, ...), one block of 256
// threads a tile. A class of -1 is no label; one past the columns gives NaN.
KERNEL softmax_loss(double *partial, const float *logits, const i32 *classes, i64 rows, i32 cols, i64 tile_rows) {
  enum { kWarps = 8 };
  __shared__ double part[kWarps];
  i64 lo = (i64)block_x() * tile_rows, hi = lo + tile_rows < rows ? lo + tile_rows : rows;
  i32 warp = (i32)thread_x() / kWarp;
  double loss = 0;
  for (i64 r = lo + warp; r < hi; r += kWarps) {
    i32 c = classes[r];
    if (c < 0) continue; // the same in all lanes
    Stats s = stats(logits + r * cols, cols);
    float of = c < cols ? logits[r * cols + c] : bits_f32(0x7fc00000u);
    loss += (double)(s.top - of) + (double)log_f(s.sum);
  }
  if (lane_x() == 0) part[warp] = loss;
  sync_block();
  if (thread_x() == 0) {
    for (i32 w = 1; w < kWarps; w++) loss += part[w];
    partial[block_x()] = loss;
  }
}

// out = the sum of n partials divided by count, undivided if count is 0. One
// block of 1024 threads.
KERNEL softmax_loss_total(float *out, const double *partial, i32 n, double count) {
  __shared__ double part[1024];
  double s = 0;
  for (i32 i = (i32)thread_x(); i < n; i += 1024) s += partial[i];
  part[thread_x()] = s;
  for (u32 m = 512; m; m >>= 1) {
    sync_block();
    if (thread_x() < m) part[thread_x()] += part[thread_x() + m];
  }
  if (thread_x() == 0) *out = (float)(count > 0 ? part[0] / count : part[0]);
}

// dx = g/count × (softmax - one-hot class), 0 in unlabelled rows, a warp a row;
// dx may be logits. g is *up, or value if up is null.
KERNEL softmax_grad(float *dx, const float *logits, const i32 *classes, i64 rows, i32 cols, const float *up, float value,
                    double count) {
  double g = up ? (double)*up : (double)value;
  float scale = (float)(count > 0 ? g / count : g);
  for (i64 r = grid_warp(); r < rows; r += grid_warps()) {
    i32 c = classes[r];
    const float *row = logits + r * cols;
    float *to = dx + r * cols;
    if (c < 0) {
      for (i32 j = (i32)lane_x(); j < cols; j += kWarp) to[j] = 0.0f;
      continue;
    }
    Stats s = stats(row, cols);
    float inv = c < cols ? 1.0f / s.sum : bits_f32(0x7fc00000u);
    for (i32 j = (i32)lane_x(); j < cols; j += kWarp) {
      float p = exp_f(row[j] - s.top) * inv;
      to[j] = scale * (j == c ? p - 1.0f : p);
    }
  }
}

// counts[2*p] += the labelled rows of part p whose largest logit is that of their
// class, the first on ties; counts[2*p+1] += its labelled rows. Without part all
// rows are of part 0; a part outside [0, parts), parts <= 16, counts nowhere. A
// warp a row.
KERNEL count_correct(u64 *counts, const float *logits, const i32 *classes, const i32 *part, i32 parts, i64 rows, i32 cols) {
  enum { kParts = 16 };
  __shared__ u32 local[2 * kParts];
  for (u32 i = thread_x(); i < 2 * kParts; i += block_dim_x()) local[i] = 0;
  sync_block();
  for (i64 r = grid_warp(); r < rows; r += grid_warps()) {
    i32 c = classes[r], p = part ? part[r] : 0;
    if (c < 0 || p < 0 || p >= parts) continue;
    const float *row = logits + r * cols;
    // NaN is never the largest.
    float best = bits_f32(0x7fc00000u);
    i32 at = 0x7fffffff;
    for (i32 j = (i32)lane_x(); j < cols; j += kWarp) {
      float v = row[j];
      if (at == 0x7fffffff || v > best || (v == v && best != best)) best = v, at = j;
    }
#pragma unroll
    for (int m = 16; m; m >>= 1) {
      float v = shfl_xor(best, m);
      i32 j = shfl_xor(at, m);
      bool equal = v == best || (v != v && best != best);
      if (v > best || (v == v && best != best) || (equal && j < at)) best = v, at = j;
    }
    if (lane_x() == 0) {
      if (at == c) atomic_add(&local[2 * p], 1u);
      atomic_add(&local[2 * p + 1], 1u);
    }
  }
  sync_block();
  for (u32 i = thread_x(); i < 2 * (u32)parts; i += block_dim_x())
    if (local[i]) atomic_add(&counts[i], (u64)local[i]);
}
