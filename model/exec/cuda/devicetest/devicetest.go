// Package devicetest brings operands of tests to a GPU in the form that package
// model/exec/cuda wants them. Memory lives until the test ends.
package devicetest

import (
	"testing"

	"zerogcn/cuda"
	"zerogcn/cuda/cublas"
	"zerogcn/cuda/cudatest"
	"zerogcn/cuda/cudatest/emulator"
	"zerogcn/graph"
	execcuda "zerogcn/model/exec/cuda"
	"zerogcn/model/op"
)

// Backend opens a back end on a stream of its own. On a machine without a GPU it is
// one on the emulator if the options ask for no cuBLAS; otherwise the test is
// skipped, as it is without cuBLAS where the options leave the search to it.
func Backend(t testing.TB, o execcuda.Options) *execcuda.Backend {
	t.Helper()
	dev := device(t, o)
	if o.BLAS == "" {
		if _, err := cublas.Load(cublas.Options{Driver: dev.Driver().Version()}); err != nil {
			t.Skip(err)
		}
	}
	b, err := execcuda.New(dev, cudatest.Stream(t, dev), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Logf("%v, %s", dev, b.BLAS())
	return b
}

func device(t testing.TB, o execcuda.Options) *cuda.Device {
	t.Helper()
	if o.BLAS != execcuda.NoBLAS {
		return cudatest.Device(t)
	}
	dev, _ := emulator.Either(t)
	return dev
}

// Upload returns v in device memory: a copy of its matrix, or its block, labels or
// key with their arrays on the device only. Labels without a Norm get their count,
// or 1 where no row has a label.
func Upload(t testing.TB, s *cuda.Stream, v op.Value) op.Value {
	t.Helper()
	switch {
	case v.Block != nil:
		return op.Value{Block: Block(t, s, v.Block)}
	case v.Labels != nil:
		return op.Value{Labels: Labels(t, s, v.Labels)}
	case v.Key != nil:
		k := Key(t, s, *v.Key)
		return op.Value{Key: &k}
	}
	return op.Value{Rows: v.Rows, Cols: v.Cols, Dev: place(t, s, v.Data)}
}

// Block returns a block whose arrays are on the device only.
func Block(t testing.TB, s *cuda.Stream, b *graph.Block) *graph.Block {
	t.Helper()
	return &graph.Block{NumDst: b.NumDst, NumSrc: b.NumSrc, Device: &graph.DeviceBlock{
		NumEdges: len(b.Indices), Indptr: place(t, s, b.Indptr), Indices: place(t, s, b.Indices),
		Scale: place(t, s, b.Scale), EdgeScale: place(t, s, b.EdgeScale), Degree: place(t, s, b.Degree),
		TIndptr: place(t, s, b.TIndptr), TIndices: place(t, s, b.TIndices), TEdges: place(t, s, b.TEdges),
	}}
}

// Labels returns labels on the device.
func Labels(t testing.TB, s *cuda.Stream, l *op.Labels) *op.Labels {
	t.Helper()
	n := l.Count()
	if n == 0 {
		n = 1
	}
	if l.Multi != nil {
		return &op.Labels{DevMulti: place(t, s, l.Multi), Stride: l.Width, NumRows: l.Len(), Norm: n}
	}
	return &op.Labels{DevClass: place(t, s, l.Class), NumRows: len(l.Class), Norm: n}
}

// Key returns a key on the device.
func Key(t testing.TB, s *cuda.Stream, k op.Key) op.Key {
	t.Helper()
	k.DevRows, k.NumRows, k.Rows = place(t, s, k.Rows), len(k.Rows), nil
	return k
}

func place[T any](t testing.TB, s *cuda.Stream, x []T) uintptr {
	t.Helper()
	if len(x) == 0 {
		return 0
	}
	return uintptr(cudatest.Upload(t, s, x).Ptr())
}

// Download returns the elements of a matrix once the work on s is done.
func Download(t testing.TB, s *cuda.Stream, v op.Value) []float32 {
	t.Helper()
	if v.Len() == 0 {
		return nil
	}
	return cudatest.Download[float32](t, s, cuda.DevicePtr(v.Dev), v.Len())
}
