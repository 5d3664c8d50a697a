package exectest

import (
	"math"
	"math/rand/v2"
	"slices"

	"pgregory.net/rapid"

	"zerogcn/graph"
	"zerogcn/model/op"
	"zerogcn/sparse"
)

// generator draws what matters from rapid, which shrinks it, and contents from a
// seeded generator.
type generator struct {
	rapid *rapid.T
	rng   *rand.Rand
}

func (g *generator) coin() bool { return rapid.Bool().Draw(g.rapid, "coin") }

// shape draws rows and columns: mostly small ones, which shrink well, and some
// that take several tiles.
func (g *generator) shape() (rows, cols int) {
	switch rapid.IntRange(0, 9).Draw(g.rapid, "size") {
	case 8:
		return g.rng.IntN(1500), 1 + g.rng.IntN(80)
	case 9:
		return g.rng.IntN(400), 60 + g.rng.IntN(240)
	}
	return rapid.OneOf(rapid.IntRange(0, 3), rapid.IntRange(0, 80)).Draw(g.rapid, "rows"),
		rapid.OneOf(rapid.IntRange(1, 9), rapid.IntRange(1, 70)).Draw(g.rapid, "cols")
}

// matrix holds normal values with some zeros of both signs.
func (g *generator) matrix(rows, cols int) op.Value {
	x := make([]float32, rows*cols)
	for i := range x {
		switch g.rng.IntN(16) {
		case 0:
		case 1:
			x[i] = float32(math.Copysign(0, -1))
		default:
			x[i] = float32(g.rng.NormFloat64())
		}
	}
	return op.Matrix(rows, cols, x)
}

// levels holds few different values, so that maxima are tied.
func (g *generator) levels(rows, cols int) op.Value {
	x := make([]float32, rows*cols)
	for i := range x {
		x[i] = float32(g.rng.IntN(7) - 3)
	}
	return op.Matrix(rows, cols, x)
}

func abs(v op.Value) op.Value {
	v.Data = slices.Clone(v.Data)
	for i, x := range v.Data {
		v.Data[i] = float32(math.Abs(float64(x)))
	}
	if v.Sparse != nil {
		m := *v.Sparse
		m.Vals = abs(op.Value{Data: m.Vals}).Data
		v.Sparse = &m
	}
	return v
}

func (g *generator) probability() float64 {
	return rapid.SampledFrom([]float64{0, 0.1, 0.5, 0.9}).Draw(g.rapid, "p")
}

// key keys at least the given rows, by node id or by row.
func (g *generator) key(rows int) op.Value {
	k := &op.Key{Seed: g.rng.Uint64(), Step: g.rng.Uint64N(1 << 33)}
	if g.coin() {
		k.Rows = make([]int32, rows+g.rng.IntN(3))
		for i := range k.Rows {
			k.Rows[i] = g.rng.Int32()
		}
	}
	return op.Value{Key: k}
}

func (g *generator) agg(b *graph.Block, kind op.Kind) op.Agg {
	if kind == op.Head || kind == op.HeadGrad {
		return op.Mean
	}
	aggs := []op.Agg{op.Mean, op.Sum, op.SelfMean}
	if b.Degree != nil {
		aggs = append(aggs, op.SymNorm)
	}
	return rapid.SampledFrom(aggs).Draw(g.rapid, "agg")
}

// block has targets without edges, targets with many, and repeated edges.
func (g *generator) block(targets int, kind op.Kind) *graph.Block {
	b := &graph.Block{NumDst: targets, NumSrc: targets + rapid.IntRange(0, 50).Draw(g.rapid, "more sources"), Indptr: []int32{0}}
	for range targets {
		n := g.rng.IntN(8)
		if g.rng.IntN(50) == 0 {
			n = g.rng.IntN(200)
		}
		for range n {
			b.Indices = append(b.Indices, g.rng.Int32N(int32(b.NumSrc)))
		}
		b.Indptr = append(b.Indptr, int32(len(b.Indices)))
	}
	factors := func(n int) []float32 {
		s := make([]float32, n)
		for i := range s {
			s[i] = 1 + 3*g.rng.Float32()
		}
		return s
	}
	if g.coin() {
		b.Scale = factors(b.NumDst)
	}
	if g.coin() {
		b.EdgeScale = factors(len(b.Indices))
	}
	if g.coin() {
		b.Degree = make([]int32, b.NumSrc)
		for i := range b.Degree {
			b.Degree[i] = g.rng.Int32N(1000)
		}
	}
	if kind == op.AggregateGrad || kind == op.AggregateMaxGrad {
		transpose(b)
	}
	return b
}

// transpose adds the transposed form, by the slow and obvious way.
func transpose(b *graph.Block) {
	type entry struct{ target, edge int32 }
	to := make([][]entry, b.NumSrc)
	for i := range b.NumDst {
		for e := b.Indptr[i]; e < b.Indptr[i+1]; e++ {
			j := b.Indices[e]
			to[j] = append(to[j], entry{int32(i), e})
		}
	}
	b.TIndptr = []int32{0}
	for _, es := range to {
		for _, e := range es {
			b.TIndices = append(b.TIndices, e.target)
			b.TEdges = append(b.TEdges, e.edge)
		}
		b.TIndptr = append(b.TIndptr, int32(len(b.TIndices)))
	}
}

// sparse has empty rows and columns.
func (g *generator) sparse(rows, cols int) *sparse.Matrix {
	x := g.matrix(rows, cols)
	for i := range x.Data {
		if g.rng.IntN(8) != 0 {
			x.Data[i] = 0
		}
	}
	return sparse.FromDense(x.Data, rows, cols)
}

// labels leaves some rows without one, at times all of them.
// multi has several labels a row, some unknown.
func (g *generator) multi(rows, cols int) *op.Labels {
	l := &op.Labels{Multi: make([]uint8, rows*cols), Width: cols}
	for i := range l.Multi {
		l.Multi[i] = []uint8{0, 1, 1, op.Unknown}[g.rng.IntN(4)]
	}
	if g.coin() {
		l.Norm = float64(1 + g.rng.IntN(2000))
	}
	return l
}

func (g *generator) labels(rows, classes int) *op.Labels {
	l := &op.Labels{Class: make([]int32, rows)}
	none := rapid.SampledFrom([]int{1, 3, 1000}).Draw(g.rapid, "unlabelled")
	for i := range l.Class {
		l.Class[i] = g.rng.Int32N(int32(classes))
		if g.rng.IntN(none) == 0 {
			l.Class[i] = -1
		}
	}
	if g.coin() {
		l.Norm = float64(1 + g.rng.IntN(2000))
	}
	return l
}
