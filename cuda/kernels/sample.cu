// Neighbour sampling: the batches of package graph's Sampler, bit for bit. This
// module lays out blocks and numbers nodes; see sample.cuh.
//
// A set of nodes is a rank bitmap, one per run: 64-bit words with 32 membership
// bits in the low half and the local id of the first member in the high half.
#include "sample.cuh"

// The row of local id i: its start and its in-degree without dropped self loops.
DEV i32 find_row(const Graph *g, i32 i, i32 v, i64 *row_lo, i32 *row_deg, i32 hop, u64 *fault) {
  i64 lo = g->indptr[v], hi = g->indptr[v + 1];
  if (lo < 0 || hi < lo || hi > g->num_edges || hi - lo > 0x7fffffff) {
    report(fault, hop, kBadRow, (u64)v);
    lo = hi = 0;
  }
  i32 d = (i32)(hi - lo);
  if (has_self(g, v)) {
    i32 loops;
    self_run(g, v, lo, d, &loops);
    d -= loops;
  }
  if (row_lo) row_lo[i] = lo;
  row_deg[i] = d;
  return d;
}

// How many edges a target gets (Sampler.drawn).
DEV i32 drawn(i32 d, i32 v, const i32 *positive, i32 fanout, i32 replace) {
  if (positive) d = positive[v];
  if (fanout <= 0 || d == 0) return d;
  return replace || fanout < d ? fanout : d;
}

// The seeds, which must be nodes and ascend, become run 0.
KERNEL sample_seeds(const Input *in, const i32 *staged, const Graph *g, i32 *nodes, u64 *words, u64 *fault) {
  const i32 *seeds = in->seeds ? (const i32 *)in->seeds : staged;
  for (i64 i = grid_thread(); i < in->count; i += grid_threads()) {
    i32 v = seeds[i], before = i ? seeds[i - 1] : -1;
    nodes[i] = 0;
    if ((u32)v >= (u32)g->num_nodes || v <= before) {
      report(fault, 0, kBadSeed, (u64)i);
      continue;
    }
    nodes[i] = v;
    u32 *w = (u32 *)&words[v >> 5];
    atomic_or(w, 1u << (v & 31));
    if (i == 0 || before >> 5 != v >> 5) w[1] = (u32)i;
  }
}

// Finds the rows of the newest nodes and sums each tile's edges.
KERNEL sample_count(const Graph *g, const i32 *known, i32 hop, const i32 *nodes, i64 *row_lo, i32 *row_deg,
                    const i32 *positive, i32 fanout, i32 replace, i32 chunk, i64 *sums, u64 *fault) {
  const i32 n = known[hop], fresh = hop ? known[hop - 1] : 0;
  const i64 lo = (i64)block_x() * chunk;
  if (lo >= n) return;
  i64 sum = 0;
  for (i64 i = lo + thread_x(); i < lo + chunk && i < n; i += block_dim_x()) {
    i32 v = nodes[i];
    i32 d = i < fresh ? row_deg[i] : find_row(g, (i32)i, v, row_lo, row_deg, hop, fault);
    sum += drawn(d, v, positive, fanout, replace);
  }
  sum = block_sum(sum);
  if (thread_x() == 0) sums[block_x()] = sum;
}

// Finds the degrees of the nodes that the last hop added.
KERNEL sample_degrees(const Graph *g, const i32 *known, i32 hop, const i32 *nodes, i32 *row_deg, u64 *fault) {
  for (i64 i = known[hop - 1] + grid_thread(); i < known[hop]; i += grid_threads())
    find_row(g, (i32)i, nodes[i], 0, row_deg, hop, fault);
}

// Offsets and factors of a block's targets; their counts in the transposed form
// begin at 0.
KERNEL sample_layout(const i32 *known, i32 *edges, i32 hop, const i32 *nodes, const i32 *row_deg, const i32 *positive,
                     i32 fanout, i32 replace, i32 chunk, const i64 *sums, i32 room, i32 *indptr, float *scale,
                     i32 *outgoing, u64 *fault) {
  const i32 n = known[hop];
  const i64 lo = (i64)block_x() * chunk;
  if (n == 0 && block_x() == 0 && thread_x() == 0) indptr[0] = 0;
  if (lo >= n) return;
  i64 base = tiles_before(sums);
  for (i64 first = lo; first < lo + chunk && first < n; first += block_dim_x()) {
    i64 i = first + thread_x(), total;
    i32 d = 0, k = 0;
    if (i < n) {
      d = row_deg[i];
      k = drawn(d, nodes[i], positive, fanout, replace);
    }
    i64 at = base + block_scan(k, &total);
    base += total;
    if (i >= n) continue;
    indptr[i] = (i32)(at < room ? at : room);
    if (scale) scale[i] = k ? (float)d / (float)k : 1.0f;
    if (outgoing) outgoing[i] = 0;
    if (i == n - 1) {
      at += k;
      indptr[n] = (i32)(at < room ? at : room);
      edges[hop] = at <= room ? (i32)at : 0; // 0: the kernels after this do nothing
      if (at > room) report(fault, hop, kTooManyEdges, (u64)at < 1ull << 48 ? (u64)at : (1ull << 48) - 1);
    }
  }
}

