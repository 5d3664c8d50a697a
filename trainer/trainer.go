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
	"zerogcn/internal/usage"
	"zerogcn/model"
	"zerogcn/model/exec"
)

// Trainer is one run: a network in training, and where it stands.
type Trainer struct {
	Config Config

	data   *Data
	split  datasets.Split
	engine engine
	device string

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
	PeakDevice   int64        `json:"peak_device_bytes"`
	Joules       float64      `json:"gpu_joules"`
	CacheRows    int64        `json:"cache_rows,omitempty"`
	CacheHits    int64        `json:"cache_hits,omitempty"`
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
	// Backend trains on the host; GPU, if not nil, on a GPU instead.
	Backend exec.Backend
	GPU     *GPU
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
	c.Model.In, c.Model.Classes, c.Model.FullGraph = d.NumFeatures, d.NumClasses, !c.sampled()
	c.Model.MultiLabel = d.Labels.HasMulti()
	if err := errors.Join(c.Validate(), c.Model.Validate()); err != nil {
		return nil, usage.Wrap(err)
	}
	if len(split.Train) == 0 {
		return nil, usage.Errorf("dataset %s: the split has no training nodes", d.Name)
	}
	t := &Trainer{Config: c, data: d, split: split, device: rt.device(), store: rt.Store,
		listeners: rt.Listeners, saved: now()}
	var err error
	if rt.GPU != nil {
		t.engine, err = newGPUEngine(ctx, d, split, &t.Config, rt.GPU)
	} else {
		t.engine, err = newCPUEngine(ctx, d, split, &t.Config, rt)
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

// device names what does the work.
func (rt *Runtime) device() string {
	if rt.GPU != nil {
		return fmt.Sprintf("cuda:%d %s", rt.GPU.Device.Ordinal(), rt.GPU.Device.Properties().Name)
	}
	return rt.Backend.Name()
}

// Notes returns what was decided while the run was prepared, for its log.
func (t *Trainer) Notes() []Note { return t.engine.notes() }

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
func (t *Trainer) Network() *model.Network { return t.engine.network() }

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
	start, cpu, before := now(), cpuTime(), t.at
	account := func() {
		t.at.Seconds = before.Seconds + now().Sub(start).Seconds()
		t.at.CPUSeconds = before.CPUSeconds + (cpuTime() - cpu).Seconds()
		t.at.PeakHost = max(t.at.PeakHost, residentBytes())
		u := t.engine.usage()
		t.at.PeakDevice = max(t.at.PeakDevice, u.peakBytes)
		t.at.Joules = before.Joules + u.joules
		t.at.CacheRows, t.at.CacheHits = before.CacheRows+u.rows, before.CacheHits+u.hits
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
		Parameters: len(t.Network().Params.Data), Epochs: t.Config.Epochs, Batches: t.engine.batches(),
		Metric: t.data.Metric(), Seed: t.Config.Seed, DoneEpochs: t.at.Epoch, DoneBatches: t.at.Batch,
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
	last := now()
	count := func() {
		at := now()
		t.at.ThisEpoch += at.Sub(last).Seconds()
		last = at
	}
	every := int64(t.Config.CheckpointEvery)
	first := t.at.Step - int64(t.at.Batch) // the epoch's first step
	hold := func(index int) bool { return every > 0 && (first+int64(index)+1)%every == 0 }
	plan := epochPlan{epoch: t.at.Epoch, first: t.at.Batch, rate: t.rate(), hold: hold}
	err := t.engine.epoch(ctx, plan, func(r stepResult) error {
		if err := t.report(&r); err != nil {
			return err
		}
		count()
		if hold(r.index) {
			account()
			if err := t.save(ctx); err != nil {
				return err
			}
			last = now()
		}
		return nil
	})
	count()
	return err
}

// report accounts for a step and tells the listeners.
func (t *Trainer) report(r *stepResult) error {
	if math.IsNaN(r.loss) || math.IsInf(r.loss, 0) {
		return fmt.Errorf("the loss is %g at epoch %d, batch %d: try a lower -lr, and `dataset verify` for NaN features", r.loss, t.at.Epoch+1, r.index+1)
	}
	t.at.Step++
	t.at.Batch = r.index + 1
	t.at.LossSum += r.loss * float64(r.labelled)
	t.at.LossCount += r.labelled
	t.at.EpochStages.add(r.seconds)
	t.at.Stages.add(r.seconds)
	t.at.Bytes += int64(float64(r.nodes) * t.data.RowBytes())
	return t.emit(Step{Epoch: t.at.Epoch + 1, Batch: r.index + 1, Batches: t.engine.batches(), Step: t.at.Step, Loss: r.loss, LR: t.rate(),
		Seeds: r.seeds, Nodes: r.nodes, Edges: r.edges, Seconds: r.seconds})
}

// rate returns the learning rate of the current epoch.
func (t *Trainer) rate() float64 {
	return t.Config.Schedule.Rate(t.Config.LR, t.at.Epoch, t.Config.Epochs)
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
		if err := t.keepBest(eval); err != nil {
			return err
		}
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
	start := now()
	m, err := t.engine.evaluate(ctx)
	if err != nil {
		return nil, err
	}
	return &Eval{Epoch: t.at.Epoch + 1, Step: t.at.Step, Train: m[0], Valid: m[1], Test: m[2], Elapsed: now().Sub(start)}, nil
}

// keepBest remembers the parameters if the validation metric is the highest so
// far, the first on ties. Without validation nodes the last epoch is the best.
func (t *Trainer) keepBest(e *Eval) error {
	t.best.Since++
	if t.best.Epoch == 0 || e.Valid > t.best.Valid || len(t.split.Valid) == 0 {
		if err := t.Network().Params.Download(); err != nil {
			return err
		}
		e.Best = true
		t.best = bestState{Epoch: e.Epoch, Train: e.Train, Valid: e.Valid, Test: e.Test, Step: e.Step,
			params: append(t.best.params[:0], t.Network().Params.Data...), dirty: true}
	}
	e.BestEpoch = t.best.Epoch
	return nil
}

// Summary returns what the run has come to so far.
func (t *Trainer) Summary() Summary {
	s := Summary{
		Dataset: t.data.Name, Model: t.modelName(), Seed: t.Config.Seed, Device: t.device,
		Epochs: t.at.Epoch, Steps: t.at.Step, BestEpoch: t.best.Epoch,
		Train: t.best.Train, Valid: t.best.Valid, Test: t.best.Test, Metric: t.data.Metric(),
		SecondsTotal: t.at.Seconds, SecondsPerEpoch: median(t.at.EpochSeconds), Stages: t.at.Stages,
		BytesGathered: t.at.Bytes, GatherGBps: rate(t.at.Bytes, t.at.Stages.Gather),
		PeakHostBytes: t.at.PeakHost, CPUSeconds: t.at.CPUSeconds,
		PeakDeviceBytes: t.at.PeakDevice, GPUJoules: t.at.Joules,
	}
	if t.at.CacheRows > 0 {
		s.CacheHitRate = float64(t.at.CacheHits) / float64(t.at.CacheRows)
	}
	return s
}

// Close releases the network and all that goes with it. The data and the store
// are the caller's.
func (t *Trainer) Close() error { return t.engine.close() }

// now is the clock of all times that are reported.
func now() time.Time { return time.Now() }
