package cpu_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"zerogcn/graph"
	"zerogcn/internal/par"
	"zerogcn/model/exec/cpu"
	"zerogcn/model/op"
	"zerogcn/sparse"
)

// The benchmarks' shapes: the middle layer of a products-sized GraphSAGE batch
// (targets, sources, hidden width), and GCN on Cora.
const (
	targets, sources, width = 14_000, 97_000, 256
	edges                   = 10 // a target
)

// bench runs one kernel and reports bytes or operations a second.
func bench(b *testing.B, o *op.Op, rows, cols int, bytes int64, in ...op.Value) {
	vs := make([]*op.Value, len(in))
	for i := range in {
		vs[i] = &in[i]
	}
	out := op.Matrix(rows, cols, make([]float32, rows*cols))
	for _, w := range []par.Workers{1, 2} {
		b.Run(fmt.Sprintf("workers=%d", w), func(b *testing.B) {
			k, err := cpu.New(cpu.Options{Workers: w}).Kernel(o)
			if err != nil {
				b.Fatal(err)
			}
			if err := k.Run(&out, vs); err != nil { // sizes its scratch
				b.Fatal(err)
			}
			b.SetBytes(bytes)
			b.ReportAllocs()
			for b.Loop() {
				if err := k.Run(&out, vs); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func random(rows, cols int) op.Value {
	rng := rand.New(rand.NewPCG(1, uint64(rows)))
	x := make([]float32, rows*cols)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return op.Matrix(rows, cols, x)
}

// block draws its sources at random; a sampled block's are no nearer together.
func block() *graph.Block {
	rng := rand.New(rand.NewPCG(2, 2))
	b := &graph.Block{NumDst: targets, NumSrc: sources, Indptr: []int32{0}, TIndptr: make([]int32, sources+1)}
	to := make([][]int32, sources)
	for i := range targets {
		for range edges {
			j := rng.Int32N(sources)
			b.Indices = append(b.Indices, j)
			to[j] = append(to[j], int32(i))
		}
		b.Indptr = append(b.Indptr, int32(len(b.Indices)))
	}
	for j, ts := range to {
		b.TIndices = append(b.TIndices, ts...)
		b.TIndptr[j+1] = int32(len(b.TIndices))
	}
	return b
}

func BenchmarkAggregate(b *testing.B) {
	x := random(sources, width)
	bench(b, op.New(op.Aggregate, op.Attr{}), targets, width,
		4*width*targets*(edges+1), x, op.Value{Block: block()})
}

func BenchmarkAggregateGrad(b *testing.B) {
	dy := random(targets, width)
	bench(b, op.New(op.AggregateGrad, op.Attr{}), sources, width,
		4*width*(targets*edges+sources), dy, op.Value{Block: block()})
}

func BenchmarkDropout(b *testing.B) {
	bench(b, op.New(op.Dropout, op.Attr{P: 0.5}), sources, width,
		8*sources*width, random(sources, width), op.Value{Key: &op.Key{Seed: 1}})
}

func BenchmarkReLU(b *testing.B) {
	bench(b, op.New(op.ReLU, op.Attr{}), sources, width, 8*sources*width, random(sources, width))
}

func BenchmarkReLUGrad(b *testing.B) {
	bench(b, op.New(op.ReLUGrad, op.Attr{}), sources, width, 12*sources*width,
		random(sources, width), random(sources, width))
}

func BenchmarkAdd(b *testing.B) {
	bench(b, op.New(op.Add, op.Attr{}), sources, width, 12*sources*width,
		random(sources, width), random(sources, width))
}

func BenchmarkBiasAdd(b *testing.B) {
	bench(b, op.New(op.BiasAdd, op.Attr{}), sources, width, 8*sources*width,
		random(sources, width), random(1, width))
}

func BenchmarkColSum(b *testing.B) {
	bench(b, op.New(op.ColSum, op.Attr{}), 1, width, 4*sources*width, random(sources, width))
}

func BenchmarkMatMul(b *testing.B) {
	bench(b, op.New(op.MatMul, op.Attr{TransB: true}), targets, width,
		4*(2*targets*width+width*width), random(targets, width), random(width, width))
}

// Cora's features: 2,708 rows of 1,433 words, 1.3 % of them present.
func cora() op.Value {
	const rows, cols, perRow = 2708, 1433, 18
	rng := rand.New(rand.NewPCG(3, 3))
	m := &sparse.Matrix{NumCols: cols}
	row := make([]float32, cols)
	for range rows {
		clear(row)
		for range perRow {
			row[rng.IntN(cols)] = 1
		}
		m.AppendDense(row)
	}
	return op.Value{Sparse: m}
}

func BenchmarkSparseLinear(b *testing.B) {
	x := cora()
	a := op.Attr{P: 0.5}
	bench(b, op.New(op.SparseLinear, a), x.Sparse.NumRows, 16, int64(4*16*x.Sparse.NNZ()),
		x, random(16, x.Sparse.NumCols), op.Value{Key: &op.Key{Seed: 1}})
}

func BenchmarkSparseLinearGrad(b *testing.B) {
	x := cora()
	a := op.Attr{P: 0.5, Cols: x.Sparse.NumCols}
	bench(b, op.New(op.SparseLinearGrad, a), 16, x.Sparse.NumCols, int64(4*16*x.Sparse.NNZ()),
		x, random(x.Sparse.NumRows, 16), op.Value{Key: &op.Key{Seed: 1}})
}

func labels(rows, classes int) op.Value {
	l := &op.Labels{Class: make([]int32, rows)}
	for i := range l.Class {
		l.Class[i] = int32(i % classes)
	}
	return op.Value{Labels: l}
}

func BenchmarkSoftmaxCE(b *testing.B) {
	bench(b, op.New(op.SoftmaxCE, op.Attr{}), 1, 1, 4*1024*47, random(1024, 47), labels(1024, 47))
}

func BenchmarkSoftmaxCEGrad(b *testing.B) {
	bench(b, op.New(op.SoftmaxCEGrad, op.Attr{}), 1024, 47, 8*1024*47,
		random(1024, 47), labels(1024, 47), random(1, 1))
}
