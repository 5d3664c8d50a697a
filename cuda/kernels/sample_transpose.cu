// The transposed form of a block, five launches: a counting sort whose places are
// claimed in order of arrival and put in order afterwards. An edge of a source of
// at most kFew finds its place by comparing with the others. Where a source has
// more, the pieces of kPiece places that it has part in are sorted by (source,
// edge), and its edges search the pieces other than their own.
#include "sample.cuh"

enum { kPiece = 1024, kFew = 48 };
KERNEL sample_transpose_count(const i32 *known, i32 hop, const i32 *outgoing, i32 chunk, i64 *sums) {
  const i32 n = known[hop + 1];
  const i64 lo = (i64)block_x() * chunk;
  if (lo >= n) return;
  i64 sum = 0;
  for (i64 i = lo + thread_x(); i < lo + chunk && i < n; i += block_dim_x()) sum += outgoing[i];
  sum = block_sum(sum);
  if (thread_x() == 0) sums[block_x()] = sum;
}

KERNEL sample_transpose_layout(const i32 *known, const i32 *edges, i32 hop, i32 *indptr, i32 chunk, const i64 *sums) {
  const i32 n = known[hop + 1];
  const i64 lo = (i64)block_x() * chunk;
  if (block_x() == 0 && thread_x() == 0) indptr[n] = edges[hop];
  if (lo >= n) return;
  i64 base = tiles_before(sums), total;
  for (i64 first = lo; first < lo + chunk && first < n; first += block_dim_x()) {
    const i64 i = first + thread_x();
    const i64 at = base + block_scan(i < n ? indptr[i] : 0, &total);
    base += total;
    if (i < n) indptr[i] = (i32)at;
  }
}

KERNEL sample_transpose_place(const i32 *edges, i32 hop, const i32 *indices, const i32 *indptr, const i32 *arrival,
                              i32 *placed) {
  for (i64 e = grid_thread(); e < edges[hop]; e += grid_threads()) placed[indptr[indices[e]] + arrival[e]] = (i32)e;
}

// Sorts the pieces of `placed` with a source of more than kFew edges: a bitonic
// sort (Batcher, AFIPS 1968) in shared memory.
KERNEL sample_transpose_sort(const i32 *edges, i32 hop, const i32 *indices, const i32 *indptr, i32 *placed) {
  __shared__ u64 keys[kPiece];
  const i64 all = edges[hop];
  for (i64 first = (i64)block_x() * kPiece; first < all; first += (i64)grid_dim_x() * kPiece) {
    i64 many = 0;
#pragma unroll
    for (i32 p = 0; p < kPiece; p += kThreads) {
      const i32 q = p + (i32)thread_x();
      u64 key = ~0ull;
      if (first + q < all) {
        const i32 e = placed[first + q], source = indices[e];
        key = (u64)(u32)source << 32 | (u32)e;
        many |= indptr[source + 1] - indptr[source] > kFew;
      }
      keys[q] = key;
    }
    if (!block_sum(many)) continue;
    for (i32 run = 2; run <= kPiece; run *= 2) {
      for (i32 d = run / 2; d > 0; d /= 2) {
        for (i32 c = (i32)thread_x(); c < kPiece / 2; c += kThreads) {
          const i32 lo = 2 * c - (c & (d - 1)), hi = lo + d;
          const u64 a = keys[lo], b = keys[hi];
          if ((a > b) == !(lo & run)) {
            keys[lo] = b;
            keys[hi] = a;
          }
        }
        sync_block();
      }
    }
    for (i32 q = (i32)thread_x(); q < kPiece && first + q < all; q += kThreads) placed[first + q] = (i32)(u32)keys[q];
    sync_block();
  }
}

KERNEL sample_transpose_order(const i32 *edges, i32 hop, const i32 *indices, const i32 *indptr, const i32 *placed,
                              const i32 *target, i32 *t_indices, i32 *t_edges) {
  for (i64 p = grid_thread(); p < edges[hop]; p += grid_threads()) {
    const i32 e = placed[p], source = indices[e], end = indptr[source + 1];
    i32 lo = indptr[source], at = lo;
    if (end - lo <= kFew) {
      for (i32 q = lo; q < end; q++) at += placed[q] < e;
      lo = end;
    } else {
      at = (i32)p;
    }
    while (lo < end) { // pieces
      const i32 piece = lo / kPiece, hi = piece == (end - 1) / kPiece ? end : (piece + 1) * kPiece;
      if (piece < p / kPiece) at += partition_point(placed + lo, hi - lo, e, false) - (hi - lo);
      if (piece > p / kPiece) at += partition_point(placed + lo, hi - lo, e, false);
      lo = hi;
    }
    t_indices[at] = target[e];
    t_edges[at] = e;
  }
}
