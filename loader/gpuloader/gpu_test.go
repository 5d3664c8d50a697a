package gpuloader_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"zerogcn/cuda"
	"zerogcn/cuda/cudatest"
	"zerogcn/cuda/cudatest/emulator"
	"zerogcn/datasets"
	"zerogcn/graph/gpusample"
	"zerogcn/loader"
	"zerogcn/loader/gpuloader"
	"zerogcn/zerocopy"
)

// device returns a GPU, or the emulator where there is none, with a dataset that
// is as large as it can take, and the size of batches relative to the demo's.
func device(t *testing.T) (dev *cuda.Device, ds *datasets.Dataset, per int) {
	t.Helper()
	name, per := "demo", 1
	dev, emulated := emulator.Either(t)
	if emulated {
		name, per = "synthetic:products?nodes=600&edges=3000&dim=7&classes=4", 20
	}
	ds, err := datasets.Open(t.Context(), name, datasets.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ds.Close(); err != nil {
			t.Error(err)
		}
	})
	return dev, ds, per
}

// trainSplit returns most of the nodes.
func trainSplit(t *testing.T, ds *datasets.Dataset) []int32 {
	t.Helper()
	s, err := datasets.MakeSplit(ds, "random:0.6,0.2,0.2", 0)
	if err != nil {
		t.Fatal(err)
	}
	return s.Train
}

