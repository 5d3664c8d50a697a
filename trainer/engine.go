package trainer

import (
	"context"

	"zerogcn/datasets"
	"zerogcn/graph"
	"zerogcn/internal/par"
	"zerogcn/internal/usage"
	"zerogcn/loader"
	"zerogcn/model"
	"zerogcn/model/metric"
	"zerogcn/model/op"
	"zerogcn/model/optim"
)

// engine does the work of a run on one kind of device. It owns the network and
// all that goes with it.
type engine interface {
	// network returns the network in training.
	network() *model.Network
	// batches returns the number of batches of an epoch.
	batches() int
	// epoch trains on the batches of an epoch and reports each step in order,
	// once its result is known; that may be some steps later, but not beyond a
	// step for which the plan says hold. An error of report ends the epoch, and so
	// does a cancelled context, after a whole step that has been reported.
	epoch(ctx context.Context, p epochPlan, report func(stepResult) error) error
	// evaluate returns the metric of each part of the split.
	evaluate(ctx context.Context) ([3]float64, error)
	// state brings the network's Params.Data up to date and returns the
	// optimiser's moments and its number of steps.
	state() (map[string][]float32, int64, error)
	// restore takes Params.Data and the given moments as the current ones.
	restore(moments map[string][]float32, steps int64) error
	// usage returns what the device has spent so far.
	usage() deviceUsage
	// blas names what multiplies matrices.
	blas() string
	// notes are decisions worth a line of log.
	notes() []Note
	close() error
}

// epochPlan says which part of an epoch to train, and how.
type epochPlan struct {
	epoch, first int // both from 0
	rate         float64
	// hold reports whether the state after the batch of this index is wanted: no
	// later step may have begun when it is reported.
	hold func(index int) bool
}

// stepResult is what a step came to.
type stepResult struct {
	index               int // of the batch, from 0
	loss                float64
	labelled            int // in the global batch
	seeds, nodes, edges int
	seconds             StageSeconds
}

// deviceUsage is what a GPU has spent.
type deviceUsage struct {
	peakBytes int64
	joules    float64
	// Rows of batches and of evaluations, and how many of them a cache of a part
	// of the features served.
	rows, hits int64
}

// cpuEngine trains on the host.
type cpuEngine struct {
	config  *Config
	data    *Data
	library string // of the products
	net     *model.Network
	opt     *optim.Optimizer
	loader  *loader.Loader
	eval    inference
	parts   evalParts
}

// evalParts are the nodes that metrics are computed on.
type evalParts struct {
	nodes   []int32    // of all parts, ascending
	classes []int32    // of nodes; nil in sets with several labels a node
	multi   []uint8    // of nodes, in those
	parts   [3][]int32 // positions in nodes of train, valid and test
}

func newEvalParts(d *Data, s datasets.Split) (evalParts, error) {
	var e evalParts
	e.nodes, e.parts = evaluationNodes(s)
	return e, e.label(d)
}

// label looks up the labels of the nodes.
func (e *evalParts) label(d *Data) error {
	if d.Labels.HasMulti() {
		e.multi = make([]uint8, len(e.nodes)*d.Labels.Width())
		return d.Labels.Multi(e.multi, e.nodes)
	}
	e.classes = make([]int32, len(e.nodes))
	return d.Labels.Classes(e.classes, e.nodes)
}

// score returns the metric of each part, given a row of outputs per node.
func (e *evalParts) score(out op.Value) (m [3]float64) {
	for i, part := range e.parts {
		if e.multi != nil {
			m[i] = metric.MicroF1Of(out, e.multi, part)
		} else {
			m[i] = metric.AccuracyOf(out, e.classes, part)
		}
	}
	return m
}

