package model

import (
	"slices"
	"testing"

	"zerogcn/graph"
	"zerogcn/model/exec"
	execcuda "zerogcn/model/exec/cuda"
	"zerogcn/model/exec/cuda/devicetest"
	"zerogcn/model/op"
	"zerogcn/model/optim"
)

// place returns v where the programs of b read it.
func place(t testing.TB, b exec.Backend, v op.Value) op.Value {
	t.Helper()
	if g, ok := b.(*execcuda.Backend); ok {
		return devicetest.Upload(t, g.Stream(), v)
	}
	return v
}

// fetch returns a copy of a matrix that a program of b made.
func fetch(t testing.TB, b exec.Backend, v *op.Value) []float32 {
	t.Helper()
	if g, ok := b.(*execcuda.Backend); ok {
		return devicetest.Download(t, g.Stream(), *v)
	}
	return slices.Clone(v.Data)
}

// deviceInput is a batch in device memory.
func deviceInput(t testing.TB, b *execcuda.Backend, in *Input) *Input {
	t.Helper()
	s := b.Stream()
	out := &Input{X: place(t, b, in.X), Key: devicetest.Key(t, s, in.Key)}
	made := map[*graph.Block]*graph.Block{}
	for _, blk := range in.Blocks {
		if made[blk] == nil {
			made[blk] = devicetest.Block(t, s, blk)
		}
		out.Blocks = append(out.Blocks, made[blk])
	}
	if in.Labels != nil {
		out.Labels = devicetest.Labels(t, s, in.Labels)
	}
	return out
}

// optimizer returns the update of an Adam on a network's parameters, where they are.
func optimizer(t testing.TB, n *Network, segments ...optim.Segment) func(lr float64) error {
	t.Helper()
	if g, ok := n.backend.(*execcuda.Backend); ok {
		z, err := optim.NewDevice(g.Stream(), len(n.Params.Data), segments, optim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := z.Close(); err != nil {
				t.Error(err)
			}
		})
		return func(lr float64) error { return z.Step(n.Params.DeviceData(), n.Params.DeviceGrad(), lr) }
	}
	z, err := optim.New(len(n.Params.Data), segments, optim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return func(lr float64) error {
		z.Step(n.Params.Data, n.Params.Grad, lr)
		return nil
	}
}
