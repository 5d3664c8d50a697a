package trainer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"zerogcn/checkpoints"
	"zerogcn/datasets"
	"zerogcn/graph"
	"zerogcn/internal/par"
	"zerogcn/internal/usage"
	"zerogcn/loader"
	"zerogcn/model"
	"zerogcn/model/exec"
	"zerogcn/model/metric"
	"zerogcn/model/op"
	"zerogcn/model/optim"
)

// Trainer is one run: a network, its optimiser, and where training stands.
type Trainer struct {
	Config Config

	data    *Data
	split   datasets.Split
	device  string
	blas    string
	net     *model.Network
	opt     *optim.Optimizer
	loader  *loader.Loader
	eval    inference
	classes []int32 // of the evaluator's nodes
	parts   [3][]int32

	listeners []Listener
	store     *checkpoints.Store // nil: no checkpoints

	at    progress
	best  bestState
	saved time.Time // of the last checkpoint
}

// progress is where training stands, as checkpoints have it.
type progress struct {
	// Epoch and Batch name the next batch. Batch == batches of an epoch means
	// that the epoch's end (its evaluation) is still to come.
	Epoch, Batch int
	Step         int64
	// LossSum and LossCount are those of the epoch so far.
	LossSum   float64
	LossCount int
	Done      bool
	costs
}

// costs is what the run has cost so far.
type costs struct {
	Seconds      float64      `json:"seconds"`
	CPUSeconds   float64      `json:"cpu_seconds"`
	EpochSeconds []float64    `json:"epoch_seconds"`
	ThisEpoch    float64      `json:"this_epoch_seconds"`
	Stages       StageSeconds `json:"stages"`
	EpochStages  StageSeconds `json:"epoch_stages"`
	Bytes        int64        `json:"bytes_gathered"`
	PeakHost     int64        `json:"peak_host_bytes"`
}

// bestState is the best epoch so far and the parameters it ended with.
type bestState struct {
	Epoch              int // from 1; 0: none yet
	Step               int64
	Train, Valid, Test float64
	Since              int // evaluations since
	params             []float32
	dirty              bool // not on disk yet
}

// Runtime is what a run works with.
type Runtime struct {
	Backend exec.Backend
	// BLAS names the library of the matrix products; results are bit-identical
	// only where it is the same, so checkpoints name it.
	BLAS string
	// Store, if not nil, is where checkpoints go.
	Store     *checkpoints.Store
	Listeners []Listener
}

// New prepares a run on data with the given split. Faults of the configuration,
// and of how it fits the dataset, are the user's to mend.
func New(ctx context.Context, d *Data, split datasets.Split, c Config, rt Runtime) (*Trainer, error) {
	c.EnsureDefaults()
	c.Model.In, c.Model.Classes = d.NumFeatures, d.NumClasses
	c.Model.SparseInput, c.Model.FullGraph = d.Features.IsSparse(), !c.sampled()
	if err := errors.Join(c.Validate(), c.Model.Validate()); err != nil {
		return nil, usage.Wrap(err)
	}
	if len(split.Train) == 0 {
		return nil, usage.Errorf("dataset %s: the split has no training nodes", d.Name)
	}
	t := &Trainer{Config: c, data: d, split: split, device: rt.Backend.Name(), blas: rt.BLAS, store: rt.Store,
		listeners: rt.Listeners, saved: time.Now()}
	var err error
	if t.net, err = model.New(c.Model, rt.Backend, c.Seed); err != nil {
		return nil, usage.Wrap(err)
	}
	t.opt, err = optim.New(len(t.net.Params.Data), c.segments(t.net.Params),
		optim.Options{Kind: c.Optimizer, Momentum: c.Momentum, Workers: par.Workers(c.Workers)})
	if err != nil {
		return nil, usage.Wrap(err)
	}
	needs := c.Model.Needs()
	t.loader, err = loader.New(d.Dataset, d.Features, split.Train, loader.Options{
		Fanouts: c.fanouts(), Sampling: c.Sampling, BatchSize: c.Batch, Seed: c.Seed, DropSelfLoops: needs.DropSelfLoops,
		Degrees: needs.Degree, Scale: needs.Scale, TransposeInput: needs.TransposeInput, Workers: par.Workers(c.Workers),
	})
	if err != nil {
		return nil, usage.Wrap(err)
	}
	t.Config.Model = t.net.Config
	return t, t.prepareEvaluation(ctx)
}

// prepareEvaluation finds the nodes of all parts and their classes.
func (t *Trainer) prepareEvaluation(ctx context.Context) error {
	nodes, parts := evaluationNodes(t.split)
	t.parts = parts
	e, err := newInference(ctx, t.data, nodes, &t.Config)
	if err != nil {
		return err
	}
	t.eval = e
	t.classes = make([]int32, len(nodes))
	return t.data.Labels.Classes(t.classes, nodes)
}

