// Neighbour sampling: the batches of package graph's Sampler, bit for bit. The
// host side, the order of launches and the meaning of the arrays are in package
// graph/gpusample.
//
// Counts stay on the device: every kernel reads how many targets and edges there
// are from `known` (nodes after the seeds, after hop 0, …) and `edges` (of each
// hop), and grids are sized by upper bounds. Offsets and local ids come from
// scans in two launches: the first leaves one sum per tile, and each tile of the
// second adds up the sums before its own, of which the host makes at most some
// thousands.
//
// A set of nodes is a rank bitmap, one per run: 64-bit words with 32 membership
// bits in the low half and the local id of the first member in the high half.
//
// Ids and offsets come from memory that may be wrong, so each is checked where
// it is used. The first fault, in the order of hop, kind and place, is kept in
// *fault; what would have been written out of bounds is left out or becomes 0.
#include "device.cuh"
#include "philox.cuh"

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

struct Drawing { // what all ways of drawing share, in registers
  Graph g;
  i32 *indices;  // global ids, -1 for one that is not a node
  i64 *edge_ids; // or 0
  i32 *target;   // or 0
  u64 *words;    // of the run to mark
  u64 *fault;
  i32 hop;
};

// Edge e of the block, of target i, is the graph's edge at the given position.
DEV void draw_edge(const Drawing &to, i32 e, i32 i, i64 position) {
  i32 v = to.g.indices[position];
  if (to.edge_ids) to.edge_ids[e] = position;
  if (to.target) to.target[e] = i;
  if ((u32)v >= (u32)to.g.num_nodes) {
    report(to.fault, to.hop, kBadID, (u64)position);
    v = -1;
  } else {
    u32 *w = (u32 *)&to.words[v >> 5], bit = 1u << (v & 31);
    if (!(*(volatile u32 *)w & bit)) atomic_or(w, bit); // spare hubs the atomic
  }
  to.indices[e] = v;
}

// Word i of item v (philox.Stream.Word).
DEV u32 draw_word(const Input *in, i32 hop, i32 v, u32 i) {
  uint4 w = philox_block(uint4{(u32)v, in->step, i >> 2, in->purpose << 24 | (u32)hop}, in->key0, in->key1);
  u32 a = i & 1 ? w.y : w.x, b = i & 1 ? w.w : w.z;
  return i & 2 ? b : a;
}

