package datasets

import (
	"context"
	"slices"

	"zerogcn/dtype"
	"zerogcn/graph"
	"zerogcn/internal/par"
	"zerogcn/sparse"
)

// SelfLoops says what a transform does with edges from a node to itself.
type SelfLoops uint8

// The choices; the zero value leaves them as they are.
const (
	KeepSelfLoops   SelfLoops = iota
	RemoveSelfLoops           // none afterwards
	AddSelfLoops              // exactly one per node afterwards
)

// GraphOptions say how TransformGraph changes the edges. The zero value of each
// leaves them as they are.
type GraphOptions struct {
	Symmetrize  bool // add the reverse of every edge, then keep each once
	Deduplicate bool // keep each edge once
	SelfLoops   SelfLoops
	Workers     par.Workers
}

// TransformGraph returns d with other edges. The result shares everything else
// with d and takes over its files: it is closed instead of d. Its Fingerprint
// stays that of the set it was made from; Write computes a new one. Given edge
// sets are not touched.
func TransformGraph(ctx context.Context, d *Dataset, o GraphOptions) (*Dataset, error) {
	if err := d.CheckGraph(ctx, o.Workers); err != nil {
		return nil, err
	}
	b := graph.Builder{
		NumNodes:        d.NumNodes,
		Symmetrize:      o.Symmetrize,
		Deduplicate:     o.Deduplicate || o.Symmetrize,
		RemoveSelfLoops: o.SelfLoops == RemoveSelfLoops,
		AddSelfLoops:    o.SelfLoops == AddSelfLoops,
		Workers:         o.Workers,
	}
	var g *graph.CSR
	err := guardFaults(func() (err error) {
		g, err = d.spill.build(ctx, d, b, graphEdges(d.Graph), d.Graph.NumEdges())
		return err
	})
	if err != nil {
		return nil, err
	}
	t := d.derive()
	t.Graph, t.NumEdges, t.graphKnown = g, g.NumEdges(), true
	return t, nil
}

// RowNormalize returns d with each feature row divided by its sum, as graph
// convolutional networks do with bags of words (Kipf and Welling, ICLR 2017,
// section 5.2). Rows whose sum is zero stay as they are. Features in a file are
// normalised when they are read. int8 features are refused: normalise before
// quantising.
//
// As with TransformGraph the result takes over d's files and keeps its
// Fingerprint.
func RowNormalize(ctx context.Context, d *Dataset) (*Dataset, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f := d.Features
	n := &Features{Rows: f.Rows, Dim: f.Dim, Type: f.Type, name: f.name}
	switch {
	case f.Type == dtype.Int8:
		return nil, usageErrorf("dataset %s: int8 features cannot be row-normalised: normalise before quantising", d.Name)
	case f.sparse != nil:
		m := *f.sparse
		m.Vals = slices.Clone(m.Vals)
		m.NormalizeRows()
		n.sparse = &m
	default:
		n.file = normalizedRows{f}
	}
	t := d.derive()
	t.Features = n
	return t, nil
}

// normalizedRows divides rows by their sums as they are read.
type normalizedRows struct{ f *Features }

func (r normalizedRows) readRows(lo, hi int, dst []byte) error {
	if r.f.Dim == 0 {
		return nil
	}
	v := make([]float32, (hi-lo)*r.f.Dim)
	if err := r.f.Float32Rows(context.Background(), lo, hi, v); err != nil {
		return err
	}
	for i := range hi - lo {
		row := v[i*r.f.Dim : (i+1)*r.f.Dim]
		sparse.NormalizeRow(row)
		r.f.Type.Narrow(dst[i*r.f.RowBytes():], row)
	}
	return nil
}

// derive returns a Dataset that shares all of d and takes over its files.
func (d *Dataset) derive() *Dataset {
	t := &Dataset{
		Meta: d.Meta, Graph: d.Graph, Features: d.Features, Labels: d.Labels, NodeIDs: d.NodeIDs,
		Warnings: d.Warnings, splits: d.splits, links: d.links, closers: d.closers, spill: d.spill,
	}
	d.graphMu.Lock()
	t.graphKnown = d.graphKnown
	d.graphMu.Unlock()
	d.closers = nil
	return t
}