// evaluationNodes returns the nodes of all parts, ascending, and for each part
// its positions in that list.
func evaluationNodes(s datasets.Split) (nodes []int32, parts [3][]int32) {
	nodes = slices.Concat(s.Train, s.Valid, s.Test)
	slices.Sort(nodes)
	nodes = slices.Compact(nodes)
	for i, ids := range [][]int32{s.Train, s.Valid, s.Test} {
		for _, v := range ids {
			p, _ := slices.BinarySearch(nodes, v)
			parts[i] = append(parts[i], int32(p))
		}
	}
	return nodes, parts
}

// Network returns the network in training.
func (t *Trainer) Network() *model.Network { return t.net }

// Step returns the number of optimiser steps done so far.
func (t *Trainer) Step() int64 { return t.at.Step }

func (t *Trainer) emit(e Event) error {
	for _, l := range t.listeners {
		if err := l.Handle(e); err != nil {
			return err
		}
	}
	return nil
}

// Note passes a line for the log to the listeners.
func (t *Trainer) Note(n Note) error { return t.emit(n) }

// ErrInterrupted is returned by Run when its context was cancelled: the state
// was saved, if there is a store, and the run may be resumed.
var ErrInterrupted = errors.New("training was interrupted")

// Run trains from where the trainer stands to the last epoch. If the context is
// cancelled it writes a checkpoint and returns ErrInterrupted.
func (t *Trainer) Run(ctx context.Context) (Summary, error) {
	start, cpu, before := time.Now(), cpuTime(), t.at
	account := func() {
		t.at.Seconds = before.Seconds + time.Since(start).Seconds()
		t.at.CPUSeconds = before.CPUSeconds + (cpuTime() - cpu).Seconds()
		t.at.PeakHost = max(t.at.PeakHost, residentBytes())
	}
	if err := t.emit(t.runStart()); err != nil {
		return Summary{}, err
	}
	err := t.epochs(ctx, account)
	account()
	if err != nil {
		if ctx.Err() == nil {
			return Summary{}, err
		}
		// The state is that after a whole step: worth keeping.
		if err := t.save(context.WithoutCancel(ctx)); err != nil {
			return Summary{}, err
		}
		return Summary{}, errors.Join(ErrInterrupted, t.emit(RunEnd{Summary: t.Summary(), Interrupted: true}))
	}
	t.at.Done = true
	if err := t.save(ctx); err != nil {
		return Summary{}, err
	}
	s := t.Summary()
	return s, t.emit(RunEnd{Summary: s, EarlyStop: t.stopEarly()})
}

func (t *Trainer) runStart() RunStart {
	return RunStart{
		Dataset: t.data.Name, Model: t.modelName(), Device: t.device,
		Nodes: t.data.NumNodes, Edges: t.data.NumEdges, Features: t.data.NumFeatures, Classes: t.data.NumClasses,
		Train: len(t.split.Train), Valid: len(t.split.Valid), Test: len(t.split.Test),
		Parameters: len(t.net.Params.Data), Epochs: t.Config.Epochs, Batches: t.loader.NumBatches(),
		Metric: metric.Accuracy, Seed: t.Config.Seed, DoneEpochs: t.at.Epoch, DoneBatches: t.at.Batch,
	}
}

func (t *Trainer) modelName() string { return string(t.Config.Model.Arch) }

