package gpusample_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"zerogcn/cuda"
	"zerogcn/cuda/cudatest"
	"zerogcn/cuda/cudatest/fake"
	"zerogcn/graph"
	"zerogcn/graph/gpusample"
	"zerogcn/internal/philox"
)

// onDevices runs a test on the emulator and on the GPU, each where it is.
func onDevices(t *testing.T, f func(t *testing.T, dev *cuda.Device)) {
	t.Run("emulator", func(t *testing.T) {
		dev, _ := emulatedDevice(t)
		f(t, dev)
	})
	t.Run("gpu", func(t *testing.T) { f(t, cudatest.Device(t)) })
}

// sampling is a graph with a sampler on each side.
type sampling struct {
	cpu *graph.Sampler
	csr *gpusample.CSR
	gpu *gpusample.Sampler
}

func newSampling(t fataler, dev *cuda.Device, g *graph.CSR, o graph.Options, co gpusample.CSROptions) *sampling {
	o.Workers = 1
	var s sampling
	var err error
	if s.cpu, err = graph.NewSampler(g, o); err != nil {
		t.Fatal(err)
	}
	if s.csr, err = gpusample.NewCSR(context.Background(), dev, g, co); err != nil {
		t.Fatal(err)
	}
	if s.gpu, err = gpusample.NewSampler(context.Background(), s.csr, o); err != nil {
		t.Fatal(err, s.csr.Close())
	}
	return &s
}

func (s *sampling) close() error { return errors.Join(s.gpu.Close(), s.csr.Close()) }

// TestSampleEqualsCPU is the package's promise: whole batches, bit for bit, for
// all kinds of graphs and options, in fresh and in used memory.
func TestSampleEqualsCPU(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *cuda.Device) {
		stream := cudatest.Stream(t, dev)
		rapid.Check(t, func(t *rapid.T) {
			weighted := rapid.Bool().Draw(t, "weighted")
			g := drawGraph(t, weighted)
			o := drawOptions(t, weighted)
			co := gpusample.CSROptions{Placement: rapid.SampledFrom([]gpusample.Placement{gpusample.InDevice, gpusample.InHost}).Draw(t, "placement")}
			s := newSampling(t, dev, g, o, co)
			defer func() {
				if err := s.close(); err != nil {
					t.Error(err)
				}
			}()
			b, err := s.gpu.NewBatch(rapid.IntRange(0, 50).Draw(t, "room for seeds"))
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			var want graph.Batch
			for range rapid.IntRange(1, 3).Draw(t, "batches") {
				seeds := drawSeeds(t, g.NumNodes())
				seed, step := rapid.Uint64().Draw(t, "seed"), rapid.Uint64().Draw(t, "step")
				if err := s.cpu.Sample(seed, philox.Sample, step, seeds, &want); err != nil {
					t.Fatal(err)
				}
				if err := s.gpu.Sample(stream, seed, philox.Sample, step, seeds, b); err != nil {
					t.Fatal(err)
				}
				got, err := b.Download(stream)
				if err != nil {
					t.Fatal(err)
				}
				if d := diffBatch(&want, got); d != "" {
					t.Fatal(d)
				}
				for i := range got.Blocks {
					if err := got.Blocks[i].Validate(); err != nil {
						t.Fatal(err)
					}
				}
				if got, want := b.NumEdges(), want.NumEdges(); got != want {
					t.Fatalf("%d edges, want %d", got, want)
				}
			}
		})
	})
}

// TestHub has one node with a row far longer than a fan-out, which is also a
// source of every other node's.
func TestHub(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *cuda.Device) {
		stream := cudatest.Stream(t, dev)
		const n = 40_000
		var src, dst []int32
		for v := int32(1); v < n; v++ {
			src, dst = append(src, v, v/2), append(dst, 0, v)
		}
		g := build(t, graph.Builder{NumNodes: n, Symmetrize: true}, src, dst, nil)
		for _, fanouts := range [][]int{{15, 10, 5}, {0, 2}, {1024, 3}, {n, 1}} {
			s := newSampling(t, dev, g, graph.Options{Fanouts: fanouts, Transpose: true, Scale: true, Degrees: true, DropSelfLoops: true}, gpusample.CSROptions{})
			batch := mustBatch(t, s.gpu, 3)
			var want graph.Batch
			seeds := []int32{0, 1, n - 1}
			check(t, s.cpu.Sample(1, philox.Evaluation, 0, seeds, &want))
			check(t, s.gpu.Sample(stream, 1, philox.Evaluation, 0, seeds, batch))
			got, err := batch.Download(stream)
			check(t, err)
			if d := diffBatch(&want, got); d != "" {
				t.Errorf("fan-outs %v: %s", fanouts, d)
			}
			check(t, errors.Join(batch.Close(), s.close()))
		}
	})
}

