package graph

import (
	"fmt"
	"iter"
)

// Edges is a list of directed edges in no particular order: edge i leads from
// Sources[i] to Targets[i]. Weights is nil or has one finite weight per edge.
type Edges struct {
	Sources, Targets []int32
	Weights          []float32
}

// Len returns the number of edges.
func (e Edges) Len() int { return len(e.Sources) }

func (e Edges) slice(lo, hi int) Edges {
	s := Edges{Sources: e.Sources[lo:hi], Targets: e.Targets[lo:hi]}
	if e.Weights != nil {
		s.Weights = e.Weights[lo:hi]
	}
	return s
}

func (e *Edges) append(o Edges) {
	e.Sources = append(e.Sources, o.Sources...)
	e.Targets = append(e.Targets, o.Targets...)
	e.Weights = append(e.Weights, o.Weights...)
}

func (e *Edges) reset() {
	e.Sources, e.Targets, e.Weights = e.Sources[:0], e.Targets[:0], e.Weights[:0]
}

func (e Edges) check() error {
	if len(e.Targets) != len(e.Sources) || e.Weights != nil && len(e.Weights) != len(e.Sources) {
		return fmt.Errorf("graph: %d sources, %d targets and %d weights do not make edges",
			len(e.Sources), len(e.Targets), len(e.Weights))
	}
	return nil
}

// EdgeSource yields a graph's edges in chunks. The Builder ranges over it
// twice, once to count and once to place, so that it need not hold the edges:
// a generator or a file reader yields the same edges in the same order each
// time, in chunks of any size (a few thousand edges and more are fast). A chunk
// belongs to the source again when the next is asked for. An error ends the
// build and is returned as it is.
type EdgeSource = iter.Seq2[Edges, error]

// One returns the EdgeSource of a single chunk.
func (e Edges) One() EdgeSource {
	return func(yield func(Edges, error) bool) { yield(e, nil) }
}