// Targets whose fan-out k is at most 32, by groups of 2^shift >= k lanes: lane j
// makes draw j. Floyd's algorithm is sequential: draw t of step j is replaced by
// j's own position, above all before it, if t is taken. But t is taken just if
// an earlier step drew it too, or if t is the own position of an earlier step
// that was replaced itself, so the steps are settled by following those links.
// Positions are distinct after that (or the order of equal ones is of no account)
// and each lane counts the lower ones.
KERNEL sample_draw(const Input *in, const Graph *graph, const i32 *known, const i32 *edges, i32 hop, const i32 *nodes,
                   const i64 *row_lo, const i32 *row_deg, const i32 *indptr, i32 fanout, i32 replace, i32 shift,
                   i32 *indices, i64 *edge_ids, i32 *target, u64 *words, u64 *fault) {
  const i32 n = known[hop], limit = edges[hop];
  const Drawing to{*graph, indices, edge_ids, target, words, fault, hop};
  const Graph *g = &to.g;
  const i32 lane = (i32)lane_x(), j = lane & ((1 << shift) - 1), group = lane - j;
  const i32 per_warp = kWarp >> shift;
  for (i64 first = grid_warp() * per_warp; first < n; first += grid_warps() * per_warp) {
    const i64 i = first + (lane >> shift);
    i32 k = 0, start = 0, v = 0, d = 0;
    i64 lo = 0;
    if (i < n) {
      start = indptr[i];
      k = indptr[i + 1] - start;
      v = nodes[i];
      lo = row_lo[i];
      d = row_deg[i];
    }
    if (start + k > limit) k = 0;
    const bool live = j < k, chosen_by_lot = replace || k < d;
    i32 p = j, rank = j;
    if (warp_ballot(live && chosen_by_lot)) {
      const i32 own = d - k + j;
      u32 word = live ? draw_word(in, hop, v, (u32)j) : 0;
      i32 t = (i32)philox_below(word, replace ? (u32)d : (u32)own + 1);
      bool taken = false;
      if (!replace) {
        for (i32 m = 0; m < fanout - 1; m++) {
          i32 x = shfl(t, group + m);
          taken |= m < j && x == t;
        }
        const i32 link = t - (d - k); // the step whose own position t is
        const bool linked = live && link >= 0 && link < j;
        for (;;) {
          u32 mask = warp_ballot(live && taken);
          bool now = taken || (linked && mask >> (group + link) & 1);
          bool changed = now != taken;
          taken = now;
          if (!warp_ballot(live && changed)) break;
        }
      }
      if (taken) t = own;
      i32 lower = 0;
      for (i32 m = 0; m < fanout; m++) {
        i32 x = shfl(t, group + m);
        lower += m < k && (x < t || (x == t && m < j));
      }
      if (chosen_by_lot) {
        p = t;
        rank = lower;
      }
    }
    if (!live) continue;
    i64 position = lo + p;
    if (has_self(g, v)) {
      i32 loops, at = self_run(g, v, lo, (i32)(g->indptr[v + 1] - lo), &loops);
      if (p >= at) position += loops;
    }
    draw_edge(to, start + rank, (i32)i, position);
  }
}

// The same for fan-outs up to kLong, by a block for each target.
enum { kLong = 1024, kLongThreads = 128, kPerThread = kLong / kLongThreads };
KERNEL sample_draw_long(const Input *in, const Graph *graph, const i32 *known, const i32 *edges, i32 hop, const i32 *nodes,
                        const i64 *row_lo, const i32 *row_deg, const i32 *indptr, i32 replace, i32 *indices,
                        i64 *edge_ids, i32 *target, u64 *words, u64 *fault) {
  __shared__ i32 draws[kLong], taken[kLong], changed;
  const i32 n = known[hop], limit = edges[hop], tid = (i32)thread_x();
  const Drawing to{*graph, indices, edge_ids, target, words, fault, hop};
  const Graph *g = &to.g;
  for (i64 i = block_x(); i < n; i += grid_dim_x()) {
    const i32 start = indptr[i], k = indptr[i + 1] - start, v = nodes[i], d = row_deg[i];
    const i64 lo = row_lo[i];
    if (start + k > limit || k > kLong) continue;
    i32 at = d, loops = 0;
    if (has_self(g, v)) at = self_run(g, v, lo, (i32)(g->indptr[v + 1] - lo), &loops);
    if (!replace && k == d) {
      for (i32 j = tid; j < k; j += kLongThreads) draw_edge(to, start + j, (i32)i, lo + j + (j >= at ? loops : 0));
      continue;
    }
    for (i32 j = tid; j < k; j += kLongThreads)
      draws[j] = (i32)philox_below(draw_word(in, hop, v, (u32)j), (u32)(replace ? d : d - k + j + 1));
    sync_block();
    if (!replace) {
      for (i32 j = tid; j < k; j += kLongThreads) {
        i32 t = draws[j], again = 0;
        for (i32 m = 0; m < j; m++) again |= draws[m] == t;
        taken[j] = again;
      }
      for (;;) {
        sync_block();
        u32 now = 0; // bit q: this thread's q-th step became taken
        for (i32 q = 0; q < kPerThread && tid + q * kLongThreads < k; q++) {
          i32 j = tid + q * kLongThreads, link = draws[j] - (d - k);
          if (!taken[j] && link >= 0 && link < j && taken[link]) now |= 1u << q;
        }
        if (tid == 0) changed = 0;
        sync_block();
        for (i32 q = 0; q < kPerThread; q++)
          if (now >> q & 1) taken[tid + q * kLongThreads] = 1;
        if (now) changed = 1;
        sync_block();
        if (!changed) break;
      }
      for (i32 j = tid; j < k; j += kLongThreads)
        if (taken[j]) draws[j] = d - k + j;
      sync_block();
    }
    for (i32 j = tid; j < k; j += kLongThreads) {
      i32 t = draws[j], rank = 0;
      for (i32 m = 0; m < k; m++) rank += draws[m] < t || (draws[m] == t && m < j);
      draw_edge(to, start + rank, (i32)i, lo + t + (t >= at ? loops : 0));
    }
    sync_block();
  }
}

