package datasets

import (
	"context"
	"fmt"

	"zerogcn/graph"
	"zerogcn/internal/npy"
	"zerogcn/internal/par"
)

// csr opens the parts of a sparse matrix: indptr, indices, data (nil if there
// is none). Without a shape it has as many columns as rows.
func (b *bundle) csr(prefix string) (rows, cols int64, parts [3]*npy.Array, err error) {
	for i, name := range []string{"indptr", "indices", "data"} {
		if i == 2 && !b.Has(prefix+name) {
			break
		}
		if parts[i], err = b.Array(prefix + name); err != nil {
			return 0, 0, parts, err
		}
		if err := parts[i].WantShape(-1); err != nil {
			return 0, 0, parts, err
		}
	}
	rows = parts[0].Shape[0] - 1
	cols = rows
	if rows < 0 {
		return 0, 0, parts, parts[0].Errorf("no offsets: want one more than there are rows")
	}
	if !b.Has(prefix + "shape") {
		return rows, cols, parts, nil
	}
	a, err := b.Array(prefix + "shape")
	if err != nil {
		return 0, 0, parts, err
	}
	if err := a.WantShape(2); err != nil {
		return 0, 0, parts, err
	}
	shape, err := npy.Read[int64](a, 1)
	if err != nil {
		return 0, 0, parts, err
	}
	if shape[0] != rows || shape[1] < 0 {
		return 0, 0, parts, a.Errorf("%d × %d, and there are %d offsets of rows", shape[0], shape[1], rows+1)
	}
	return rows, shape[1], parts, nil
}

func (b *bundle) graph(ctx context.Context) error {
	if p, ok := pickCSR(b, csrPrefixes); ok {
		return b.graphFromCSR(ctx, p)
	}
	name := pick(b, edgeNames)
	if name == "" {
		return usageErrorf("%s: no graph: want edges, edge_index, or indptr and indices", b.Path())
	}
	a, err := b.Array(name)
	if err != nil {
		return err
	}
	if err := a.WantShape(-1, -1); err != nil {
		return err
	}
	// (edges, 2) or (2, edges): PyG's edge_index is the latter.
	across := a.Shape[0] == 2 && (a.Shape[1] != 2 || name == "edge_index")
	if !across && a.Shape[1] != 2 {
		return a.Errorf("the shape is %s: want (edges, 2) or (2, edges)", a.ShapeString())
	}
	flat, err := npy.Read[int32](a, b.w)
	if err != nil {
		return err
	}
	var e graph.Edges
	if across {
		e = graph.Edges{Sources: flat[:len(flat)/2], Targets: flat[len(flat)/2:]}
	} else {
		l := splitPairs(flat)
		e = graph.Edges{Sources: l.Sources, Targets: l.Targets}
	}
	if b.n < 0 {
		if b.n, err = nodesOf(e); err != nil {
			return a.Errorf("%w", err)
		}
	}
	for i, u := range e.Sources {
		if v := e.Targets[i]; u < 0 || v < 0 || int64(u) >= b.n || int64(v) >= b.n {
			return a.Errorf("edge %d leads from node %d to node %d: there are %d nodes, numbered from 0", i, u, v, b.n)
		}
	}
	if w := pick(b, weightNames); w != "" {
		if e.Weights, err = b.weights(w, int64(len(e.Sources))); err != nil {
			return err
		}
	}
	return b.build(ctx, e)
}

// nodesOf infers the number of nodes from edges, where nothing else tells it.
// Ids that would leave nearly all nodes without an edge are refused: they are
// names, not numbers, and a single one could ask for any amount of memory.
func nodesOf(e graph.Edges) (int64, error) {
	top := int32(-1)
	for i, u := range e.Sources {
		top = max(top, u, e.Targets[i])
	}
	n := int64(top) + 1
	if n > 1000+64*int64(len(e.Sources)) {
		return 0, fmt.Errorf("the largest node number is %d with %d edges: are these names? give features or labels, whose rows count the nodes, or read it with -format named-edges", top, len(e.Sources))
	}
	return n, nil
}

func (b *bundle) weights(name string, edges int64) ([]float32, error) {
	a, err := b.Array(name)
	if err != nil {
		return nil, err
	}
	if err := a.WantShape(edges); err != nil {
		return nil, err
	}
	return finiteWeights(a, b.w)
}

// finiteWeights reads weights; nil stands for weights that are all 1.
func finiteWeights(a *npy.Array, w par.Workers) ([]float32, error) {
	v, err := npy.Read[float32](a, w)
	if err != nil {
		return nil, err
	}
	ones := true
	for i, x := range v {
		if x-x != 0 {
			return nil, a.Errorf("the weight of edge %d is %v: want a finite number", i, x)
		}
		ones = ones && x == 1
	}
	if ones {
		return nil, nil
	}
	return v, nil
}

// graphFromCSR takes a sparse adjacency: entry (i, j) is the edge from i to j,
// but for our own layout, whose rows list incoming edges.
func (b *bundle) graphFromCSR(ctx context.Context, prefix string) error {
	rows, cols, parts, err := b.csr(prefix)
	if err != nil {
		return err
	}
	if rows != cols {
		return parts[0].Errorf("an adjacency of %d × %d: want a square one", rows, cols)
	}
	if err := b.nodes(parts[0], rows); err != nil {
		return err
	}
	ptr, err := npy.Read[int64](parts[0], b.w)
	if err != nil {
		return err
	}
	idx, err := npy.Read[int32](parts[1], b.w)
	if err != nil {
		return err
	}
	if err := checkOffsets(parts[0], ptr, int64(len(idx))); err != nil {
		return err
	}
	row := make([]int32, len(idx))
	for r := range int(rows) {
		for k := ptr[r]; k < ptr[r+1]; k++ {
			if c := idx[k]; c < 0 || int64(c) >= rows {
				return parts[1].Errorf("row %d names node %d: there are %d nodes, numbered from 0", r, c, rows)
			}
			row[k] = int32(r)
		}
	}
	e := graph.Edges{Sources: row, Targets: idx}
	if prefix == "" {
		e.Sources, e.Targets = idx, row
	}
	if parts[2] != nil {
		if err := parts[2].WantShape(int64(len(idx))); err != nil {
			return err
		}
		if e.Weights, err = finiteWeights(parts[2], b.w); err != nil {
			return err
		}
	}
	return b.build(ctx, e)
}

func (b *bundle) build(ctx context.Context, e graph.Edges) error {
	bld := graph.Builder{NumNodes: int(b.n), Symmetrize: b.once, Deduplicate: true, Workers: b.w}
	var err error
	if b.d.Graph, err = bld.FromEdges(ctx, e.Sources, e.Targets, e.Weights); err != nil {
		return err
	}
	if !b.once {
		if dropped := int64(len(e.Sources)) - b.d.Graph.NumEdges(); dropped > 0 {
			b.d.Warnings = append(b.d.Warnings, plural(dropped, "repeated edge", "repeated edges")+" kept once")
		}
	}
	return nil
}