// Takes the members of earlier runs out of a run and counts the rest by tile.
KERNEL sample_subtract(u64 *bitmaps, const Graph *g, i32 run, i32 chunk, i64 *sums) {
  enum { kAhead = 8 }; // words whose loads a thread has under way
  const i64 all = g->num_words, lo = (i64)block_x() * chunk, hi = lo + chunk < all ? lo + chunk : all;
  u64 *words = bitmaps + run * all;
  i64 sum = 0;
  for (i64 first = lo + thread_x(); first < hi; first += kAhead * kThreads) {
    u32 marked[kAhead];
#pragma unroll
    for (i32 q = 0; q < kAhead; q++) marked[q] = first + q * kThreads < hi ? (u32)words[first + q * kThreads] : 0;
#pragma unroll
    for (i32 q = 0; q < kAhead; q++) {
      if (!marked[q]) continue;
      const i64 w = first + q * kThreads;
      u32 rest = marked[q];
      for (i32 r = 0; r < run; r++) rest &= ~(u32)bitmaps[r * all + w];
      if (rest != marked[q]) words[w] = rest;
      sum += popc(rest);
    }
  }
  sum = block_sum(sum);
  if (thread_x() == 0) sums[block_x()] = sum;
}

// Numbers the members of a run from known[run-1] on, ascending, lists them in
// nodes and leaves their end in known[run]. Each warp has an equal part of the
// tile's words; chunk is a multiple of the block's threads.
KERNEL sample_number(u64 *bitmaps, const Graph *g, i32 *known, i32 run, i32 chunk, const i64 *sums, i32 room, i32 *nodes,
                     i32 *outgoing) {
  const i64 all = g->num_words;
  const i32 lane = (i32)lane_x(), rows = chunk / kThreads;
  const i64 lo = (i64)block_x() * chunk + (i64)(thread_x() / kWarp) * rows * kWarp + lane;
  u64 *words = bitmaps + run * all;
  i64 total, count = 0;
#pragma unroll 8
  for (i32 r = 0; r < rows; r++) count += lo + r * kWarp < all ? popc((u32)words[lo + r * kWarp]) : 0;
  const i64 start = known[run - 1] + tiles_before(sums);
  const i64 before = block_scan(count, &total);
  i32 base = (i32)(start + shfl(before, 0)); // of the warp's first word
  u32 next = lo < all ? (u32)words[lo] : 0;
  for (i32 r = 0; r < rows; r++) {
    const i64 w = lo + r * kWarp;
    const u32 members = next;
    next = r + 1 < rows && w + kWarp < all ? (u32)words[w + kWarp] : 0;
    u32 mask = warp_ballot(members != 0);
    if (!mask) continue;
    i32 id = popc(members);
#pragma unroll
    for (i32 d = 1; d < kWarp; d <<= 1) {
      const i32 x = shfl(id, (lane - d) & (kWarp - 1));
      if (lane >= d) id += x;
    }
    const i32 end = base + shfl(id, kWarp - 1);
    id += base - popc(members);
    base = end;
    if (members) words[w] = (u64)(u32)id << 32 | members;
    // One word after another, a lane for each bit: neighbours are stored together.
    for (; mask; mask &= mask - 1) {
      const i32 l = ffs32(mask) - 1;
      const u32 bits = (u32)shfl((i32)members, l);
      const i32 at = shfl(id, l) + popc(bits & ((1u << lane) - 1));
      if (!(bits >> lane & 1) || at >= room) continue;
      nodes[at] = (i32)((w - lane + l) << 5 | lane);
      if (outgoing) outgoing[at] = 0;
    }
  }
  if (block_x() == grid_dim_x() - 1 && thread_x() == 0) known[run] = (i32)(start + total < room ? start + total : room);
}

// Turns global into local ids. For the transposed form it counts each source's
// edges and keeps which of them this one was, in order of arrival.
KERNEL sample_relabel(const u64 *bitmaps, const Graph *g, const i32 *known, const i32 *edges, i32 hop, i32 *indices,
                      i32 *outgoing, i32 *arrival) {
  const i64 all = g->num_words;
  const i32 n = known[hop + 1];
  for (i64 e = grid_thread(); e < edges[hop]; e += grid_threads()) {
    const i32 v = indices[e];
    u32 id = 0;
    for (i32 run = v < 0 ? -1 : hop + 1; run >= 0; run--) {
      const u64 word = bitmaps[run * all + (v >> 5)];
      if (!(word >> (v & 31) & 1)) continue;
      id = (u32)(word >> 32) + (u32)popc((u32)word & ((1u << (v & 31)) - 1));
      break;
    }
    if (id >= (u32)n) id = 0;
    indices[e] = (i32)id;
    if (outgoing) arrival[e] = atomic_add(&outgoing[id], 1);
  }
}

// Empties the bitmaps of all runs: writes what the batch's nodes touched.
KERNEL sample_clear(u64 *bitmaps, const Graph *g, const i32 *known, i32 hops, const i32 *nodes) {
  for (i64 i = grid_thread(); i < known[hops]; i += grid_threads()) {
    i32 run = 0;
    while (run < hops && i >= known[run]) run++;
    bitmaps[run * (i64)g->num_words + (nodes[i] >> 5)] = 0;
  }
}

// dst[i] = labels[ids[i]], -1 for an id that is not below n.
KERNEL sample_labels(const i32 *labels, i32 n, const i32 *ids, i32 count, i32 *dst) {
  for (i64 i = grid_thread(); i < count; i += grid_threads()) {
    const i32 id = ids[i];
    dst[i] = (u32)id < (u32)n ? labels[id] : -1;
  }
}
