package datasets

import (
	"context"
	"errors"
	"slices"

	"zerogcn/graph"
	"zerogcn/internal/par"
)

// Parts are what New makes a Dataset of. All but Name, Task and Graph may be
// left out.
type Parts struct {
	Name       string
	Task       Task
	ClassNames []string
	Graph      *graph.CSR
	Features   *Features // nil: no features
	Labels     *Labels
	Splits     []Split
	EdgeSets   *EdgeSets
	NodeIDs    []int64
	Order      Order // empty: Original
}

// New makes a Dataset of parts in memory, for programs that have their own graph.
// It checks the parts and that they fit each other, and computes the
// fingerprint, so it reads everything once. The Dataset keeps the parts, which
// must not be changed afterwards; splits are copied.
func New(ctx context.Context, p Parts, w par.Workers) (*Dataset, error) {
	if p.Graph == nil {
		return nil, errors.New("datasets: New without a graph")
	}
	d := &Dataset{
		Meta:  Meta{Name: p.Name, Source: "memory", Task: p.Task, ClassNames: p.ClassNames, Order: p.Order, NumNodes: p.Graph.NumNodes()},
		Graph: p.Graph, Features: p.Features, Labels: p.Labels, NodeIDs: p.NodeIDs,
	}
	if err := d.CheckGraph(ctx, w); err != nil {
		return nil, err
	}
	if d.Features != nil {
		if err := d.Features.CheckFinite(ctx, w); err != nil {
			return nil, err
		}
	}
	if d.Labels != nil {
		if err := d.Labels.check(ctx, w); err != nil {
			return nil, err
		}
	}
	if err := d.checkNodeIDs(); err != nil {
		return nil, err
	}
	var splits memorySplits
	for i, s := range p.Splits {
		s = Split{slices.Clone(s.Train), slices.Clone(s.Valid), slices.Clone(s.Test)}
		if err := s.check(d.NumNodes); err != nil {
			return nil, usageErrorf("dataset %s: split %d: %w", d.Name, i, err)
		}
		splits = append(splits, s)
	}
	if splits != nil {
		d.splits = splits
	}
	if p.EdgeSets != nil {
		d.links = memoryEdges{*p.EdgeSets}
		if _, err := d.EdgeSets(); err != nil {
			return nil, err
		}
	}
	if err := d.seal(ctx, w); err != nil {
		return nil, err
	}
	if err := d.Meta.check(); err != nil {
		return nil, usageErrorf("dataset %s: %w", d.Name, err)
	}
	return d, nil
}

// memoryEdges are edge sets in memory.
type memoryEdges struct{ e EdgeSets }

func (m memoryEdges) edges() (*EdgeSets, error) {
	e := &EdgeSets{}
	for i, to := range []*EdgeList{&e.Train, &e.Valid, &e.Test, &e.TrainNeg, &e.ValidNeg, &e.TestNeg} {
		from := m.e.parts()[i].list
		if len(from.Sources) != len(from.Targets) {
			return nil, usageErrorf("an edge set of %d sources and %d targets", len(from.Sources), len(from.Targets))
		}
		*to = EdgeList{slices.Clone(from.Sources), slices.Clone(from.Targets)}
	}
	return e, nil
}
