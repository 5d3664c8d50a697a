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
	in := sampledBatch(100, 47)
	b.Run("gonum", func(b *testing.B) { benchmarkStep(b, blas.Gonum(), in) })
	b.Run("openblas", func(b *testing.B) {
		e, err := blas.OpenBLAS("")
		if err != nil {
			b.Skip(err)
		}
		benchmarkStep(b, e, in)
	})
}

func benchmarkStep(b *testing.B, e *blas.Engine, in *model.Input) {
	n, err := model.New(model.Config{Arch: model.SAGE, In: 100, Hidden: 256, Classes: 47, Layers: 3, Dropout: 0.5},
		cpu.New(cpu.Options{BLAS: e}), 1)
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
