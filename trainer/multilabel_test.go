package trainer_test

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"zerogcn/checkpoints"
	"zerogcn/cuda/cudatest/emulator"
	"zerogcn/datasets"
	"zerogcn/graph"
	"zerogcn/model"
	"zerogcn/model/exec/cpu"
	cudaexec "zerogcn/model/exec/cuda"
	"zerogcn/model/metric"
	"zerogcn/trainer"
	"zerogcn/zerocopy"
)

// multilabelFolder writes a set whose nodes have three labels, the signs of three
// features, some of them unknown.
func multilabelFolder(t *testing.T) string {
	t.Helper()
	const n, d, labels = 600, 6, 3
	rng := rand.New(rand.NewPCG(1, 2))
	x, y := make([]float32, n*d), make([]uint8, n*labels)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	src, dst := make([]int32, 4*n), make([]int32, 4*n)
	for i := range src {
		src[i], dst[i] = rng.Int32N(n), rng.Int32N(n)
	}
	for v := range n {
		for j := range labels {
			if x[v*d+j] > 0 {
				y[v*labels+j] = 1
			}
			if rng.IntN(10) == 0 {
				y[v*labels+j] = datasets.NoLabel
			}
		}
	}
	g, err := graph.Builder{NumNodes: n, Deduplicate: true}.FromEdges(t.Context(), src, dst, nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := datasets.DenseFeatures(x, n, d)
	if err != nil {
		t.Fatal(err)
	}
	ds, err := datasets.New(t.Context(), datasets.Parts{Name: "signs", Task: datasets.Multilabel, Graph: g, Features: f, Labels: datasets.NewMultiLabels(y, labels)}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	path := filepath.Join(t.TempDir(), "signs")
	if err := datasets.Write(t.Context(), path, ds, 0); err != nil {
		t.Fatal(err)
	}
	return path
}

// Sets with several labels a node are learnt by binary cross-entropy and measured
// by micro F1, in training and in evaluate.
func TestMultiLabel(t *testing.T) {
	d, _, err := trainer.OpenData(t.Context(), trainer.DataOptions{Name: multilabelFolder(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	c := trainer.Config{Model: model.Config{Arch: model.SAGE, Hidden: 32, Layers: 2}, Fanouts: []int{4, 4}, Batch: 100, Epochs: 30, LR: 0.02}
	store := checkpoints.NewStore(filepath.Join(t.TempDir(), "checkpoints"), 1)
	sum, err := newTrainer(t, d, c, store, &recorder{}).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if sum.Metric != metric.MicroF1 || sum.Test < 0.9 {
		t.Errorf("%s %v on test nodes, want micro F1 above 0.9", sum.Metric, sum.Test)
	}
	checkScorer(t, store, d, trainer.Runtime{Backend: cpu.New(cpu.Options{})}, sum)
}

// On the emulator the losses and metrics are the CPU's.
func TestEmulatedMultiLabel(t *testing.T) {
	dev, _ := emulator.Device(t)
	path := multilabelFolder(t)
	c := trainer.Config{Model: model.Config{Arch: model.SAGE, Hidden: 8, Layers: 2}, Fanouts: []int{3, 3}, Batch: 70, Epochs: 2, LR: 0.02}
	var losses [2][]float64
	var last [2]trainer.Eval
	for i := range losses {
		d, _, err := trainer.OpenData(t.Context(), trainer.DataOptions{Name: path, OnDevice: i == 1})
		if err != nil {
			t.Fatal(err)
		}
		r := &recorder{on: func(e trainer.Event) {
			switch e := e.(type) {
			case trainer.Step:
				losses[i] = append(losses[i], e.Loss)
			case trainer.Eval:
				e.Elapsed = 0
				last[i] = e
			}
		}}
		var tr *trainer.Trainer
		if i == 0 {
			tr = newTrainer(t, d, c, nil, r)
		} else {
			tr = newGPUTrainer(t, d, c, trainer.GPU{Device: dev, Mode: zerocopy.ZeroCopy, BLAS: cudaexec.NoBLAS}, nil, r)
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
	if len(losses[0]) == 0 || len(losses[0]) != len(losses[1]) || last[0] != last[1] {
		t.Fatalf("%d and %d steps; %+v and %+v", len(losses[0]), len(losses[1]), last[0], last[1])
	}
	for i, a := range losses[0] {
		if b := losses[1][i]; math.Abs(a-b) > 1e-5*a {
			t.Errorf("step %d: loss %v on the CPU, %v on the emulator", i+1, a, b)
		}
	}
}
