package exectest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"pgregory.net/rapid"

	"zerogcn/model/op"
)

// testCase is an operation with operands, and how closely it is compared.
type testCase struct {
	op         *op.Op
	in         []op.Value
	rows, cols int

	exact bool
	terms int       // of the longest sum
	bound []float32 // scale of the tolerance, if not the reference of magnitudes
}

func (c *testCase) String() string {
	s := c.op.String() + " of"
	for i := range c.in {
		switch v := &c.in[i]; {
		case v.Block != nil:
			b := v.Block
			s += fmt.Sprintf(" block(%d←%d, %d edges, scale %t, edge scale %t, degree %t)",
				b.NumDst, b.NumSrc, len(b.Indices), b.Scale != nil, b.EdgeScale != nil, b.Degree != nil)
		case v.Labels != nil:
			s += fmt.Sprintf(" labels(%d, norm %g)", len(v.Labels.Class), v.Labels.Norm)
		case v.Key != nil:
			s += fmt.Sprintf(" key(%d, %d, ids %t)", v.Key.Seed, v.Key.Step, v.Key.Rows != nil)
		case v.Sparse != nil:
			s += fmt.Sprintf(" sparse(%d×%d, %d)", v.Sparse.NumRows, v.Sparse.NumCols, v.Sparse.NNZ())
		default:
			s += fmt.Sprintf(" %d×%d", v.Rows, v.Cols)
		}
	}
	return s
}

// draw makes a case of a kind.
func draw(r *rapid.T, kind op.Kind) *testCase {
	g := &generator{rapid: r, rng: rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 0))}
	c := g.make(kind)
	in := make([]*op.Value, len(c.in))
	for i := range c.in {
		in[i] = &c.in[i]
	}
	rows, cols, err := c.op.Infer(in)
	if err != nil {
		r.Fatalf("%v: %v", c, err)
	}
	c.rows, c.cols = rows, cols
	return c
}

func (g *generator) make(kind op.Kind) *testCase {
	var a op.Attr
	rows, cols := g.shape()
	switch kind {
	case op.Copy, op.ReLU:
		return exact(kind, a, g.matrix(rows, cols))
	case op.Add, op.ReLUGrad:
		return exact(kind, a, g.matrix(rows, cols), g.matrix(rows, cols))
	case op.BiasAdd:
		return exact(kind, a, g.matrix(rows, cols), g.matrix(1, cols))
	case op.Dropout:
		a.P, a.Site = g.probability(), g.rng.Uint32N(1<<24)
		return exact(kind, a, g.matrix(rows, cols), g.key(rows))
	case op.ColSum:
		return sum(kind, a, rows, g.matrix(rows, cols))
	case op.MatMul:
		return g.matMul(min(rows, 200), min(cols, 100))
	case op.Head, op.Aggregate:
		b := g.block(rows, kind)
		a.Agg = g.agg(b, kind)
		return inexactIf(kind == op.Aggregate, kind, a, len(b.Indices), g.matrix(b.NumSrc, cols), op.Value{Block: b})
	case op.HeadGrad, op.AggregateGrad:
		b := g.block(rows, kind)
		a.Agg = g.agg(b, kind)
		return inexactIf(kind == op.AggregateGrad, kind, a, len(b.Indices), g.matrix(b.NumDst, cols), op.Value{Block: b})
	case op.AggregateMax:
		b := g.block(rows, kind)
		return exact(kind, a, g.levels(b.NumSrc, cols), op.Value{Block: b})
	case op.AggregateMaxGrad:
		b := g.block(rows, kind)
		x := g.levels(b.NumSrc, cols)
		y := op.Matrix(b.NumDst, cols, make([]float32, b.NumDst*cols))
		op.New(op.AggregateMax, a).Reference(&y, []*op.Value{&x, {Block: b}})
		return sum(kind, a, len(b.Indices), x, y, g.matrix(b.NumDst, cols), op.Value{Block: b})
	case op.SparseLinear, op.SparseLinearGrad:
		return g.sparseLinear(kind, rows, cols)
	case op.SoftmaxCE, op.SoftmaxCEGrad:
		return g.softmax(kind, rows, cols)
	case op.SigmoidBCE, op.SigmoidBCEGrad:
		return g.sigmoid(kind, rows, cols)
	}
	g.rapid.Fatalf("the suite has no cases of %v: add them", kind)
	return nil
}

