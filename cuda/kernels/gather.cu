// Row gathers: dst[p] = widen(row ids[p]) for p < n, where rows lie in host
// memory that the GPU reads in place over PCIe, in device memory, or in both.
//
// After Min et al., PVLDB 14(11), 2021, section 4.2, with three changes that
// measuring on PCIe 5 asked for (docs/gather.md):
//
//   - A request on the link is a 128-byte line, or the 32-byte sectors of it
//     that a warp's load touches. Lanes are shifted left so that 8 lanes × 16
//     bytes are one aligned line: every line of a row is requested once. The
//     vectors at a row's ends may hold bytes of its neighbours; they lie in
//     sectors that are read anyway.
//   - All loads of a row, or of 2 KiB of it, go out before its first store, and
//     the ids of the next rows before that.
//   - Rows are dealt round-robin to groups of lanes, and the grid is small, so
//     that ascending ids keep the rows in flight close together: on tables of
//     tens of GB address translation is the wall.
//
// Tables may start anywhere that is a multiple of the element's size, but the
// 16-byte vectors that cover their ends must be readable.
#include "device.cuh"

enum { kF32 = 0, kF16 = 1, kBF16 = 2, kI8 = 3 }; // as package dtype numbers them

// Widens exactly and keeps a NaN's bits, unlike cvt.f32.f16: bit-equal to
// dtype.Float16ToFloat32. A subnormal's bits count units of 2^-24.
DEV float f16_exact(u32 h) {
  u32 sign = (h & 0x8000u) << 16, m = (h & 0x7fffu) << 13;
  if (m >= 0x0f800000u) return bits_f32(sign | m | 0x7f800000u);
  if (m < 0x00800000u) return bits_f32(sign | f32_bits(bits_f32(m + (113u << 23)) - bits_f32(113u << 23)));
  return bits_f32(sign | (m + (112u << 23)));
}

// Element k of a 16-byte vector, as float32. k is a constant once unrolled.
template <int DT> DEV float element(const uint4 &v, int k, float scale) {
  const u32 w[4] = {v.x, v.y, v.z, v.w};
  if (DT == kF32) return bits_f32(w[k]);
  if (DT == kF16) return f16_exact(w[k / 2] >> (k % 2 * 16) & 0xffffu);
  if (DT == kBF16) return bits_f32(k % 2 ? w[k / 2] & 0xffff0000u : w[k / 2] << 16);
  return scale * (float)(i8)(w[k / 4] >> (k % 4 * 8));
}

// Stores a vector's elements at row[first…]; those outside [0, width) belong to
// other rows. Aligned: first and width are multiples of 4 and row is 16-byte
// aligned, so elements go out by fours.
template <int DT, bool kAligned> DEV void store(float *row, i32 first, i32 width, const uint4 &v, float scale) {
  const int count = DT == kF32 ? 4 : DT == kI8 ? 16 : 8;
  if (kAligned) {
#pragma unroll
    for (int k = 0; k < count; k += 4)
      if ((u32)(first + k) < (u32)width) *(float4 *)(row + first + k) =
          float4{element<DT>(v, k, scale), element<DT>(v, k + 1, scale), element<DT>(v, k + 2, scale), element<DT>(v, k + 3, scale)};
  } else {
#pragma unroll
    for (int k = 0; k < count; k++)
      if ((u32)(first + k) < (u32)width) row[first + k] = element<DT>(v, k, scale);
  }
}

// Position of a group's i-th row among n: rows are dealt round-robin to groups.
// Folded, they are dealt from both ends in turn: where ascending ids begin with
// rows in device memory and end with rows in host memory, that keeps the link
// busy all the time. -1 past the end.
DEV i32 position(u32 i, u32 group, u32 groups, u32 n, bool folded) {
  i64 p = (i64)(folded ? i >> 1 : i) * groups + group;
  if (!folded) return p < n ? (i32)p : -1;
  if (i & 1) return p < n / 2 ? (i32)(n - 1 - (u32)p) : -1;
  return p < (n + 1) / 2 ? (i32)p : -1;
}

