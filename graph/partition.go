package graph

import (
	"context"
	"fmt"
	"math"
	"math/bits"

	"zerogcn/internal/par"
)

const (
	// partitionTile is the number of edges that one task partitions.
	partitionTile = 1 << 15
	// maxBuckets bounds the write streams of one task: 256 streams of one
	// cache line each fit the first-level cache.
	maxBuckets = 256
)

// partition reads edges in segments and deals each segment into buckets of
// neighbouring targets. One task then handles a bucket alone, in input order:
// so counting and placing need no atomic operations, are stable whatever the
// number of workers, and touch a small part of the graph at a time.
type partition struct {
	n          uint32
	symmetrize bool
	dropSelf   bool
	workers    par.Workers
	shift      uint
	buckets    int

	// Of the pass under way.
	edges    int64  // edges read
	sum      uint64 // order-independent checksum of the edges kept
	weighted bool
	// Of the first pass, for compare.
	first struct {
		set      bool
		edges    int64
		sum      uint64
		weighted bool
	}

	stage   Edges
	pairs   []uint64 // target<<32 | source, bucket by bucket
	weights []float32
	cursors []int32 // per tile and bucket: count, then next place
	starts  []int32 // per bucket, in pairs
	tiles   []tileResult
}

type tileResult struct {
	sum uint64
	err error
}

func newPartition(b Builder) *partition {
	p := &partition{n: uint32(b.NumNodes), symmetrize: b.Symmetrize,
		dropSelf: b.RemoveSelfLoops || b.AddSelfLoops, workers: b.Workers}
	if spare := bits.Len32(max(p.n, 1)-1) - bits.Len(maxBuckets-1); spare > 0 {
		p.shift = uint(spare)
	}
	p.buckets = int((max(p.n, 1)-1)>>p.shift) + 1
	return p
}

// pass ranges over src once and calls use for every bucket of every segment;
// the buckets of one segment run in parallel, the segments in order.
func (p *partition) pass(ctx context.Context, src EdgeSource, use func(pairs []uint64, weights []float32) error) error {
	p.edges, p.sum, p.weighted = 0, 0, false
	p.stage.reset()
	staged := int64(0) // edges in p.stage, which p.edges already counts
	flush := func(e Edges, at int64) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return p.segment(e, at, use)
	}
	for chunk, err := range src {
		if err == nil {
			err = chunk.check()
		}
		if err != nil {
			return err
		}
		if chunk.Len() > 0 && p.edges == 0 {
			p.weighted = chunk.Weights != nil
		}
		if chunk.Len() > 0 && p.weighted != (chunk.Weights != nil) {
			return fmt.Errorf("graph: edge %d: some chunks of edges have weights and some have none", p.edges)
		}
		for lo := 0; lo < chunk.Len(); {
			hi := min(chunk.Len(), lo+segmentEdges-int(staged))
			part := chunk.slice(lo, hi)
			p.edges += int64(hi - lo)
			lo = hi
			if part.Len() == segmentEdges { // no need to copy
				if err := flush(part, p.edges-segmentEdges); err != nil {
					return err
				}
				continue
			}
			p.stage.append(part)
			if staged = int64(p.stage.Len()); staged == segmentEdges {
				if err := flush(p.stage, p.edges-staged); err != nil {
					return err
				}
				p.stage.reset()
				staged = 0
			}
		}
	}
	if staged > 0 {
		if !p.weighted {
			p.stage.Weights = nil
		}
		if err := flush(p.stage, p.edges-staged); err != nil {
			return err
		}
	}
	if !p.first.set {
		p.first.set, p.first.edges, p.first.sum, p.first.weighted = true, p.edges, p.sum, p.weighted
	}
	return nil
}

// compare reports whether the last pass saw the edges of the first.
func (p *partition) compare() error {
	if p.edges != p.first.edges || p.sum != p.first.sum || p.weighted != p.first.weighted {
		return ErrSourceChanged
	}
	return nil
}