func exact(k op.Kind, a op.Attr, in ...op.Value) *testCase {
	return &testCase{op: op.New(k, a), in: in, exact: true}
}

func sum(k op.Kind, a op.Attr, terms int, in ...op.Value) *testCase {
	return &testCase{op: op.New(k, a), in: in, terms: terms}
}

func inexactIf(inexact bool, k op.Kind, a op.Attr, terms int, in ...op.Value) *testCase {
	return &testCase{op: op.New(k, a), in: in, terms: terms, exact: !inexact}
}

func (g *generator) matMul(m, n int) *testCase {
	k := rapid.IntRange(0, 40).Draw(g.rapid, "k")
	if g.coin() { // long enough to be cut, on a small result
		m, n, k = min(m, 40), min(n, 20), 1000+50*k
	}
	a := op.Attr{TransA: g.coin(), TransB: g.coin()}
	x, y := [2]int{m, k}, [2]int{k, n}
	if a.TransA {
		x[0], x[1] = x[1], x[0]
	}
	if a.TransB {
		y[0], y[1] = y[1], y[0]
	}
	return sum(op.MatMul, a, k, g.matrix(x[0], x[1]), g.matrix(y[0], y[1]))
}

func (g *generator) sparseLinear(kind op.Kind, rows, cols int) *testCase {
	width := rapid.IntRange(1, 40).Draw(g.rapid, "width")
	a := op.Attr{P: g.probability(), Site: g.rng.Uint32N(1 << 24), Cols: cols}
	x := op.Value{Sparse: g.sparse(rows, cols)}
	if kind == op.SparseLinear {
		return sum(kind, a, cols, x, g.matrix(width, cols), g.key(rows))
	}
	return sum(kind, a, rows, x, g.matrix(rows, width), g.key(rows))
}

func (g *generator) softmax(kind op.Kind, rows, cols int) *testCase {
	logits := g.matrix(rows, cols)
	labels := g.labels(rows, cols)
	if kind == op.SoftmaxCE {
		c := sum(kind, op.Attr{}, 32, logits, op.Value{Labels: labels})
		c.bound = []float32{float32(magnitude(logits)+math.Log(float64(cols))) *
			float32(max(1, float64(rows)/max(1, labels.Count())))}
		return c
	}
	up := g.matrix(1, 1)
	c := sum(kind, op.Attr{}, 32, logits, op.Value{Labels: labels}, up)
	scale := math.Abs(float64(up.Data[0])) / max(labels.Count(), 1e-3) * (1 + magnitude(logits))
	c.bound = slices.Repeat([]float32{float32(scale)}, rows*cols)
	return c
}

func (g *generator) sigmoid(kind op.Kind, rows, cols int) *testCase {
	logits := g.matrix(rows, cols)
	labels := g.multi(rows, cols)
	if kind == op.SigmoidBCE {
		c := sum(kind, op.Attr{}, 32, logits, op.Value{Labels: labels})
		c.bound = []float32{float32(1+magnitude(logits)) * float32(max(1, float64(rows*cols)/max(1, labels.Count())))}
		return c
	}
	up := g.matrix(1, 1)
	c := sum(kind, op.Attr{}, 32, logits, op.Value{Labels: labels}, up)
	scale := math.Abs(float64(up.Data[0])) / max(labels.Count(), 1e-3)
	c.bound = slices.Repeat([]float32{float32(scale)}, rows*cols)
	return c
}

// magnitude returns the largest magnitude of a matrix.
func magnitude(v op.Value) float64 {
	var m float64
	for _, x := range v.Data {
		m = max(m, math.Abs(float64(x)))
	}
	return m
}