// Every batch on the GPU is the CPU's, bit for bit: nodes, blocks, features,
// labels, in mini-batches and in full ones, also from the middle of an epoch.
func TestBatchesEqualTheCPUs(t *testing.T) {
	dev, ds, per := device(t)
	ctx := t.Context()
	train := trainSplit(t, ds)
	host, err := loader.OpenFeatures(ctx, ds, loader.FeatureOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	csr, err := gpusample.NewCSR(ctx, dev, ds.Graph, gpusample.CSROptions{})
	if err != nil {
		t.Fatal(err)
	}
	features, err := gpuloader.OpenFeatures(ctx, dev, ds, gpuloader.FeatureOptions{Mode: zerocopy.ZeroCopy})
	if err != nil {
		t.Fatal(err)
	}
	s := cudatest.Stream(t, dev)
	for _, o := range []loader.Options{
		{Fanouts: []int{10, 5}, BatchSize: 1000 / per, Seed: 3},
		{Fanouts: []int{4, 4, 4}, BatchSize: 700 / per, Seed: 4, Sampling: loader.Replace, DropSelfLoops: true, Degrees: true, Scale: true, TransposeInput: true},
		{Fanouts: []int{3, 0}, BatchSize: 500 / per, World: 3, Rank: 1, Depth: 1},
		{Fanouts: []int{0, 0}},
	} {
		cpu, err := loader.New(ds, host, train, o)
		if err != nil {
			t.Fatal(err)
		}
		gpu, err := gpuloader.New(ctx, csr, ds, features, train, o)
		if err != nil {
			t.Fatal(err)
		}
		for epoch, first := range []int{0, min(2, cpu.NumBatches()-1)} {
			next, stop := iterate(ctx, gpu, epoch, first)
			n := 0
			for want, err := range cpu.EpochFrom(ctx, epoch, first) {
				if err != nil {
					t.Fatal(err)
				}
				got, err := next()
				if err != nil {
					t.Fatal(err)
				}
				compare(t, s, got, want)
				n++
			}
			if n != cpu.NumBatches()-first {
				t.Errorf("%d batches of %d", n, cpu.NumBatches()-first)
			}
			stop()
		}
		if err := gpu.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(features.Close(), csr.Close()); err != nil {
		t.Fatal(err)
	}
}

// iterate pulls batches one by one; stop ends the epoch.
func iterate(ctx context.Context, l *gpuloader.Loader, epoch, first int) (next func() (*gpuloader.Batch, error), stop func()) {
	type item struct {
		b   *gpuloader.Batch
		err error
	}
	items, taken := make(chan item), make(chan bool)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for b, err := range l.EpochFrom(ctx, epoch, first) {
			items <- item{b, err}
			if !<-taken {
				return
			}
		}
	}()
	begun := false
	return func() (*gpuloader.Batch, error) {
			if begun {
				taken <- true
			}
			begun = true
			i := <-items
			return i.b, i.err
		}, func() {
			if begun {
				taken <- false
			}
			<-done
		}
}

func compare(t *testing.T, s *cuda.Stream, got *gpuloader.Batch, want *loader.Batch) {
	t.Helper()
	if err := got.Acquire(s); err != nil {
		t.Fatal(err)
	}
	same := func(what string, a, b []int32) {
		t.Helper()
		if !slices.Equal(a, b) {
			t.Fatalf("epoch %d, batch %d: %s differ: %d and %d values", want.Epoch, want.Index, what, len(a), len(b))
		}
	}
	ids := func(at uintptr, n int) []int32 { return cudatest.Download[int32](t, s, cuda.DevicePtr(at), n) }
	if got.Epoch != want.Epoch || got.Index != want.Index || got.Step != want.Step || got.NumSeeds != len(want.Seeds) || got.GlobalLabelled != want.GlobalLabelled {
		t.Fatalf("batch %+v, want %d/%d step %d, %d seeds, %d labelled", got, want.Epoch, want.Index, want.Step, len(want.Seeds), want.GlobalLabelled)
	}
	same("nodes", ids(uintptr(got.Nodes), got.NumNodes), want.Nodes)
	same("classes", ids(uintptr(got.Class), got.NumSeeds), want.Class)
	x := cudatest.Download[float32](t, s, got.X, got.NumNodes*got.Width)
	if !slices.Equal(x, want.X.Dense) {
		t.Fatalf("epoch %d, batch %d: features differ", want.Epoch, want.Index)
	}
	if len(got.Blocks) != len(want.Blocks) {
		t.Fatalf("%d blocks, want %d", len(got.Blocks), len(want.Blocks))
	}
	for i, w := range want.Blocks {
		g := got.Blocks[i]
		if g.NumDst != w.NumDst || g.NumSrc != w.NumSrc || g.NumEdges() != w.NumEdges() {
			t.Fatalf("block %d is %d←%d with %d edges, want %d←%d with %d", i, g.NumDst, g.NumSrc, g.NumEdges(), w.NumDst, w.NumSrc, w.NumEdges())
		}
		d := g.Device
		same("offsets", ids(d.Indptr, len(w.Indptr)), w.Indptr)
		same("indices", ids(d.Indices, len(w.Indices)), w.Indices)
		if w.TIndptr != nil {
			same("transposed offsets", ids(d.TIndptr, len(w.TIndptr)), w.TIndptr)
			same("transposed indices", ids(d.TIndices, len(w.TIndices)), w.TIndices)
		}
		if w.Degree != nil {
			same("degrees", ids(d.Degree, len(w.Degree)), w.Degree)
		}
		if w.Scale != nil && !slices.Equal(cudatest.Download[float32](t, s, cuda.DevicePtr(d.Scale), len(w.Scale)), w.Scale) {
			t.Fatalf("block %d: scales differ", i)
		}
	}
	if err := got.Release(s); err != nil {
		t.Fatal(err)
	}
}

// Leaving an epoch early and cancelling it end the stages and leave the loader
// usable.
func TestLeavingEarly(t *testing.T) {
	dev, ds, per := device(t)
	ctx := t.Context()
	train := trainSplit(t, ds)
	csr, err := gpusample.NewCSR(ctx, dev, ds.Graph, gpusample.CSROptions{})
	if err != nil {
		t.Fatal(err)
	}
	features, err := gpuloader.OpenFeatures(ctx, dev, ds, gpuloader.FeatureOptions{Mode: zerocopy.ZeroCopy})
	if err != nil {
		t.Fatal(err)
	}
	l, err := gpuloader.New(ctx, csr, ds, features, train, loader.Options{Fanouts: []int{5, 5}, BatchSize: 100 / min(per, 5)})
	if err != nil {
		t.Fatal(err)
	}
	for b, err := range l.EpochFrom(ctx, 0, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if b.Index == 3 {
			break
		}
	}
	cancelled, cancel := context.WithCancel(ctx)
	defer cancel()
	var last error
	for b, err := range l.EpochFrom(cancelled, 0, 0) {
		last = err
		if b != nil && b.Index == 4 {
			cancel()
		}
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("a cancelled epoch ended with %v", last)
	}
	n := 0
	for _, err := range l.EpochFrom(ctx, 1, 0) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != l.NumBatches() {
		t.Errorf("%d batches after that, want %d", n, l.NumBatches())
	}
	if err := errors.Join(l.Close(), l.Close(), features.Close(), csr.Close()); err != nil {
		t.Error(err)
	}
}
