package trainer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"

	"zerogcn/checkpoints"
	"zerogcn/checkpoints/safetensors"
	"zerogcn/datasets"
	"zerogcn/internal/usage"
	"zerogcn/model"
)

// Stored is what a checkpoint says of the run that wrote it.
type Stored struct {
	Train Config
	Data  DataOptions
	Split datasets.Split
	// Fingerprint is the dataset's; Device did the work, with products by BLAS.
	Fingerprint, Device, BLAS string
	// Of the best epoch: only checkpoints of training have it.
	BestEpoch int
}

// storedConfig is the JSON of a checkpoint's configuration.
type storedConfig struct {
	Train  Config      `json:"train"`
	Data   DataOptions `json:"data"`
	Device string      `json:"device"`
}

// ReadStored returns the configuration and the split of a checkpoint.
func ReadStored(c *checkpoints.Checkpoint) (*Stored, error) {
	if c.WeightsOnly {
		return nil, usage.Errorf("checkpoint holds weights alone, without the configuration that made them: give the folder of a checkpoint")
	}
	var cfg storedConfig
	if err := json.Unmarshal(c.Config, &cfg); err != nil {
		return nil, usage.Errorf("checkpoint: its configuration cannot be read: %w", err)
	}
	cfg.Train.EnsureDefaults()
	if err := cfg.Train.Validate(); err != nil {
		return nil, usage.Errorf("checkpoint: its configuration is wrong: %w", err)
	}
	s := &Stored{Train: cfg.Train, Data: cfg.Data, Fingerprint: c.Dataset.Fingerprint, Device: cfg.Device, BLAS: c.Versions.BLAS}
	if c.Best != nil {
		s.BestEpoch = int(c.Best.Epoch)
	}
	for name, part := range map[string]*[]int32{"train": &s.Split.Train, "valid": &s.Split.Valid, "test": &s.Split.Test} {
		ids, err := find(c.Split, name)
		if err != nil {
			return nil, usage.Errorf("checkpoint: split: %w", err)
		}
		data, ok := ids.(safetensors.I32)
		if !ok {
			return nil, usage.Errorf("checkpoint: split %s holds %v, want I32", name, ids.DType())
		}
		*part = data
	}
	return s, nil
}

// CheckSplit reports a stored split that does not fit a dataset.
func (s *Stored) CheckSplit(d *Data) error {
	for _, part := range [][]int32{s.Split.Train, s.Split.Valid, s.Split.Test} {
		for i, v := range part {
			if v < 0 || int(v) >= d.NumNodes || i > 0 && part[i-1] >= v {
				return usage.Errorf("checkpoint: its split names node %d, which dataset %s of %d nodes does not have in that place", v, d.Name, d.NumNodes)
			}
		}
	}
	return nil
}