// Whole rows: a thread for each edge, so that a hub is shared by many.
KERNEL sample_draw_full(const Graph *graph, const i32 *known, const i32 *edges, i32 hop, const i32 *nodes,
                        const i64 *row_lo, const i32 *indptr, i32 *indices, i64 *edge_ids, i32 *target, u64 *words,
                        u64 *fault) {
  const i32 n = known[hop], limit = edges[hop];
  const Drawing to{*graph, indices, edge_ids, target, words, fault, hop};
  const Graph *g = &to.g;
  for (i64 e = grid_thread(); e < limit; e += grid_threads()) {
    const i32 i = partition_point(indptr, n + 1, (i32)e, true) - 1;
    const i32 v = nodes[i];
    const i64 lo = row_lo[i];
    i64 p = e - indptr[i];
    if (has_self(g, v)) {
      i32 loops, at = self_run(g, v, lo, (i32)(g->indptr[v + 1] - lo), &loops);
      if (p >= at) p += loops;
    }
    draw_edge(to, (i32)e, i, lo + p);
  }
}

struct Ranked { // an edge with its rank, word/weight
  u64 word;     // 2 * word + 1
  u32 weight;
  i32 position;
};

DEV bool ranks_before(const Ranked &a, const Ranked &b) {
  u64 x = a.word * b.weight, y = b.word * a.weight;
  return x < y || (x == y && a.position < b.position);
}

