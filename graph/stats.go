package graph

import (
	"context"
	"fmt"

	"zerogcn/internal/par"
)

// Stats describes a graph's edges. A pair is a source and a target, however
// many parallel edges join them.
type Stats struct {
	NumNodes int
	NumEdges int64
	// SelfLoops counts edges from a node to itself.
	SelfLoops int64
	// Duplicates counts edges beyond the first of their pair, self loops
	// included.
	Duplicates int64
	// Unpaired counts pairs of different nodes whose reverse is not a pair.
	Unpaired int64
	// Isolated counts nodes without any edge but self loops.
	Isolated int
	// MaxInDegree and MaxOutDegree count parallel edges and self loops.
	MaxInDegree, MaxOutDegree int64
}

// Symmetric reports whether each edge has its reverse, as in an undirected
// graph.
func (s Stats) Symmetric() bool { return s.Unpaired == 0 }

// Stats validates the graph and counts. It takes 16 bytes a node.
func (c *CSR) Stats(ctx context.Context, w par.Workers) (Stats, error) {
	n := c.NumNodes()
	s := Stats{NumNodes: n, NumEdges: c.NumEdges()}
	if err := c.Validate(ctx, w); err != nil {
		return s, err
	}
	out, err := c.OutDegrees(ctx, w)
	if err != nil {
		return s, err
	}
	// reverse[u] walks along row u while targets v ascend: the pair (u, v) has a
	// reverse if it meets v there. Every row is walked once in all.
	reverse := append([]int64(nil), c.Indptr[:n]...)
	for v := range n {
		if v%nodeTile == 0 && ctx.Err() != nil {
			return s, ctx.Err()
		}
		row := c.Row(int32(v))
		loops := int64(0)
		for i, u := range row {
			if int(u) == v {
				loops++
			}
			if i > 0 && row[i-1] == u {
				s.Duplicates++
				continue
			}
			if int(u) == v {
				continue
			}
			at, end := reverse[u], c.Indptr[u+1]
			for at < end && int(c.Indices[at]) < v {
				at++
			}
			reverse[u] = at
			if at == end || int(c.Indices[at]) != v {
				s.Unpaired++
			}
		}
		s.SelfLoops += loops
		if int64(len(row)) == loops && out[v] == loops {
			s.Isolated++
		}
		s.MaxInDegree = max(s.MaxInDegree, int64(len(row)))
		s.MaxOutDegree = max(s.MaxOutDegree, out[v])
	}
	return s, nil
}

// String gives the counts on one line.
func (s Stats) String() string {
	kind := "directed"
	if s.Symmetric() {
		kind = "symmetric"
	}
	return fmt.Sprintf("%d nodes, %d edges (%s), %d self loops, %d duplicates, %d isolated nodes, in-degree up to %d, out-degree up to %d",
		s.NumNodes, s.NumEdges, kind, s.SelfLoops, s.Duplicates, s.Isolated, s.MaxInDegree, s.MaxOutDegree)
}