// newCPUEngine prepares training on the host. It fills in what of the
// configuration depends on the features.
func newCPUEngine(ctx context.Context, d *Data, split datasets.Split, c *Config, rt Runtime) (engine, error) {
	c.Model.SparseInput = d.Features.IsSparse()
	if err := c.Model.Validate(); err != nil {
		return nil, usage.Wrap(err)
	}
	e := &cpuEngine{config: c, data: d, library: rt.BLAS}
	var err error
	if e.net, err = model.New(c.Model, rt.Backend, c.Seed); err != nil {
		return nil, usage.Wrap(err)
	}
	c.Model = e.net.Config
	e.opt, err = optim.New(len(e.net.Params.Data), c.segments(e.net.Params), c.optimizer())
	if err != nil {
		return nil, usage.Wrap(err)
	}
	needs := c.Model.Needs()
	e.loader, err = loader.New(d.Dataset, d.Features, split.Train, loader.Options{
		Fanouts: c.fanouts(), Sampling: c.Sampling, BatchSize: c.Batch, Seed: c.Seed, DropSelfLoops: needs.DropSelfLoops,
		Degrees: needs.Degree, Scale: needs.Scale, TransposeInput: needs.TransposeInput, Workers: par.Workers(c.Workers),
	})
	if err != nil {
		return nil, usage.Wrap(err)
	}
	if e.parts, err = newEvalParts(d, split); err != nil {
		return nil, usage.Wrap(err)
	}
	e.eval, err = newInference(ctx, d, e.parts.nodes, c)
	return e, err
}

func (e *cpuEngine) network() *model.Network { return e.net }
func (e *cpuEngine) batches() int            { return e.loader.NumBatches() }

func (e *cpuEngine) epoch(ctx context.Context, p epochPlan, report func(stepResult) error) error {
	for b, err := range e.loader.EpochFrom(ctx, p.epoch, p.first) {
		if err != nil {
			return err
		}
		r, err := e.step(b, p.rate)
		if err != nil {
			return err
		}
		if err := report(r); err != nil {
			return err
		}
		// A cancelled context ends the epoch here, after a whole step; the
		// loader would notice only with its next batch.
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

func (e *cpuEngine) step(b *loader.Batch, rate float64) (stepResult, error) {
	start := now()
	in := model.Input{
		X: features(&b.X), Blocks: b.Blocks,
		Labels: &op.Labels{Class: b.Class, Multi: b.Multi, Width: b.MultiWidth, Norm: float64(b.GlobalLabelled)},
		Key:    op.Key{Seed: e.config.Seed, Step: b.Step, Rows: b.Nodes},
	}
	if err := e.net.Train(&in); err != nil {
		return stepResult{}, err
	}
	e.opt.Step(e.net.Params.Data, e.net.Params.Grad, rate)
	return stepResult{
		index: b.Index, loss: e.net.Loss(), labelled: b.GlobalLabelled,
		seeds: len(b.Seeds), nodes: len(b.Nodes), edges: numEdges(b.Blocks),
		seconds: StageSeconds{Sample: b.Sample.Seconds(), Gather: b.Gather.Seconds(), Compute: now().Sub(start).Seconds(), Wait: b.Wait.Seconds()},
	}, nil
}

func numEdges(blocks []*graph.Block) int {
	n := 0
	for _, b := range blocks {
		n += b.NumEdges()
	}
	return n
}

func (e *cpuEngine) evaluate(ctx context.Context) (m [3]float64, err error) {
	out, err := e.eval.Run(ctx, e.net)
	if err != nil {
		return m, err
	}
	return e.parts.score(out), nil
}

func (e *cpuEngine) state() (map[string][]float32, int64, error) {
	return e.opt.State(), e.opt.Steps(), nil
}

func (e *cpuEngine) restore(moments map[string][]float32, steps int64) error {
	for name, m := range e.opt.State() {
		copy(m, moments[name])
	}
	e.opt.SetSteps(steps)
	return nil
}

func (e *cpuEngine) usage() deviceUsage { return deviceUsage{} }
func (e *cpuEngine) blas() string       { return e.library }
func (e *cpuEngine) notes() []Note      { return nil }

func (e *cpuEngine) close() error {
	e.net.Close()
	return nil
}
