package cpu

import (
	"zerogcn/internal/par"
	"zerogcn/model/op"
)

// columnSum adds the rows of each tile in float32 and the tiles' sums, in their
// order, in float64.
type columnSum struct {
	workers         par.Workers
	out, x          *op.Value
	partials        []float32 // tiles × columns
	tileFn, totalFn func(t, lo, hi int)
}

// sumRows bounds the rows of a tile, and so the rounding error of its sum.
const sumRows = 512

func newColumnSum(w par.Workers) *columnSum {
	k := &columnSum{workers: w}
	k.tileFn, k.totalFn = k.tile, k.total
	return k
}

func (k *columnSum) Run(out *op.Value, in []*op.Value) error {
	k.out, k.x = out, in[0]
	rows, cols := k.x.Rows, k.x.Cols
	size := min(sumRows, rowsPer(rows, k.x.Len()))
	tiles := par.Tiles(rows, size)
	k.partials = grow(k.partials, tiles*cols)
	k.workers.Range(rows, size, k.tileFn)
	k.workers.Range(cols, rowsPer(cols, len(k.partials)), k.totalFn)
	k.out, k.x = nil, nil
	return nil
}

func (k *columnSum) tile(t, lo, hi int) {
	sum := k.partials[t*k.x.Cols : (t+1)*k.x.Cols]
	copy(sum, k.x.Row(lo))
	for r := lo + 1; r < hi; r++ {
		axpy(1, k.x.Row(r), sum)
	}
}

// total adds the partial sums of columns [lo, hi).
func (k *columnSum) total(_, lo, hi int) {
	for c := lo; c < hi; c++ {
		var s float64
		for i := c; i < len(k.partials); i += k.x.Cols {
			s += float64(k.partials[i])
		}
		k.out.Data[c] = float32(s)
	}
}
