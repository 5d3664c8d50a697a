package datasets

import (
	"errors"
	"sync"

	"zerogcn/graph"
)

// Dataset is a graph with what is known about its nodes. It is read-only and
// safe for use by several goroutines; transforms return a new Dataset.
//
// Slices that a Dataset hands out may alias a file mapping: they are valid
// until Close, and must not be written to. A set that was opened from a native
// folder has not been read through (opening takes the same time whatever the
// size), so contents are checked where they are used: Labels and Split check
// what they return, Features every value that is read, and CheckGraph, which
// whoever walks Graph must call once, the graph.
type Dataset struct {
	Meta

	// Graph holds the edges by target. See CheckGraph.
	Graph *graph.CSR
	// Features has one row per node.
	Features *Features
	// Labels has one entry per node; nil for link sets without labels.
	Labels *Labels
	// NodeIDs, if not nil, gives the original id of each node (reordered sets).
	NodeIDs []int64
	// Warnings has what a reader found odd but kept, or mended, one line each.
	Warnings []string

	splits splitSource
	links  linkSource

	graphMu    sync.Mutex
	graphKnown bool // CheckGraph has passed

	closers []func() error
	spill   spill // for the sets derived from it
}

// splitSource gives the i-th given split. Implementations check nothing:
// Dataset.Split does.
type splitSource interface {
	count() int
	split(i int) (Split, error)
}

// ErrNoSplit is returned by Dataset.Split for sets that come without a split.
var ErrNoSplit = errors.New("the set has no given split")

// NumGivenSplits returns how many splits the set comes with, 0 if none.
func (d *Dataset) NumGivenSplits() int {
	if d.splits == nil {
		return 0
	}
	return d.splits.count()
}

// Split returns the i-th given split, read and checked now: ids in range,
// ascending, each in one part only, training part not empty. The slices are
// the caller's. A set without splits gives ErrNoSplit (see MakeSplit).
func (d *Dataset) Split(i int) (Split, error) {
	n := d.NumGivenSplits()
	if n == 0 {
		return Split{}, usageErrorf("dataset %s: %w: make one, for example random:0.6,0.2,0.2", d.Name, ErrNoSplit)
	}
	if i < 0 || i >= n {
		return Split{}, usageErrorf("dataset %s: split index %d: there are %d given splits, 0 to %d", d.Name, i, n, n-1)
	}
	s, err := d.splits.split(i)
	if err != nil {
		return Split{}, err
	}
	if err := s.check(d.NumNodes); err != nil {
		return Split{}, usageErrorf("dataset %s: split %d: %w", d.Name, i, err)
	}
	return s, nil
}

// EdgeList is a list of edges from Sources[i] to Targets[i].
type EdgeList struct{ Sources, Targets []int32 }

// Len returns the number of edges.
func (e EdgeList) Len() int { return len(e.Sources) }

// EdgeSets are the edges of a link-prediction set by part. The negative lists
// are empty where the set gives none.
type EdgeSets struct {
	Train, Valid, Test          EdgeList
	TrainNeg, ValidNeg, TestNeg EdgeList
}

type edgePart struct {
	name string
	list EdgeList
}

func (e *EdgeSets) parts() [6]edgePart {
	return [6]edgePart{
		{"train", e.Train}, {"valid", e.Valid}, {"test", e.Test},
		{"train negatives", e.TrainNeg}, {"valid negatives", e.ValidNeg}, {"test negatives", e.TestNeg},
	}
}

type linkSource interface {
	edges() (*EdgeSets, error)
}

// ErrNoEdgeSets is returned by Dataset.EdgeSets for sets that have none.
var ErrNoEdgeSets = errors.New("the set has no edge sets for link prediction")

// EdgeSets returns the edge sets for link prediction, read and checked now:
// every id is in range. The slices are the caller's.
func (d *Dataset) EdgeSets() (*EdgeSets, error) {
	if d.links == nil {
		return nil, usageErrorf("dataset %s: %w", d.Name, ErrNoEdgeSets)
	}
	e, err := d.links.edges()
	if err != nil {
		return nil, err
	}
	for _, part := range e.parts() {
		for _, ids := range [][]int32{part.list.Sources, part.list.Targets} {
			for i, v := range ids {
				if v < 0 || int(v) >= d.NumNodes {
					return nil, usageErrorf("dataset %s: %s edge %d names node %d: there are %d nodes", d.Name, part.name, i, v, d.NumNodes)
				}
			}
		}
	}
	return e, nil
}

// OriginalID returns the id that the source of the set gave to node v.
func (d *Dataset) OriginalID(v int32) int64 {
	if d.NodeIDs == nil {
		return int64(v)
	}
	return d.NodeIDs[v]
}

// Close releases files and mappings. Slices that the Dataset handed out are
// invalid afterwards. It is safe to call more than once.
func (d *Dataset) Close() error {
	var errs []error
	for i := len(d.closers) - 1; i >= 0; i-- {
		errs = append(errs, d.closers[i]())
	}
	d.closers = nil
	return errors.Join(errs...)
}