// Draws by weight (graph.WeightTable), one warp and block for each target, for
// fan-outs up to K. Without replacement the K+1 lowest ranks of the row are kept
// in order: few edges get past the highest of them.
template <int K>
DEV void draw_weighted(const Input *in, const Graph *graph, const i32 *known, const i32 *edges, i32 hop, const i32 *nodes,
                       const i64 *row_lo, const i32 *indptr, i32 replace, i32 *indices, i64 *edge_ids, float *scale,
                       i32 *target, u64 *words, u64 *fault) {
  __shared__ Ranked top[K + 1];
  const i32 n = known[hop], limit = edges[hop], lane = (i32)lane_x();
  const Drawing to{*graph, indices, edge_ids, target, words, fault, hop};
  const Graph *g = &to.g;
  for (i64 i = block_x(); i < n; i += grid_dim_x()) {
    const i32 start = indptr[i], k = indptr[i + 1] - start, v = nodes[i];
    if (k == 0 || k > K || start + k > limit) continue;
    const i64 lo = row_lo[i];
    const i32 len = (i32)(g->indptr[v + 1] - lo), positive = g->positive ? g->positive[v] : len;
    const u32 *row = g->cumulative + lo;
    const u32 total = row[len - 1];
    if (!replace && k == positive) { // every edge that can be drawn
      i32 e = start;
      for (i32 p0 = 0; p0 < len; p0 += kWarp) {
        const i32 p = p0 + lane;
        const bool has = p < len && row[p] != (p ? row[p - 1] : 0);
        const u32 mask = warp_ballot(has);
        const i32 at = e + popc(mask & ((1u << lane) - 1));
        if (has && at < start + k) {
          draw_edge(to, at, (i32)i, lo + p);
          if (scale) scale[at] = 1.0f;
        }
        e += popc(mask);
      }
      continue;
    }
    if (replace) {
      for (i32 j = lane; j < k; j += kWarp)
        top[j].position = imin(partition_point(row, len, philox_below(draw_word(in, hop, v, (u32)j), total), true), len - 1);
    } else {
      i32 kept = 0;
      for (i32 p0 = 0; p0 < len; p0 += kWarp) {
        const i32 p = p0 + lane;
        Ranked mine{0, 0, p};
        if (p < len) mine.weight = row[p] - (p ? row[p - 1] : 0);
        if (mine.weight) mine.word = 2 * (u64)draw_word(in, hop, v, (u32)p) + 1;
        u32 mask = warp_ballot(mine.weight && (kept <= k || ranks_before(mine, top[kept - 1])));
        for (; mask; mask &= mask - 1) {
          const i32 l = ffs32(mask) - 1;
          const Ranked x{(u64)shfl((i64)mine.word, l), (u32)shfl((i32)mine.weight, l), p0 + l};
          if (kept > k && !ranks_before(x, top[kept - 1])) continue;
          i32 place = 0;
          for (i32 j0 = 0; j0 < kept; j0 += kWarp)
            place += popc(warp_ballot(j0 + lane < kept && ranks_before(top[j0 + lane], x)));
          kept = imin(kept + 1, k + 1);
          for (i32 j0 = (kept - 1) / kWarp * kWarp; j0 + kWarp > place && j0 >= 0; j0 -= kWarp) {
            const i32 j = j0 + lane;
            const bool moves = j > place && j < kept;
            Ranked t{0, 0, 0};
            if (moves) t = top[j - 1];
            sync_warp();
            if (moves) top[j] = t;
            sync_warp();
          }
          if (lane == 0) top[place] = x;
          sync_warp();
        }
      }
    }
    sync_warp();
    for (i32 j = lane; j < k; j += kWarp) {
      const i32 p = top[j].position;
      i32 rank = 0;
      for (i32 m = 0; m < k; m++) rank += top[m].position < p || (top[m].position == p && m < j);
      draw_edge(to, start + rank, (i32)i, lo + p);
      if (!scale) continue;
      const double q = (double)(row[p] - (p ? row[p - 1] : 0));
      double f = replace ? (double)total / ((double)k * q)
                         : 8589934592.0 * (double)top[k].weight / ((double)top[k].word * q);
      if (!replace && f < 1) f = 1;
      scale[start + rank] = (float)f;
    }
    sync_warp();
  }
}
KERNEL sample_draw_weighted(const Input *in, const Graph *g, const i32 *known, const i32 *edges, i32 hop, const i32 *nodes,
                            const i64 *row_lo, const i32 *indptr, i32 replace, i32 *indices, i64 *edge_ids,
                            float *scale, i32 *target, u64 *words, u64 *fault) {
  draw_weighted<32>(in, g, known, edges, hop, nodes, row_lo, indptr, replace, indices, edge_ids, scale, target, words, fault);
}
KERNEL sample_draw_weighted_long(const Input *in, const Graph *g, const i32 *known, const i32 *edges, i32 hop,
                                 const i32 *nodes, const i64 *row_lo, const i32 *indptr, i32 replace, i32 *indices,
                                 i64 *edge_ids, float *scale, i32 *target, u64 *words, u64 *fault) {
  draw_weighted<kLong>(in, g, known, edges, hop, nodes, row_lo, indptr, replace, indices, edge_ids, scale, target, words, fault);
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

// The transposed form of a block, five launches: a counting sort whose places are
// claimed in order of arrival and put in order afterwards. An edge of a source of
// at most kFew finds its place by comparing with the others. Where a source has
// more, the pieces of kPiece places that it has part in are sorted by (source,
// edge), and its edges search the pieces other than their own.
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
