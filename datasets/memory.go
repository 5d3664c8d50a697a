package datasets

import (
	"context"
	"fmt"

	"zerogcn/graph"
	"zerogcn/internal/par"
)

// seal completes a Dataset that a reader or generator made in memory: counts,
// storage type and fingerprint of Meta, after a check that the parts fit each
// other. The graph comes from graph.Builder and needs no check.
func (d *Dataset) seal(ctx context.Context, w par.Workers) error {
	d.NumNodes = d.Graph.NumNodes()
	d.NumEdges = d.Graph.NumEdges()
	if d.Features == nil {
		f, err := DenseFeatures(nil, d.NumNodes, 0)
		if err != nil {
			return err
		}
		d.Features = f
	}
	if d.Features.Rows != d.NumNodes {
		return usageErrorf("dataset %s: %d rows of features for %d nodes", d.Name, d.Features.Rows, d.NumNodes)
	}
	d.NumFeatures = d.Features.Dim
	d.FeatureType = d.Features.Type.String()
	if d.Labels != nil {
		if d.Labels.n != d.NumNodes {
			return usageErrorf("dataset %s: %d labels for %d nodes", d.Name, d.Labels.n, d.NumNodes)
		}
		d.NumClasses = d.Labels.width
	}
	if d.Order == "" {
		d.Order = Original
	}
	d.graphKnown = true
	var err error
	if d.Fingerprint, err = Fingerprint(ctx, d, w); err != nil {
		return err
	}
	return nil
}

// graphEdges yields the edges of a graph in its own order.
func graphEdges(g *graph.CSR) graph.EdgeSource {
	const chunk = 1 << 16
	return func(yield func(graph.Edges, error) bool) {
		targets := make([]int32, 0, chunk)
		start := int64(0)
		flush := func() bool {
			e := graph.Edges{Sources: g.Indices[start : start+int64(len(targets))], Targets: targets}
			if g.Weights != nil {
				e.Weights = g.Weights[start : start+int64(len(targets))]
			}
			ok := len(targets) == 0 || yield(e, nil)
			start += int64(len(targets))
			targets = targets[:0]
			return ok
		}
		for v := range g.NumNodes() {
			for range g.InDegree(int32(v)) {
				if len(targets) == chunk && !flush() {
					return
				}
				targets = append(targets, int32(v))
			}
		}
		flush()
	}
}

// countSelfLoops returns the edges from a node to itself.
func countSelfLoops(e graph.Edges) int {
	n := 0
	for i, s := range e.Sources {
		if s == e.Targets[i] {
			n++
		}
	}
	return n
}

// plural writes a count with its noun.
func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
