package trainer_test

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"zerogcn/checkpoints"
	"zerogcn/cuda/cudatest/emulator"
	"zerogcn/model"
	cudaexec "zerogcn/model/exec/cuda"
	"zerogcn/trainer"
	"zerogcn/zerocopy"
)

// The GPU engine on a machine without a GPU: the kernels run in the emulator, on a
// set that is small enough for it.

const tiny = "synthetic:products?nodes=300&edges=1500&dim=8&classes=4&seed=3"

func openTiny(t testing.TB, onDevice bool) *trainer.Data {
	t.Helper()
	d, _, err := trainer.OpenData(t.Context(), trainer.DataOptions{Name: tiny, OnDevice: onDevice, MakeSplit: "random:0.5,0.2,0.2"})
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

func tinyConfig() trainer.Config {
	return trainer.Config{
		Model:   model.Config{Arch: model.SAGE, Hidden: 8, Layers: 2, Dropout: 0.3, InputDropout: 0.1},
		Fanouts: []int{4, 3}, Batch: 40, Epochs: 2, Seed: 5, LR: 0.01, WeightDecay: []float64{1e-3, 0},
	}
}

// On the emulator the losses are the CPU's to rounding, the metrics the same, in
// exact and in sampled evaluation, for nodes of all parts and of some.
func TestEmulatedAgreesWithCPU(t *testing.T) {
	dev, _ := emulator.Device(t)
	host, d := openTiny(t, false), openTiny(t, true)
	for _, change := range []func(*trainer.Config){
		func(*trainer.Config) {},
		func(c *trainer.Config) { c.Model = model.Config{Arch: model.GCN, Hidden: 8, Layers: 2, Dropout: 0.3} },
		func(c *trainer.Config) { c.Model.Aggregator = "max"; c.EvalFanouts = []int{5, 5} },
		func(c *trainer.Config) { c.Fanouts, c.Batch, c.Model.Aggregator = nil, 0, "gcn" },
	} {
		c := tinyConfig()
		change(&c)
		var losses [2][]float64
		var evals [2][]trainer.Eval
		run := func(i int) *recorder {
			return &recorder{on: func(e trainer.Event) {
				switch e := e.(type) {
				case trainer.Step:
					losses[i] = append(losses[i], e.Loss)
				case trainer.Eval:
					e.Elapsed = 0
					evals[i] = append(evals[i], e)
				}
			}}
		}
		if _, err := newTrainer(t, host, c, nil, run(0)).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		tr := newGPUTrainer(t, d, c, trainer.GPU{Device: dev, Mode: zerocopy.ZeroCopy, BLAS: cudaexec.NoBLAS}, nil, run(1))
		if _, err := tr.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		closeTrainer(t, tr)
		if len(losses[0]) == 0 || len(losses[0]) != len(losses[1]) {
			t.Fatalf("%+v: %d and %d steps", c.Model, len(losses[0]), len(losses[1]))
		}
		for i, a := range losses[0] {
			if b := losses[1][i]; math.Abs(a-b) > 1e-5*math.Abs(a) {
				t.Fatalf("%+v: step %d: loss %v on the CPU, %v on the emulator", c.Model, i+1, a, b)
			}
		}
		if !slices.Equal(evals[0], evals[1]) {
			t.Errorf("%+v: evaluations %+v on the CPU, %+v on the emulator", c.Model, evals[0], evals[1])
		}
	}
}

// With a split of few nodes, layers are computed for what they need only, and the
// metrics are the CPU's.
func TestEmulatedEvaluationOfSomeNodes(t *testing.T) {
	dev, _ := emulator.Device(t)
	const name, split = "synthetic:products?nodes=2000&edges=2500&dim=8&classes=4&seed=3", "random:0.02,0.01,0.02"
	c := tinyConfig()
	c.Model.Layers, c.Fanouts, c.Epochs, c.WeightDecay = 3, []int{2, 2, 2}, 1, nil
	var evals [2]trainer.Eval
	for i := range evals {
		d, _, err := trainer.OpenData(t.Context(), trainer.DataOptions{Name: name, OnDevice: i == 1, MakeSplit: split})
		if err != nil {
			t.Fatal(err)
		}
		r := &recorder{on: func(e trainer.Event) {
			if e, ok := e.(trainer.Eval); ok {
				e.Elapsed = 0
				evals[i] = e
			}
		}}
		var tr *trainer.Trainer
		if i == 0 {
			tr = newTrainer(t, d, c, nil, r)
		} else {
			tr = newGPUTrainer(t, d, c, trainer.GPU{Device: dev, Mode: zerocopy.Device, BLAS: cudaexec.NoBLAS}, nil, r)
		}
		if _, err := tr.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			closeTrainer(t, tr)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if evals[0] != evals[1] || evals[0].Epoch != 1 {
		t.Errorf("%+v on the CPU, %+v on the emulator", evals[0], evals[1])
	}
}

// Every way for features to reach the device gives the same run.
func TestEmulatedModesAreEqual(t *testing.T) {
	dev, _ := emulator.Device(t)
	d := openTiny(t, true)
	var want []string
	for _, g := range []trainer.GPU{
		{Mode: zerocopy.ZeroCopy}, {Mode: zerocopy.Staged}, {Mode: zerocopy.Device}, {Mode: zerocopy.Cached, CacheBytes: 2000},
		{Mode: zerocopy.Hybrid}, {Mode: zerocopy.ZeroCopy, HostGraph: true},
	} {
		g.Device, g.BLAS = dev, cudaexec.NoBLAS
		c := tinyConfig()
		c.Epochs = 1
		r := &recorder{}
		tr := newGPUTrainer(t, d, c, g, nil, r)
		sum, err := tr.Run(t.Context())
		if err != nil {
			t.Fatalf("%v: %v", g.Mode, err)
		}
		closeTrainer(t, tr)
		// 2,000 bytes are 62 of 300 rows of 32 bytes.
		if hits := sum.CacheHitRate; g.Mode == zerocopy.Cached != (hits > 0.1 && hits < 0.4) {
			t.Errorf("%v: hit rate %v", g.Mode, hits)
		}
		if want == nil {
			want = r.lines
		}
		if !slices.Equal(r.lines, want) {
			t.Errorf("%v, graph on the host %t: another run", g.Mode, g.HostGraph)
		}
	}
}

// Interrupted and resumed, and scored from the checkpoint.
func TestEmulatedResumeAndScore(t *testing.T) {
	dev, _ := emulator.Device(t)
	d := openTiny(t, true)
	gpu := trainer.GPU{Device: dev, Mode: zerocopy.ZeroCopy, BLAS: cudaexec.NoBLAS}
	whole := &recorder{}
	full := newGPUTrainer(t, d, tinyConfig(), gpu, nil, whole)
	sum, err := full.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := full.Network().Params.Download(); err != nil {
		t.Fatal(err)
	}
	want := slices.Clone(full.Network().Params.Data)
	closeTrainer(t, full)
	for _, every := range []int{0, 2} {
		c := tinyConfig()
		c.CheckpointEvery = every
		store := checkpoints.NewStore(filepath.Join(t.TempDir(), "checkpoints"), 1)
		ctx, cancel := context.WithCancel(t.Context())
		r := &recorder{on: func(e trainer.Event) {
			if s, ok := e.(trainer.Step); ok && s.Step == 2 {
				cancel()
			}
		}}
		tr := newGPUTrainer(t, d, c, gpu, store, r)
		if _, err := tr.Run(ctx); !errors.Is(err, trainer.ErrInterrupted) {
			t.Fatalf("interrupted: %v", err)
		}
		cancel()
		closeTrainer(t, tr)
		r.on = nil
		again := newGPUTrainer(t, d, c, gpu, store, r)
		restore(t, again, store)
		if _, err := again.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := again.Network().Params.Download(); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(again.Network().Params.Data, want) || !slices.Equal(r.lines, whole.lines) {
			t.Errorf("a checkpoint every %d steps: another run after resuming", every)
		}
		closeTrainer(t, again)

		checkScorer(t, store, d, trainer.Runtime{GPU: &gpu}, sum)
	}
}
