package graph

import (
	"context"
	"fmt"
	"math"

	"zerogcn/internal/par"
)

// weightScale is the integer weight that a row's weights sum up to, before
// rounding.
const weightScale = 1 << 31

// WeightTable holds a graph's edge weights as integers, made once on the host,
// so that weighted draws compare integers only and every device draws the same.
//
// With S the sum of a row's weights in float64, in order, edge e of weight w has
// the integer weight q = floor(w/S · 2^31), at least 1 if w > 0, and 0 if w = 0.
// Draw probabilities are proportional to q; they differ from w/S by less than
// 2^-31 times the row's in-degree.
type WeightTable struct {
	// Cumulative has, for each edge, the sum of q over its row up to and
	// including the edge. A row's last entry is its total, below 2^32.
	Cumulative []uint32
	// Positive has, for each node, the number of edges with q > 0. It is nil
	// if that is the in-degree everywhere.
	Positive []int32
}

// NewWeightTable computes c's table. With dropSelfLoops edges from a node to
// itself count as weight 0. A weight that is negative or not finite is an error
// that names the first such edge.
func NewWeightTable(ctx context.Context, c *CSR, dropSelfLoops bool, w par.Workers) (*WeightTable, error) {
	if err := c.checkShape(); err != nil {
		return nil, err
	}
	if c.Weights == nil && len(c.Indices) > 0 {
		return nil, fmt.Errorf("graph: weighted sampling of a graph without edge weights")
	}
	n := c.NumNodes()
	t := &WeightTable{makeHuge[uint32](len(c.Indices)), makeHuge[int32](n)}
	allPositive := make([]bool, par.Tiles(n, nodeTile))
	if err := eachRowTile(ctx, c, w, func(tile, first, last int) error {
		allPositive[tile] = true
		for v := first; v < last; v++ {
			lo, hi, err := c.bounds(v)
			if err != nil {
				return err
			}
			if err := t.row(c, v, lo, hi, dropSelfLoops); err != nil {
				return err
			}
			if int64(t.Positive[v]) != hi-lo {
				allPositive[tile] = false
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	for _, all := range allPositive {
		if !all {
			return t, nil
		}
	}
	t.Positive = nil
	return t, nil
}

func (t *WeightTable) row(c *CSR, v int, lo, hi int64, dropSelf bool) error {
	weight := func(e int64) float64 {
		if dropSelf && int(c.Indices[e]) == v {
			return 0
		}
		return float64(c.Weights[e])
	}
	sum := 0.0
	for e := lo; e < hi; e++ {
		w := weight(e)
		if !(w >= 0 && w <= math.MaxFloat32) {
			return fmt.Errorf("graph: row %d, edge %d: weighted sampling with weight %v, weights must be finite and not negative", v, e, w)
		}
		sum += w
	}
	total := uint32(0)
	for e := lo; e < hi; e++ {
		if w := weight(e); w > 0 {
			total += max(1, uint32(w/sum*weightScale))
			t.Positive[v]++
		}
		t.Cumulative[e] = total
	}
	return nil
}

// positive returns the number of edges of node v, which has d, that can be drawn.
func (t *WeightTable) positive(v, d int32) int32 {
	if t.Positive == nil {
		return d
	}
	return t.Positive[v]
}
