package datasets

import (
	"context"
	"fmt"
	"slices"

	"zerogcn/graph"
	"zerogcn/internal/par"
	"zerogcn/internal/philox"
	"zerogcn/sparse"
)

// DegreeOrder ranks the nodes by the number of edges that leave them: a node is
// gathered when it is the source of a sampled edge, so these are the rows that
// batches ask for most. The first element is the node that comes first; ties
// keep their order.
func DegreeOrder(ctx context.Context, d *Dataset, w par.Workers) ([]int32, error) {
	if err := d.CheckGraph(ctx, w); err != nil {
		return nil, err
	}
	out, err := d.Graph.OutDegrees(ctx, w)
	if err != nil {
		return nil, err
	}
	return descending(out), nil
}

// AccessOptions describe the warm-up that AccessOrder counts.
type AccessOptions struct {
	Seeds   []int32 // ascending; usually the training nodes
	Fanouts []int   // from the seeds outwards
	Batch   int     // seeds of a batch
	Epochs  int
	Seed    uint64
	Workers par.Workers
}

// AccessOrder ranks the nodes by how many batches of a sampled warm-up gather
// them: what a cache of the first rows will meet, if training samples likewise.
// Nodes of equal counts are ranked by degree.
func AccessOrder(ctx context.Context, d *Dataset, o AccessOptions) ([]int32, error) {
	if err := d.CheckGraph(ctx, o.Workers); err != nil {
		return nil, err
	}
	if len(o.Seeds) == 0 || o.Batch < 1 || len(o.Fanouts) == 0 || o.Epochs < 1 {
		return nil, fmt.Errorf("datasets: a warm-up of %d seeds, batches of %d, fan-outs %v and %d epochs", len(o.Seeds), o.Batch, o.Fanouts, o.Epochs)
	}
	s, err := graph.NewSampler(d.Graph, graph.Options{Fanouts: o.Fanouts, Workers: o.Workers})
	if err != nil {
		return nil, err
	}
	count, err := d.Graph.OutDegrees(ctx, o.Workers)
	if err != nil {
		return nil, err
	}
	top := slices.Max(count) + 1 // a count weighs more than any degree
	ids := make([]int32, len(o.Seeds))
	var batch graph.Batch
	step := uint64(0)
	for epoch := range o.Epochs {
		graph.ShuffleEpoch(ids, o.Seeds, o.Seed, uint64(epoch))
		for part := range slices.Chunk(ids, o.Batch) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			slices.Sort(part)
			if err := s.Sample(o.Seed, philox.Sample, step, part, &batch); err != nil {
				return nil, err
			}
			for _, v := range batch.Nodes {
				count[v] += top
			}
			step++
		}
	}
	return descending(count), nil
}

// descending returns the positions of count, largest value first, ties in
// order.
func descending(count []int64) []int32 {
	order := make([]int32, len(count))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		switch ca, cb := count[a], count[b]; {
		case ca > cb:
			return -1
		case ca < cb:
			return 1
		}
		return int(a) - int(b)
	})
	return order
}

// Reorder returns d with its nodes renumbered: node k of the result is node
// order[k] of d. order is a permutation, how says which. Original ids are kept
// in NodeIDs. Features in a file are read row by row, when they are read.
//
// As with TransformGraph the result takes over d's files; its Fingerprint is
// empty, since batches of one numbering are not those of another.
func Reorder(ctx context.Context, d *Dataset, order []int32, how Order, w par.Workers) (*Dataset, error) {
	if err := d.CheckGraph(ctx, w); err != nil {
		return nil, err
	}
	to, err := inverse(order, d.NumNodes)
	if err != nil {
		return nil, err
	}
	t := d.derive()
	fail := func(err error) (*Dataset, error) {
		d.closers = t.closers // the caller still closes d
		return nil, err
	}
	b := graph.Builder{NumNodes: d.NumNodes, Workers: w}
	if err := guardFaults(func() (err error) {
		t.Graph, err = d.spill.build(ctx, t, b, renumbered(graphEdges(d.Graph), to), d.Graph.NumEdges())
		return err
	}); err != nil {
		return fail(err)
	}
	t.graphKnown = true
	if t.Features, err = d.spill.reorder(ctx, t, d.Features, order, to, w); err != nil {
		return fail(err)
	}
	if d.Labels != nil {
		if t.Labels, err = d.Labels.pick(order); err != nil {
			return fail(err)
		}
	}
	t.NodeIDs = make([]int64, d.NumNodes)
	for k, v := range order {
		t.NodeIDs[k] = d.OriginalID(v)
	}
	if d.splits != nil {
		t.splits = reorderedSplits{d.splits, to}
	}
	if d.links != nil {
		t.links = reorderedLinks{d, to}
	}
	t.Order, t.Fingerprint = how, ""
	return t, nil
}

