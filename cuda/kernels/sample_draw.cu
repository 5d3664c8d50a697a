// The draws of neighbour sampling, by lot, by weight and of whole rows; see
// sample.cuh.
#include "philox.cuh"
#include "sample.cuh"

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
