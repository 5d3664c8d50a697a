package trainer_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"zerogcn/checkpoints"
	"zerogcn/internal/par"
	"zerogcn/internal/usage"
	"zerogcn/model"
	"zerogcn/model/exec/cpu"
	"zerogcn/model/optim"
	"zerogcn/trainer"
)

func openDemo(t testing.TB) *trainer.Data {
	t.Helper()
	d, _, err := trainer.OpenData(t.Context(), trainer.DataOptions{Name: "demo"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func config() trainer.Config {
	return trainer.Config{
		Model:   model.Config{Arch: model.SAGE, Hidden: 16, Layers: 2, Dropout: 0.5, InputDropout: 0.1},
		Fanouts: []int{5, 3}, Batch: 1000, Epochs: 3, Seed: 5, LR: 0.01, WeightDecay: []float64{1e-3, 0},
	}
}

// recorder keeps what must be reproducible of a run's events, and may act on one.
type recorder struct {
	lines []string
	on    func(trainer.Event)
}

func (r *recorder) Handle(e trainer.Event) error {
	switch e := e.(type) {
	case trainer.Step:
		r.lines = append(r.lines, fmt.Sprintf("step %d epoch %d batch %d loss %x nodes %d edges %d", e.Step, e.Epoch, e.Batch, e.Loss, e.Nodes, e.Edges))
	case trainer.Epoch:
		r.lines = append(r.lines, fmt.Sprintf("epoch %d step %d loss %x", e.Epoch, e.Step, e.Loss))
	case trainer.Eval:
		r.lines = append(r.lines, fmt.Sprintf("eval %d %x %x %x best %t %d", e.Epoch, e.Train, e.Valid, e.Test, e.Best, e.BestEpoch))
	}
	if r.on != nil {
		r.on(e)
	}
	return nil
}

func newTrainer(t testing.TB, d *trainer.Data, c trainer.Config, store *checkpoints.Store, r *recorder) *trainer.Trainer {
	t.Helper()
	split, _, err := d.ChooseSplit()
	if err != nil {
		t.Fatal(err)
	}
	tr, err := trainer.New(t.Context(), d, split, c, trainer.Runtime{
		Backend: cpu.New(cpu.Options{Workers: par.Workers(c.Workers)}), BLAS: "gonum", Store: store, Listeners: []trainer.Listener{r}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	})
	return tr
}

// The same seed gives the same batches, losses and parameters, bit for bit, for
// 1, 2 and 8 workers.
func TestWorkersDoNotMatter(t *testing.T) {
	d := openDemo(t)
	for _, m := range []model.Config{
		{Arch: model.SAGE, Hidden: 16, Layers: 2, Dropout: 0.5},
		{Arch: model.GCN, Hidden: 16, Layers: 2, Dropout: 0.5, InputDropout: 0.5},
	} {
		var want []string
		var params []float32
		for _, w := range []int{1, 2, 8} {
			c := config()
			c.Model, c.Workers, c.Epochs = m, w, 2
			r := &recorder{}
			tr := newTrainer(t, d, c, nil, r)
			if _, err := tr.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want, params = r.lines, slices.Clone(tr.Network().Params.Data)
				continue
			}
			if !slices.Equal(r.lines, want) {
				t.Errorf("%s: %d workers give other losses", m.Arch, w)
			}
			if !slices.Equal(tr.Network().Params.Data, params) {
				t.Errorf("%s: %d workers give other parameters", m.Arch, w)
			}
		}
	}
}

// A run that is interrupted after any step, even twice, and resumed ends with the
// bits, the events and the best epoch of one that was not.
func TestResumeIsExact(t *testing.T) {
	d := openDemo(t)
	whole := &recorder{}
	full := newTrainer(t, d, config(), nil, whole)
	sum, err := full.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, stops := range [][]int64{{1}, {5}, {8}, {11, 13}, {16, 23}} {
		store := checkpoints.NewStore(filepath.Join(t.TempDir(), "checkpoints"), 1)
		var lines []string
		var tr *trainer.Trainer
		var got trainer.Summary
		for i := 0; i <= len(stops); i++ {
			ctx, cancel := context.WithCancel(t.Context())
			r := &recorder{on: func(e trainer.Event) {
				if s, ok := e.(trainer.Step); ok && i < len(stops) && s.Step == stops[i] {
					cancel()
				}
			}}
			tr = newTrainer(t, d, config(), store, r)
			if i > 0 {
				restore(t, tr, store)
			}
			got, err = tr.Run(ctx)
			cancel()
			lines = append(lines, r.lines...)
			if i < len(stops) {
				if !errors.Is(err, trainer.ErrInterrupted) || tr.Step() != stops[i] {
					t.Fatalf("stopped at step %d with %v, want step %d", tr.Step(), err, stops[i])
				}
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(lines, whole.lines) {
			t.Errorf("stops %v: events differ:\n%s\nwant\n%s", stops, strings.Join(lines, "\n"), strings.Join(whole.lines, "\n"))
		}
		if !slices.Equal(tr.Network().Params.Data, full.Network().Params.Data) {
			t.Errorf("stops %v: the parameters differ", stops)
		}
		if got.BestEpoch != sum.BestEpoch || got.Test != sum.Test || got.Epochs != sum.Epochs || got.Steps != sum.Steps {
			t.Errorf("stops %v: summary %+v, want %+v", stops, got, sum)
		}
	}
}

func restore(t *testing.T, tr *trainer.Trainer, store *checkpoints.Store) {
	t.Helper()
	dir, err := store.Last()
	if err != nil {
		t.Fatal(err)
	}
	last, err := checkpoints.Load(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	var best *checkpoints.Checkpoint
	if dir, err := store.Best(); err == nil {
		if best, err = checkpoints.Load(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := tr.Restore(last, best); err != nil {
		t.Fatal(err)
	}
}

// A killed process leaves the last periodic checkpoint; what came after it is
// done again with the same results.
func TestResumeFromPeriodicCheckpoint(t *testing.T) {
	d := openDemo(t)
	c := config()
	c.CheckpointEvery = 5
	store := checkpoints.NewStore(filepath.Join(t.TempDir(), "checkpoints"), 2)
	whole := &recorder{}
	full := newTrainer(t, d, c, nil, whole)
	if _, err := full.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The listener's error stands for the kill: nothing is saved after it.
	killed := &killer{at: 13}
	split, _, err := d.ChooseSplit()
	if err != nil {
		t.Fatal(err)
	}
	tr, err := trainer.New(t.Context(), d, split, c, trainer.Runtime{Backend: cpu.New(cpu.Options{}), BLAS: "gonum", Store: store, Listeners: []trainer.Listener{killed}})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	if _, err := tr.Run(t.Context()); !errors.Is(err, errKilled) {
		t.Fatalf("the listener's error became %v", err)
	}
	if steps, err := store.Steps(); err != nil || !slices.Equal(steps, []int64{5, 10}) {
		t.Fatalf("checkpoints of steps %v are kept (%v), want 5 and 10", steps, err)
	}
	r := &recorder{}
	again := newTrainer(t, d, c, store, r)
	restore(t, again, store)
	if again.Step() != 10 {
		t.Fatalf("resumes at step %d, want 10", again.Step())
	}
	if _, err := again.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(again.Network().Params.Data, full.Network().Params.Data) {
		t.Error("the parameters differ")
	}
	if n := len(r.lines); !slices.Equal(r.lines, whole.lines[len(whole.lines)-n:]) {
		t.Error("the events differ")
	}
}

var errKilled = errors.New("killed")

type killer struct{ at int64 }

func (k *killer) Handle(e trainer.Event) error {
	if s, ok := e.(trainer.Step); ok && s.Step == k.at {
		return errKilled
	}
	return nil
}

func loadBest(t *testing.T, store *checkpoints.Store) *checkpoints.Checkpoint {
	t.Helper()
	dir, err := store.Best()
	if err != nil {
		t.Fatal(err)
	}
	c, err := checkpoints.Load(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// checkScorer holds the scores of the best checkpoint to what training reported.
func checkScorer(t *testing.T, store *checkpoints.Store, d *trainer.Data, rt trainer.Runtime, sum trainer.Summary) {
	t.Helper()
	s, _, err := trainer.NewScorer(t.Context(), loadBest(t, store), d, rt, trainer.ScoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got, out, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got.Metric != sum.Metric || got.Train != sum.Train || got.Valid != sum.Valid || got.Test != sum.Test {
		t.Errorf("evaluate has %+v, training had %+v", got, sum)
	}
	if out.Rows != len(s.Nodes()) {
		t.Errorf("%d rows of outputs for %d nodes", out.Rows, len(s.Nodes()))
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// The best checkpoint evaluates to the metrics that training reported, exactly.
func TestScorerRepeatsTraining(t *testing.T) {
	d := openDemo(t)
	store := checkpoints.NewStore(filepath.Join(t.TempDir(), "checkpoints"), 1)
	tr := newTrainer(t, d, config(), store, &recorder{})
	sum, err := tr.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := loadBest(t, store)
	for _, all := range []bool{false, true} {
		s, notes, err := trainer.NewScorer(t.Context(), c, d, trainer.Runtime{Backend: cpu.New(cpu.Options{})}, trainer.ScoreOptions{All: all})
		if err != nil {
			t.Fatal(err)
		}
		if len(notes) != 0 {
			t.Errorf("notes %v", notes)
		}
		got, out, err := s.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got.Train != sum.Train || got.Valid != sum.Valid || got.Test != sum.Test {
			t.Errorf("all=%t: scores %+v, training had %+v", all, got, sum)
		}
		h, err := s.Hidden()
		if err != nil {
			t.Fatal(err)
		}
		if out.Rows != len(s.Nodes()) || out.Cols != d.NumClasses || h.Rows != out.Rows || h.Cols != 16 {
			t.Errorf("all=%t: outputs %d×%d, embeddings %d×%d for %d nodes", all, out.Rows, out.Cols, h.Rows, h.Cols, len(s.Nodes()))
		}
		s.Close()
	}
}

// Sampled evaluation repeats in training and in evaluate, and with fan-outs that
// take whole neighbourhoods it is exact.
func TestSampledEvaluation(t *testing.T) {
	d := openDemo(t)
	c := config()
	c.EvalFanouts, c.Epochs = []int{8, 8}, 2
	store := checkpoints.NewStore(filepath.Join(t.TempDir(), "checkpoints"), 1)
	sum, err := newTrainer(t, d, c, store, &recorder{}).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ck := loadBest(t, store)
	score := func(o trainer.ScoreOptions) trainer.Scores {
		s, _, err := trainer.NewScorer(t.Context(), ck, d, trainer.Runtime{Backend: cpu.New(cpu.Options{})}, o)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		r, _, err := s.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	sampled := score(trainer.ScoreOptions{})
	if sampled.Test != sum.Test || sampled.Valid != sum.Valid {
		t.Errorf("evaluate has %+v, training had %+v", sampled, sum)
	}
	exact, whole := score(trainer.ScoreOptions{Exact: true}), score(trainer.ScoreOptions{Fanouts: []int{1 << 20, 1 << 20}})
	if exact != whole {
		t.Errorf("exact %+v, sampled with huge fan-outs %+v", exact, whole)
	}
	if diff := exact.Test - sampled.Test; exact == sampled || diff > 0.1 || diff < -0.1 {
		t.Errorf("exact %+v, sampled %+v", exact, sampled)
	}
}

// A run with patience ends when nothing improves any more.
func TestPatience(t *testing.T) {
	d := openDemo(t)
	c := config()
	c.LR, c.Epochs, c.Patience = 1e-12, 20, 2 // too small a rate to improve anything
	var end trainer.RunEnd
	r := &recorder{on: func(e trainer.Event) {
		if x, ok := e.(trainer.RunEnd); ok {
			end = x
		}
	}}
	sum, err := newTrainer(t, d, c, nil, r).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if sum.Epochs != 3 || sum.BestEpoch != 1 || !end.EarlyStop {
		t.Errorf("%d epochs, best %d, early stop %t; want 3, 1, true", sum.Epochs, sum.BestEpoch, end.EarlyStop)
	}
}

func TestBadConfigurations(t *testing.T) {
	d := openDemo(t)
	split, _, err := d.ChooseSplit()
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*trainer.Config){
		"3 fan-outs for 2 layers": func(c *trainer.Config) { c.Fanouts = []int{1, 2, 3} },
		"3 weight decays":         func(c *trainer.Config) { c.WeightDecay = []float64{0, 0, 0} },
		"0 epochs":                func(c *trainer.Config) { c.Epochs = 0 },
		"learning rate":           func(c *trainer.Config) { c.LR = 0 },
		"unknown model":           func(c *trainer.Config) { c.Model.Arch = "gta" },
		"unknown optimiser":       func(c *trainer.Config) { c.Optimizer = optim.Kind("admm") },
		"dropout 1":               func(c *trainer.Config) { c.Model.Dropout = 1 },
		"hidden width 0":          func(c *trainer.Config) { c.Model.Hidden = 0 },
		"batch of -1":             func(c *trainer.Config) { c.Batch = -1 },
		"patience of -1":          func(c *trainer.Config) { c.Patience = -1 },
	} {
		c := config()
		change(&c)
		_, err := trainer.New(t.Context(), d, split, c, trainer.Runtime{Backend: cpu.New(cpu.Options{})})
		if err == nil || !strings.Contains(err.Error(), want) || !usage.Is(err) {
			t.Errorf("got %v, want an error of usage with %q", err, want)
		}
	}
}

// A loss that is not finite ends the run with advice, before it reaches the
// parameters' checkpoint.
func TestDivergence(t *testing.T) {
	d := openDemo(t)
	c := config()
	c.LR, c.Optimizer = 1e30, optim.SGD
	_, err := newTrainer(t, d, c, nil, &recorder{}).Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "loss is") {
		t.Errorf("a learning rate of 1e30 gave %v", err)
	}
}

func TestCombine(t *testing.T) {
	a := trainer.Summary{Dataset: "x", Seed: 3, Epochs: 2, Test: 0.5, Valid: 0.6, Train: 1, SecondsTotal: 1, SecondsPerEpoch: 3}
	b, c := a, a
	b.Test, b.SecondsPerEpoch, b.Epochs = 0.7, 1, 4
	c.Test, c.SecondsPerEpoch = 0.6, 2
	got := trainer.Combine([]trainer.Summary{a, b, c})
	want := a
	want.Repeats, want.Test, want.TestStd, want.SecondsPerEpoch, want.SecondsTotal, want.Epochs = 3, 0.6, 0.1, 2, 3, 8
	for _, p := range []struct{ got, want float64 }{{got.Test, want.Test}, {got.TestStd, want.TestStd}, {got.Valid, 0.6}, {got.ValidStd, 0}} {
		if d := p.got - p.want; d > 1e-12 || d < -1e-12 {
			t.Errorf("got %v, want %v", p.got, p.want)
		}
	}
	got.Test, got.TestStd, got.Valid, got.Train, got.ValidStd = want.Test, want.TestStd, want.Valid, want.Train, 0
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
