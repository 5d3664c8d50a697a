package graph

import (
	"context"
	"fmt"
)

// FullBlock returns the whole graph as one block, for full-batch training:
// sources and targets are all nodes, local ids are global ids. Of the options
// it takes DropSelfLoops, EdgeIDs, Degrees, Transpose or TransposeAll (either
// builds the transposed form) and Workers; Scale stays nil, since nothing is
// sampled.
//
// The block's Indices alias the graph unless self loops are dropped, so it is
// read-only and lives as long as the graph. The graph is validated on the way;
// more than 2^31-1 edges are an error.
func FullBlock(ctx context.Context, c *CSR, o Options) (*Block, error) {
	if err := c.Validate(ctx, o.Workers); err != nil {
		return nil, err
	}
	n := c.NumNodes()
	b := &Block{NumDst: n, NumSrc: n, Indptr: make([]int32, n+1)}
	if c.NumEdges() > MaxNodes {
		return nil, fmt.Errorf("graph: %d edges in one block, at most %d are possible: train in mini-batches", c.NumEdges(), MaxNodes)
	}
	var self []int32 // self loops per node
	if o.DropSelfLoops {
		self = make([]int32, n)
		if err := eachRow(ctx, c, o.Workers, func(v int, _, _ int64) error {
			_, k := c.selfRun(int32(v))
			self[v] = int32(k)
			return nil
		}); err != nil {
			return nil, err
		}
	}
	for v := range n {
		d := int32(c.InDegree(int32(v)))
		if o.DropSelfLoops {
			d -= self[v]
		}
		b.Indptr[v+1] = b.Indptr[v] + d
	}
	if edges := int(b.Indptr[n]); edges == len(c.Indices) {
		b.Indices = c.Indices
	} else {
		b.Indices = make([]int32, edges)
	}
	if o.EdgeIDs {
		b.EdgeIDs = make([]int64, len(b.Indices))
	}
	if o.Degrees {
		b.Degree = make([]int32, n)
	}
	if err := eachRow(ctx, c, o.Workers, func(v int, lo, hi int64) error {
		from, to := b.Indptr[v], b.Indptr[v+1]
		if o.Degrees {
			b.Degree[v] = to - from
		}
		at, k := int(hi-lo), 0 // without self loops to drop, an empty run at the end
		if o.DropSelfLoops {
			at, k = c.selfRun(int32(v))
		}
		if len(b.Indices) != len(c.Indices) {
			row := c.Indices[lo:hi]
			copy(b.Indices[from:], row[:at])
			copy(b.Indices[int(from)+at:], row[at+k:])
		}
		if o.EdgeIDs {
			ids := b.EdgeIDs[from:to]
			for j := range ids {
				ids[j] = lo + int64(j)
				if j >= at {
					ids[j] += int64(k)
				}
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if o.Transpose || o.TransposeAll {
		b.BuildTranspose()
	}
	return b, nil
}
