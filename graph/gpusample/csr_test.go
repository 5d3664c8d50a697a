package gpusample

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"zerogcn/cuda"
	"zerogcn/cuda/cudatest"
	"zerogcn/cuda/cudatest/fake"
	"zerogcn/graph"
)

// TestDegreeTable compares the bound with the edges of the nodes of the highest
// degrees, and with those of other sets.
func TestDegreeTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		degrees := rapid.SliceOfN(rapid.IntRange(0, 20), 1, 50).Draw(t, "degrees")
		g := &graph.CSR{Indptr: []int64{0}}
		for _, d := range degrees {
			g.Indptr = append(g.Indptr, g.Indptr[len(g.Indptr)-1]+int64(d))
		}
		g.Indices = make([]int32, g.Indptr[len(degrees)])
		table := newDegreeTable(g, 2)
		if got, want := table.max(), int64(slices.Max(degrees)); got != want {
			t.Fatalf("largest degree %d, want %d", got, want)
		}
		n, fanout := rapid.IntRange(0, 60).Draw(t, "n"), rapid.IntRange(-1, 25).Draw(t, "fan-out")
		replace := rapid.Bool().Draw(t, "replace")
		slices.Sort(degrees)
		slices.Reverse(degrees)
		want := 0
		for _, d := range degrees[:min(n, len(degrees))] {
			switch {
			case fanout <= 0 || d == 0:
				want += d
			case replace:
				want += fanout
			default:
				want += min(d, fanout)
			}
		}
		if got := table.edges(int64(n), fanout, replace); got != int64(want) {
			t.Fatalf("%d nodes have at most %d edges, want %d", n, got, want)
		}
	})
}

// fakeDevice is a fake GPU with the package's kernels, which do nothing.
func fakeDevice(t *testing.T) (*cuda.Device, *fake.Driver) {
	dev, f := cudatest.Fake(t)
	for _, k := range KernelNames() {
		f.Kernel(k, func(fake.Launch) {})
	}
	return dev, f
}

func smallGraph() *graph.CSR {
	return &graph.CSR{Indptr: []int64{0, 2, 3, 3}, Indices: []int32{1, 2, 0}}
}

func TestPlacement(t *testing.T) {
	dev, f := fakeDevice(t)
	ctx := context.Background()
	memory, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(memory)
	r, err := dev.Register(ctx, memory, cuda.RegisterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	mapped := smallGraph()
	copy(view[int32](memory[64:], 3), mapped.Indices)
	mapped.Indices = view[int32](memory[64:], 3)

	for _, c := range []struct {
		name string
		g    *graph.CSR
		o    CSROptions
		free int64
		want Placement
		err  string
	}{
		{"auto", smallGraph(), CSROptions{}, 64 << 30, InDevice, ""},
		{"auto, full", smallGraph(), CSROptions{}, 1 << 20, InHost, ""},
		{"device", smallGraph(), CSROptions{Placement: InDevice}, 1 << 20, InDevice, ""},
		{"in place", mapped, CSROptions{Placement: InHost, Registered: r}, 64 << 30, InHost, ""},
		{"elsewhere", smallGraph(), CSROptions{Placement: InHost, Registered: r}, 64 << 30, InHost, "does not hold the graph's edges"},
		{"no nodes", &graph.CSR{}, CSROptions{Placement: InHost}, 64 << 30, InHost, ""},
	} {
		f.SetFree(c.free)
		got, err := NewCSR(ctx, dev, c.g, c.o)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: error %v, want %q", c.name, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got.Placement() != c.want {
			t.Errorf("%s: in %v memory, want %v", c.name, got.Placement(), c.want)
		}
		if c.o.Registered != nil && got.indices.ptr != r.Ptr()+64 {
			t.Errorf("%s: edges at %#x, want %#x", c.name, got.indices.ptr, r.Ptr()+64)
		}
		if err := got.Close(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	f.SetFree(64 << 30)
}

// TestFailures lets each call of the driver fail in turn: an error, no leak (the
// fake reports those), no panic.
func TestFailures(t *testing.T) {
	dev, f := fakeDevice(t)
	ctx := context.Background()
	g := smallGraph()
	g.Weights = []float32{1, 0, 2}
	for _, call := range []string{"cuMemAlloc_v2", "cuMemcpyHtoDAsync_v2", "cuModuleLoadDataEx", "cuStreamCreateWithPriority",
		"cuEventCreate", "cuMemHostRegister_v2", "cuMemHostAlloc", "cuMemsetD8Async", "cuLaunchKernel", "cuStreamBeginCapture_v2", "cuStreamEndCapture"} {
		if f.Calls(call) == 0 && call != "cuMemAlloc_v2" {
			if err := lifeCycle(ctx, dev, g); err != nil {
				t.Fatal(err)
			}
			if f.Calls(call) == 0 {
				t.Errorf("%s is never called", call)
				continue
			}
		}
		for after := range 40 {
			dev.Trim()
			before := f.Calls(call)
			f.Fail(call, after, 1)
			err := lifeCycle(ctx, dev, g)
			if f.Calls(call)-before <= after {
				break // it would have failed later
			}
			if err == nil {
				t.Errorf("%s: failure %d goes unnoticed", call, after)
			}
		}
		f.Fail(call, 1<<30, 1) // disarm
	}
}

func lifeCycle(ctx context.Context, dev *cuda.Device, g *graph.CSR) (err error) {
	c, err := NewCSR(ctx, dev, g, CSROptions{Placement: InHost})
	if err != nil {
		return err
	}
	defer c.Close()
	s, err := NewSampler(ctx, c, graph.Options{Fanouts: []int{2, 1}, Weighted: true, DropSelfLoops: true, Transpose: true})
	if err != nil {
		return err
	}
	defer s.Close()
	clone, err := s.Clone()
	if err != nil {
		return err
	}
	defer clone.Close()
	b, err := clone.NewBatch(2)
	if err != nil {
		return err
	}
	defer b.Close()
	e, err := NewEpochs(dev, []int32{0, 2}, 0, EpochOptions{Batch: 1})
	if err != nil {
		return err
	}
	return e.Close()
}

// TestUpload sends more than both slabs hold.
func TestUpload(t *testing.T) {
	dev, _ := cudatest.Fake(t)
	data := make([]byte, 3*slabBytes-12345)
	r := rand.NewChaCha8([32]byte{1})
	r.Read(data)
	b, err := place(context.Background(), dev, data)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	s := cudatest.Stream(t, dev)
	if !bytes.Equal(cudatest.Download[byte](t, s, b.Ptr(), len(data)), data) {
		t.Error("the device has other bytes")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if b, err := place(ctx, dev, data); err == nil {
		t.Error("a cancelled context uploads", b.Close())
	}
}