// inverse returns the place of each node in a permutation of n nodes.
func inverse(order []int32, n int) ([]int32, error) {
	if len(order) != n {
		return nil, fmt.Errorf("datasets: an order of %d nodes for %d", len(order), n)
	}
	to := slices.Repeat([]int32{-1}, n)
	for k, v := range order {
		if v < 0 || int(v) >= n || to[v] >= 0 {
			return nil, fmt.Errorf("datasets: place %d of the order names node %d: not a permutation of %d nodes", k, v, n)
		}
		to[v] = int32(k)
	}
	return to, nil
}

// renumbered maps the ends of edges as they pass.
func renumbered(src graph.EdgeSource, to []int32) graph.EdgeSource {
	return func(yield func(graph.Edges, error) bool) {
		var e graph.Edges
		for in, err := range src {
			e.Sources, e.Targets, e.Weights = e.Sources[:0], e.Targets[:0], in.Weights
			for i, s := range in.Sources {
				e.Sources = append(e.Sources, to[s])
				e.Targets = append(e.Targets, to[in.Targets[i]])
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func reorderedFeatures(f *Features, order []int32) *Features {
	n := &Features{Rows: f.Rows, Dim: f.Dim, Type: f.Type, name: f.name}
	if f.scales != nil {
		n.scales = make([]float32, len(order))
		for k, v := range order {
			n.scales[k] = f.scales[v]
		}
	}
	if f.sparse != nil {
		n.sparse = &sparse.Matrix{}
		f.sparse.Gather(n.sparse, order)
	} else {
		n.file = reorderedRows{f, order}
	}
	return n
}

type reorderedRows struct {
	f     *Features
	order []int32
}

func (r reorderedRows) readRows(lo, hi int, dst []byte) error {
	rb := r.f.RowBytes()
	for k := lo; k < hi; k++ {
		v := int(r.order[k])
		if err := r.f.ReadRows(context.Background(), v, v+1, dst[(k-lo)*rb:(k-lo+1)*rb]); err != nil {
			return err
		}
	}
	return nil
}

// pick returns the labels of the given nodes, checked.
func (l *Labels) pick(ids []int32) (*Labels, error) {
	n := &Labels{name: l.name, n: len(ids), width: l.width}
	switch {
	case l.multi != nil:
		n.multi = make([]uint8, len(ids)*l.width)
		return n, l.Multi(n.multi, ids)
	case l.value != nil:
		n.value = make([]float32, len(ids)*l.width)
		return n, l.Values(n.value, ids)
	}
	n.class32 = make([]int32, len(ids))
	return n, l.Classes(n.class32, ids)
}

type reorderedSplits struct {
	from splitSource
	to   []int32
}

func (r reorderedSplits) count() int { return r.from.count() }

func (r reorderedSplits) split(i int) (Split, error) {
	s, err := r.from.split(i)
	if err != nil {
		return s, err
	}
	if err := s.check(len(r.to)); err != nil {
		return s, usageErrorf("split %d: %w", i, err)
	}
	for _, p := range s.parts() {
		for k, v := range p.ids {
			p.ids[k] = r.to[v]
		}
		slices.Sort(p.ids)
	}
	return s, nil
}

type reorderedLinks struct {
	from *Dataset
	to   []int32
}

func (r reorderedLinks) edges() (*EdgeSets, error) {
	e, err := r.from.EdgeSets()
	if err != nil {
		return nil, err
	}
	for _, p := range e.parts() {
		for _, ids := range [][]int32{p.list.Sources, p.list.Targets} {
			for k, v := range ids {
				ids[k] = r.to[v]
			}
		}
	}
	return e, nil
}
