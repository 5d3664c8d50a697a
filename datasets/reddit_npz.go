package datasets

import (
	"context"
	"errors"
	"strings"

	"zerogcn/graph"
	"zerogcn/internal/npy"
)

// The pair of files in which DGL publishes Reddit (Hamilton et al., NIPS 2017):
// NAME_data.npz has feature, label and node_types (1 training, 2 validation, 3
// test), NAME_graph.npz a SciPy COO or CSR matrix. Entry (i, j) is the edge from
// i to j; edges are there both ways, and are kept as they are, repeated ones
// once.
var redditFormat = Format{
	Name:      "reddit-npz",
	Describe:  "DGL's Reddit: a folder with NAME_data.npz and NAME_graph.npz",
	Recognise: func(s *Source) bool { return redditName(s) != "" },
	Open:      openReddit,
}

const (
	redditData  = "_data.npz"
	redditGraph = "_graph.npz"
)

// redditName returns NAME, "" where there is no such pair.
func redditName(s *Source) string {
	for _, n := range s.Names {
		if name, ok := strings.CutSuffix(n, redditData); ok && s.Has(name+redditGraph) {
			return name
		}
	}
	return ""
}

func openReddit(ctx context.Context, s *Source, o Options) (*Dataset, error) {
	name := redditName(s)
	if name == "" {
		return nil, usageErrorf("%s: want NAME%s and NAME%s", s.Path, redditData, redditGraph)
	}
	z, closeAll, err := openArchives(s, name+redditData, name+redditGraph)
	if err != nil {
		return nil, err
	}
	d := &Dataset{Meta: Meta{Name: name, Source: "DGL npz pair", Task: Multiclass}, closers: []func() error{closeAll}}
	a := &renamedArrays{path: s.Path, from: map[string]renamedArray{"features": {z[0], "feature"}, "labels": {z[0], "label"}}}
	for _, part := range []string{"indptr", "indices", "data", "shape"} {
		a.from["adj_"+part] = renamedArray{z[1], part}
	}
	b := &bundle{arrays: a, d: d, w: o.Workers, n: -1}
	edges := b.graph
	if z[1].Has("row") && z[1].Has("col") {
		edges = func(ctx context.Context) error { return b.fromCOO(ctx, z[1]) }
	} else if err := wantCSR(z[1]); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	for _, step := range []func(context.Context) error{
		b.features, b.labels, edges,
		func(context.Context) error { return b.nodeTypes(z[0]) },
		func(ctx context.Context) error { return d.seal(ctx, o.Workers) },
	} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, d.Close())
		}
	}
	return d, nil
}

// fromCOO takes a SciPy COO matrix.
func (b *bundle) fromCOO(ctx context.Context, z *npy.Archive) error {
	var parts [3]*npy.Array
	for i, name := range []string{"row", "col", "data"} {
		if i == 2 && !z.Has(name) {
			break
		}
		a, err := z.Array(name)
		if err == nil {
			err = a.WantShape(-1)
		}
		if err == nil && i > 0 && a.Shape[0] != parts[0].Shape[0] {
			err = a.Errorf("%d entries, and row has %d", a.Shape[0], parts[0].Shape[0])
		}
		if err != nil {
			return err
		}
		parts[i] = a
	}
	var e graph.Edges
	var err error
	if e.Sources, err = npy.Read[int32](parts[0], b.w); err != nil {
		return err
	}
	if e.Targets, err = npy.Read[int32](parts[1], b.w); err != nil {
		return err
	}
	if b.n < 0 {
		if b.n, err = nodesOf(e); err != nil {
			return parts[0].Errorf("%w", err)
		}
	}
	if err := checkIDs(parts[0], e, 0, b.n); err != nil {
		return err
	}
	if parts[2] != nil {
		if e.Weights, err = finiteWeights(parts[2], b.w); err != nil {
			return err
		}
	}
	return b.build(ctx, e)
}

// nodeTypes reads the part of each node.
func (b *bundle) nodeTypes(z *npy.Archive) error {
	if !z.Has("node_types") {
		return nil
	}
	a, err := z.Array("node_types")
	if err != nil {
		return err
	}
	if err := a.WantShape(b.n); err != nil {
		return err
	}
	types, err := npy.Read[int64](a, b.w)
	if err != nil {
		return err
	}
	var sp Split
	for v, t := range types {
		switch t {
		case 0: // in no part
		case 1:
			sp.Train = append(sp.Train, int32(v))
		case 2:
			sp.Valid = append(sp.Valid, int32(v))
		case 3:
			sp.Test = append(sp.Test, int32(v))
		default:
			return a.Errorf("node %d is of type %d: want 1 (training), 2 (validation), 3 (test) or 0 (none)", v, t)
		}
	}
	if err := sp.check(int(b.n)); err != nil {
		return a.Errorf("%w", err)
	}
	b.d.splits = memorySplits{sp}
	return nil
}
