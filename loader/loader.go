package loader

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"zerogcn/datasets"
	"zerogcn/graph"
	"zerogcn/internal/invariants"
	"zerogcn/internal/par"
	"zerogcn/internal/philox"
	"zerogcn/internal/pipeline"
)

// Sampling says how neighbours are drawn.
type Sampling string

// The ways of sampling; the empty string is Uniform.
const (
	Uniform  Sampling = "uniform"  // without replacement, each neighbour alike
	Replace  Sampling = "replace"  // with replacement
	Weighted Sampling = "weighted" // without replacement, by edge weight
)

// Samplings lists the ways of sampling.
func Samplings() []Sampling { return []Sampling{Uniform, Replace, Weighted} }

// Options says what the batches are. The zero value, with Fanouts set, gives
// one batch an epoch with all seeds.
type Options struct {
	// Fanouts has one fan-out per layer from the seeds outwards, 0 for all
	// neighbours. Without any, batches have no blocks and the seeds are the
	// input nodes.
	Fanouts  []int
	Sampling Sampling
	// BatchSize is the number of seeds of a batch on this rank; 0 takes all of
	// them at once.
	BatchSize int
	// Seed keys the shuffle and the sampling.
	Seed uint64

	// What blocks carry beyond their edges: see graph.Options. Blocks get their
	// transposed form, the outermost only if TransposeInput is set.
	DropSelfLoops, Degrees, Scale, TransposeInput bool

	// World and Rank divide every global batch of World×BatchSize seeds into
	// World nearly equal parts; World 0 means 1.
	World, Rank int

	// Depth is the number of batches that may wait between stages; 0 means 2.
	Depth int
	// Workers bounds the goroutines of a stage; 0 means GOMAXPROCS.
	Workers par.Workers
}

// Batch is one mini-batch. See the package comment for how long it lives.
type Batch struct {
	Epoch, Index int    // Index counts batches within the epoch
	Step         uint64 // batches since the start of training: keys all draws

	Seeds  []int32        // ascending; a prefix of Nodes
	Nodes  []int32        // the input frontier, see graph.Batch
	Blocks []*graph.Block // outermost first
	X      Rows           // features of Nodes
	Class  []int32        // class of each seed, -1 for none; nil for other labels
	// Multi has MultiWidth labels of each seed, 0, 1 or 255 for one that is not
	// known, in sets with several labels a node; nil for others.
	Multi      []uint8
	MultiWidth int
	// GlobalLabelled is the number of labelled seeds, or of known labels, of the
	// global batch, which a loss must divide by for ranks to add up.
	GlobalLabelled int

	// Times that the stages took, and that the loop waited for this batch.
	Sample, Gather, Wait time.Duration
}

// Loader makes the batches of a set of seeds.
type Loader struct {
	opt      Options
	seeds    []int32 // ascending
	order    []int32 // the epoch's permutation, if there are several batches
	sampler  *graph.Sampler
	features *Features
	labels   *datasets.Labels
	batches  int
	fixed    bool // every epoch has the same single batch
	slots    []*slot
	running  sync.Mutex
}

// slot is a Batch with the memory behind it.
type slot struct {
	Batch
	sampled graph.Batch
	ptrs    []*graph.Block
	class   []int32
	multi   []uint8
	seeds   []int32
	filled  bool // of a fixed batch: sampled and gathered already
}

// ErrBusy is returned by an Epoch that begins while another one runs.
var ErrBusy = errors.New("loader: an epoch is running already")

