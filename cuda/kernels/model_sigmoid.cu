// Losses of several labels a row: binary cross-entropy, its gradient, and the
// counts of the micro-averaged F1 score. Labels are bytes, 0 or 1, or 255 for one
// that is not known; a row of them takes stride bytes.
#include "device.cuh"

enum { kUnknown = 255 };

DEV float exp_f(float x) { return ex2_approx(x * 1.4426950409f); }

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

// partial[tile] = the summed loss max(x, 0) - x·y + log(1 + e^-|x|) of elements
// [tile*tile_size, ...), one block of 256 threads a tile.
KERNEL sigmoid_loss(double *partial, const float *logits, const u8 *labels, i64 n, i32 cols, i32 stride, i64 tile_size) {
  enum { kThreads = 256 };
  __shared__ double part[kThreads];
  i64 lo = (i64)block_x() * tile_size, hi = lo + tile_size < n ? lo + tile_size : n;
  double loss = 0;
  for (i64 i = lo + thread_x(); i < hi; i += kThreads) {
    u8 y = labels[i / cols * stride + i % cols];
    if (y == kUnknown) continue;
    float x = logits[i], a = x < 0 ? -x : x;
    loss += (double)((x > 0 ? x : 0.0f) - (y ? x : 0.0f)) + (double)log_f(1.0f + exp_f(-a));
  }
  part[thread_x()] = loss;
  for (u32 m = kThreads / 2; m; m >>= 1) {
    sync_block();
    if (thread_x() < m) part[thread_x()] += part[thread_x() + m];
  }
  if (thread_x() == 0) partial[block_x()] = part[0];
}

// dx = g/count × (sigmoid(x) - y), 0 where the label is not known; dx may be
// logits. g is *up, or value if up is null.
KERNEL sigmoid_grad(float *dx, const float *logits, const u8 *labels, i64 n, i32 cols, i32 stride, const float *up,
                    float value, double count) {
  double g = up ? (double)*up : (double)value;
  float scale = (float)(count > 0 ? g / count : g);
  for (i64 i = grid_thread(); i < n; i += grid_threads()) {
    u8 y = labels[i / cols * stride + i % cols];
    float d = 0.0f;
    if (y != kUnknown) d = scale * (1.0f / (1.0f + exp_f(-logits[i])) - (y ? 1.0f : 0.0f));
    dx[i] = d;
  }
}

// counts[2*p] += the labels of rows of part p that are predicted (a positive logit)
// and true; counts[2*p+1] += those that are wrongly predicted or missed. A part
// outside [0, parts) counts nowhere. A warp a row.
KERNEL count_labels(u64 *counts, const float *logits, const u8 *labels, const i32 *part, i32 parts, i64 rows, i32 cols,
                    i32 stride) {
  for (i64 r = grid_warp(); r < rows; r += grid_warps()) {
    i32 p = part[r];
    if (p < 0 || p >= parts) continue;
    i32 right = 0, wrong = 0;
    for (i32 j = (i32)lane_x(); j < cols; j += kWarp) {
      u8 y = labels[r * stride + j];
      bool yes = logits[r * cols + j] > 0;
      if (y == kUnknown) continue;
      right += yes && y;
      wrong += yes != (y != 0);
    }
    right = warp_sum(right);
    wrong = warp_sum(wrong);
    if (lane_x() == 0) {
      if (right) atomic_add(&counts[2 * p], (u64)right);
      if (wrong) atomic_add(&counts[2 * p + 1], (u64)wrong);
    }
  }
}
