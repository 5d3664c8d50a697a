package gpuloader

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"zerogcn/cuda"
	"zerogcn/datasets"
	"zerogcn/graph"
	"zerogcn/graph/gpusample"
	"zerogcn/internal/philox"
	"zerogcn/internal/pipeline"
	"zerogcn/loader"
	"zerogcn/zerocopy"
)

// Loader makes the batches of a set of seeds on one GPU.
type Loader struct {
	dev      *cuda.Device
	opt      loader.Options
	features *Features
	sampler  *gpusample.Sampler
	epochs   *gpusample.Epochs
	labels   *cuda.Buffer // int32 per node; nil in sets with several labels a node
	labelled []int        // labelled seeds, or known labels, of each global batch of the epoch
	known    []int32      // the number of known labels of each node
	seeds    []int32
	fixed    bool

	sampling, gathering *cuda.Stream
	slots               []*slot
	timings             []*Timing // a ring, longer than what is in flight
	turn                int
	running             sync.Mutex
}

// timingRing is the number of batches for which times are kept.
const timingRing = 16

// New makes a loader of the given seeds with the options of a loader.Loader; it
// needs at least one fan-out. csr is the dataset's graph on the device. features
// and csr are the caller's to close, after the loader.
func New(ctx context.Context, csr *gpusample.CSR, ds *datasets.Dataset, features *Features, seeds []int32, o loader.Options) (l *Loader, err error) {
	if o.World == 0 {
		o.World = 1
	}
	if o.Depth == 0 {
		o.Depth = 2
	}
	switch {
	case len(seeds) == 0:
		return nil, errors.New("loader: no seeds")
	case len(o.Fanouts) == 0:
		return nil, errors.New("loader: batches without blocks are not made on the GPU")
	case o.BatchSize < 0 || o.Depth < 0 || o.World < 0:
		return nil, fmt.Errorf("loader: batch size %d, depth %d, world %d: must not be negative", o.BatchSize, o.Depth, o.World)
	case o.BatchSize == 0 && o.World > 1:
		return nil, errors.New("loader: a full batch cannot be divided among ranks")
	case !ds.Labels.HasClass() && !ds.Labels.HasMulti():
		return nil, errors.New("loader: only classes and several labels a node are taken to the GPU")
	}
	dev := csr.Device()
	l = &Loader{dev: dev, opt: o, features: features, seeds: slices.Sorted(slices.Values(seeds))}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
			l = nil
		}
	}()
	for _, s := range []**cuda.Stream{&l.sampling, &l.gathering} {
		if *s, err = dev.NewStream(cuda.StreamOptions{}); err != nil {
			return l, err
		}
	}
	l.sampler, err = gpusample.NewSampler(ctx, csr, graph.Options{
		Fanouts: o.Fanouts, Replace: o.Sampling == loader.Replace, Weighted: o.Sampling == loader.Weighted,
		DropSelfLoops: o.DropSelfLoops, Degrees: o.Degrees, Scale: o.Scale,
		Transpose: true, TransposeAll: o.TransposeInput, Workers: o.Workers,
	})
	if err != nil {
		return l, err
	}
	l.epochs, err = gpusample.NewEpochs(dev, seeds, 0, gpusample.EpochOptions{Seed: o.Seed, Batch: o.BatchSize * o.World, World: o.World, Rank: o.Rank})
	if err != nil {
		return l, err
	}
	if err = l.readLabels(ds); err != nil {
		return l, err
	}
	l.fixed = l.NumBatches() == 1 && o.World == 1 && !slices.ContainsFunc(o.Fanouts, func(k int) bool { return k > 0 })
	n := o.Depth + 1
	if l.fixed {
		n = 1
	}
	size := o.BatchSize
	if size == 0 {
		size = len(seeds)
	}
	for range n {
		s, err := newSlot(dev, l.sampler, min(size, len(seeds)))
		l.slots = append(l.slots, s)
		if err != nil {
			return l, err
		}
	}
	for range timingRing {
		t, err := newTiming(dev)
		l.timings = append(l.timings, t)
		if err != nil {
			return l, err
		}
	}
	return l, nil
}

