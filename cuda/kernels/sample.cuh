// What the modules of neighbour sampling (sample.cu, sample_draw.cu and
// sample_transpose.cu) share. Package graph/gpusample is their host side and has
// the order of launches and the meaning of the arrays.
//
// Counts stay on the device: every kernel reads how many targets and edges there
// are from `known` (nodes after the seeds, after hop 0, …) and `edges` (of each
// hop), and grids are sized by upper bounds. Offsets and local ids come from
// scans in two launches: the first leaves one sum per tile, and each tile of the
// second adds up the sums before its own, of which the host makes at most some
// thousands.
//
// Ids and offsets come from memory that may be wrong, so each is checked where
// it is used. The first fault, in the order of hop, kind and place, is kept in
// *fault; what would have been written out of bounds is left out or becomes 0.
#pragma once
#include "device.cuh"

enum { kThreads = 256 };                                          // of a block, if nothing else is said
enum { kBadSeed = 1, kBadRow = 2, kTooManyEdges = 3, kBadID = 4 }; // kinds of faults

struct Input { // what differs between batches; gpusample writes it
  u64 seeds;   // device ids, or 0: those that were copied with it
  u32 key0, key1, step, purpose;
  i32 count, unused;
};

struct Graph { // constant parts of a sampler; gpusample writes it
  const i64 *indptr;
  const i32 *indices; // maybe in host memory
  const u32 *cumulative; // weights, maybe in host memory; or 0
  const i32 *positive; // or 0: all edges have positive weight
  const u32 *selfs; // bitmap of nodes whose self loops are dropped, or 0
  i64 num_edges;
  i32 num_nodes, num_words; // words of one run's bitmap
};

DEV void report(u64 *fault, i32 hop, u64 kind, u64 place) { atomic_min(fault, (u64)hop << 56 | kind << 48 | place); }

// The sum of v over the block, in every thread.
DEV i64 block_sum(i64 v) {
  __shared__ i64 part[32];
#pragma unroll
  for (int m = 16; m; m >>= 1) v += shfl(v, (i32)(lane_x() ^ m));
  sync_block(); // part may still be read by the call before
  if (lane_x() == 0) part[thread_x() / kWarp] = v;
  sync_block();
  i64 sum = 0;
  for (u32 w = 0; w < block_dim_x() / kWarp; w++) sum += part[w];
  return sum;
}

// The sum of v over the threads before this one; *total is that of all.
DEV i64 block_scan(i64 v, i64 *total) {
  __shared__ i64 part[32];
  const u32 lane = lane_x();
  i64 sum = v;
#pragma unroll
  for (u32 d = 1; d < kWarp; d <<= 1) {
    i64 before = shfl(sum, (i32)((lane - d) & (kWarp - 1)));
    if (lane >= d) sum += before;
  }
  sync_block();
  if (lane == kWarp - 1) part[thread_x() / kWarp] = sum;
  sync_block();
  i64 first = 0, all = 0;
  for (u32 w = 0; w < block_dim_x() / kWarp; w++) {
    if (w == thread_x() / kWarp) first = all;
    all += part[w];
  }
  *total = all;
  return first + sum - v;
}

// The sum of the tiles before this block's.
DEV i64 tiles_before(const i64 *sums) {
  i64 sum = 0;
  for (u32 t = thread_x(); t < block_x(); t += block_dim_x()) sum += sums[t];
  return block_sum(sum);
}

// How many of the row's n ascending elements are below key, or at most key if
// `through`.
template <typename T> DEV i32 partition_point(const T *row, i32 n, T key, bool through) {
  i32 lo = 0;
  while (n > 0) {
    i32 half = n / 2;
    T x = row[lo + half];
    if (x < key || (through && x == key)) {
      lo += half + 1;
      n -= half + 1;
    } else {
      n = half;
    }
  }
  return lo;
}

DEV bool has_self(const Graph *g, i32 v) { return g->selfs && g->selfs[v >> 5] >> (v & 31) & 1; }

// Where node v's self loops are in its row of n edges, and how many.
DEV i32 self_run(const Graph *g, i32 v, i64 lo, i32 n, i32 *count) {
  i32 at = partition_point(g->indices + lo, n, v, false);
  *count = partition_point(g->indices + lo + at, n - at, v, true);
  return at;
}