// segment partitions e, whose first edge is the at-th of the source.
func (p *partition) segment(e Edges, at int64, use func(pairs []uint64, weights []float32) error) error {
	if p.first.set && p.weighted != p.first.weighted {
		return ErrSourceChanged
	}
	tiles := par.Tiles(e.Len(), partitionTile)
	p.cursors = resize(p.cursors, tiles*p.buckets)
	clear(p.cursors)
	p.tiles = resize(p.tiles, tiles)
	p.workers.Range(e.Len(), partitionTile, func(tile, lo, hi int) {
		sum, err := p.count(e.slice(lo, hi), at+int64(lo), p.cursors[tile*p.buckets:][:p.buckets])
		p.tiles[tile] = tileResult{sum, err}
	})
	for _, t := range p.tiles {
		if t.err != nil {
			return t.err
		}
		p.sum += t.sum
	}
	p.starts = append(p.starts[:0], 0)
	total := int32(0)
	for b := range p.buckets {
		for t := range tiles {
			at := &p.cursors[t*p.buckets+b]
			*at, total = total, total+*at
		}
		p.starts = append(p.starts, total)
	}
	p.pairs = resize(p.pairs, int(total))
	if p.weighted {
		p.weights = resize(p.weights, int(total))
	}
	p.workers.Range(e.Len(), partitionTile, func(tile, lo, hi int) {
		p.deal(e.slice(lo, hi), p.cursors[tile*p.buckets:][:p.buckets])
	})
	errs := make([]error, p.buckets)
	p.workers.Range(p.buckets, 1, func(b, _, _ int) {
		lo, hi := p.starts[b], p.starts[b+1]
		var w []float32
		if p.weighted {
			w = p.weights[lo:hi]
		}
		if lo < hi {
			errs[b] = use(p.pairs[lo:hi], w)
		}
	})
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// count checks a tile's edges, counts them by bucket and sums their hashes.
func (p *partition) count(e Edges, at int64, counts []int32) (sum uint64, err error) {
	targets := e.Targets[:len(e.Sources)]
	for i, s := range e.Sources {
		t := targets[i]
		if uint32(s) >= p.n || uint32(t) >= p.n {
			return 0, p.badEdge(at+int64(i), s, t)
		}
		if s == t && p.dropSelf {
			continue
		}
		sum += mix(uint64(t)<<32 | uint64(s))
		counts[uint32(t)>>p.shift]++
		if p.symmetrize && s != t {
			counts[uint32(s)>>p.shift]++
		}
	}
	for i, w := range e.Weights {
		if !finite(w) {
			return 0, fmt.Errorf("graph: edge %d (%d -> %d): weight %v is not finite", at+int64(i), e.Sources[i], e.Targets[i], w)
		}
		sum += mix(uint64(math.Float32bits(w)))
	}
	return sum, nil
}

// finite reports whether w is neither infinite nor not a number.
func finite(w float32) bool { return math.Float32bits(w)&0x7F800000 != 0x7F800000 }

func (p *partition) badEdge(at int64, s, t int32) error {
	what, id := "source", s
	if uint32(s) < p.n {
		what, id = "target", t
	}
	return fmt.Errorf("graph: edge %d (%d -> %d): %s %d is not in [0, %d)", at, s, t, what, id, p.n)
}

// deal writes a tile's edges to their buckets, in order.
func (p *partition) deal(e Edges, next []int32) {
	targets, pairs, shift := e.Targets[:len(e.Sources)], p.pairs, p.shift
	put := func(s, t int32, i int) {
		bucket := uint32(t) >> shift
		at := next[bucket]
		next[bucket] = at + 1
		pairs[at] = uint64(t)<<32 | uint64(s)
		if e.Weights != nil {
			p.weights[at] = e.Weights[i]
		}
	}
	for i, s := range e.Sources {
		t := targets[i]
		if s == t && p.dropSelf {
			continue
		}
		put(s, t, i)
		if p.symmetrize && s != t {
			put(t, s, i)
		}
	}
}

// mix scrambles x so that sums of different multisets rarely agree (the
// finaliser of MurmurHash3, one round).
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	return x ^ x>>33
}

// resize returns a slice of n elements that reuses s's memory, with old or
// zero contents. It grows with an eighth to spare, so that buffers whose need
// varies from batch to batch soon stop growing.
func resize[T any](s []T, n int) []T {
	if n <= cap(s) {
		return s[:n]
	}
	return make([]T, n, n+n/8)
}
