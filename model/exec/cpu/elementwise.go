package cpu

import (
	"math"

	"zerogcn/internal/par"
	"zerogcn/model/op"
)

// elementwise runs a function over tiles of rows of the result. The result may
// be in[0] itself.
type elementwise struct {
	workers par.Workers
	rows    func(out *op.Value, in []*op.Value, lo, hi int)
	out     *op.Value
	in      []*op.Value
	tileFn  func(t, lo, hi int)
}

func newElementwise(w par.Workers, rows func(out *op.Value, in []*op.Value, lo, hi int)) *elementwise {
	k := &elementwise{workers: w, rows: rows}
	k.tileFn = func(_, lo, hi int) { k.rows(k.out, k.in, lo, hi) }
	return k
}

func (k *elementwise) Run(out *op.Value, in []*op.Value) error {
	k.out, k.in = out, in
	k.workers.Range(out.Rows, rowsPer(out.Rows, out.Len()), k.tileFn)
	k.out, k.in = nil, nil
	return nil
}

// span returns rows [lo, hi) of v as one slice.
func span(v *op.Value, lo, hi int) []float32 { return v.Data[lo*v.Cols : hi*v.Cols] }

// copyRows copies the rows that in[0] has and clears the others, which is Copy,
// Head and HeadGrad.
func copyRows(out *op.Value, in []*op.Value, lo, hi int) {
	if have := min(hi, in[0].Rows); lo < have {
		copy(span(out, lo, have), span(in[0], lo, have))
		lo = have
	}
	clear(span(out, lo, hi))
}

func addRows(out *op.Value, in []*op.Value, lo, hi int) {
	dst := span(out, lo, hi)
	copyUnlessSame(dst, span(in[0], lo, hi))
	axpy(1, span(in[1], lo, hi), dst)
}

func biasRows(out *op.Value, in []*op.Value, lo, hi int) {
	copyUnlessSame(span(out, lo, hi), span(in[0], lo, hi))
	bias := in[1].Data[:out.Cols]
	for r := lo; r < hi; r++ {
		axpy(1, bias, out.Row(r))
	}
}

func copyUnlessSame(dst, src []float32) {
	if len(dst) > 0 && &dst[0] != &src[0] {
		copy(dst, src)
	}
}

// reluRows clears what is not positive; NaN stays NaN.
func reluRows(out *op.Value, in []*op.Value, lo, hi int) {
	dst, src := span(out, lo, hi), span(in[0], lo, hi)
	dst = dst[:len(src)]
	for i, v := range src {
		bits := math.Float32bits(v)
		if v <= 0 {
			bits = 0
		}
		dst[i] = math.Float32frombits(bits)
	}
}

func reluGradRows(out *op.Value, in []*op.Value, lo, hi int) {
	dst, y, dy := span(out, lo, hi), span(in[0], lo, hi), span(in[1], lo, hi)
	dst, y = dst[:len(dy)], y[:len(dy)]
	for i, v := range dy {
		bits := math.Float32bits(v)
		if !(y[i] > 0) {
			bits = 0
		}
		dst[i] = math.Float32frombits(bits)
	}
}
