package trainer

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"zerogcn/cuda"
	"zerogcn/cuda/cublas"
	"zerogcn/datasets"
	"zerogcn/graph/gpusample"
	"zerogcn/internal/par"
	"zerogcn/internal/usage"
	"zerogcn/loader"
	"zerogcn/loader/gpuloader"
	"zerogcn/model"
	cudaexec "zerogcn/model/exec/cuda"
	"zerogcn/model/op"
	"zerogcn/model/optim"
	"zerogcn/zerocopy"
)

// GPU says how to train on a GPU. The device is the caller's to close, after the
// trainer.
type GPU struct {
	Device *cuda.Device
	// Mode is how feature rows reach the GPU; Auto measures and chooses.
	Mode zerocopy.Mode
	// CacheBytes is the GPU memory that may hold feature rows.
	CacheBytes int64
	// Blocks is the grid of gathers, 0 for the default.
	Blocks int
	// HostGraph keeps the graph's edges in host memory, even if they fit the GPU.
	HostGraph bool
	Precision cublas.Precision
	// BLAS is the path of cuBLAS or its folder, empty to search, or
	// cudaexec.NoBLAS.
	BLAS string
	// Joules, if not nil, reads the device's energy counter.
	Joules func() (float64, error)
}

// gpuSetup is what training and evaluation on a GPU have in common: a network on
// a stream, and the dataset where the GPU reads it.
type gpuSetup struct {
	config   *Config
	gpu      *GPU
	net      *model.Network
	backend  *cudaexec.Backend
	stream   *cuda.Stream
	csr      *gpusample.CSR
	features *gpuloader.Features
	multi    multiLabels // empty in sets with one class a node
}

// multiLabels are several labels a node in GPU memory, a byte each; rows are padded
// to whole words, so that they are gathered like features.
type multiLabels struct {
	stride int
	table  *cuda.Buffer
}

// newMultiLabels places the labels of the given nodes; nil stands for all.
func newMultiLabels(s *cuda.Stream, l *datasets.Labels, nodes []int32) (multiLabels, error) {
	n, w := len(nodes), l.Width()
	if nodes == nil {
		n = l.Len()
	}
	m := multiLabels{stride: (w + 3) / 4 * 4}
	tight := make([]uint8, n*w)
	if err := l.Multi(tight, nodes); err != nil {
		return m, err
	}
	padded := make([]uint8, n*m.stride)
	for i := range n {
		copy(padded[i*m.stride:], tight[i*w:(i+1)*w])
	}
	var err error
	m.table, err = cuda.Place(s, cuda.Topology, padded)
	return m, err
}

// value returns rows of labels as a matrix of words.
func (m multiLabels) value(at cuda.DevicePtr, rows int) op.Value {
	return op.Value{Rows: rows, Cols: m.stride / 4, Dev: uintptr(at)}
}

// gpuEngine trains on one GPU: sampling, gathering and computing on three streams.
type gpuEngine struct {
	*gpuSetup
	opt    *optim.Device
	loader *gpuloader.Loader
	eval   *gpuEvaluator
	losses *cuda.HostBuffer // one float32 per step in flight
	labels *cuda.Buffer     // of a batch's seeds, where nodes have several
	nodes  int
	ring   []*pendingStep
	joules float64 // the counter at the start
	peak   int64
}

// pendingStep is a step that was queued and whose result is not yet known.
type pendingStep struct {
	result     stepResult
	start, end *cuda.Event
	timing     *gpuloader.Timing
	loss       *float32
}

// inFlight is the number of steps that may be queued beyond the one whose result
// is waited for: enough for the host never to starve the device, and few enough
// for the batches' times to be still there.
const inFlight = 3

