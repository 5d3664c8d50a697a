package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/pprof"
	"time"

	"golang.org/x/term"

	"zerogcn/checkpoints"
	"zerogcn/datasets"
	"zerogcn/datasets/fetch"
	"zerogcn/datasets/fetch/console"
	"zerogcn/internal/backend"
	"zerogcn/internal/cli"
	"zerogcn/internal/par"
	"zerogcn/internal/usage"
	"zerogcn/model"
	"zerogcn/model/exec"
	"zerogcn/trainer"
	"zerogcn/trainer/report"
	"zerogcn/trainer/rundir"
)

// single trains once.
func single(ctx context.Context, o *options) (err error) {
	data, rt, notes, err := o.prepare(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, data.Close(), rt.gpu.Close()) }()
	path := o.run
	if o.resume != "" {
		path = o.resume
	} else if path == "" {
		path = rundir.DefaultPath(time.Now(), data.Name, string(o.train.Model.Arch))
	}
	s, err := o.trainIn(ctx, data, rt, path, notes)
	if err != nil {
		return err
	}
	o.printf("%s\n", path)
	return o.printJSON(s)
}

// machine is what runs are made on: a GPU, or the host.
type machine struct {
	gpu  *backend.GPU
	host exec.Backend
	blas string
}

// runtime returns what a trainer needs of the machine.
func (m *machine) runtime() trainer.Runtime {
	rt := trainer.Runtime{Backend: m.host, BLAS: m.blas}
	if m.gpu != nil {
		rt.GPU = &m.gpu.GPU
	}
	return rt
}

// prepare opens the device and the dataset.
func (o *options) prepare(ctx context.Context) (*trainer.Data, *machine, []trainer.Note, error) {
	if err := o.fetch(ctx); err != nil {
		return nil, nil, nil, err
	}
	m := &machine{}
	var notes []trainer.Note
	var err error
	if o.gpu.Select.Auto && o.train.Model.Arch == model.MLP {
		notes = append(notes, trainer.Note{Text: "mlp does not use the graph: training it on the CPU"})
	} else if m.gpu, notes, err = backend.OpenGPU(o.gpu); err != nil {
		return nil, nil, nil, err
	}
	d := o.data
	d.OnDevice = m.gpu != nil
	data, more, err := trainer.OpenData(ctx, d)
	if err != nil {
		return nil, nil, nil, errors.Join(err, m.gpu.Close())
	}
	if m.gpu == nil {
		var chosen []trainer.Note
		if m.host, m.blas, chosen, err = backend.CPU(o.train.Workers, o.blas); err != nil {
			return nil, nil, nil, errors.Join(usage.Wrap(err), data.Close())
		}
		notes = append(notes, chosen...)
	} else {
		f := data.Dataset.Features
		if err := m.gpu.SizeCache(o.cache, int64(f.Rows)*int64(f.RowBytes())); err != nil {
			return nil, nil, nil, errors.Join(err, data.Close(), m.gpu.Close())
		}
	}
	return data, m, append(notes, more...), nil
}

// fetch brings a published set that is not here yet, if -download agreed to it.
func (o *options) fetch(ctx context.Context) error {
	set, ok := datasets.FindPublished(o.data.Name)
	if !ok || !o.download || !errors.Is(o.findDataset(), datasets.ErrNotDownloaded) {
		return nil
	}
	out := io.Writer(os.Stderr)
	if o.quiet {
		out = io.Discard
	}
	_, err := console.Download(ctx, set, fetch.Options{Root: o.data.Root, Workers: par.Workers(o.data.Workers)}, out)
	return err
}

// runFiles is an open run: its folder, and where it stands if it is resumed.
type runFiles struct {
	folder *rundir.Folder
	store  *checkpoints.Store
	curves *report.Curves
	// last and best are the checkpoints of a resumed run, nil if there are none.
	last, best *checkpoints.Checkpoint
}

// openRun begins a run's folder with its configuration, or opens it again and
// cuts its metrics back to the last checkpoint.
func (o *options) openRun(ctx context.Context, path string) (r *runFiles, err error) {
	r = &runFiles{curves: &report.Curves{}}
	if o.resume != "" {
		r.folder, err = rundir.Open(path)
	} else {
		r.folder, err = rundir.Create(path)
	}
	if err != nil {
		return nil, err
	}
	r.store = checkpoints.NewStore(r.folder.File(rundir.CheckpointsName), o.keep)
	if !rundir.HasConfig(path) {
		err = r.folder.Write(rundir.ConfigName, func(w io.Writer) error { return o.flags.WriteConfig(w) })
	}
	if err == nil && o.resume != "" {
		err = r.restore(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, r.folder.Close())
	}
	return r, nil
}

// restore loads the checkpoints and drops from the metrics what will be done
// again.
func (r *runFiles) restore(ctx context.Context) error {
	load := func(find func() (string, error)) (*checkpoints.Checkpoint, error) {
		dir, err := find()
		if errors.Is(err, checkpoints.ErrNone) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return checkpoints.Load(ctx, dir)
	}
	var err error
	if r.last, err = load(r.store.Last); err != nil {
		return err
	}
	step, midEpoch := int64(0), true
	if r.last != nil {
		step, midEpoch = r.last.Step, r.last.Counters["batch"] > 0
		if r.best, err = load(r.store.Best); err != nil {
			return err
		}
	}
	points, err := r.folder.CutMetrics(step, midEpoch)
	if err != nil {
		return err
	}
	for _, p := range points {
		switch p.Event {
		case "epoch":
			r.curves.AddEpoch(p.Epoch, p.Loss)
		case "eval":
			r.curves.AddEval(p.Epoch, p.Metrics["train"], p.Metrics["valid"], p.Metrics["test"])
		}
	}
	return nil
}