// TestStar has two sources that feed thousands of targets: their transposed rows
// span several of the pieces that are sorted.
func TestStar(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *cuda.Device) {
		stream := cudatest.Stream(t, dev)
		const n = 5000
		var src, dst, seeds []int32
		for v := int32(2); v < n; v++ {
			src, dst = append(src, 0, 1, v/2), append(dst, v, v, v)
			seeds = append(seeds, v)
		}
		g := build(t, graph.Builder{NumNodes: n}, src, dst, nil)
		for _, fanouts := range [][]int{{0}, {2, 1}, {2, 0}} {
			s := newSampling(t, dev, g, graph.Options{Fanouts: fanouts, TransposeAll: true}, gpusample.CSROptions{})
			b := mustBatch(t, s.gpu, n)
			var want graph.Batch
			check(t, s.cpu.Sample(3, philox.Sample, 1, seeds, &want))
			for range 3 { // arrival differs, the result must not
				check(t, s.gpu.Sample(stream, 3, philox.Sample, 1, seeds, b))
				got, err := b.Download(stream)
				check(t, err)
				if d := diffBatch(&want, got); d != "" {
					t.Errorf("fan-outs %v: %s", fanouts, d)
				}
			}
			check(t, errors.Join(b.Close(), s.close()))
		}
	})
}

// TestWide has many words in a bitmap, in tiles of one and of many words a thread.
func TestWide(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *cuda.Device) {
		stream := cudatest.Stream(t, dev)
		g := ring(t, 100_000)
		s := newSampling(t, dev, g, graph.Options{Fanouts: []int{5, 4, 3}, TransposeAll: true, Degrees: true, Scale: true}, gpusample.CSROptions{})
		seeds := spacedSeeds(g, 700, 0)
		var want graph.Batch
		check(t, s.cpu.Sample(3, philox.Sample, 1, seeds, &want))
		for _, tiles := range []int{2048, 3, 1} {
			gpusample.FewTiles(s.gpu, tiles)
			b := mustBatch(t, s.gpu, len(seeds))
			check(t, s.gpu.Sample(stream, 3, philox.Sample, 1, seeds, b))
			got, err := b.Download(stream)
			check(t, err)
			if d := diffBatch(&want, got); d != "" {
				t.Errorf("%d tiles: %s", tiles, d)
			}
			check(t, b.Close())
		}
		check(t, s.close())
	})
}

// TestTooManyEdges makes a hop overflow.
func TestTooManyEdges(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *cuda.Device) {
		stream := cudatest.Stream(t, dev)
		g := ring(t, 1000)
		s := newSampling(t, dev, g, graph.Options{Fanouts: []int{3, 2, 0}, TransposeAll: true, Scale: true}, gpusample.CSROptions{})
		b := mustBatch(t, s.gpu, 16)
		check(t, gpusample.Shrink(b, 1, 20))
		for range 2 {
			check(t, s.gpu.Sample(stream, 1, philox.Sample, 0, []int32{3, 70, 400}, b))
			if err := b.Wait(); err == nil || !strings.Contains(err.Error(), "hop 1 has 24 edges for 12 targets") {
				t.Errorf("error %v", err)
			}
		}
		// What it fits is right, also after the faults.
		check(t, s.gpu.Sample(stream, 1, philox.Sample, 0, []int32{3, 70}, b))
		var want graph.Batch
		check(t, s.cpu.Sample(1, philox.Sample, 0, []int32{3, 70}, &want))
		got, err := b.Download(stream)
		check(t, err)
		if d := diffBatch(&want, got); d != "" {
			t.Error(d)
		}
		check(t, errors.Join(b.Close(), s.close()))
	})
}

