package cpu_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"zerogcn/graph"
	"zerogcn/internal/blas"
	"zerogcn/model"
	"zerogcn/model/exec/cpu"
	"zerogcn/model/op"
)

// sampledBatch has the shape of a batch of 1,024 seeds of the products-shaped
// graph at scale 0.3, fan-out 15, 10, 5: 302,000 inputs, 671,000 edges.
func sampledBatch(cols, classes int) *model.Input {
	rng := rand.New(rand.NewPCG(7, 7))
	sizes := []int{302_000, 97_000, 14_000, 1024}
	fanouts := []int{5, 10, 15}
	in := &model.Input{X: random(sizes[0], cols), Key: op.Key{Seed: 1}}
	for l := range 3 {
		b := &graph.Block{NumDst: sizes[l+1], NumSrc: sizes[l], Indptr: []int32{0}}
		to := make([][]int32, b.NumSrc)
		for i := range b.NumDst {
			for range fanouts[l] {
				j := rng.Int32N(int32(b.NumSrc))
				b.Indices = append(b.Indices, j)
				to[j] = append(to[j], int32(i))
			}
			b.Indptr = append(b.Indptr, int32(len(b.Indices)))
		}
		if l > 0 {
			b.TIndptr = []int32{0}
			for _, ts := range to {
				b.TIndices = append(b.TIndices, ts...)
				b.TIndptr = append(b.TIndptr, int32(len(b.TIndices)))
			}
		}
		in.Blocks = append(in.Blocks, b)
	}
	in.Labels = labels(sizes[3], classes).Labels
	return in
}

// BenchmarkStep is forward and backward of the 3-layer GraphSAGE of
// ogbn-products (206,895 parameters) on one sampled batch, with the host's time
// by kind of operation.
func BenchmarkStep(b *testing.B) {
	c := model.Config{Arch: model.SAGE, In: 100, Hidden: 256, Classes: 47, Layers: 3, Dropout: 0.5}
	in := sampledBatch(100, 47)
	b.Run("gonum", func(b *testing.B) { benchmarkStep(b, c, blas.Gonum(), in) })
	b.Run("openblas", func(b *testing.B) {
		e, err := blas.OpenBLAS("")
		if err != nil {
			b.Skip(err)
		}
		benchmarkStep(b, c, e, in)
	})
}

// BenchmarkCora is a step of the two-layer GCN on a graph of Cora's size, full
// batch, with sparse features.
func BenchmarkCora(b *testing.B) {
	const nodes, edges = 2708, 10_556
	rng := rand.New(rand.NewPCG(4, 4))
	blk := &graph.Block{NumDst: nodes, NumSrc: nodes, Indptr: []int32{0}, Degree: make([]int32, nodes)}
	to := make([][]int32, nodes)
	for range edges {
		i := rng.IntN(nodes)
		to[i] = append(to[i], rng.Int32N(nodes))
	}
	from := make([][]int32, nodes)
	for i, js := range to {
		blk.Degree[i] = int32(len(js))
		blk.Indices = append(blk.Indices, js...)
		blk.Indptr = append(blk.Indptr, int32(len(blk.Indices)))
		for _, j := range js {
			from[j] = append(from[j], int32(i))
		}
	}
	blk.TIndptr = []int32{0}
	for _, is := range from {
		blk.TIndices = append(blk.TIndices, is...)
		blk.TIndptr = append(blk.TIndptr, int32(len(blk.TIndices)))
	}
	in := &model.Input{X: cora(), Blocks: []*graph.Block{blk, blk}, Labels: labels(nodes, 7).Labels, Key: op.Key{Seed: 1}}
	for i := range in.Labels.Class {
		if i >= 140 {
			in.Labels.Class[i] = -1
		}
	}
	c := model.Config{Arch: model.GCN, In: in.X.Sparse.NumCols, Hidden: 16, Classes: 7, Layers: 2,
		Dropout: 0.5, InputDropout: 0.5, SparseInput: true, FullGraph: true}
	benchmarkStep(b, c, blas.Gonum(), in)
}

func benchmarkStep(b *testing.B, c model.Config, e *blas.Engine, in *model.Input) {
	n, err := model.New(c, cpu.New(cpu.Options{BLAS: e}), 1)
	if err != nil {
		b.Fatal(err)
	}
	defer n.Close()
	if err := n.Train(in); err != nil {
		b.Fatal(err)
	}
	spent := map[string]time.Duration{}
	for _, p := range n.Programs() {
		p.Observe = func(o *op.Op, _ *op.Value, d time.Duration) { spent[o.Kind.String()] += d }
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := n.Train(in); err != nil {
			b.Fatal(err)
		}
	}
	for k, d := range spent {
		b.ReportMetric(d.Seconds()*1e3/float64(b.N), k+"-ms/op")
	}
}