// split returns the split of the checkpoint, so that a resumed run keeps it, or
// the one that the flags name.
func (r *runFiles) split(data *trainer.Data) (datasets.Split, []trainer.Note, error) {
	if r.last == nil {
		return data.ChooseSplit()
	}
	stored, err := trainer.ReadStored(r.last)
	if err != nil {
		return datasets.Split{}, nil, err
	}
	if stored.Fingerprint != data.Fingerprint {
		return datasets.Split{}, nil, usage.Errorf("dataset %s is not the one that the run in %s was trained on: its content has changed",
			data.Name, r.folder.Path)
	}
	return stored.Split, nil, stored.CheckSplit(data)
}

// trainIn trains one run in its folder, or continues it there. It passes the
// notes on to the run's log and console.
func (o *options) trainIn(ctx context.Context, data *trainer.Data, m *machine, path string, notes []trainer.Note) (s trainer.Summary, err error) {
	r, err := o.openRun(ctx, path)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, r.folder.Close()) }()
	rt := m.runtime()
	rt.Store = r.store
	rt.Listeners = []trainer.Listener{&report.Metrics{W: r.folder.Metrics()}, &report.Log{W: r.folder.Log()}, r.curves}
	if !o.quiet {
		out := o.output()
		rt.Listeners = append(rt.Listeners, &report.Console{W: out, Terminal: term.IsTerminal(int(out.Fd()))})
	}
	split, more, err := r.split(data)
	if err != nil {
		return s, err
	}
	t, err := trainer.New(ctx, data, split, o.train, rt)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	notes = append(append(notes, more...), t.Notes()...)
	switch {
	case r.last != nil:
		if more, err = t.Restore(r.last, r.best); err != nil {
			return s, err
		}
		notes = append(notes, more...)
	case o.resume != "":
		notes = append(notes, trainer.Note{Text: path + " has no checkpoint yet: starting from the beginning"})
	}
	if r.last != nil && r.last.Finished {
		notes = []trainer.Note{{Text: path + " is finished: nothing is left to do"}}
	}
	for _, n := range notes {
		if err := t.Note(n); err != nil {
			return s, err
		}
	}
	if r.last != nil && r.last.Finished {
		return t.Summary(), nil
	}
	s, err = t.Run(ctx)
	if errors.Is(err, trainer.ErrInterrupted) {
		return s, &cli.Stopped{Text: fmt.Sprintf("interrupted after step %d; the state is saved: continue with train -resume %s", t.Step(), path)}
	}
	if err != nil {
		return s, err
	}
	return s, errors.Join(r.folder.WriteJSON(rundir.SummaryName, s), r.folder.Write(rundir.CurvesName, r.curves.WritePNG))
}

// repeat trains several times, with ascending seeds and, if the dataset comes
// with several splits, one split after the other.
func repeat(ctx context.Context, o *options) (err error) {
	data, m, notes, err := o.prepare(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, data.Close(), m.gpu.Close()) }()
	path := o.run
	if path == "" {
		path = rundir.DefaultPath(time.Now(), data.Name, string(o.train.Model.Arch))
	}
	var runs []trainer.Summary
	seed := o.train.Seed
	verbose := !o.quiet
	for i := range o.repeat {
		r := *o
		r.train.Seed = seed + uint64(i)
		r.flags = r.define() // binds the copies, for the run's config.yaml
		r.quiet, r.repeat = true, 1
		if n := data.NumGivenSplits(); n > 1 && !o.splitGiven && o.data.MakeSplit == "" {
			r.data.SplitIndex = i % n
			data.Options.SplitIndex = r.data.SplitIndex
		}
		s, err := r.trainIn(ctx, data, m, filepath.Join(path, fmt.Sprintf("seed-%d", r.train.Seed)), notes)
		if err != nil {
			return err
		}
		runs = append(runs, s)
		if verbose {
			if i == 0 {
				for _, n := range notes {
					o.printf("%s\n", n.Text)
				}
			}
			o.printf("run %d of %d, seed %d: test %s %.4f, valid %.4f at epoch %d, %.1f s\n",
				i+1, o.repeat, s.Seed, s.Metric, s.Test, s.Valid, s.BestEpoch, s.SecondsTotal)
		}
	}
	s := trainer.Combine(runs)
	if err := rundir.WriteJSON(filepath.Join(path, rundir.SummaryName), s); err != nil {
		return err
	}
	o.printf("\n%d runs: test %s %.4f ± %.4f, valid %.4f ± %.4f (mean ± standard deviation), %.1f s in all\n%s\n",
		s.Repeats, s.Metric, s.Test, s.TestStd, s.Valid, s.ValidStd, s.SecondsTotal, path)
	return o.printJSON(s)
}

// output is where progress goes: with -json, standard output is the summary's
// alone.
func (o *options) output() *os.File {
	if o.json {
		return os.Stderr
	}
	return os.Stdout
}

// printf prints unless the command is to be quiet.
func (o *options) printf(format string, args ...any) {
	if !o.quiet {
		fmt.Fprintf(o.output(), format, args...)
	}
}

func (o *options) printJSON(s trainer.Summary) error {
	if !o.json {
		return nil
	}
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	_, err = fmt.Printf("%s\n", b)
	return err
}

func startProfile(path string) (stop func(), err error) {
	if path == "" {
		return func() {}, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, usage.Errorf("-cpuprofile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { pprof.StopCPUProfile(); f.Close() }, nil
}
