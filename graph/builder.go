package graph

import (
	"context"
	"errors"
	"fmt"

	"zerogcn/internal/par"
)

// ErrSourceChanged is returned by Builder.Build when an EdgeSource yields other
// edges the second time.
var ErrSourceChanged = errors.New("graph: the edge source yielded other edges the second time it was read")

// segmentEdges is how many edges are partitioned at a time. It bounds the
// Builder's working memory: 16 bytes an edge (twice that when symmetrising).
const segmentEdges = 1 << 19

// Builder makes a CSR out of edges by a parallel, stable, two-pass counting
// sort. The zero value of each option is off.
//
// Rows are ascending; parallel edges (same source, same target) stay in input
// order. Steps apply in the order of the fields. The result does not depend on
// Workers.
type Builder struct {
	// NumNodes is the number of nodes, at most MaxNodes. Ids are checked
	// against it.
	NumNodes int
	// Symmetrize adds the reverse of each edge, right after it in input order
	// and with its weight. A self loop is its own reverse and is not doubled.
	Symmetrize bool
	// RemoveSelfLoops drops edges from a node to itself.
	RemoveSelfLoops bool
	// AddSelfLoops gives every node exactly one self loop, of weight 1:
	// self loops in the input are dropped first.
	AddSelfLoops bool
	// Deduplicate keeps one of several edges with the same source and target:
	// the first in input order, with its weight. Together with Symmetrize the
	// result is symmetric in its weights too.
	Deduplicate bool
	// Workers bounds the goroutines.
	Workers par.Workers
}

// FromEdges builds from slices: see Builder.Build. The slices are only read.
func (b Builder) FromEdges(ctx context.Context, sources, targets []int32, weights []float32) (*CSR, error) {
	return b.Build(ctx, Edges{sources, targets, weights}.One())
}

// Build ranges over src twice and returns the graph, which owns its memory.
// Memory at the peak is the result (before deduplication) plus a working set
// of at most 20 MB that does not grow with the graph.
//
// An id that is not a node and a weight that is not finite are errors that name
// the edge by its position in src, counted from 0; the first in that order is
// reported. A source that changes between the passes is ErrSourceChanged.
// Cancelling ctx ends the build with the context's error.
func (b Builder) Build(ctx context.Context, src EdgeSource) (*CSR, error) {
	if b.NumNodes < 0 || b.NumNodes > MaxNodes {
		return nil, fmt.Errorf("graph: %d nodes, possible are 0 to %d", b.NumNodes, MaxNodes)
	}
	// While building, offsets[v+2] counts row v, then offsets[v+1] is the
	// place of row v's next edge: it ends as the offset of row v+1.
	offsets := makeHuge[int64](b.NumNodes + 2)
	p := newPartition(b)
	if err := p.pass(ctx, src, func(bucket []uint64, _ []float32) error {
		for _, pair := range bucket {
			offsets[pair>>32+2]++
		}
		return nil
	}); err != nil {
		return nil, err
	}
	total := int64(0)
	for v := range b.NumNodes {
		n := offsets[v+2]
		if b.AddSelfLoops {
			n++
		}
		if n > MaxNodes {
			return nil, fmt.Errorf("graph: node %d has %d incoming edges, at most %d are possible", v, n, MaxNodes)
		}
		offsets[v+1] = total
		total += n
	}
	if b.NumNodes > 0 {
		offsets[b.NumNodes+1] = total
	}
	c := &CSR{Indptr: offsets[: b.NumNodes+1 : b.NumNodes+1], Indices: makeHuge[int32](int(total))}
	if p.weighted {
		c.Weights = makeHuge[float32](int(total))
	}
	if b.AddSelfLoops {
		c.placeSelfLoops(offsets)
	}
	if err := p.pass(ctx, src, func(bucket []uint64, weights []float32) error {
		return c.place(offsets, bucket, weights)
	}); err != nil {
		return nil, err
	}
	if err := p.compare(); err != nil {
		return nil, err
	}
	if err := c.sortRows(ctx, b.Workers); err != nil {
		return nil, err
	}
	if b.Deduplicate {
		return c, c.deduplicate(ctx, b.Workers)
	}
	return c, nil
}

// place puts the edges of one bucket into their rows, in order.
func (c *CSR) place(next []int64, bucket []uint64, weights []float32) error {
	indices := c.Indices
	for i, pair := range bucket {
		v := pair>>32 + 1
		at := next[v]
		if uint64(at) >= uint64(len(indices)) {
			return ErrSourceChanged
		}
		next[v] = at + 1
		indices[at] = int32(pair)
		if weights != nil {
			c.Weights[at] = weights[i]
		}
	}
	return nil
}

func (c *CSR) placeSelfLoops(next []int64) {
	for v := range c.NumNodes() {
		at := next[v+1]
		c.Indices[at] = int32(v)
		if c.Weights != nil {
			c.Weights[at] = 1
		}
		next[v+1] = at + 1
	}
}
