package cpu_test

import (
	"strings"
	"testing"

	"zerogcn/graph"
	"zerogcn/model/exec/cpu"
	"zerogcn/model/op"
)

// run runs a new kernel once.
func run(t *testing.T, o *op.Op, rows, cols int, in ...op.Value) (op.Value, error) {
	t.Helper()
	k, err := cpu.New(cpu.Options{Workers: 2}).Kernel(o)
	if err != nil {
		t.Fatal(err)
	}
	out := op.Matrix(rows, cols, make([]float32, rows*cols))
	vs := make([]*op.Value, len(in))
	for i := range in {
		vs[i] = &in[i]
	}
	return out, k.Run(&out, vs)
}

func TestBadOperandsAreErrors(t *testing.T) {
	plain := func() *graph.Block {
		return &graph.Block{NumDst: 1, NumSrc: 2, Indptr: []int32{0, 2}, Indices: []int32{1, 1}}
	}
	transposed := func() *graph.Block {
		b := plain()
		b.TIndptr, b.TIndices = []int32{0, 0, 2}, []int32{0, 0}
		return b
	}
	weighted := transposed()
	weighted.EdgeScale = []float32{1, 2}
	short := plain()
	short.Indptr = short.Indptr[:1]
	for _, c := range []struct {
		name, want string
		op         *op.Op
		in         []op.Value
	}{
		{"offsets", "offsets", op.New(op.Aggregate, op.Attr{}), []op.Value{op.Matrix(2, 1, make([]float32, 2)), {Block: short}}},
		{"degrees", "degrees", op.New(op.Aggregate, op.Attr{Agg: op.SymNorm}), []op.Value{op.Matrix(2, 1, make([]float32, 2)), {Block: plain()}}},
		{"transposed", "transposed", op.New(op.AggregateGrad, op.Attr{}), []op.Value{op.Matrix(1, 1, make([]float32, 1)), {Block: plain()}}},
		{"edge factors", "edge positions", op.New(op.AggregateGrad, op.Attr{Agg: op.Sum}), []op.Value{op.Matrix(1, 1, make([]float32, 1)), {Block: weighted}}},
		{"loss", "label 3", op.New(op.SoftmaxCE, op.Attr{}), []op.Value{op.Matrix(1, 3, make([]float32, 3)), {Labels: &op.Labels{Class: []int32{3}}}}},
		{"loss gradient", "label 3", op.New(op.SoftmaxCEGrad, op.Attr{}), []op.Value{op.Matrix(1, 3, make([]float32, 3)), {Labels: &op.Labels{Class: []int32{3}}}, op.Matrix(1, 1, []float32{1})}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := run(t, c.op, 2, 3, c.in...)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one about %q", err, c.want)
			}
		})
	}
	if _, err := cpu.New(cpu.Options{}).Kernel(op.New(op.Invalid, op.Attr{})); err == nil {
		t.Error("a kernel for the invalid kind")
	}
}

// Rows of a matrix beyond the cache's size are fetched ahead; sums must not
// notice.
func TestAggregateOfLargeMatrix(t *testing.T) {
	const sources, cols, targets = 70_000, 65, 3
	b := &graph.Block{NumDst: targets, NumSrc: sources, Indptr: []int32{0}}
	x := make([]float32, sources*cols)
	for i := range targets {
		for e := range 13 * i {
			j := (e*7919 + i) % sources
			b.Indices = append(b.Indices, int32(j))
			for c := range cols {
				x[j*cols+c] = float32(j%7 - c)
			}
		}
		b.Indptr = append(b.Indptr, int32(len(b.Indices)))
	}
	in := []op.Value{op.Matrix(sources, cols, x), {Block: b}}
	o := op.New(op.Aggregate, op.Attr{Agg: op.Sum})
	got, err := run(t, o, targets, cols, in...)
	if err != nil {
		t.Fatal(err)
	}
	want := op.Matrix(targets, cols, make([]float32, targets*cols))
	o.Reference(&want, []*op.Value{&in[0], &in[1]})
	for i := range want.Data { // sums of small integers are exact
		if got.Data[i] != want.Data[i] {
			t.Fatalf("element %d is %g, want %g", i, got.Data[i], want.Data[i])
		}
	}
}

// A kernel that has seen its shapes allocates nothing.
func TestSteadyStateDoesNotAllocate(t *testing.T) {
	key := op.Value{Key: &op.Key{Seed: 1}}
	x := cora()
	n := x.Sparse.NumCols
	rows := x.Sparse.NumRows
	for _, c := range []struct {
		op   *op.Op
		r, c int
		in   []op.Value
	}{
		{op.New(op.MatMul, op.Attr{TransB: true}), 300, 16, []op.Value{random(300, 40), random(16, 40)}},
		{op.New(op.MatMul, op.Attr{TransA: true}), 40, 16, []op.Value{random(3000, 40), random(3000, 16)}},
		{op.New(op.Dropout, op.Attr{P: 0.5}), 300, 40, []op.Value{random(300, 40), key}},
		{op.New(op.ColSum, op.Attr{}), 1, 40, []op.Value{random(3000, 40)}},
		{op.New(op.SparseLinear, op.Attr{P: 0.5}), rows, 16, []op.Value{x, random(16, n), key}},
		{op.New(op.SparseLinearGrad, op.Attr{P: 0.5, Cols: n}), 16, n, []op.Value{x, random(rows, 16), key}},
		{op.New(op.SoftmaxCE, op.Attr{}), 1, 1, []op.Value{random(100, 7), labels(100, 7)}},
	} {
		k, err := cpu.New(cpu.Options{Workers: 1}).Kernel(c.op)
		if err != nil {
			t.Fatal(err)
		}
		out := op.Matrix(c.r, c.c, make([]float32, c.r*c.c))
		in := make([]*op.Value, len(c.in))
		for i := range c.in {
			in[i] = &c.in[i]
		}
		if a := testing.AllocsPerRun(10, func() {
			if err := k.Run(&out, in); err != nil {
				t.Fatal(err)
			}
		}); a != 0 {
			t.Errorf("%v: %g allocations a run", c.op, a)
		}
	}
}