// New makes a loader of the given seeds, which must be unique nodes of the
// dataset. features are the caller's to close, after the last epoch. The
// dataset's graph must have been checked (Dataset.CheckGraph).
func New(ds *datasets.Dataset, features *Features, seeds []int32, o Options) (*Loader, error) {
	if o.World == 0 {
		o.World = 1
	}
	if o.Depth == 0 {
		o.Depth = 2
	}
	switch {
	case len(seeds) == 0:
		return nil, errors.New("loader: no seeds")
	case o.BatchSize < 0 || o.Depth < 0 || o.World < 0:
		return nil, fmt.Errorf("loader: batch size %d, depth %d, world %d: must not be negative", o.BatchSize, o.Depth, o.World)
	case o.Rank < 0 || o.Rank >= o.World:
		return nil, fmt.Errorf("loader: rank %d of %d", o.Rank, o.World)
	case o.BatchSize == 0 && o.World > 1:
		return nil, errors.New("loader: a full batch cannot be divided among ranks")
	}
	l := &Loader{opt: o, seeds: slices.Clone(seeds), features: features, labels: ds.Labels, batches: 1}
	slices.Sort(l.seeds)
	for i := 1; i < len(l.seeds); i++ {
		if l.seeds[i] == l.seeds[i-1] {
			return nil, fmt.Errorf("loader: seed %d is listed twice", l.seeds[i])
		}
	}
	if o.BatchSize > 0 {
		l.batches = par.Tiles(len(seeds), o.BatchSize*o.World)
	}
	if len(o.Fanouts) > 0 {
		s, err := graph.NewSampler(ds.Graph, graph.Options{
			Fanouts: o.Fanouts, Replace: o.Sampling == Replace, Weighted: o.Sampling == Weighted, DropSelfLoops: o.DropSelfLoops, Degrees: o.Degrees, Scale: o.Scale,
			Transpose: true, TransposeAll: o.TransposeInput, Workers: o.Workers,
		})
		if err != nil {
			return nil, err
		}
		l.sampler = s
	}
	l.fixed = l.batches == 1 && o.World == 1 && !slices.ContainsFunc(o.Fanouts, func(k int) bool { return k > 0 })
	n := o.Depth + 1
	if l.fixed {
		n = 1
	}
	for range n {
		l.slots = append(l.slots, &slot{})
	}
	return l, nil
}

// NumBatches returns the number of batches of an epoch, the same on every rank.
func (l *Loader) NumBatches() int { return l.batches }

// NumSeeds returns the number of seeds of all ranks.
func (l *Loader) NumSeeds() int { return len(l.seeds) }

// Epoch iterates over the batches of an epoch. The loop may be left at any time.
// An error, of a stage or of the context, ends it: it is yielded once, with a
// nil batch.
func (l *Loader) Epoch(ctx context.Context, epoch int) iter.Seq2[*Batch, error] {
	return l.EpochFrom(ctx, epoch, 0)
}

// EpochFrom is Epoch without the first batches, for resuming within an epoch.
func (l *Loader) EpochFrom(ctx context.Context, epoch, first int) iter.Seq2[*Batch, error] {
	return func(yield func(*Batch, error) bool) {
		if !l.running.TryLock() {
			yield(nil, ErrBusy)
			return
		}
		defer l.running.Unlock()
		if l.batches > 1 {
			l.order = append(l.order[:0], l.seeds...)
			graph.ShuffleEpoch(l.order, l.seeds, l.opt.Seed, uint64(epoch))
		}
		l.run(ctx, epoch, first, yield)
	}
}

// run drives the two stages and the caller's loop.
func (l *Loader) run(ctx context.Context, epoch, first int, yield func(*Batch, error) bool) {
	var sample, gather pipeline.Stage[*slot]
	sample.Do = func(_ context.Context, s *slot, i int) error {
		start := time.Now()
		if err := l.sample(s, epoch, i); err != nil {
			return fmt.Errorf("sample: epoch %d, batch %d: %w", epoch, i, err)
		}
		s.Sample = time.Since(start)
		return nil
	}
	gather.Do = func(ctx context.Context, s *slot, i int) error {
		start := time.Now()
		if err := l.gather(ctx, s); err != nil {
			return fmt.Errorf("gather: epoch %d, batch %d: %w", epoch, i, err)
		}
		s.Gather = time.Since(start)
		return nil
	}
	_, err := pipeline.Run(ctx, l.slots, l.opt.Depth, first, l.batches, sample, gather, func(s *slot, waited time.Duration) bool {
		s.Wait = waited
		if !yield(&s.Batch, nil) {
			return false
		}
		l.release(s)
		return true
	})
	if err != nil {
		yield(nil, err)
	}
}