func (t *Trainer) epochs(ctx context.Context, account func()) error {
	for t.at.Epoch < t.Config.Epochs && !t.stopEarly() {
		if err := t.epoch(ctx, account); err != nil {
			return err
		}
		if err := t.endEpoch(ctx); err != nil {
			return err
		}
		account()
		if t.Config.CheckpointEvery == 0 && time.Since(t.saved).Seconds() >= CheckpointSeconds {
			if err := t.save(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *Trainer) stopEarly() bool {
	return t.Config.Patience > 0 && t.best.Since >= t.Config.Patience
}

// epoch trains on the epoch's remaining batches.
func (t *Trainer) epoch(ctx context.Context, account func()) error {
	last := time.Now()
	for b, err := range t.loader.EpochFrom(ctx, t.at.Epoch, t.at.Batch) {
		if err != nil {
			return err
		}
		if err := t.train(b); err != nil {
			return err
		}
		now := time.Now()
		t.at.ThisEpoch += now.Sub(last).Seconds()
		last = now
		if n := t.Config.CheckpointEvery; n > 0 && t.at.Step%int64(n) == 0 {
			account()
			if err := t.save(ctx); err != nil {
				return err
			}
			last = time.Now()
		}
		// A cancelled context ends the epoch here, after a whole step; the
		// loader would notice only with its next batch.
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// train takes one optimiser step on a batch.
func (t *Trainer) train(b *loader.Batch) error {
	start := time.Now()
	in := model.Input{
		X: features(&b.X), Blocks: b.Blocks,
		Labels: &op.Labels{Class: b.Class, Norm: float64(b.GlobalLabelled)},
		Key:    op.Key{Seed: t.Config.Seed, Step: b.Step, Rows: b.Nodes},
	}
	if err := t.net.Train(&in); err != nil {
		return err
	}
	loss := t.net.Loss()
	if math.IsNaN(loss) || math.IsInf(loss, 0) {
		return fmt.Errorf("the loss is %g at epoch %d, batch %d: try a lower -lr, and `dataset verify` for NaN features", loss, b.Epoch+1, b.Index+1)
	}
	lr := t.rate()
	t.opt.Step(t.net.Params.Data, t.net.Params.Grad, lr)
	secs := StageSeconds{Sample: b.Sample.Seconds(), Gather: b.Gather.Seconds(),
		Compute: time.Since(start).Seconds(), Wait: b.Wait.Seconds()}
	t.at.Step++
	t.at.Batch++
	t.at.LossSum += loss * float64(b.GlobalLabelled)
	t.at.LossCount += b.GlobalLabelled
	t.at.EpochStages.add(secs)
	t.at.Stages.add(secs)
	t.at.Bytes += int64(float64(len(b.Nodes)) * t.data.Features.RowBytes())
	return t.emit(Step{Epoch: b.Epoch + 1, Batch: b.Index + 1, Batches: t.loader.NumBatches(), Step: t.at.Step, Loss: loss, LR: lr,
		Seeds: len(b.Seeds), Nodes: len(b.Nodes), Edges: numEdges(b.Blocks), Seconds: secs})
}

// rate returns the learning rate of the current epoch.
func (t *Trainer) rate() float64 {
	return t.Config.Schedule.Rate(t.Config.LR, t.at.Epoch, t.Config.Epochs)
}

func numEdges(blocks []*graph.Block) int {
	n := 0
	for _, b := range blocks {
		n += b.NumEdges()
	}
	return n
}

// endEpoch reports the epoch, evaluates if it is time, and moves on.
func (t *Trainer) endEpoch(ctx context.Context) error {
	loss := 0.0
	if t.at.LossCount > 0 {
		loss = t.at.LossSum / float64(t.at.LossCount)
	}
	lastEpoch := t.at.Epoch == t.Config.Epochs-1
	var eval *Eval
	if (t.at.Epoch+1)%t.Config.EvalEvery == 0 || lastEpoch {
		var err error
		if eval, err = t.evaluate(ctx); err != nil {
			return err
		}
	}
	err := t.emit(Epoch{Epoch: t.at.Epoch + 1, Step: t.at.Step, Loss: loss, LR: t.rate(),
		Elapsed: time.Duration(t.at.ThisEpoch * float64(time.Second)), Seconds: t.at.EpochStages})
	if err != nil {
		return err
	}
	if eval != nil {
		t.keepBest(eval)
		if err := t.emit(*eval); err != nil {
			return err
		}
	}
	t.at.EpochSeconds = append(t.at.EpochSeconds, t.at.ThisEpoch)
	t.at.Epoch, t.at.Batch, t.at.LossSum, t.at.LossCount = t.at.Epoch+1, 0, 0, 0
	t.at.ThisEpoch, t.at.EpochStages = 0, StageSeconds{}
	return nil
}

// evaluate computes the metrics of all parts.
func (t *Trainer) evaluate(ctx context.Context) (*Eval, error) {
	start := time.Now()
	out, err := t.eval.Run(ctx, t.net)
	if err != nil {
		return nil, err
	}
	var m [3]float64
	for i, part := range t.parts {
		m[i] = metric.AccuracyOf(out, t.classes, part)
	}
	return &Eval{Epoch: t.at.Epoch + 1, Step: t.at.Step, Train: m[0], Valid: m[1], Test: m[2], Elapsed: time.Since(start)}, nil
}

// keepBest remembers the parameters if the validation metric is the highest so
// far, the first on ties. Without validation nodes the last epoch is the best.
func (t *Trainer) keepBest(e *Eval) {
	t.best.Since++
	if t.best.Epoch == 0 || e.Valid > t.best.Valid || len(t.split.Valid) == 0 {
		e.Best = true
		t.best = bestState{Epoch: e.Epoch, Train: e.Train, Valid: e.Valid, Test: e.Test, Step: e.Step,
			params: append(t.best.params[:0], t.net.Params.Data...), dirty: true}
	}
	e.BestEpoch = t.best.Epoch
}

// Summary returns what the run has come to so far.
func (t *Trainer) Summary() Summary {
	return Summary{
		Dataset: t.data.Name, Model: t.modelName(), Seed: t.Config.Seed, Device: t.device,
		Epochs: t.at.Epoch, Steps: t.at.Step, BestEpoch: t.best.Epoch,
		Train: t.best.Train, Valid: t.best.Valid, Test: t.best.Test, Metric: metric.Accuracy,
		SecondsTotal: t.at.Seconds, SecondsPerEpoch: median(t.at.EpochSeconds), Stages: t.at.Stages,
		BytesGathered: t.at.Bytes, GatherGBps: rate(t.at.Bytes, t.at.Stages.Gather),
		PeakHostBytes: t.at.PeakHost, CPUSeconds: t.at.CPUSeconds,
	}
}

// Close releases the network. The data and the store are the caller's.
func (t *Trainer) Close() { t.net.Close() }