// readLabels counts the known labels of each node, and puts classes on the device.
func (l *Loader) readLabels(ds *datasets.Dataset) (err error) {
	l.known = make([]int32, ds.NumNodes)
	if ds.Labels.HasMulti() {
		w := ds.Labels.Width()
		all := make([]uint8, ds.NumNodes*w)
		if err := ds.Labels.Multi(all, nil); err != nil {
			return err
		}
		for i, y := range all {
			if y != datasets.NoLabel {
				l.known[i/w]++
			}
		}
		return nil
	}
	class := make([]int32, ds.NumNodes)
	if err := ds.Labels.Classes(class, nil); err != nil {
		return err
	}
	for v, c := range class {
		if c >= 0 {
			l.known[v] = 1
		}
	}
	l.labels, err = cuda.Place(l.sampling, cuda.Topology, class)
	return err
}

// NumBatches returns the number of batches of an epoch, the same on every rank.
func (l *Loader) NumBatches() int { return l.epochs.NumBatches() }

// Close waits for the device's work and frees what the loader owns. It may be
// called twice.
func (l *Loader) Close() error {
	var errs []error
	if l.gathering != nil {
		errs = append(errs, l.dev.Synchronize())
	}
	for _, s := range l.slots {
		errs = append(errs, s.close())
	}
	for _, t := range l.timings {
		errs = append(errs, t.close())
	}
	l.slots, l.timings = nil, nil
	if l.epochs != nil {
		errs = append(errs, l.epochs.Close())
	}
	if l.sampler != nil {
		errs = append(errs, l.sampler.Close())
	}
	if l.labels != nil {
		errs = append(errs, l.labels.Close())
	}
	for _, s := range []*cuda.Stream{l.sampling, l.gathering} {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}

// EpochFrom iterates over the batches of an epoch from the first on. The loop may
// be left at any time. An error, of a stage or of the context, ends it: it is
// yielded once, with a nil batch. Ids that are out of range are found on the
// device and reported at the end of the epoch.
func (l *Loader) EpochFrom(ctx context.Context, epoch, first int) iter.Seq2[*Batch, error] {
	return func(yield func(*Batch, error) bool) {
		if !l.running.TryLock() {
			yield(nil, loader.ErrBusy)
			return
		}
		defer l.running.Unlock()
		l.run(ctx, epoch, first, yield)
	}
}

// run drives the two stages and the caller's loop, and returns after both.
func (l *Loader) run(ctx context.Context, epoch, first int, yield func(*Batch, error) bool) {
	sample := pipeline.Stage[*slot]{
		Around: l.bound(l.sampling, func() error {
			l.countLabelled(epoch)
			if err := l.epochs.Start(l.sampling, uint64(epoch)); err != nil {
				return fmt.Errorf("sample: epoch %d: %w", epoch, err)
			}
			return nil
		}),
		Do: func(_ context.Context, s *slot, i int) error {
			if err := l.sample(s, epoch, i); err != nil {
				return fmt.Errorf("sample: epoch %d, batch %d: %w", epoch, i, err)
			}
			return nil
		},
	}
	gather := pipeline.Stage[*slot]{
		Around: l.bound(l.gathering, nil),
		Do: func(ctx context.Context, s *slot, i int) error {
			if err := l.gather(ctx, s); err != nil {
				return fmt.Errorf("gather: epoch %d, batch %d: %w", epoch, i, err)
			}
			return nil
		},
	}
	left, err := pipeline.Run(ctx, l.slots, l.opt.Depth, first, l.NumBatches(), sample, gather,
		func(s *slot, _ time.Duration) bool { return yield(&s.Batch, nil) })
	if err == nil && !left {
		if err = l.gathering.Synchronize(); err == nil {
			err = l.features.Gatherer.Check()
		}
		if err != nil {
			err = fmt.Errorf("gather: epoch %d: %w", epoch, err)
		}
	}
	if err != nil {
		yield(nil, err)
	}
}

// bound returns a stage's Around: its work runs on a thread of its own, on which
// the stream is current, after begin.
func (l *Loader) bound(s *cuda.Stream, begin func() error) func(func() error) error {
	return func(work func() error) error {
		b, err := l.dev.Bind(s)
		if err != nil {
			return err
		}
		defer b.Release()
		if begin != nil {
			if err := begin(); err != nil {
				return err
			}
		}
		return work()
	}
}

// countLabelled counts the labelled seeds, or known labels, of each global batch of
// an epoch.
func (l *Loader) countLabelled(epoch int) {
	l.labelled = slices.Grow(l.labelled[:0], l.NumBatches())[:l.NumBatches()]
	size := l.opt.BatchSize * l.opt.World
	if size == 0 {
		size = len(l.seeds)
	}
	// Where all seeds have as many labels, which seeds are in a batch is no matter.
	first := l.known[l.seeds[0]]
	order := l.seeds
	if l.NumBatches() > 1 && slices.ContainsFunc(l.seeds, func(v int32) bool { return l.known[v] != first }) {
		order = graph.ShuffleEpoch(make([]int32, len(l.seeds)), l.seeds, l.opt.Seed, uint64(epoch))
	}
	for i := range l.labelled {
		l.labelled[i] = 0
		for _, v := range order[i*size : min((i+1)*size, len(order))] {
			l.labelled[i] += int(l.known[v])
		}
	}
}

// sample queues the drawing of a batch and the look-up of its labels.
func (l *Loader) sample(s *slot, epoch, index int) error {
	s.Epoch, s.Index, s.Step = epoch, index, uint64(epoch)*uint64(l.NumBatches())+uint64(index)
	s.GlobalLabelled = l.labelled[index]
	if s.filled {
		s.Timing = nil
		return nil
	}
	s.Timing = l.timings[l.turn]
	l.turn = (l.turn + 1) % len(l.timings)
	seeds, n := l.epochs.Batch(index)
	s.NumSeeds = n
	// The stream waits until the batch that was here has been read.
	if err := l.sampling.Wait(s.released); err != nil {
		return err
	}
	if err := s.Timing.sampleStart.Record(l.sampling); err != nil {
		return err
	}
	if err := l.sampler.SampleDevice(l.sampling, l.opt.Seed, philox.Sample, s.Step, seeds, n, s.sampled); err != nil {
		return err
	}
	if l.labels != nil {
		if err := l.sampler.Labels(l.sampling, l.labels.Ptr(), s.class.Ptr(), s.sampled); err != nil {
			return err
		}
	}
	return s.Timing.sampleEnd.Record(l.sampling)
}

// gather learns how large the batch is and queues the transfer of its rows.
func (l *Loader) gather(ctx context.Context, s *slot) error {
	if s.filled {
		return nil
	}
	if err := s.sampled.Wait(); err != nil {
		return err
	}
	s.NumNodes, s.Nodes, s.Blocks = s.sampled.NumNodes, s.sampled.Nodes, s.ptrs
	s.Width = l.features.Width()
	if l.labels != nil {
		s.Class = s.class.Ptr()
	}
	if err := l.gathering.Wait(s.Timing.sampleEnd); err != nil {
		return err
	}
	if err := l.makeRoom(s); err != nil {
		return err
	}
	if err := s.Timing.gatherStart.Record(l.gathering); err != nil {
		return err
	}
	if err := l.features.Gatherer.Enqueue(ctx, l.gathering, zerocopy.Batch{N: s.NumNodes, IDs: s.Nodes, Dst: s.X}); err != nil {
		return err
	}
	if err := s.Timing.gatherEnd.Record(l.gathering); err != nil {
		return err
	}
	s.filled = l.fixed
	return s.gathered.Record(l.gathering)
}

// makeRoom gives the slot memory for its rows, with some to spare since batches
// vary in size.
func (l *Loader) makeRoom(s *slot) error {
	need := 4 * int64(s.NumNodes) * int64(s.Width)
	if s.x != nil && s.x.Len() >= need {
		return nil
	}
	if s.x != nil {
		if err := s.x.CloseAfter(l.gathering); err != nil {
			return err
		}
	}
	var err error
	s.x, err = l.dev.Alloc(cuda.Activations, need+need/8)
	if err != nil {
		return fmt.Errorf("%d rows of %d features: %w", s.NumNodes, s.Width, err)
	}
	s.X = s.x.Ptr()
	return nil
}
