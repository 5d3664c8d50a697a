package op

import (
	"math"

	"zerogcn/graph"
	"zerogcn/internal/philox"
)

// The reference kernels. Each is the shortest loop that says what the kind
// computes; sums over long ranges are kept in float64.

func refCopy(_ Attr, out *Value, in []*Value) { copy(out.Data, in[0].Data[:out.Len()]) }

func refAdd(_ Attr, out *Value, in []*Value) {
	for i := range out.Data {
		out.Data[i] = in[0].Data[i] + in[1].Data[i]
	}
}

func refMatMul(a Attr, out *Value, in []*Value) {
	x, y := in[0], in[1]
	m, k, n := MatMulDims(a, x, y)
	at := func(v *Value, t bool, r, c int) float64 {
		if t {
			r, c = c, r
		}
		return float64(v.Data[r*v.Cols+c])
	}
	for i := range m {
		for j := range n {
			var s float64
			for p := range k {
				s += at(x, a.TransA, i, p) * at(y, a.TransB, p, j)
			}
			out.Data[i*n+j] = float32(s)
		}
	}
}

func refBias(_ Attr, out *Value, in []*Value) {
	for r := range out.Rows {
		for c := range out.Cols {
			out.Data[r*out.Cols+c] = in[0].Data[r*out.Cols+c] + in[1].Data[c]
		}
	}
}

func refColSum(_ Attr, out *Value, in []*Value) {
	for c := range out.Cols {
		var s float64
		for r := range in[0].Rows {
			s += float64(in[0].Data[r*out.Cols+c])
		}
		out.Data[c] = float32(s)
	}
}

func refReLU(_ Attr, out *Value, in []*Value) {
	for i := range out.Data {
		out.Data[i] = max(in[0].Data[i], 0)
	}
}

func refReLUGrad(_ Attr, out *Value, in []*Value) {
	for i := range out.Data {
		d := in[1].Data[i]
		if !(in[0].Data[i] > 0) {
			d = 0
		}
		out.Data[i] = d
	}
}

// Mask is the dropout rule: element (row, col) is kept if word col of the row's
// node is at or above Threshold(p), and then scaled by 1/(1-p). All dropout
// kernels, dense or sparse, on any device, decide by it.
type Mask struct {
	Stream    philox.Stream
	Threshold uint32
	Scale     float32
}

// NewMask returns the mask of a dropout site at a key's step.
func NewMask(k *Key, p float64, site uint32) Mask {
	return Mask{k.Stream(site), philox.Threshold(p), float32(1 / (1 - p))}
}

// Keep reports whether column col of the node's row is kept.
func (m *Mask) Keep(item uint32, col int) bool {
	return m.Stream.Word(item, uint32(col)) >= m.Threshold
}

func refDropout(a Attr, out *Value, in []*Value) {
	k := in[1].Key
	m := NewMask(k, a.P, a.Site)
	for r := range out.Rows {
		for c, x := range in[0].Row(r) {
			y := float32(0)
			if m.Keep(k.Item(r), c) {
				y = x * m.Scale
			}
			out.Data[r*out.Cols+c] = y
		}
	}
}

// coefficients of Aggregate: out_i = self_i·x_i + Σ_e edge_e·x_source(e).
type coefficients struct {
	agg Agg
	b   *graph.Block
}

// scale returns the factor that makes the sum over sampled edges estimate the
// sum over all.
func (c coefficients) scale(i, e int) float64 {
	switch {
	case c.b.EdgeScale != nil:
		return float64(c.b.EdgeScale[e])
	case c.b.Scale != nil:
		return float64(c.b.Scale[i])
	}
	return 1
}

// degree returns D of local node i, its full in-degree plus the self loop.
func (c coefficients) degree(i int) float64 {
	if c.b.Degree != nil {
		return float64(c.b.Degree[i]) + 1
	}
	return float64(c.b.Indptr[i+1]-c.b.Indptr[i]) + 1
}

// edge returns the factor of edge e, which ends in target i.
func (c coefficients) edge(i, e int) float64 {
	switch c.agg {
	case Mean:
		return 1 / float64(c.b.Indptr[i+1]-c.b.Indptr[i])
	case SelfMean:
		return c.scale(i, e) / c.degree(i)
	case SymNorm:
		return c.scale(i, e) / math.Sqrt(c.degree(i)*c.degree(int(c.b.Indices[e])))
	default:
		return c.scale(i, e)
	}
}

func (c coefficients) self(i int) float64 {
	if c.agg == SelfMean || c.agg == SymNorm {
		return 1 / c.degree(i)
	}
	return 0
}

func refAggregate(a Attr, out *Value, in []*Value) {
	x, b := in[0], in[1].Block
	c := coefficients{a.Agg, b}
	for i := range b.NumDst {
		for col := range out.Cols {
			s := c.self(i) * float64(x.Data[i*x.Cols+col])
			for e := int(b.Indptr[i]); e < int(b.Indptr[i+1]); e++ {
				s += c.edge(i, e) * float64(x.Data[int(b.Indices[e])*x.Cols+col])
			}
			out.Data[i*out.Cols+col] = float32(s)
		}
	}
}