// TestSeedsOnDevice draws from ids in device memory and looks up their labels;
// batches of one sampler on several streams wait for each other.
func TestSeedsOnDevice(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *cuda.Device) {
		streams := []*cuda.Stream{cudatest.Stream(t, dev), cudatest.Stream(t, dev)}
		g := ring(t, 5000)
		s := newSampling(t, dev, g, graph.Options{Fanouts: []int{3, 2}, Transpose: true}, gpusample.CSROptions{})
		labels := make([]int32, g.NumNodes())
		for v := range labels {
			labels[v] = int32(3*v + 1)
		}
		labelsAt := cudatest.Upload(t, streams[0], labels)
		seeds := []int32{5, 17, 400, 401, 4999}
		seedsAt := cudatest.Upload(t, streams[0], seeds)
		out := cudatest.Upload(t, streams[0], make([]int32, len(seeds)))
		var batches []*gpusample.Batch
		for i := range 4 {
			b := mustBatch(t, s.gpu, 8)
			batches = append(batches, b)
			check(t, s.gpu.SampleDevice(streams[i%2], 9, philox.Sample, uint64(i), seedsAt.Ptr(), len(seeds)-i, b))
			check(t, s.gpu.Labels(streams[i%2], labelsAt.Ptr(), out.Ptr(), b))
		}
		for i, b := range batches {
			var want graph.Batch
			check(t, s.cpu.Sample(9, philox.Sample, uint64(i), seeds[:len(seeds)-i], &want))
			got, err := b.Download(streams[i%2])
			check(t, err)
			if d := diffBatch(&want, got); d != "" {
				t.Errorf("batch %d: %s", i, d)
			}
			if ok, err := b.Ready(); !ok || err != nil {
				t.Errorf("batch %d: ready %v, %v after Wait", i, ok, err)
			}
		}
		for i, l := range cudatest.Download[int32](t, streams[0], out.Ptr(), len(seeds)) {
			if l != labels[seeds[i]] {
				t.Errorf("label of seed %d is %d, want %d", seeds[i], l, labels[seeds[i]])
			}
		}
		// A clone has scratch of its own.
		clone, err := s.gpu.Clone()
		check(t, err)
		b := mustBatch(t, clone, 5)
		var want graph.Batch
		check(t, s.cpu.Sample(2, philox.Sample, 8, seeds, &want))
		check(t, clone.Sample(streams[0], 2, philox.Sample, 8, seeds, b))
		got, err := b.Download(streams[0])
		check(t, err)
		if d := diffBatch(&want, got); d != "" {
			t.Errorf("clone: %s", d)
		}
		if err := s.gpu.Sample(streams[0], 2, philox.Sample, 8, seeds, b); err == nil || !strings.Contains(err.Error(), "another sampler") {
			t.Errorf("batch of a clone: error %v", err)
		}
		for _, b := range append(batches, b) {
			check(t, b.Close())
		}
		check(t, errors.Join(clone.Close(), s.close()))
	})
}

func ring(t fataler, n int) *graph.CSR {
	var src, dst []int32
	for v := range int32(n) {
		for _, d := range []int32{1, 2, 7, 100} {
			src, dst = append(src, v), append(dst, (v+d)%int32(n))
		}
	}
	return build(t, graph.Builder{NumNodes: n, Symmetrize: true}, src, dst, nil)
}

func mustBatch(t testing.TB, s *gpusample.Sampler, seeds int) *gpusample.Batch {
	t.Helper()
	b, err := s.NewBatch(seeds)
	check(t, err)
	return b
}