func find(tensors []checkpoints.Tensor, name string) (safetensors.Data, error) {
	i := slices.IndexFunc(tensors, func(t checkpoints.Tensor) bool { return t.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("no tensor %q", name)
	}
	return tensors[i].Data, nil
}

// floats copies a named F32 tensor into dst, whose length it must have.
func floats(tensors []checkpoints.Tensor, name string, dst []float32) error {
	d, err := find(tensors, name)
	if err != nil {
		return err
	}
	f, ok := d.(safetensors.F32)
	if !ok || len(f) != len(dst) {
		return fmt.Errorf("tensor %q holds %d values of %v, want %d of F32", name, d.Len(), d.DType(), len(dst))
	}
	copy(dst, f)
	return nil
}

// LoadParams copies a checkpoint's parameters into a network's, which must have
// the same names and shapes.
func LoadParams(p *model.Params, tensors []checkpoints.Tensor) error {
	if len(p.List) != len(tensors) {
		return usage.Errorf("checkpoint has %d parameters, the model %d", len(tensors), len(p.List))
	}
	for k := range p.List {
		q := &p.List[k]
		i := slices.IndexFunc(tensors, func(t checkpoints.Tensor) bool { return t.Name == q.Name })
		if i < 0 {
			return usage.Errorf("checkpoint has no parameter %s", q.Name)
		}
		if !slices.Equal(tensors[i].Shape, q.Shape) {
			return usage.Errorf("checkpoint: parameter %s has shape %v, the model wants %v", q.Name, tensors[i].Shape, q.Shape)
		}
		if err := floats(tensors, q.Name, p.View(k)); err != nil {
			return usage.Errorf("checkpoint: %w", err)
		}
	}
	return nil
}

// tensors returns parameters as a checkpoint's; the data is shared.
func tensors(p *model.Params, flat []float32) []checkpoints.Tensor {
	var ts []checkpoints.Tensor
	for i := range p.List {
		q := &p.List[i]
		ts = append(ts, checkpoints.Tensor{Name: q.Name, Shape: q.Shape, Data: safetensors.F32(flat[q.Offset : q.Offset+q.Len()])})
	}
	return ts
}

func vector[D safetensors.Data](name string, data D) checkpoints.Tensor {
	return checkpoints.Tensor{Name: name, Shape: []int{data.Len()}, Data: data}
}

// checkpoint describes the run without any tensors but the split.
func (t *Trainer) checkpoint() (*checkpoints.Checkpoint, error) {
	cfg, err := json.Marshal(storedConfig{t.Config, t.data.Options, t.device})
	if err != nil {
		return nil, err
	}
	c := &checkpoints.Checkpoint{
		Seed: t.Config.Seed, GlobalBatch: int64(t.Config.Batch), Config: cfg,
		Dataset:  checkpoints.Dataset{Source: t.data.Options.Name, Name: t.data.Name, Fingerprint: t.data.Fingerprint},
		Versions: checkpoints.Versions{Zerogcn: Version(), Go: runtime.Version(), BLAS: t.engine.blas()},
		Split: []checkpoints.Tensor{vector("train", safetensors.I32(t.split.Train)),
			vector("valid", safetensors.I32(t.split.Valid)), vector("test", safetensors.I32(t.split.Test))},
	}
	if t.best.Epoch > 0 {
		c.Best = &checkpoints.Best{Epoch: int64(t.best.Epoch), Step: t.best.Step, Metric: t.data.Metric(), Value: checkpoints.Float(t.best.Valid)}
		c.Values = map[string]checkpoints.Float{"best_train": checkpoints.Float(t.best.Train),
			"best_valid": checkpoints.Float(t.best.Valid), "best_test": checkpoints.Float(t.best.Test)}
	}
	return c, nil
}

// save writes the last state, and before it the best one if that is new.
func (t *Trainer) save(ctx context.Context) error {
	if t.store == nil {
		return nil
	}
	if t.best.dirty {
		c, err := t.checkpoint()
		if err != nil {
			return err
		}
		c.Step, c.Epoch = t.best.Step, int64(t.best.Epoch)
		c.Model = tensors(t.Network().Params, t.best.params)
		if err := t.store.SaveBest(ctx, c); err != nil {
			return err
		}
		t.best.dirty = false
		if err := t.announce("best", t.store.Best, t.best.Epoch, t.best.Step); err != nil {
			return err
		}
	}
	c, err := t.checkpoint()
	if err != nil {
		return err
	}
	if err := t.describe(c); err != nil {
		return err
	}
	if err := t.store.SaveLast(ctx, c); err != nil {
		return err
	}
	t.saved = now()
	return t.announce("last", t.store.Last, t.at.Epoch, t.at.Step)
}

func (t *Trainer) announce(kind string, path func() (string, error), epoch int, step int64) error {
	p, err := path()
	if err != nil {
		return err
	}
	return t.emit(Checkpoint{Kind: kind, Path: p, Epoch: epoch, Step: step})
}

// describe adds the state of training to a checkpoint. Everything that the next
// step depends on has fields of its own; what the run has cost so far is JSON.
func (t *Trainer) describe(c *checkpoints.Checkpoint) error {
	moments, steps, err := t.engine.state()
	if err != nil {
		return err
	}
	c.Step, c.Epoch, c.Patience, c.Finished = t.at.Step, int64(t.at.Epoch), int64(t.best.Since), t.at.Done
	c.Position = int64(t.at.Batch) * int64(t.Config.Batch)
	if t.Config.Batch == 0 {
		c.Position = int64(t.at.Batch) * int64(len(t.split.Train))
	}
	c.Position = min(c.Position, int64(len(t.split.Train)))
	c.Counters = map[string]int64{"batch": int64(t.at.Batch), "loss_count": int64(t.at.LossCount), "optimizer_steps": steps}
	if c.Values == nil {
		c.Values = map[string]checkpoints.Float{}
	}
	c.Values["loss_sum"] = checkpoints.Float(t.at.LossSum)
	costs, err := json.Marshal(t.at.costs)
	if err != nil {
		return err
	}
	p := t.Network().Params
	c.Model = tensors(p, p.Data)
	c.State = []checkpoints.Tensor{vector("costs", safetensors.U8(costs))}
	for name, m := range moments {
		c.State = append(c.State, vector("optimizer."+name, safetensors.F32(m)))
	}
	return nil
}

// Restore puts the trainer where a checkpoint of the same run stands. best, if
// not nil, is the run's best checkpoint. The configuration, the split and the
// dataset must be those of the checkpoint; notes say what differs without harm.
func (t *Trainer) Restore(last, best *checkpoints.Checkpoint) ([]Note, error) {
	moments, _, err := t.engine.state()
	if err != nil {
		return nil, err
	}
	if err := LoadParams(t.Network().Params, last.Model); err != nil {
		return nil, err
	}
	for name, m := range moments {
		if err := floats(last.State, "optimizer."+name, m); err != nil {
			return nil, usage.Errorf("checkpoint: %w", err)
		}
	}
	if err := t.engine.restore(moments, last.Counters["optimizer_steps"]); err != nil {
		return nil, err
	}
	costs, err := find(last.State, "costs")
	if err != nil {
		return nil, usage.Errorf("checkpoint: %w", err)
	}
	t.at = progress{Epoch: int(last.Epoch), Batch: int(last.Counters["batch"]), Step: last.Step,
		LossSum: float64(last.Values["loss_sum"]), LossCount: int(last.Counters["loss_count"]), Done: last.Finished}
	if b, ok := costs.(safetensors.U8); !ok || json.Unmarshal(b, &t.at.costs) != nil {
		return nil, usage.Errorf("checkpoint: what the run has cost so far cannot be read")
	}
	if t.at.Epoch < 0 || t.at.Batch < 0 || t.at.Batch > t.engine.batches() {
		return nil, usage.Errorf("checkpoint: it stands at batch %d of epoch %d, an epoch has %d batches", t.at.Batch, t.at.Epoch+1, t.engine.batches())
	}
	if last.Best != nil {
		t.best = bestState{Epoch: int(last.Best.Epoch), Step: last.Best.Step, Since: int(last.Patience),
			Train: float64(last.Values["best_train"]), Valid: float64(last.Values["best_valid"]), Test: float64(last.Values["best_test"])}
	}
	// A best that is ahead of last, after a crash between the two, is found
	// again on the way; then the one named here is not needed.
	if best != nil && last.Best != nil && best.Step == last.Best.Step {
		p := *t.Network().Params
		p.Data = make([]float32, len(p.Data))
		if err := LoadParams(&p, best.Model); err != nil {
			return nil, err
		}
		t.best.params = p.Data
	}
	var notes []Note
	blas := t.engine.blas()
	if v := last.Versions; v.BLAS != blas || v.Go != runtime.Version() {
		notes = append(notes, Note{Warning: true, Text: fmt.Sprintf("resuming with %s, %s what %s, %s began: results may differ in the last bits",
			blas, runtime.Version(), v.BLAS, v.Go)})
	}
	return notes, nil
}

// ErrFinished is returned for a run that has nothing left to do.
var ErrFinished = errors.New("the run is finished")

// Version returns the program's version as the build recorded it.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
