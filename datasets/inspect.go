package datasets

import (
	"context"
	"math"
	"slices"

	"zerogcn/graph"
	"zerogcn/internal/par"
)

// Report is what Inspect finds: a set's description, counts over all of its
// content, and warnings in words. Its JSON has the keys of meta.json at the top.
type Report struct {
	Meta
	Graph    GraphReport   `json:"graph"`
	Features FeatureReport `json:"features"`
	Labels   *LabelReport  `json:"labels,omitempty"`
	Splits   []SplitReport `json:"splits,omitempty"`
	Warnings []string      `json:"warnings,omitempty"`
}

// GraphReport counts edges and degrees.
type GraphReport struct {
	Weighted   bool  `json:"weighted"`
	SelfLoops  int64 `json:"self_loops"`
	Duplicates int64 `json:"duplicates"` // edges beyond the first of their pair
	// Unpaired counts pairs of nodes joined in one direction only; 0 means
	// symmetric.
	Unpaired     int64   `json:"unpaired"`
	Symmetric    bool    `json:"symmetric"`
	Isolated     int     `json:"isolated"` // nodes without neighbours
	MeanDegree   float64 `json:"mean_in_degree"`
	MedianDegree int     `json:"median_in_degree"`
	P99Degree    int     `json:"p99_in_degree"`
	MaxDegree    int64   `json:"max_in_degree"`
	MaxOutDegree int64   `json:"max_out_degree"`
	// Homophily is the share of edges between two labelled nodes, self loops
	// left out, that join nodes of one class; nil where there are no classes.
	Homophily *float64 `json:"homophily,omitempty"`
}

// FeatureReport has the range of the features.
type FeatureReport struct {
	Min      float64 `json:"min"`
	Max      float64 `json:"max"`
	Mean     float64 `json:"mean"`
	NonZero  float64 `json:"nonzero_share"`
	ZeroRows int     `json:"zero_rows"` // nodes whose features are all zero
}

// LabelReport counts labels. Counts has nodes per class, or positive nodes per
// label; Min, Mean and Max describe regression targets.
type LabelReport struct {
	Labelled int     `json:"labelled"`
	Counts   []int   `json:"counts,omitempty"`
	Min      float64 `json:"min,omitempty"`
	Mean     float64 `json:"mean,omitempty"`
	Max      float64 `json:"max,omitempty"`
}

// SplitReport has the sizes of a given split's parts and, for classes, the nodes
// per class in each.
type SplitReport struct {
	Train       int   `json:"train"`
	Valid       int   `json:"valid"`
	Test        int   `json:"test"`
	TrainCounts []int `json:"train_counts,omitempty"`
	ValidCounts []int `json:"valid_counts,omitempty"`
	TestCounts  []int `json:"test_counts,omitempty"`
}

// Inspect reads the whole set and describes it.
func Inspect(ctx context.Context, d *Dataset, w par.Workers) (*Report, error) {
	if err := d.CheckGraph(ctx, w); err != nil {
		return nil, err
	}
	in := inspection{ctx: ctx, d: d, w: w, r: &Report{Meta: d.Meta, Warnings: slices.Clone(d.Warnings)}}
	for _, step := range []func() error{in.features, in.labels, in.graph, in.splits} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	in.advise()
	return in.r, nil
}

type inspection struct {
	ctx   context.Context
	d     *Dataset
	w     par.Workers
	r     *Report
	class []int32 // nil without classes
	empty []bool  // nodes whose features are all zero
	stats graph.Stats
}

func (in *inspection) graph() error {
	g := in.d.Graph
	err := guardFaults(func() (err error) {
		in.stats, err = g.Stats(in.ctx, in.w)
		return err
	})
	if err != nil {
		return err
	}
	s, n := in.stats, in.d.NumNodes
	degrees := make([]int32, n)
	for v := range degrees {
		degrees[v] = int32(min(g.InDegree(int32(v)), math.MaxInt32))
	}
	slices.Sort(degrees)
	in.r.Graph = GraphReport{
		Weighted: g.Weights != nil, SelfLoops: s.SelfLoops, Duplicates: s.Duplicates, Unpaired: s.Unpaired, Symmetric: s.Symmetric(),
		Isolated: s.Isolated, MaxDegree: s.MaxInDegree, MaxOutDegree: s.MaxOutDegree,
	}
	if n > 0 {
		in.r.Graph.MeanDegree = float64(s.NumEdges) / float64(n)
		in.r.Graph.MedianDegree, in.r.Graph.P99Degree = int(degrees[n/2]), int(degrees[n*99/100])
	}
	if in.class != nil {
		return in.homophily()
	}
	return nil
}