// TestFaults gives the device seeds that are wrong and a graph that changes after
// it was checked. The batch is an error, its arrays stay in bounds, and the next
// batch is right.
func TestFaults(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *cuda.Device) {
		stream := cudatest.Stream(t, dev)
		g := ring(t, 1000)
		s := newSampling(t, dev, g, graph.Options{Fanouts: []int{3, 2}, TransposeAll: true, DropSelfLoops: true}, gpusample.CSROptions{})
		b := mustBatch(t, s.gpu, 16)
		for name, seeds := range map[string][]int32{
			"seed 1:": {3, 1000, 1001}, "seed 0:": {-1, 2}, "seed 2:": {1, 9, 9, 12}, "seed 3:": {2, 3, 5, 4},
		} {
			at := cudatest.Upload(t, stream, seeds)
			check(t, s.gpu.SampleDevice(stream, 1, philox.Sample, 0, at.Ptr(), len(seeds), b))
			if _, err := b.Download(stream); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("seeds %v: error %v, want %q", seeds, err, name)
			}
			inBounds(t, stream, b)
			var want graph.Batch
			good := []int32{0, 31, 32, 500, 999}
			check(t, s.cpu.Sample(1, philox.Sample, 0, good, &want))
			check(t, s.gpu.Sample(stream, 1, philox.Sample, 0, good, b))
			got, err := b.Download(stream)
			check(t, err)
			if d := diffBatch(&want, got); d != "" {
				t.Errorf("after seeds %v: %s", seeds, d)
			}
		}
		check(t, errors.Join(b.Close(), s.close()))
	})
}

// inBounds checks what the arrays of a faulty batch must still keep to.
func inBounds(t testing.TB, stream *cuda.Stream, b *gpusample.Batch) {
	t.Helper()
	for i := range b.Blocks {
		x := &b.Blocks[i]
		for _, v := range cudatest.Download[int32](t, stream, cuda.DevicePtr(x.Device.Indices), x.Device.NumEdges) {
			if v < 0 || int(v) >= x.NumSrc {
				t.Errorf("block %d: local id %d of %d sources", i, v, x.NumSrc)
			}
		}
		last := int32(0)
		for _, o := range cudatest.Download[int32](t, stream, cuda.DevicePtr(x.Device.Indptr), x.NumDst+1) {
			if o < last || int(o) > x.Device.NumEdges {
				t.Errorf("block %d: offset %d after %d with %d edges", i, o, last, x.Device.NumEdges)
			}
			last = o
		}
	}
}

// TestChangedGraph changes registered host memory under the GPU.
func TestChangedGraph(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *cuda.Device) {
		stream := cudatest.Stream(t, dev)
		g := ring(t, 1000)
		s := newSampling(t, dev, g, graph.Options{Fanouts: []int{0, 2}, TransposeAll: true}, gpusample.CSROptions{Placement: gpusample.InHost})
		b := mustBatch(t, s.gpu, 16)
		check(t, gpusample.Overwrite(stream, s.csr, 7*8, -5))
		check(t, s.gpu.Sample(stream, 1, philox.Sample, 0, []int32{3, 7}, b))
		if err := b.Wait(); !errors.Is(err, graph.ErrCorrupt) || !strings.Contains(err.Error(), "edge 56 of the graph") {
			t.Errorf("error %v, want edge 56 and ErrCorrupt", err)
		}
		inBounds(t, stream, b)
		check(t, gpusample.Overwrite(stream, s.csr, 7*8, g.Indices[7*8]))
		var want graph.Batch
		check(t, s.cpu.Sample(1, philox.Sample, 0, []int32{3, 7}, &want))
		check(t, s.gpu.Sample(stream, 1, philox.Sample, 0, []int32{3, 7}, b))
		got, err := b.Download(stream)
		check(t, err)
		if d := diffBatch(&want, got); d != "" {
			t.Error(d)
		}
		check(t, errors.Join(b.Close(), s.close()))
	})
}