// newGPUSetup puts a network and a dataset on a GPU. It fills in what of the
// configuration depends on it: features are dense there.
func newGPUSetup(ctx context.Context, d *Data, c *Config, g *GPU) (_ *gpuSetup, err error) {
	c.Model.SparseInput = false
	if err := c.Model.Validate(); err != nil {
		return nil, usage.Wrap(err)
	}
	if c.Model.Needs().Blocks == 0 {
		return nil, usage.Errorf("%s does not use the graph: run it on the CPU, with -gpus 0", c.Model.Arch)
	}
	e := &gpuSetup{config: c, gpu: g}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.close())
		}
	}()
	if e.stream, err = g.Device.NewStream(cuda.StreamOptions{}); err != nil {
		return nil, err
	}
	if e.backend, err = cudaexec.New(g.Device, e.stream, cudaexec.Options{Precision: g.Precision, BLAS: g.BLAS}); err != nil {
		return nil, usage.Wrap(err)
	}
	if e.net, err = model.New(c.Model, e.backend, c.Seed); err != nil {
		return nil, err
	}
	c.Model = e.net.Config
	placement := gpusample.Auto
	if g.HostGraph {
		placement = gpusample.InHost
	}
	if e.csr, err = gpusample.NewCSR(ctx, g.Device, d.Graph, gpusample.CSROptions{Placement: placement, Workers: par.Workers(c.Workers)}); err != nil {
		return nil, usage.Wrap(err)
	}
	e.features, err = gpuloader.OpenFeatures(ctx, g.Device, d.Dataset, gpuloader.FeatureOptions{
		Mode: g.Mode, CacheBytes: g.CacheBytes, Blocks: g.Blocks, BatchRows: batchRows(d, c), Workers: c.Workers})
	return e, usage.Wrap(err)
}

// blas names what multiplies matrices.
func (e *gpuSetup) blas() string { return e.backend.BLAS() }

// notes says what was chosen.
func (e *gpuSetup) notes() []Note {
	g := e.features.Gatherer
	notes := []Note{
		{Text: fmt.Sprintf("features: %v (%s), %d blocks", g.Mode(), g.Reason(), g.Blocks())},
		{Text: fmt.Sprintf("graph: edges in %v memory; matrix products: %s", e.csr.Placement(), e.backend.BLAS())}}
	if n := g.CachedRows(); n > 0 {
		notes = append(notes, Note{Text: fmt.Sprintf("feature cache: %d rows", n)})
	}
	return notes
}

// close frees everything in the reverse order of making.
func (e *gpuSetup) close() error {
	var errs []error
	if e.features != nil {
		errs = append(errs, e.features.Close())
	}
	if e.csr != nil {
		errs = append(errs, e.csr.Close())
	}
	if e.net != nil {
		e.net.Close()
	}
	if e.backend != nil {
		errs = append(errs, e.backend.Close())
	}
	if e.stream != nil {
		errs = append(errs, e.stream.Close())
	}
	return errors.Join(errs...)
}

// newGPUEngine prepares training on a GPU.
func newGPUEngine(ctx context.Context, d *Data, split datasets.Split, c *Config, g *GPU) (_ engine, err error) {
	setup, err := newGPUSetup(ctx, d, c, g)
	if err != nil {
		return nil, err
	}
	e := &gpuEngine{gpuSetup: setup}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.close())
		}
	}()
	if e.opt, err = optim.NewDevice(e.stream, len(e.net.Params.Data), c.segments(e.net.Params), c.optimizer()); err != nil {
		return nil, err
	}
	needs := c.Model.Needs()
	e.loader, err = gpuloader.New(ctx, e.csr, d.Dataset, e.features, split.Train, loader.Options{
		Fanouts: c.fanouts(), Sampling: c.Sampling, BatchSize: c.Batch, Seed: c.Seed, DropSelfLoops: needs.DropSelfLoops,
		Degrees: needs.Degree, Scale: needs.Scale, TransposeInput: needs.TransposeInput, Workers: par.Workers(c.Workers),
	})
	if err != nil {
		return nil, usage.Wrap(err)
	}
	if d.Labels.HasMulti() {
		if e.multi, err = newMultiLabels(e.stream, d.Labels, nil); err != nil {
			return nil, usage.Wrap(err)
		}
		size := len(split.Train)
		if c.Batch > 0 {
			size = min(size, c.Batch)
		}
		e.nodes = d.NumNodes
		if e.labels, err = g.Device.Alloc(cuda.Indices, int64(size)*int64(e.multi.stride)); err != nil {
			return nil, err
		}
	}
	parts, err := newEvalParts(d, split)
	if err != nil {
		return nil, usage.Wrap(err)
	}
	if e.eval, err = newGPUEvaluator(ctx, setup, d, parts); err != nil {
		return nil, err
	}
	if err := e.makeRing(); err != nil {
		return nil, err
	}
	if g.Joules != nil {
		e.joules, _ = g.Joules() // without the counter the summary says 0
	}
	return e, nil
}