// A gather by groups of G lanes; each lane loads U vectors of a row at once,
// and each group has R rows in flight.
template <bool kAligned, int G, int U, int R>
DEV void gather(float *dst, const u64 *dst_of, u64 table, u64 hot, i32 hot_rows, const float *scales,
                const i32 *ids, i64 n, i64 first, i32 rows, i32 width, i32 dt, u64 *bad) {
  const int shift = dt == kF32 ? 2 : dt == kI8 ? 0 : 1; // log2 of the element's bytes
  const i32 row_bytes = width << shift;
  const bool folded = hot_rows > 0 && hot_rows < rows;
  const u32 groups = (u32)(grid_threads() / G), group = (u32)(grid_thread() / G);
  const i32 lane = (i32)(thread_x() % G) * 16;
  // What the next rows need is loaded before this turn's rows, so that only
  // the rows themselves are waited for.
  i32 pos[R];
  i32 id[R];
  u64 to[R];
#define FETCH(I)                                                                        \
  _Pragma("unroll") for (int j = 0; j < R; j++) {                                       \
    pos[j] = position((I) + j, group, groups, (u32)n, folded);                               \
    id[j] = pos[j] < 0 ? 0 : ids ? ids[pos[j]] : pos[j];                                \
    to[j] = pos[j] < 0 ? 0 : dst_of ? dst_of[pos[j]] : (u64)(dst + (i64)pos[j] * width); \
  }
  FETCH(0)
  for (u32 i = R; pos[0] >= 0; i += R) {
    u64 src[R];
    float *row[R];
    float scale[R];
    bool live[R];
#pragma unroll
    for (int j = 0; j < R; j++) {
      row[j] = (float *)to[j];
      live[j] = pos[j] >= 0 && !(dst_of && to[j] == 0);
      if (live[j] && (u32)id[j] >= (u32)rows) {
        live[j] = false;
        if (lane == 0) atomic_min(bad, (u64)(first + pos[j]) << 32 | (u32)id[j]);
      }
      src[j] = (id[j] < hot_rows ? hot : table) + (u64)(u32)id[j] * (u32)row_bytes;
      scale[j] = live[j] && scales ? scales[id[j]] : 1.0f;
    }
    FETCH(i)
    // The loop runs once unless rows are longer than the group's reach.
    for (i32 at = 0; at < row_bytes + 128; at += G * U * 16) {
      uint4 v[R][U];
      i32 off[R][U]; // of the vector from the row's start, in bytes
#pragma unroll
      for (int j = 0; j < R; j++) {
#pragma unroll
        for (int u = 0; u < U; u++) {
          off[j][u] = at + u * G * 16 + lane - (i32)(src[j] & 127);
          if (live[j] && off[j][u] > -16 && off[j][u] < row_bytes) v[j][u] = load_once((const uint4 *)(src[j] + (i64)off[j][u]));
        }
      }
#define STORE_ALL(DT)                                                                            \
  _Pragma("unroll") for (int j = 0; j < R; j++) _Pragma("unroll") for (int u = 0; u < U; u++)    \
    if (live[j] && off[j][u] > -16 && off[j][u] < row_bytes)                                     \
      store<DT, kAligned>(row[j], off[j][u] >> shift, width, v[j][u], scale[j]);
      switch (dt) {
      case kF32: STORE_ALL(kF32) break;
      case kF16: STORE_ALL(kF16) break;
      case kBF16: STORE_ALL(kBF16) break;
      default: STORE_ALL(kI8) break;
      }
    }
  }
}
#undef FETCH
#undef STORE_ALL

