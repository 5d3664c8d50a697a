package graph

import (
	"errors"
	"fmt"
	"math"
)

// MaxNodes is the largest number of nodes of a graph, and the largest number
// of edges in one row or one Block: ids and local offsets are int32.
const MaxNodes = math.MaxInt32

// ErrCorrupt marks a CSR whose arrays contradict each other: offsets that
// descend or leave the edge array, or ids that are not nodes.
var ErrCorrupt = errors.New("corrupt graph")

// CSR is a directed graph by incoming edges: row v lists the sources of the
// edges that end in v, ascending, Indices[Indptr[v]:Indptr[v+1]]. Messages flow
// from source to target, so a row is what node v aggregates.
//
// Indptr has NumNodes+1 offsets (64-bit: edges may outnumber 2^31), Indices one
// source id per edge. Weights is nil or has one weight per edge. A CSR is
// read-only once shared. The zero value is the graph of no nodes.
type CSR struct {
	Indptr  []int64
	Indices []int32
	Weights []float32
}

// NumNodes returns the number of nodes.
func (c *CSR) NumNodes() int { return max(len(c.Indptr)-1, 0) }

// NumEdges returns the number of directed edges.
func (c *CSR) NumEdges() int64 { return int64(len(c.Indices)) }

// Row returns the sources of node v's incoming edges, ascending. It aliases
// the graph. v must be a node, and the graph valid.
func (c *CSR) Row(v int32) []int32 { return c.Indices[c.Indptr[v]:c.Indptr[v+1]] }

// RowWeights returns the weights of node v's incoming edges in the order of
// Row, or nil for a graph without weights. It aliases the graph.
func (c *CSR) RowWeights(v int32) []float32 {
	if c.Weights == nil {
		return nil
	}
	return c.Weights[c.Indptr[v]:c.Indptr[v+1]]
}

// InDegree returns the number of edges that end in v, parallel edges and self
// loops included.
func (c *CSR) InDegree(v int32) int { return int(c.Indptr[v+1] - c.Indptr[v]) }

// checkShape checks in constant time what every algorithm relies on: sizes.
func (c *CSR) checkShape() error {
	n := c.NumNodes()
	switch {
	case n > MaxNodes:
		return fmt.Errorf("graph: %d nodes, at most %d are possible", n, MaxNodes)
	case len(c.Indptr) == 0 && len(c.Indices) != 0:
		return fmt.Errorf("graph: %d edges but no offsets: %w", len(c.Indices), ErrCorrupt)
	case len(c.Indptr) != 0 && (c.Indptr[0] != 0 || c.Indptr[n] != int64(len(c.Indices))):
		return fmt.Errorf("graph: offsets run from %d to %d over %d edges: %w",
			c.Indptr[0], c.Indptr[n], len(c.Indices), ErrCorrupt)
	case c.Weights != nil && len(c.Weights) != len(c.Indices):
		return fmt.Errorf("graph: %d weights for %d edges: %w", len(c.Weights), len(c.Indices), ErrCorrupt)
	}
	return nil
}

// bounds returns row v's offsets, checked against the edge array and against
// the largest row that a Block can hold.
func (c *CSR) bounds(v int) (lo, hi int64, err error) {
	lo, hi = c.Indptr[v], c.Indptr[v+1]
	if lo < 0 || hi < lo || hi > int64(len(c.Indices)) {
		return 0, 0, fmt.Errorf("graph: row %d: offsets %d, %d with %d edges: %w", v, lo, hi, len(c.Indices), ErrCorrupt)
	}
	if hi-lo > MaxNodes {
		return 0, 0, fmt.Errorf("graph: row %d has %d edges, at most %d are possible", v, hi-lo, MaxNodes)
	}
	return lo, hi, nil
}

func badID(v int, e int64, id int32, n int) error {
	return fmt.Errorf("graph: row %d, edge %d: source %d is not in [0, %d): %w", v, e, id, n, ErrCorrupt)
}