// batchRows estimates the rows of a batch, for the gatherer's measurements.
func batchRows(d *Data, c *Config) int {
	n := min(max(c.Batch, 1), d.NumNodes)
	if c.Batch == 0 {
		return d.NumNodes
	}
	for _, k := range c.fanouts() {
		if k <= 0 {
			return d.NumNodes
		}
		n = min(n*(k+1), d.NumNodes)
	}
	return n
}

func (e *gpuEngine) makeRing() (err error) {
	if e.losses, err = e.gpu.Device.AllocHost(cuda.Other, 4*(inFlight+1), cuda.HostOptions{}); err != nil {
		return err
	}
	for i := range inFlight + 1 {
		p := &pendingStep{loss: (*float32)(unsafe.Pointer(&e.losses.Bytes()[4*i]))}
		e.ring = append(e.ring, p)
		for _, ev := range []**cuda.Event{&p.start, &p.end} {
			if *ev, err = e.gpu.Device.NewEvent(cuda.EventOptions{Timing: true, Blocking: true}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *gpuEngine) network() *model.Network { return e.net }
func (e *gpuEngine) batches() int            { return e.loader.NumBatches() }

func (e *gpuEngine) epoch(ctx context.Context, p epochPlan, report func(stepResult) error) (err error) {
	bind, err := e.gpu.Device.Bind(e.stream)
	if err != nil {
		return err
	}
	defer bind.Release()
	var queue []*pendingStep // oldest first
	turn := 0
	var before *pendingStep // the last step that was settled, for the idle time between
	settle := func() error {
		s := queue[0]
		queue = queue[1:]
		if err := e.settle(s, before); err != nil {
			return err
		}
		before = s
		return report(s.result)
	}
	for b, err := range e.loader.EpochFrom(ctx, p.epoch, p.first) {
		if err != nil {
			// What was queued is whole steps: report them before the error.
			for len(queue) > 0 {
				if serr := settle(); serr != nil {
					return errors.Join(err, serr)
				}
			}
			return err
		}
		s := e.ring[turn]
		turn = (turn + 1) % len(e.ring)
		if err := e.enqueue(b, p.rate, s); err != nil {
			return err
		}
		queue = append(queue, s)
		for len(queue) == inFlight || len(queue) > 0 && (p.hold(b.Index) || ctx.Err() != nil) {
			if err := settle(); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	for len(queue) > 0 {
		if err := settle(); err != nil {
			return err
		}
	}
	e.peak = max(e.peak, e.gpu.Device.Metrics().DeviceBytes())
	return nil
}

// enqueue queues a step on a batch.
func (e *gpuEngine) enqueue(b *gpuloader.Batch, rate float64, s *pendingStep) error {
	if err := b.Acquire(e.stream); err != nil {
		return err
	}
	if err := s.start.Record(e.stream); err != nil {
		return err
	}
	labels := &op.Labels{DevClass: uintptr(b.Class), NumRows: b.NumSeeds, Norm: float64(max(1, b.GlobalLabelled))}
	if e.labels != nil {
		all, mine := e.multi.value(e.multi.table.Ptr(), e.nodes), e.multi.value(e.labels.Ptr(), b.NumSeeds)
		if err := e.backend.GatherRows(&mine, &all, b.Nodes); err != nil {
			return err
		}
		labels.DevMulti, labels.Stride = mine.Dev, e.multi.stride
	}
	in := model.Input{
		X:      op.Value{Rows: b.NumNodes, Cols: b.Width, Dev: uintptr(b.X)},
		Blocks: b.Blocks,
		Labels: labels,
		Key:    op.Key{Seed: e.config.Seed, Step: b.Step, DevRows: uintptr(b.Nodes), NumRows: b.NumNodes},
	}
	p := e.net.Params
	err := e.net.Step(&in, func() error { return e.opt.Step(p.DeviceData(), p.DeviceGrad(), rate) })
	if err != nil {
		return err
	}
	loss := unsafe.Slice((*byte)(unsafe.Pointer(s.loss)), 4)
	if err := e.stream.CopyDtoH(loss, cuda.DevicePtr(e.net.LossValue().Dev)); err != nil {
		return err
	}
	if err := s.end.Record(e.stream); err != nil {
		return err
	}
	s.timing = b.Timing
	s.result = stepResult{index: b.Index, labelled: b.GlobalLabelled, seeds: b.NumSeeds, nodes: b.NumNodes, edges: b.NumEdges()}
	return b.Release(e.stream)
}

// settle waits for a step and completes its result. before is the step before it
// in this epoch, if any.
func (e *gpuEngine) settle(s, before *pendingStep) error {
	if err := s.end.Synchronize(); err != nil {
		return err
	}
	r := &s.result
	r.loss = float64(*s.loss)
	compute, err := s.end.Since(s.start)
	if err != nil {
		return err
	}
	sample, gather, err := s.timing.Stages()
	if err != nil {
		return err
	}
	r.seconds = StageSeconds{Sample: sample.Seconds(), Gather: gather.Seconds(), Compute: compute.Seconds()}
	if before != nil && before != s {
		idle, err := s.start.Since(before.end)
		if err != nil {
			return err
		}
		r.seconds.Wait = max(0, idle.Seconds())
	}
	return nil
}

func (e *gpuEngine) evaluate(ctx context.Context) ([3]float64, error) {
	m, err := e.eval.metrics(ctx, e.net)
	e.peak = max(e.peak, e.gpu.Device.Metrics().DeviceBytes())
	return m, err
}

func (e *gpuEngine) state() (map[string][]float32, int64, error) {
	if err := e.net.Params.Download(); err != nil {
		return nil, 0, err
	}
	m, err := e.opt.State()
	return m, e.opt.Steps(), err
}

func (e *gpuEngine) restore(moments map[string][]float32, steps int64) error {
	if err := e.net.Params.Upload(); err != nil {
		return err
	}
	e.opt.SetSteps(steps)
	return e.opt.Restore(moments)
}

func (e *gpuEngine) usage() deviceUsage {
	u := deviceUsage{peakBytes: e.peak}
	if e.gpu.Joules != nil {
		if j, err := e.gpu.Joules(); err == nil {
			u.joules = j - e.joules
		}
	}
	if hits, err := e.features.Gatherer.Hits(); err == nil && hits > 0 {
		u.hits, u.rows = hits, e.features.Gatherer.Metrics().Rows
	}
	return u
}

// close frees everything in the reverse order of making.
func (e *gpuEngine) close() error {
	errs := []error{e.gpu.Device.Synchronize()}
	if e.eval != nil {
		errs = append(errs, e.eval.close())
	}
	if e.loader != nil {
		errs = append(errs, e.loader.Close())
	}
	for _, p := range e.ring {
		for _, ev := range []*cuda.Event{p.start, p.end} {
			if ev != nil {
				errs = append(errs, ev.Close())
			}
		}
	}
	if e.losses != nil {
		errs = append(errs, e.losses.Close())
	}
	for _, b := range []*cuda.Buffer{e.labels, e.multi.table} {
		if b != nil {
			errs = append(errs, b.Close())
		}
	}
	if e.opt != nil {
		errs = append(errs, e.opt.Close())
	}
	return errors.Join(append(errs, e.gpuSetup.close())...)
}