func TestErrors(t *testing.T) {
	dev, f := cudatest.Fake(t)
	for _, k := range gpusample.KernelNames() {
		f.Kernel(k, func(fake.Launch) {})
	}
	g := ring(t, 2000)
	c, err := gpusample.NewCSR(context.Background(), dev, g, gpusample.CSROptions{})
	check(t, err)
	for want, o := range map[string]graph.Options{
		"at least one fan-out":              {},
		"251 fan-outs":                      {Fanouts: make([]int, 251)},
		"fan-out 1025 draws up to 1025":     {Fanouts: []int{3, 1025}, Replace: true},
		"graph without edge weights":        {Fanouts: []int{3}, Weighted: true},
		"fan-out 1099511627776 draws up to": {Fanouts: []int{1 << 40}},
	} {
		if _, err := gpusample.NewSampler(context.Background(), c, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", o, err, want)
		}
	}
	bad := &graph.CSR{Indptr: []int64{0, 2}, Indices: []int32{0, 5}}
	if _, err := gpusample.NewCSR(context.Background(), dev, bad, gpusample.CSROptions{}); !errors.Is(err, graph.ErrCorrupt) {
		t.Errorf("corrupt graph: %v", err)
	}
	s, err := gpusample.NewSampler(context.Background(), c, graph.Options{Fanouts: []int{2000, 3}})
	check(t, err)
	b := mustBatch(t, s, 4)
	stream := cudatest.Stream(t, dev)
	for want, seeds := range map[string][]int32{
		"seed 1: node 2000 is not in [0, 2000)": {1, 2000},
		"seed 0: node -3":                       {-3},
		"seed 2: node 4 after 5":                {1, 5, 4},
	} {
		if err := s.Sample(stream, 1, philox.Sample, 0, seeds, b); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("seeds %v: error %v, want %q", seeds, err, want)
		}
	}
	if err := s.SampleDevice(stream, 1, philox.Sample, 0, 8, 2001, b); err == nil || !strings.Contains(err.Error(), "2001 seeds of 2000 nodes") {
		t.Errorf("too many seeds: %v", err)
	}
	check(t, b.Close())
	check(t, b.Close())
	if err := s.Sample(stream, 1, philox.Sample, 0, nil, b); !errors.Is(err, cuda.ErrClosed) {
		t.Errorf("closed batch: %v", err)
	}
	check(t, errors.Join(s.Close(), s.Close(), c.Close(), c.Close()))
}

// TestEpochs compares with what package loader does: parts of the permutation,
// sorted, that together are all ids.
func TestEpochs(t *testing.T) {
	dev, _ := cudatest.Fake(t)
	stream := cudatest.Stream(t, dev)
	ids := make([]int32, 1003)
	for i := range ids {
		ids[i] = int32(len(ids)-i) * 3
	}
	for _, o := range []gpusample.EpochOptions{{Seed: 4, Batch: 100}, {Seed: 4, Batch: 100, World: 3, Rank: 1}, {Batch: 5000}, {}, {Batch: 1003, World: 2}, {Batch: 2, World: 3, Rank: 2}} {
		e, err := gpusample.NewEpochs(dev, ids, 0, o)
		check(t, err)
		for _, epoch := range []uint64{0, 1, 2, 7, 8} {
			check(t, e.Start(stream, epoch))
			order := graph.ShuffleEpoch(make([]int32, len(ids)), ids, o.Seed, epoch)
			size := o.Batch
			if size <= 0 || size >= len(ids) {
				size = len(ids)
				slices.Sort(order)
			}
			if want := (len(ids) + size - 1) / size; e.NumBatches() != want {
				t.Fatalf("%+v: %d batches, want %d", o, e.NumBatches(), want)
			}
			for i := range e.NumBatches() {
				global := order[i*size : min((i+1)*size, len(ids))]
				// Nearly equal contiguous parts, the larger ones first.
				var want []int32
				for p, rest, r := max(1, o.World), global, 0; p > 0; p, r = p-1, r+1 {
					n := (len(rest) + p - 1) / p
					if r == o.Rank {
						want = slices.Clone(rest[:n])
					}
					rest = rest[n:]
				}
				slices.Sort(want)
				at, n := e.Batch(i)
				if got := cudatest.Download[int32](t, stream, at, n); !slices.Equal(got, want) {
					t.Fatalf("%+v, epoch %d, batch %d: %v, want %v", o, epoch, i, got, want)
				}
			}
		}
		check(t, e.Close())
	}
	if _, err := gpusample.NewEpochs(dev, []int32{3, 5, 3}, 0, gpusample.EpochOptions{}); err == nil || !strings.Contains(err.Error(), "node 3 is negative or listed twice") {
		t.Errorf("twice: %v", err)
	}
	if _, err := gpusample.NewEpochs(dev, ids, 0, gpusample.EpochOptions{World: 2, Rank: 2}); err == nil {
		t.Error("rank 2 of 2")
	}
}
