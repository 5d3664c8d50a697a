package cpu_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"zerogcn/graph"
	"zerogcn/internal/blas"
	"zerogcn/internal/par"
	"zerogcn/model"
	"zerogcn/model/exec"
	"zerogcn/model/exec/cpu"
	"zerogcn/model/op"
)

// smallBatch is a batch of two layers, large enough for several tiles.
func smallBatch(cols, classes int) *model.Input {
	rng := rand.New(rand.NewPCG(11, 12))
	sizes := []int{4000, 1500, 300}
	in := &model.Input{X: random(sizes[0], cols), Key: op.Key{Seed: 5, Step: 3}, Labels: labels(sizes[2], classes).Labels}
	for l := range 2 {
		b := &graph.Block{NumDst: sizes[l+1], NumSrc: sizes[l], Indptr: []int32{0}}
		to := make([][]int32, b.NumSrc)
		for i := range b.NumDst {
			for range rng.IntN(9) {
				j := rng.Int32N(int32(b.NumSrc))
				b.Indices = append(b.Indices, j)
				to[j] = append(to[j], int32(i))
			}
			b.Indptr = append(b.Indptr, int32(len(b.Indices)))
		}
		b.TIndptr = []int32{0}
		for _, ts := range to {
			b.TIndices = append(b.TIndices, ts...)
			b.TIndptr = append(b.TIndptr, int32(len(b.TIndices)))
		}
		in.Blocks = append(in.Blocks, b)
	}
	return in
}

// train returns the loss and all gradients of one batch.
func train(t *testing.T, b exec.Backend, in *model.Input) (float64, []float32) {
	t.Helper()
	n, err := model.New(model.Config{Arch: model.SAGE, In: in.X.Cols, Hidden: 70, Classes: 6, Layers: 2, Dropout: 0.5, InputDropout: 0.2}, b, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	for range 2 { // the second with buffers and scratch that were used
		if err := n.Train(in); err != nil {
			t.Fatal(err)
		}
	}
	return n.Loss(), slices.Clone(n.Params.Grad)
}

// A whole training step gives the reference's loss and gradients, and the same
// bits for any number of workers, with either BLAS.
func TestNetwork(t *testing.T) {
	in := smallBatch(50, 6)
	wantLoss, want := train(t, exec.Reference{}, in)
	var top float64
	for _, g := range want {
		top = max(top, math.Abs(float64(g)))
	}
	engines(t, func(t *testing.T, e *blas.Engine) {
		var loss float64
		var grad []float32
		for _, w := range []par.Workers{1, 2, 8} {
			l, g := train(t, cpu.New(cpu.Options{Workers: w, BLAS: e}), in)
			if grad == nil {
				loss, grad = l, g
			}
			if l != loss || !slices.Equal(g, grad) {
				t.Errorf("%d workers: loss %v or gradients differ from one worker's (loss %v)", w, l, loss)
			}
		}
		if d := math.Abs(loss - wantLoss); d > 1e-5*wantLoss {
			t.Errorf("loss %v, want %v", loss, wantLoss)
		}
		for i, g := range grad {
			if d := math.Abs(float64(g) - float64(want[i])); d > 1e-5*top {
				t.Fatalf("gradient %d is %g, want %g (largest %g)", i, g, want[i], top)
			}
		}
	})
}
