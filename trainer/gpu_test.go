package trainer_test

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"zerogcn/checkpoints"
	"zerogcn/cuda/cudatest"
	"zerogcn/model"
	"zerogcn/trainer"
	"zerogcn/zerocopy"
)

// gpuData is the demo for a GPU: its features stay in the dataset.
func gpuData(t testing.TB) *trainer.Data {
	t.Helper()
	d, _, err := trainer.OpenData(t.Context(), trainer.DataOptions{Name: "demo", OnDevice: true})
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

func newGPUTrainer(t testing.TB, d *trainer.Data, c trainer.Config, g trainer.GPU, store *checkpoints.Store, r *recorder) *trainer.Trainer {
	t.Helper()
	split, _, err := d.ChooseSplit()
	if err != nil {
		t.Fatal(err)
	}
	tr, err := trainer.New(t.Context(), d, split, c, trainer.Runtime{GPU: &g, Store: store, Listeners: []trainer.Listener{r}})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func closeTrainer(t testing.TB, tr *trainer.Trainer) {
	t.Helper()
	if err := tr.Close(); err != nil {
		t.Error(err)
	}
}

// Losses of 50 steps and more on the GPU agree with the CPU's to 1e-4 in float32,
// and so do the metrics, for models with and without dropout.
func TestGPUAgreesWithCPU(t *testing.T) {
	dev := cudatest.Device(t)
	host, d := openDemo(t), gpuData(t)
	for _, m := range []model.Config{
		{Arch: model.SAGE, Hidden: 32, Layers: 2},
		{Arch: model.SAGE, Hidden: 32, Layers: 2, Dropout: 0.5, InputDropout: 0.2},
		{Arch: model.SAGE, Aggregator: "gcn", Hidden: 32, Layers: 2, Dropout: 0.5},
		{Arch: model.SAGE, Aggregator: "max", Hidden: 32, Layers: 2},
		{Arch: model.GCN, Hidden: 32, Layers: 2, Dropout: 0.5},
	} {
		t.Run(string(m.Arch)+m.Aggregator, func(t *testing.T) {
			c := config()
			c.Model, c.Epochs, c.LR = m, 7, 0.003
			var losses [2][]float64
			var evals [2][]trainer.Eval
			run := func(i int) *recorder {
				return &recorder{on: func(e trainer.Event) {
					switch e := e.(type) {
					case trainer.Step:
						losses[i] = append(losses[i], e.Loss)
					case trainer.Eval:
						evals[i] = append(evals[i], e)
					}
				}}
			}
			if _, err := newTrainer(t, host, c, nil, run(0)).Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			tr := newGPUTrainer(t, d, c, trainer.GPU{Device: dev, Mode: zerocopy.ZeroCopy}, nil, run(1))
			defer closeTrainer(t, tr)
			if _, err := tr.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if len(losses[0]) < 50 || len(losses[0]) != len(losses[1]) {
				t.Fatalf("%d and %d steps", len(losses[0]), len(losses[1]))
			}
			for i := range 50 {
				if a, b := losses[0][i], losses[1][i]; math.Abs(a-b) > 1e-4*math.Abs(a) {
					t.Fatalf("step %d: loss %v on the CPU, %v on the GPU", i+1, a, b)
				}
			}
			for i, a := range evals[0] {
				if b := evals[1][i]; math.Abs(a.Valid-b.Valid) > 0.005 || math.Abs(a.Test-b.Test) > 0.005 {
					t.Errorf("epoch %d: valid %v, test %v on the CPU; %v, %v on the GPU", a.Epoch, a.Valid, a.Test, b.Valid, b.Test)
				}
			}
		})
	}
}

// However features travel, and wherever the graph is, a run has the same bits; and
// so has a second run.
func TestGPUModesAreEqual(t *testing.T) {
	dev := cudatest.Device(t)
	d := gpuData(t)
	var want []string
	var params []float32
	for _, g := range []trainer.GPU{
		{Mode: zerocopy.ZeroCopy}, {Mode: zerocopy.ZeroCopy}, {Mode: zerocopy.Staged}, {Mode: zerocopy.Device},
		{Mode: zerocopy.Cached, CacheBytes: 1 << 20}, {Mode: zerocopy.Hybrid}, {Mode: zerocopy.Auto, CacheBytes: 1 << 20},
		{Mode: zerocopy.ZeroCopy, HostGraph: true},
	} {
		g.Device = dev
		r := &recorder{}
		tr := newGPUTrainer(t, d, config(), g, nil, r)
		if _, err := tr.Run(t.Context()); err != nil {
			t.Fatalf("%v: %v", g.Mode, err)
		}
		if err := tr.Network().Params.Download(); err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want, params = r.lines, slices.Clone(tr.Network().Params.Data)
		}
		if !slices.Equal(r.lines, want) || !slices.Equal(tr.Network().Params.Data, params) {
			t.Errorf("%v, graph on the host %t: another run than with %v:\n%s\nwant\n%s", g.Mode, g.HostGraph, zerocopy.ZeroCopy,
				strings.Join(r.lines, "\n"), strings.Join(want, "\n"))
		}
		closeTrainer(t, tr)
	}
}

// Interrupted and resumed runs on the GPU end with the bits of one that was not;
// periodic checkpoints hold the state after exactly their step.
func TestGPUResumeIsExact(t *testing.T) {
	dev := cudatest.Device(t)
	d := gpuData(t)
	gpu := trainer.GPU{Device: dev, Mode: zerocopy.ZeroCopy}
	whole := &recorder{}
	full := newGPUTrainer(t, d, config(), gpu, nil, whole)
	defer closeTrainer(t, full)
	if _, err := full.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := full.Network().Params.Download(); err != nil {
		t.Fatal(err)
	}
	for _, every := range []int{0, 3} {
		c := config()
		c.CheckpointEvery = every
		store := checkpoints.NewStore(filepath.Join(t.TempDir(), "checkpoints"), 1)
		ctx, cancel := context.WithCancel(t.Context())
		r := &recorder{on: func(e trainer.Event) {
			if s, ok := e.(trainer.Step); ok && s.Step == 11 {
				cancel()
			}
		}}
		tr := newGPUTrainer(t, d, c, gpu, store, r)
		if _, err := tr.Run(ctx); !errors.Is(err, trainer.ErrInterrupted) {
			t.Fatalf("interrupted: %v", err)
		}
		cancel()
		closeTrainer(t, tr)
		if n := tr.Step(); n < 11 || n > 16 {
			t.Fatalf("stopped after step %d, asked at 11", n)
		}
		again := newGPUTrainer(t, d, c, gpu, store, r)
		r.on = nil
		restore(t, again, store)
		if _, err := again.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := again.Network().Params.Download(); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(again.Network().Params.Data, full.Network().Params.Data) {
			t.Errorf("a checkpoint every %d steps: the parameters differ", every)
		}
		if !slices.Equal(r.lines, whole.lines) {
			t.Errorf("a checkpoint every %d steps: the events differ", every)
		}
		closeTrainer(t, again)
	}
}

// The best checkpoint evaluates on the GPU to the figures of training, exactly,
// and on the CPU to nearly the same.
func TestGPUScorer(t *testing.T) {
	dev := cudatest.Device(t)
	d := gpuData(t)
	for _, fanouts := range [][]int{nil, {8, 8}} {
		c := config()
		c.EvalFanouts = fanouts
		store := checkpoints.NewStore(filepath.Join(t.TempDir(), "checkpoints"), 1)
		gpu := trainer.GPU{Device: dev, Mode: zerocopy.ZeroCopy}
		tr := newGPUTrainer(t, d, c, gpu, store, &recorder{})
		sum, err := tr.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		closeTrainer(t, tr)
		checkScorer(t, store, d, trainer.Runtime{GPU: &gpu}, sum)
	}
}

// Full batches, too, and memory stays flat over epochs.
func TestGPUFullBatchAndFlatMemory(t *testing.T) {
	dev := cudatest.Device(t)
	d := gpuData(t)
	for _, full := range []bool{true, false} {
		c := config()
		c.Epochs, c.EvalEvery = 50, 10
		if full {
			c.Batch, c.Fanouts = 0, nil
		}
		var bytes []int64
		r := &recorder{on: func(e trainer.Event) {
			if _, ok := e.(trainer.Epoch); ok {
				bytes = append(bytes, dev.Metrics().DeviceBytes())
			}
		}}
		tr := newGPUTrainer(t, d, c, trainer.GPU{Device: dev, Mode: zerocopy.ZeroCopy}, nil, r)
		sum, err := tr.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if sum.Test < 0.5 {
			t.Errorf("full=%t: test accuracy %v after 50 epochs", full, sum.Test)
		}
		if a, b := bytes[20], bytes[len(bytes)-1]; b > a+a/50 {
			t.Errorf("full=%t: device memory grew from %d to %d bytes between epochs 21 and %d", full, a, b, len(bytes))
		}
		closeTrainer(t, tr)
	}
}
