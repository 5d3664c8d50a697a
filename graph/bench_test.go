package graph

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"testing"

	"zerogcn/internal/philox"
)

// productsLike returns edges with the shape of ogbn-products at the given
// scale: 2,449,029 nodes and 61.9M undirected edges, endpoints drawn by
// log-normal weights of sigma 1.2.
func productsLike(scale float64) (n int, sources, targets []int32) {
	n = int(2_449_029 * scale)
	m := int(61_859_140 * scale)
	r := rand.New(rand.NewPCG(1, 2))
	cum := make([]float64, n+1)
	for i := range n {
		cum[i+1] = cum[i] + math.Exp(1.2*r.NormFloat64())
	}
	// Drawing by a guide table: one random read instead of a binary search.
	guide := make([]int32, n)
	for g, v := 0, 0; g < n; g++ {
		for cum[v+1] < cum[n]*float64(g)/float64(n) {
			v++
		}
		guide[g] = int32(v)
	}
	draw := func() int32 {
		u := r.Float64()
		v := guide[int(u*float64(n))]
		for cum[v+1] < u*cum[n] {
			v++
		}
		return v
	}
	sources, targets = make([]int32, m), make([]int32, m)
	for i := range m {
		sources[i], targets[i] = draw(), draw()
	}
	return n, sources, targets
}

var benchGraph = sync.OnceValues(func() (*CSR, error) {
	n, s, t := productsLike(0.1)
	w := make([]float32, len(s))
	for i := range w {
		w[i] = float32(1 + i%9)
	}
	return Builder{NumNodes: n, Symmetrize: true, Deduplicate: true, RemoveSelfLoops: true}.
		FromEdges(context.Background(), s, t, w)
})

// cpuSeconds returns the processor time of this process. Rates per CPU second
// also mean something on a machine that others use.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return math.NaN()
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

func reportEdges(b *testing.B, edges int64, cpu0 float64) {
	b.ReportMetric(float64(edges)/b.Elapsed().Seconds()/1e6, "Medges/s")
	b.ReportMetric(float64(edges)/(cpuSeconds()-cpu0)/1e6, "Medges/cpu-s")
}

func benchSeeds(n, batch int, r *rand.Rand) []int32 {
	seeds := make(map[int32]bool, batch)
	for len(seeds) < batch {
		seeds[int32(r.IntN(n))] = true
	}
	out := make([]int32, 0, batch)
	for v := range seeds {
		out = append(out, v)
	}
	slices.Sort(out)
	return out
}

func BenchmarkSample(b *testing.B) {
	c, err := benchGraph()
	if err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 4))
	var seeds [16][]int32
	for i := range seeds {
		seeds[i] = benchSeeds(c.NumNodes(), 1024, r)
	}
	for _, bc := range []struct {
		name string
		opt  Options
	}{
		{"uniform", Options{Fanouts: []int{15, 10, 5}, Workers: 1}},
		{"uniform-2workers", Options{Fanouts: []int{15, 10, 5}, Workers: 2}},
		{"replace", Options{Fanouts: []int{15, 10, 5}, Replace: true, Workers: 1}},
		{"weighted", Options{Fanouts: []int{15, 10, 5}, Weighted: true, Scale: true, Workers: 1}},
		{"weighted-replace", Options{Fanouts: []int{15, 10, 5}, Weighted: true, Replace: true, Scale: true, Workers: 1}},
		{"training", Options{Fanouts: []int{15, 10, 5}, Workers: 1, DropSelfLoops: true, Degrees: true, Scale: true, Transpose: true}},
	} {
		b.Run(fmt.Sprintf("products-0.1/15-10-5/%s", bc.name), func(b *testing.B) {
			s, err := NewSampler(c, bc.opt)
			if err != nil {
				b.Fatal(err)
			}
			var batch Batch
			edges, step, cpu0 := 0, uint64(0), cpuSeconds()
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Sample(1, philox.Sample, step, seeds[step%16], &batch); err != nil {
					b.Fatal(err)
				}
				step++
				edges += batch.NumEdges()
			}
			reportEdges(b, int64(edges), cpu0)
			b.ReportMetric(float64(len(batch.Nodes)), "inputs")
		})
	}
}

func BenchmarkBuild(b *testing.B) {
	n, s, t := productsLike(0.1)
	w := make([]float32, len(s))
	for _, bc := range []struct {
		name    string
		builder Builder
		weights []float32
	}{
		{"directed", Builder{NumNodes: n, Workers: 1}, nil},
		{"directed-2workers", Builder{NumNodes: n, Workers: 2}, nil},
		{"directed-weighted", Builder{NumNodes: n, Workers: 1}, w},
		{"symmetrize-deduplicate", Builder{NumNodes: n, Symmetrize: true, Deduplicate: true, RemoveSelfLoops: true, Workers: 1}, nil},
	} {
		b.Run("products-0.1/"+bc.name, func(b *testing.B) {
			b.ReportAllocs()
			edges, cpu0 := int64(0), cpuSeconds()
			for b.Loop() {
				c, err := bc.builder.FromEdges(context.Background(), s, t, bc.weights)
				if err != nil {
					b.Fatal(err)
				}
				edges += c.NumEdges()
			}
			reportEdges(b, edges, cpu0)
		})
	}
}

func BenchmarkShuffleEpoch(b *testing.B) {
	ids := make([]int32, 196_615)
	for i := range ids {
		ids[i] = int32(i)
	}
	for b.Loop() {
		ShuffleEpoch(ids, ids, 1, 0)
	}
	b.ReportMetric(float64(len(ids))*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mids/s")
}