// sample fills a slot's seeds, labels, nodes and blocks.
func (l *Loader) sample(s *slot, epoch, index int) error {
	s.Epoch, s.Index, s.Step = epoch, index, uint64(epoch)*uint64(l.batches)+uint64(index)
	if s.filled {
		return nil
	}
	global := l.seeds
	if l.batches > 1 {
		size := l.opt.BatchSize * l.opt.World
		global = l.order[index*size : min((index+1)*size, len(l.order))]
	}
	lo, hi := part(len(global), l.opt.World, l.opt.Rank)
	s.seeds = append(s.seeds[:0], global[lo:hi]...)
	slices.Sort(s.seeds)
	if err := l.label(s, global); err != nil {
		return err
	}
	s.ptrs = s.ptrs[:0]
	if l.sampler == nil {
		s.Nodes, s.Seeds = s.seeds, s.seeds
	} else {
		err := l.sampler.Sample(l.opt.Seed, philox.Sample, s.Step, s.seeds, &s.sampled)
		if err != nil {
			return err
		}
		s.Nodes, s.Seeds = s.sampled.Nodes, s.sampled.Nodes[:len(s.seeds)]
		for i := range s.sampled.Blocks {
			s.ptrs = append(s.ptrs, &s.sampled.Blocks[i])
		}
	}
	s.Blocks = s.ptrs
	return nil
}

// label looks up the seeds' labels and counts those of the global batch.
func (l *Loader) label(s *slot, global []int32) error {
	s.GlobalLabelled, s.Class, s.Multi, s.MultiWidth = 0, nil, nil, 0
	switch {
	case l.labels == nil:
		return nil
	case l.labels.HasMulti():
		return l.labelMulti(s, global)
	case !l.labels.HasClass():
		return nil
	}
	s.class = slices.Grow(s.class[:0], len(s.seeds))[:len(s.seeds)]
	if err := l.labels.Classes(s.class, s.seeds); err != nil {
		return err
	}
	s.Class = s.class
	for _, v := range global {
		if l.labels.Labelled(int(v)) {
			s.GlobalLabelled++
		}
	}
	return nil
}

func (l *Loader) labelMulti(s *slot, global []int32) error {
	w := l.labels.Width()
	fetch := func(ids []int32) ([]uint8, error) {
		n := len(ids) * w
		s.multi = slices.Grow(s.multi[:0], n)[:n]
		return s.multi, l.labels.Multi(s.multi, ids)
	}
	all, err := fetch(global)
	if err != nil {
		return err
	}
	for _, y := range all {
		if y != datasets.NoLabel {
			s.GlobalLabelled++
		}
	}
	s.Multi, err = fetch(s.seeds)
	s.MultiWidth = w
	return err
}

func (l *Loader) gather(ctx context.Context, s *slot) error {
	if s.filled {
		return nil
	}
	if l.features != nil {
		if err := l.features.Gather(ctx, s.Nodes, &s.X); err != nil {
			return err
		}
	}
	s.filled = l.fixed
	return nil
}

// release takes a batch back from the caller.
func (l *Loader) release(s *slot) {
	if invariants.Enabled && !s.filled {
		invariants.PoisonFloats(s.X.Dense)
		invariants.PoisonIDs(s.Nodes)
		invariants.PoisonIDs(s.Class)
	}
}

// part returns the bounds of the r-th of w nearly equal contiguous parts of n
// items; the first n mod w parts have one more.
func part(n, w, r int) (lo, hi int) {
	q, m := n/w, n%w
	lo = r*q + min(r, m)
	hi = lo + q
	if r < m {
		hi++
	}
	return lo, hi
}