func (in *inspection) homophily() error {
	g := in.d.Graph
	tiles := par.Tiles(in.d.NumNodes, graphTile)
	same, all := make([]int64, tiles), make([]int64, tiles)
	err := eachTile(in.ctx, in.w, in.d.NumNodes, graphTile, func(lo, hi int) error {
		t := lo / graphTile
		for v := lo; v < hi; v++ {
			c := in.class[v]
			if c < 0 {
				continue
			}
			for _, u := range g.Row(int32(v)) {
				if int(u) == v || in.class[u] < 0 {
					continue
				}
				all[t]++
				if in.class[u] == c {
					same[t]++
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	var s, a int64
	for t := range same {
		s, a = s+same[t], a+all[t]
	}
	if a > 0 {
		h := float64(s) / float64(a)
		in.r.Graph.Homophily = &h
	}
	return nil
}

// featureSums are those of a tile of rows.
type featureSums struct {
	min, max, sum float64
	nonZero       int64
}

func (in *inspection) features() error {
	f := in.d.Features
	in.empty = make([]bool, f.Rows)
	if f.Dim == 0 || f.Rows == 0 {
		return nil
	}
	tile := max(1, (1<<20)/(4*f.Dim))
	sums := make([]featureSums, par.Tiles(f.Rows, tile))
	err := eachTile(in.ctx, in.w, f.Rows, tile, func(lo, hi int) error {
		s := featureSums{min: math.Inf(1), max: math.Inf(-1)}
		x := make([]float32, (hi-lo)*f.Dim)
		if err := f.Float32Rows(in.ctx, lo, hi, x); err != nil {
			return err
		}
		for r := range hi - lo {
			before := s.nonZero
			for _, v := range x[r*f.Dim : (r+1)*f.Dim] {
				s.min, s.max = min(s.min, float64(v)), max(s.max, float64(v))
				s.sum += float64(v)
				if v != 0 {
					s.nonZero++
				}
			}
			in.empty[lo+r] = s.nonZero == before
		}
		sums[lo/tile] = s
		return nil
	})
	if err != nil {
		return err
	}
	all := featureSums{min: math.Inf(1), max: math.Inf(-1)}
	for _, s := range sums {
		all.min, all.max = min(all.min, s.min), max(all.max, s.max)
		all.sum += s.sum
		all.nonZero += s.nonZero
	}
	cells := float64(f.Rows) * float64(f.Dim)
	rep := FeatureReport{Min: all.min, Max: all.max, Mean: all.sum / cells, NonZero: float64(all.nonZero) / cells}
	for _, e := range in.empty {
		if e {
			rep.ZeroRows++
		}
	}
	in.r.Features = rep
	return nil
}

func (in *inspection) labels() error {
	l := in.d.Labels
	if l == nil {
		return nil
	}
	rep := &LabelReport{}
	in.r.Labels = rep
	for v := range l.n {
		if l.Labelled(v) {
			rep.Labelled++
		}
	}
	switch {
	case l.HasClass():
		in.class = make([]int32, l.n)
		if err := l.Classes(in.class, nil); err != nil {
			return err
		}
		rep.Counts = make([]int, l.width)
		for _, c := range in.class {
			if c >= 0 {
				rep.Counts[c]++
			}
		}
	case l.HasMulti():
		multi := make([]uint8, l.n*l.width)
		if err := l.Multi(multi, nil); err != nil {
			return err
		}
		rep.Counts = make([]int, l.width)
		for i, x := range multi {
			if x == 1 {
				rep.Counts[i%l.width]++
			}
		}
	default:
		value := make([]float32, l.n*l.width)
		if err := l.Values(value, nil); err != nil {
			return err
		}
		known := 0
		for _, x := range value {
			if x != x {
				continue
			}
			y := float64(x)
			if known == 0 {
				rep.Min, rep.Max = y, y
			}
			rep.Min, rep.Max = min(rep.Min, y), max(rep.Max, y)
			rep.Mean += y
			known++
		}
		rep.Mean /= float64(max(1, known))
	}
	return nil
}

// countClasses counts the classes of the given nodes.
func countClasses(class, ids []int32, classes int) []int {
	n := make([]int, classes)
	for _, v := range ids {
		if c := class[v]; c >= 0 {
			n[c]++
		}
	}
	return n
}

func (in *inspection) splits() error {
	for i := range in.d.NumGivenSplits() {
		s, err := in.d.Split(i)
		if err != nil {
			return err
		}
		rep := SplitReport{Train: len(s.Train), Valid: len(s.Valid), Test: len(s.Test)}
		if in.class != nil {
			k := in.d.Labels.width
			rep.TrainCounts, rep.ValidCounts, rep.TestCounts = countClasses(in.class, s.Train, k), countClasses(in.class, s.Valid, k), countClasses(in.class, s.Test, k)
		}
		in.r.Splits = append(in.r.Splits, rep)
		if i == 0 {
			in.adviseSplit(s, rep)
		}
	}
	return nil
}