// gather_[av]G_U_R: a needs a width that is a multiple of 4, rows that begin at
// multiples of 4 elements and 16-byte aligned destinations; v takes anything.
// G × U × 16 bytes should reach over a row plus its offset in the first line.
// n is below 2^31. ids null means p itself; dst_of null means dst + p × width, and
// an address of 0 in it skips the row; rows with an id below hot_rows are read
// at hot, others at table, both at row id; scales is null unless int8. bad
// becomes the least (first + p) << 32 | id of the ids that are not rows.
#define GATHER(NAME, ALIGNED, G, U, R)                                                                                  \
  KERNEL __launch_bounds__(1024) NAME(float *dst, const u64 *dst_of, u64 table, u64 hot, i32 hot_rows,                  \
                                      const float *scales, const i32 *ids, i64 n, i64 first, i32 rows, i32 width,       \
                                      i32 dt, u64 *bad) {                                                               \
    gather<ALIGNED, G, U, R>(dst, dst_of, table, hot, hot_rows, scales, ids, n, first, rows, width, dt, bad);           \
  }
#define GATHER_BOTH(G, U, R) GATHER(gather_a##G##_##U##_##R, true, G, U, R) GATHER(gather_v##G##_##U##_##R, false, G, U, R)
GATHER_BOTH(8, 1, 2)
GATHER_BOTH(16, 1, 2)
GATHER_BOTH(32, 1, 2)
GATHER_BOTH(32, 2, 1)
GATHER_BOTH(32, 4, 1)

// First position in [0, n) of ascending ids whose id is ≥ key (or > key).
DEV i32 lower_bound(const i32 *ids, i32 n, i32 key, bool upper) {
  i32 lo = 0;
  while (n > 0) {
    i32 half = n / 2;
    i32 v = ids[lo + half];
    bool right = upper ? v <= key : v < key;
    lo = right ? lo + half + 1 : lo;
    n = right ? n - half - 1 : half;
  }
  return lo;
}

// Merges ascending runs of ids into one ascending list. Run k has the ids at
// runs[3k], its first row's destination at runs[3k+1] and, in runs[3k+2], the
// number of ids in the runs before it; runs[3·count+2] is the total n. An id's
// place in the merged list is its rank: its index in its own run plus, by
// binary search, the ids in each other run that come before it, ties in the
// order of runs.
//
// sorted and dst_of get n entries; dst_of must be zero before. An id that is no
// row goes to bad, as in gather; one that is smaller than its predecessor in
// the run goes to disorder likewise, and its places may stay zero, which gather
// skips.
KERNEL merge_runs(i32 *sorted, u64 *dst_of, const u64 *runs, i32 count, i32 rows, i32 width, u64 *bad, u64 *disorder) {
  i64 n = (i64)runs[3 * count + 2];
  for (i64 i = grid_thread(); i < n; i += grid_threads()) {
    i32 k = 0;
    while ((u64)i >= runs[3 * (k + 1) + 2]) k++;
    const i32 *own = (const i32 *)runs[3 * k];
    i64 at = i - (i64)runs[3 * k + 2];
    i32 id = own[at];
    if (at > 0 && own[at - 1] > id) atomic_min(disorder, (u64)i << 32 | (u32)id);
    i64 rank = at;
    for (i32 q = 0; q < count; q++)
      if (q != k) rank += lower_bound((const i32 *)runs[3 * q], (i32)(runs[3 * (q + 1) + 2] - runs[3 * q + 2]), id, q < k);
    sorted[rank] = id;
    if ((u32)id < (u32)rows) dst_of[rank] = runs[3 * k + 1] + (u64)at * (u32)width * 4;
    else atomic_min(bad, (u64)i << 32 | (u32)id);
  }
}

// count += the number of ids below a bound: rows that a cache of the first ones
// served.
KERNEL count_below(u64 *count, const i32 *ids, i64 n, i32 below) {
  i32 mine = 0;
  for (i64 i = grid_thread(); i < n; i += grid_threads()) mine += (u32)ids[i] < (u32)below;
  mine = warp_sum(mine);
  if (lane_x() == 0 && mine) atomic_add(count, (u64)mine);
}
