package gpusample_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"zerogcn/cuda"
	"zerogcn/cuda/cudatest"
	"zerogcn/graph"
	"zerogcn/graph/gpusample"
	"zerogcn/internal/par"
	"zerogcn/internal/philox"
)

// TestGPUSteadyState guards that sampling allocates no memory of the device and
// does not grow Go's heap once its batch has grown, and that runs repeat each other.
func TestGPUSteadyState(t *testing.T) {
	dev := cudatest.Device(t)
	stream := cudatest.Stream(t, dev)
	g := productsLike(t, 0.01)
	o := graph.Options{Fanouts: []int{15, 10, 5}, DropSelfLoops: true, Degrees: true, Scale: true, TransposeAll: true}
	s := newSampling(t, dev, g, o, gpusample.CSROptions{})
	a, b := mustBatch(t, s.gpu, 16), mustBatch(t, s.gpu, 512)
	seeds := spacedSeeds(g, 512, 0)
	check(t, s.gpu.Sample(stream, 1, philox.Sample, 0, seeds, a)) // grows
	check(t, a.Wait())
	before := dev.Metrics()
	step := uint64(0)
	allocs := testing.AllocsPerRun(50, func() {
		step++
		for _, x := range []*gpusample.Batch{a, b} {
			if err := s.gpu.Sample(stream, 7, philox.Sample, step%5, seeds, x); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(a.Wait(), b.Wait()); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 2 { // the 8 bytes of each Event.Synchronize
		t.Errorf("%.1f allocations on Go's heap for two batches", allocs)
	}
	after := dev.Metrics()
	if after.PoolHits+after.PoolMisses != before.PoolHits+before.PoolMisses || after.Open() != before.Open() {
		t.Errorf("the device's memory changed: before\n%v\nafter\n%v", before, after)
	}
	x, err := a.Download(stream)
	check(t, err)
	y, err := b.Download(stream)
	check(t, err)
	if d := diffBatch(x, y); d != "" {
		t.Errorf("two runs differ: %s", d)
	}
	check(t, errors.Join(a.Close(), b.Close(), s.close()))
}

func spacedSeeds(g *graph.CSR, n, first int) []int32 {
	var seeds []int32
	for i := range n {
		seeds = append(seeds, int32((int64(i)*int64(g.NumNodes())+int64(first))/int64(n)))
	}
	return slices.Compact(seeds)
}

// productsLike makes a graph with the shape of ogbn-products at a scale:
// 2,449,029 nodes and 61.9M undirected edges, endpoints drawn by log-normal
// weights of sigma 1.2.
func productsLike(t testing.TB, scale float64) *graph.CSR {
	t.Helper()
	n, m := int(2_449_029*scale), int(61_859_140*scale)
	r := rand.New(rand.NewPCG(1, 2))
	cum := make([]float64, n+1)
	for i := range n {
		cum[i+1] = cum[i] + math.Exp(1.2*r.NormFloat64())
	}
	guide := make([]int32, n) // one random read instead of a binary search
	for g, v := 0, 0; g < n; g++ {
		for cum[v+1] < cum[n]*float64(g)/float64(n) {
			v++
		}
		guide[g] = int32(v)
	}
	sources, targets := make([]int32, m), make([]int32, m)
	par.Workers(0).Range(m, 1<<16, func(tile, lo, hi int) {
		r := rand.New(rand.NewPCG(3, uint64(tile)))
		draw := func() int32 {
			u := r.Float64()
			v := guide[int(u*float64(n))]
			for int(v) < n-1 && cum[v+1] < u*cum[n] {
				v++
			}
			return v
		}
		for i := lo; i < hi; i++ {
			sources[i], targets[i] = draw(), draw()
		}
	})
	g, err := graph.Builder{NumNodes: n, Symmetrize: true, Deduplicate: true, RemoveSelfLoops: true}.
		FromEdges(context.Background(), sources, targets, nil)
	check(t, err)
	return g
}

var products = sync.OnceValue(func() *graph.CSR {
	start := time.Now()
	g := productsLike(benchTB{}, 1)
	fmt.Printf("products-like graph: %d nodes, %d edges, made in %.1f s with %d cores\n", g.NumNodes(), g.NumEdges(), time.Since(start).Seconds(), runtime.NumCPU())
	return g
})

// benchTB lets products fail without a test at hand.
type benchTB struct{ testing.TB }

func (benchTB) Helper()           {}
func (benchTB) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// BenchmarkGPUSample measures batches of 1,024 seeds with fan-outs 15, 10, 5 on
// the products shape: the device's time for one batch alone (ms/batch, median)
// and the rate of a stream that always has the next batch queued.
func BenchmarkGPUSample(b *testing.B) {
	dev := cudatest.Device(b)
	stream := cudatest.Stream(b, dev)
	g := products()
	base := graph.Options{Fanouts: []int{15, 10, 5}}
	training := graph.Options{Fanouts: base.Fanouts, DropSelfLoops: true, Degrees: true, Scale: true, Transpose: true}
	transposed := graph.Options{Fanouts: base.Fanouts, Transpose: true}
	for _, bc := range []struct {
		name  string
		place gpusample.Placement
		opt   graph.Options
	}{
		{"plain", gpusample.InDevice, base},
		{"transpose", gpusample.InDevice, transposed},
		{"training", gpusample.InDevice, training},
		{"replace", gpusample.InDevice, graph.Options{Fanouts: base.Fanouts, Replace: true}},
		{"plain", gpusample.InHost, base},
		{"training", gpusample.InHost, training},
	} {
		b.Run(fmt.Sprintf("%v/%s", bc.place, bc.name), func(b *testing.B) {
			s := newSampling(b, dev, g, bc.opt, gpusample.CSROptions{Placement: bc.place})
			batches := []*gpusample.Batch{mustBatch(b, s.gpu, 1024), mustBatch(b, s.gpu, 1024)}
			from, err := dev.NewEvent(cuda.EventOptions{Timing: true})
			check(b, err)
			to, err := dev.NewEvent(cuda.EventOptions{Timing: true})
			check(b, err)
			defer func() {
				check(b, errors.Join(from.Close(), to.Close(), batches[0].Close(), batches[1].Close(), s.close()))
			}()
			var seeds [16][]int32
			for i := range seeds {
				seeds[i] = spacedSeeds(g, 1024, i*151)
			}
			var want graph.Batch
			check(b, s.cpu.Sample(1, philox.Sample, 3, seeds[3], &want))
			check(b, s.gpu.Sample(stream, 1, philox.Sample, 3, seeds[3], batches[0]))
			got, err := batches[0].Download(stream)
			check(b, err)
			if d := diffBatch(&want, got); d != "" {
				b.Fatal(d)
			}
			var alone []float64
			for i := range 50 {
				check(b, stream.Synchronize())
				check(b, from.Record(stream))
				check(b, s.gpu.Sample(stream, 1, philox.Sample, uint64(i), seeds[i%16], batches[0]))
				check(b, to.Record(stream))
				check(b, to.Synchronize())
				d, err := to.Since(from)
				check(b, err)
				alone = append(alone, d.Seconds()*1e3)
			}
			slices.Sort(alone)
			edges, step, host := 0, 0, time.Duration(0)
			b.ReportAllocs()
			for b.Loop() {
				x := batches[step%2]
				if step > 1 {
					check(b, x.Wait())
					edges += x.NumEdges()
				}
				start := time.Now()
				check(b, s.gpu.Sample(stream, 1, philox.Sample, uint64(step), seeds[step%16], x))
				host += time.Since(start)
				step++
			}
			check(b, errors.Join(batches[0].Wait(), batches[1].Wait()))
			b.ReportMetric(alone[len(alone)/2], "ms/batch")
			b.ReportMetric(float64(host.Microseconds())/float64(step), "host-µs/batch")
			b.ReportMetric(float64(edges)/b.Elapsed().Seconds()/1e6, "Medges/s")
			b.ReportMetric(float64(batches[0].NumNodes), "inputs")
			b.ReportMetric(float64(batches[0].NumEdges()), "edges")
		})
	}
}

// BenchmarkGPULarge measures the same batches on a graph with the size of
// ogbn-papers100M: 111M nodes, in-degrees from 8 to 20, 1.55G edges.
func BenchmarkGPULarge(b *testing.B) {
	dev := cudatest.Device(b)
	stream := cudatest.Stream(b, dev)
	g := wideGraph(111_059_956)
	for _, place := range []gpusample.Placement{gpusample.InDevice, gpusample.InHost} {
		b.Run(place.String(), func(b *testing.B) {
			start := time.Now()
			c, err := gpusample.NewCSR(context.Background(), dev, g, gpusample.CSROptions{Placement: place})
			check(b, err)
			upload := time.Since(start)
			s, err := gpusample.NewSampler(context.Background(), c, graph.Options{Fanouts: []int{15, 10, 5}, Transpose: true})
			check(b, err)
			x := mustBatch(b, s, 1024)
			var seeds [16][]int32
			for i := range seeds {
				seeds[i] = spacedSeeds(g, 1024, i*151)
			}
			edges, step := 0, 0
			for b.Loop() {
				check(b, s.Sample(stream, 1, philox.Sample, uint64(step), seeds[step%16], x))
				check(b, x.Wait())
				edges += x.NumEdges()
				step++
			}
			b.ReportMetric(upload.Seconds(), "upload-s")
			b.ReportMetric(float64(edges)/b.Elapsed().Seconds()/1e6, "Medges/s")
			b.ReportMetric(float64(x.NumNodes), "inputs")
			check(b, errors.Join(x.Close(), s.Close(), c.Close()))
		})
	}
}

// wideGraph makes a graph of n nodes with 8 to 20 in-edges each.
func wideGraph(n int) *graph.CSR {
	g := &graph.CSR{Indptr: make([]int64, n+1)}
	stream := philox.NewStream(1, philox.Generator, 0, 0)
	for v := range n {
		g.Indptr[v+1] = g.Indptr[v] + 8 + int64(v*7%13)
	}
	g.Indices = make([]int32, g.Indptr[n])
	par.Workers(0).Range(n, 1<<14, func(_, lo, hi int) {
		for v := lo; v < hi; v++ {
			row := g.Row(int32(v))
			for i := range row {
				if i%4 == 0 {
					w := stream.Words(uint32(v), uint32(i>>2))
					for j := range row[i:min(i+4, len(row))] {
						row[i+j] = int32(philox.Below(w[j], uint32(n)))
					}
				}
			}
			slices.Sort(row)
		}
	})
	return g
}

// BenchmarkGPUTransposeStar measures what a source costs that feeds all targets.
func BenchmarkGPUTransposeStar(b *testing.B) {
	dev := cudatest.Device(b)
	stream := cudatest.Stream(b, dev)
	for _, n := range []int{1_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g := &graph.CSR{Indptr: make([]int64, n+1), Indices: make([]int32, n)}
			seeds := make([]int32, n)
			for v := range n {
				g.Indptr[v+1], seeds[v] = int64(v+1), int32(v)
			}
			s := newSampling(b, dev, g, graph.Options{Fanouts: []int{1}, TransposeAll: true}, gpusample.CSROptions{})
			x := mustBatch(b, s.gpu, n)
			for b.Loop() {
				check(b, s.gpu.Sample(stream, 1, philox.Sample, 0, seeds, x))
				check(b, x.Wait())
			}
			check(b, errors.Join(x.Close(), s.close()))
		})
	}
}

// BenchmarkGPUKernels runs some batches kernel by kernel, for a profiler.
func BenchmarkGPUKernels(b *testing.B) {
	dev := cudatest.Device(b)
	stream := cudatest.Stream(b, dev)
	for name, make := range map[string]func() *graph.CSR{
		"products": products,
		"large":    func() *graph.CSR { return wideGraph(111_059_956) },
	} {
		b.Run(name, func(b *testing.B) {
			g := make()
			s := newSampling(b, dev, g, graph.Options{Fanouts: []int{15, 10, 5}, Transpose: true}, gpusample.CSROptions{})
			x := mustBatch(b, s.gpu, 1024)
			check(b, s.gpu.Sample(stream, 1, philox.Sample, 3, spacedSeeds(g, 1024, 0), x))
			check(b, x.Wait())
			for b.Loop() {
				check(b, gpusample.EnqueuePlain(stream, x))
			}
			check(b, stream.Synchronize())
			check(b, errors.Join(x.Close(), s.close()))
		})
	}
}