func refAggregateGrad(a Attr, out *Value, in []*Value) {
	dy, b := in[0], in[1].Block
	c := coefficients{a.Agg, b}
	sum := make([]float64, out.Len())
	for i := range b.NumDst {
		for col, g := range dy.Row(i) {
			sum[i*out.Cols+col] += c.self(i) * float64(g)
			for e := int(b.Indptr[i]); e < int(b.Indptr[i+1]); e++ {
				sum[int(b.Indices[e])*out.Cols+col] += c.edge(i, e) * float64(g)
			}
		}
	}
	for i, s := range sum {
		out.Data[i] = float32(s)
	}
}

func refAggregateMax(_ Attr, out *Value, in []*Value) {
	x, b := in[0], in[1].Block
	for i := range b.NumDst {
		for col := range out.Cols {
			var top float32
			for k, j := range b.Row(i) {
				if v := x.Data[int(j)*x.Cols+col]; k == 0 || v > top {
					top = v
				}
			}
			out.Data[i*out.Cols+col] = top
		}
	}
}

func refAggregateMaxGrad(_ Attr, out *Value, in []*Value) {
	x, y, dy, b := in[0], in[1], in[2], in[3].Block
	sum := make([]float64, out.Len())
	for i := range b.NumDst {
		for col, g := range dy.Row(i) {
			top := y.Data[i*y.Cols+col]
			ties := 0.0
			for _, j := range b.Row(i) {
				if x.Data[int(j)*x.Cols+col] == top {
					ties++
				}
			}
			for _, j := range b.Row(i) {
				if at := int(j)*x.Cols + col; x.Data[at] == top {
					sum[at] += float64(g) / ties
				}
			}
		}
	}
	for i, s := range sum {
		out.Data[i] = float32(s)
	}
}

func refHead(_ Attr, out *Value, in []*Value) { copy(out.Data, in[0].Data[:out.Len()]) }

func refHeadGrad(_ Attr, out *Value, in []*Value) {
	n := copy(out.Data, in[0].Data[:in[0].Len()])
	clear(out.Data[n:])
}

// eachKept calls f for every entry of x that the mask keeps, scaled.
func eachKept(a Attr, in []*Value, f func(r int, c int32, v float32)) {
	x := in[0].Sparse
	var m Mask
	if a.P > 0 {
		m = NewMask(in[2].Key, a.P, a.Site)
	}
	for r := range x.NumRows {
		cols, vals := x.Row(r)
		for i, c := range cols {
			switch {
			case a.P == 0:
				f(r, c, vals[i])
			case m.Keep(in[2].Key.Item(r), int(c)):
				f(r, c, vals[i]*m.Scale)
			}
		}
	}
}

func refSparseLinear(a Attr, out *Value, in []*Value) {
	w := in[1]
	sum := make([]float64, out.Len())
	eachKept(a, in, func(r int, c int32, v float32) {
		for o := range out.Cols {
			sum[r*out.Cols+o] += float64(v) * float64(w.Data[o*w.Cols+int(c)])
		}
	})
	for i, s := range sum {
		out.Data[i] = float32(s)
	}
}

func refSparseLinearGrad(a Attr, out *Value, in []*Value) {
	dy := in[1]
	sum := make([]float64, out.Len())
	eachKept(a, in, func(r int, c int32, v float32) {
		for o, g := range dy.Row(r) {
			sum[o*out.Cols+int(c)] += float64(v) * float64(g)
		}
	})
	for i, s := range sum {
		out.Data[i] = float32(s)
	}
}

// logSumExp returns log Σ exp(row) without overflow.
func logSumExp(row []float32) float64 {
	top := math.Inf(-1)
	for _, v := range row {
		top = max(top, float64(v))
	}
	var s float64
	for _, v := range row {
		s += math.Exp(float64(v) - top)
	}
	return top + math.Log(s)
}

func refSoftmaxCE(_ Attr, out *Value, in []*Value) {
	l := in[1].Labels
	var loss float64
	for r, c := range l.Class {
		if c >= 0 {
			row := in[0].Row(r)
			loss += logSumExp(row) - float64(row[c])
		}
	}
	if n := l.Count(); n > 0 {
		loss /= n
	}
	out.Data[0] = float32(loss)
}

func refSoftmaxCEGrad(_ Attr, out *Value, in []*Value) {
	l, g := in[1].Labels, float64(in[2].Data[0])
	n := l.Count()
	for r, c := range l.Class {
		dst := out.Row(r)
		if c < 0 {
			clear(dst)
			continue
		}
		row := in[0].Row(r)
		lse := logSumExp(row)
		for j, v := range row {
			p := math.Exp(float64(v) - lse)
			if int32(j) == c {
				p--
			}
			dst[j] = float32(g * p / n)
		}
	}
}

// refSigmoidBCE is max(x, 0) - x·y + log(1 + e^-|x|) for each known label y of
// logit x, which does not overflow.
func refSigmoidBCE(_ Attr, out *Value, in []*Value) {
	l := in[1].Labels
	var loss float64
	for i, y := range l.Multi {
		if y != Unknown {
			x := float64(in[0].Data[i])
			loss += max(x, 0) - x*float64(y) + math.Log1p(math.Exp(-math.Abs(x)))
		}
	}
	if n := l.Count(); n > 0 {
		loss /= n
	}
	out.Data[0] = float32(loss)
}

func refSigmoidBCEGrad(_ Attr, out *Value, in []*Value) {
	l, g := in[1].Labels, float64(in[2].Data[0])
	n := l.Count()
	for i, y := range l.Multi {
		d := 0.0
		if y != Unknown {
			d = g * (1/(1+math.Exp(-float64(in[0].Data[i]))) - float64(y)) / n
		}
		out.Data[i] = float32(d)
	}
}
