package trainer

import (
	"context"
	"errors"
	"fmt"

	"zerogcn/datasets"
	"zerogcn/internal/par"
	"zerogcn/internal/usage"
	"zerogcn/loader"
	"zerogcn/model/metric"
)

// DataOptions says which dataset to train on and what to make of it. It is
// stored in checkpoints.
type DataOptions struct {
	Name   string `json:"dataset"`
	Root   string `json:"root,omitempty"`
	Format string `json:"format,omitempty"`

	// MakeSplit makes a split, such as "random:0.6,0.2,0.2" (the default for
	// sets without one); SplitIndex chooses among given ones.
	MakeSplit  string `json:"make_split,omitempty"`
	SplitSeed  uint64 `json:"split_seed"`
	SplitIndex int    `json:"split_index"`

	Symmetrize   bool   `json:"symmetrize"`
	SelfLoops    string `json:"self_loops"` // keep (the default), remove or add
	RowNormalize bool   `json:"row_normalize"`
	// Dense keeps features dense that are mostly zero, for models that cannot
	// take sparse ones.
	Dense bool `json:"dense,omitempty"`

	// Order renumbers the nodes by how often batches ask for them, so that a
	// cache holds the hottest rows if it holds the first: "degree", or "none" (or
	// empty) for the stored order.
	Order string `json:"order,omitempty"`

	// OnDevice leaves the features to whoever puts them on a GPU.
	OnDevice bool `json:"-"`
	Workers  int  `json:"-"`
}

// DefaultSplit is what sets without a split get.
const DefaultSplit = "random:0.6,0.2,0.2"

// SelfLoopModes lists the values of DataOptions.SelfLoops.
func SelfLoopModes() []string { return []string{"keep", "remove", "add"} }

// Data is a dataset made ready for training. It is read-only.
type Data struct {
	*datasets.Dataset
	Options DataOptions
	// Features are the features on the host, nil with Options.OnDevice.
	Features *loader.Features
}

// OpenData opens and transforms a dataset, checks its graph, and opens its
// features. Notes are decisions and warnings worth a line of log.
func OpenData(ctx context.Context, o DataOptions) (d *Data, notes []Note, err error) {
	w := par.Workers(o.Workers)
	ds, err := datasets.Open(ctx, o.Name, datasets.Options{Root: o.Root, Format: o.Format, Workers: w})
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ds.Close())
		}
	}()
	for _, t := range ds.Warnings {
		notes = append(notes, Note{Warning: true, Text: t})
	}
	if err := ds.CheckGraph(ctx, w); err != nil {
		return nil, notes, usage.Wrap(err)
	}
	loops := map[string]datasets.SelfLoops{"": datasets.KeepSelfLoops, "keep": datasets.KeepSelfLoops,
		"remove": datasets.RemoveSelfLoops, "add": datasets.AddSelfLoops}
	mode, ok := loops[o.SelfLoops]
	if !ok {
		return nil, notes, usage.Errorf("self loops %q: want keep, remove or add", o.SelfLoops)
	}
	if o.Symmetrize || mode != datasets.KeepSelfLoops {
		before := ds.NumEdges
		t, err := datasets.TransformGraph(ctx, ds, datasets.GraphOptions{Symmetrize: o.Symmetrize, SelfLoops: mode, Workers: w})
		if err != nil {
			return nil, notes, err
		}
		ds = t
		notes = append(notes, Note{Text: fmt.Sprintf("graph: %d edges as stored, %d after symmetrising or changing self loops", before, ds.NumEdges)})
	}
	if o.RowNormalize {
		t, err := datasets.RowNormalize(ctx, ds)
		if err != nil {
			return nil, notes, err
		}
		ds = t
	}
	if o.Order != "" && o.Order != "none" {
		t, note, err := reorder(ctx, ds, o)
		if err != nil {
			return nil, notes, err
		}
		ds = t
		notes = append(notes, note)
	}
	if ds.Fingerprint == "" {
		if ds.Fingerprint, err = datasets.Fingerprint(ctx, ds, w); err != nil {
			return nil, notes, err
		}
	}
	if ds.Labels == nil {
		return nil, notes, usage.Errorf("dataset %s has no labels: there is nothing to learn", ds.Name)
	}
	if !ds.Labels.HasClass() && !ds.Labels.HasMulti() {
		return nil, notes, usage.Errorf("dataset %s: task %s is not trainable yet, only sets with classes or several labels a node are", ds.Name, ds.Task)
	}
	if o.OnDevice {
		return &Data{Dataset: ds, Options: o}, notes, nil
	}
	f, err := loader.OpenFeatures(ctx, ds, loader.FeatureOptions{Dense: o.Dense, Workers: o.Workers})
	if err != nil {
		return nil, notes, usage.Wrap(err)
	}
	if f.IsSparse() {
		notes = append(notes, Note{Text: fmt.Sprintf("features: mostly zero, kept as sparse rows (%.1f non-zeros of %d a node)", f.RowBytes()/8, f.Width())})
	}
	return &Data{Dataset: ds, Options: o, Features: f}, notes, nil
}

// reorder renumbers a dataset by hotness, unless it comes in such an order.
func reorder(ctx context.Context, ds *datasets.Dataset, o DataOptions) (*datasets.Dataset, Note, error) {
	if o.Order != "degree" {
		return nil, Note{}, usage.Errorf("order %q: want none or degree", o.Order)
	}
	if ds.Order != datasets.Original {
		return ds, Note{Text: fmt.Sprintf("nodes are numbered by %s already", ds.Order)}, nil
	}
	w := par.Workers(o.Workers)
	order, err := datasets.DegreeOrder(ctx, ds, w)
	if err != nil {
		return nil, Note{}, err
	}
	t, err := datasets.Reorder(ctx, ds, order, datasets.ByDegree, w)
	return t, Note{Text: "nodes renumbered by degree in memory"}, err
}

// ChooseSplit returns the split that the options name: a made one if they ask
// for it, else given split SplitIndex, else, for a set without any, DefaultSplit
// with a note.
func (d *Data) ChooseSplit() (datasets.Split, []Note, error) {
	o := &d.Options
	given := d.NumGivenSplits()
	if o.MakeSplit == "" && given > 0 {
		if o.SplitIndex < 0 || o.SplitIndex >= given {
			return datasets.Split{}, nil, usage.Errorf("dataset %s: split %d of %d: give -split-index from 0 to %d", d.Name, o.SplitIndex, given, given-1)
		}
		s, err := d.Split(o.SplitIndex)
		return s, nil, err
	}
	spec, notes := o.MakeSplit, []Note(nil)
	if spec == "" {
		spec = DefaultSplit
		notes = []Note{{Text: fmt.Sprintf("%s comes without a split: using %s with split seed %d", d.Name, spec, o.SplitSeed)}}
	}
	s, err := datasets.MakeSplit(d.Dataset, spec, o.SplitSeed)
	return s, notes, err
}

// Metric names what is measured on the dataset: accuracy, or micro F1 where nodes
// have several labels.
func (d *Data) Metric() string {
	if d.Labels.HasMulti() {
		return metric.MicroF1
	}
	return metric.Accuracy
}

// RowBytes returns the mean size of a node's features as stored.
func (d *Data) RowBytes() float64 {
	if d.Features == nil {
		return float64(d.Dataset.Features.RowBytes())
	}
	return d.Features.RowBytes()
}

// Close releases the features and the dataset.
func (d *Data) Close() error {
	if d.Features == nil {
		return d.Dataset.Close()
	}
	return errors.Join(d.Features.Close(), d.Dataset.Close())
}
