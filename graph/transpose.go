package graph

import (
	"context"
	"fmt"
	"sync/atomic"

	"zerogcn/internal/par"
)

// Transpose returns the graph with every edge reversed: row v of the result
// lists the targets that v feeds, ascending, parallel edges in their order. It
// is a counting sort (see Builder), owns its memory, and takes the same memory
// again as c. Offsets and ids are checked; an error wraps ErrCorrupt.
func (c *CSR) Transpose(ctx context.Context, w par.Workers) (*CSR, error) {
	if err := c.checkShape(); err != nil {
		return nil, err
	}
	// Edges come in the order of their targets, so the rows of the result
	// ascend as soon as they are placed.
	t, err := Builder{NumNodes: c.NumNodes(), Workers: w}.Build(ctx, c.reversed())
	if err != nil {
		return nil, fmt.Errorf("graph: transpose: %w", err)
	}
	if c.Weights != nil && t.Weights == nil {
		t.Weights = []float32{} // no edges, so no chunk had weights
	}
	return t, nil
}

// reversed yields c's edges, row by row, with sources and targets exchanged.
func (c *CSR) reversed() EdgeSource {
	return func(yield func(Edges, error) bool) {
		const chunk = 1 << 16
		rows := make([]int32, 0, chunk)
		start := int64(0) // of the chunk, in edges
		flush := func() bool {
			end := start + int64(len(rows))
			e := Edges{Sources: rows, Targets: c.Indices[start:end]}
			if c.Weights != nil {
				e.Weights = c.Weights[start:end]
			}
			rows, start = rows[:0], end
			return yield(e, nil)
		}
		for v := range c.NumNodes() {
			lo, hi, err := c.bounds(v)
			if err == nil {
				err = c.checkIDs(v, lo, hi)
			}
			if err != nil {
				yield(Edges{}, err)
				return
			}
			for ; lo < hi; lo++ {
				if rows = append(rows, int32(v)); len(rows) == chunk && !flush() {
					return
				}
			}
		}
		if len(rows) > 0 {
			flush()
		}
	}
}

// OutDegrees counts, for each node, the edges that start there, parallel edges
// and self loops included. Offsets and ids are checked; an error wraps
// ErrCorrupt.
func (c *CSR) OutDegrees(ctx context.Context, w par.Workers) ([]int64, error) {
	if err := c.checkShape(); err != nil {
		return nil, err
	}
	degrees := make([]int64, c.NumNodes())
	alone := w.Count() == 1
	err := eachRow(ctx, c, w, func(v int, lo, hi int64) error {
		if err := c.checkIDs(v, lo, hi); err != nil {
			return err
		}
		for _, s := range c.Indices[lo:hi] {
			if alone {
				degrees[s]++
			} else {
				atomic.AddInt64(&degrees[s], 1) // sums do not depend on the order
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return degrees, nil
}

// checkIDs checks that the sources of row v, which has the offsets lo and hi,
// are nodes.
func (c *CSR) checkIDs(v int, lo, hi int64) error {
	n := c.NumNodes()
	for i, s := range c.Indices[lo:hi] {
		if uint32(s) >= uint32(n) {
			return badID(v, lo+int64(i), s, n)
		}
	}
	return nil
}
