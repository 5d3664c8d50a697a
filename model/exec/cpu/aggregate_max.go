package cpu

import (
	"errors"

	"zerogcn/internal/par"
	"zerogcn/model/op"
)

// aggregateMax takes the column-wise maximum of each target's sources.
type aggregateMax struct {
	workers par.Workers
	out     *op.Value
	in      []*op.Value
	tileFn  func(t, lo, hi int)
}

func newAggregateMax(w par.Workers) *aggregateMax {
	k := &aggregateMax{workers: w}
	k.tileFn = k.tile
	return k
}

func (k *aggregateMax) Run(out *op.Value, in []*op.Value) error {
	k.out, k.in = out, in
	b := in[1].Block
	k.workers.Range(out.Rows, rowsPer(out.Rows, (len(b.Indices)+out.Rows)*out.Cols), k.tileFn)
	k.out, k.in = nil, nil
	return nil
}

func (k *aggregateMax) tile(_, lo, hi int) {
	x, b := k.in[0], k.in[1].Block
	for i := lo; i < hi; i++ {
		dst, row := k.out.Row(i), b.Row(i)
		if len(row) == 0 {
			clear(dst)
			continue
		}
		copy(dst, x.Row(int(row[0])))
		for _, j := range row[1:] {
			for c, v := range x.Row(int(j))[:len(dst)] {
				if v > dst[c] {
					dst[c] = v
				}
			}
		}
	}
}

// aggregateMaxGrad divides each target's gradient among the sources that tie for
// its maximum, then collects the shares of each source.
type aggregateMaxGrad struct {
	workers  par.Workers
	out      *op.Value
	in       []*op.Value
	share    []float32 // scratch: dy over the number of ties, like dy
	shareFn  func(t, lo, hi int)
	sourceFn func(t, lo, hi int)
}

func newAggregateMaxGrad(w par.Workers) *aggregateMaxGrad {
	k := &aggregateMaxGrad{workers: w}
	k.shareFn, k.sourceFn = k.shares, k.sources
	return k
}

func (k *aggregateMaxGrad) Run(out *op.Value, in []*op.Value) error {
	b := in[3].Block
	if len(b.TIndptr) != b.NumSrc+1 {
		return errors.New("the block lacks its transposed form, which gradients need")
	}
	k.out, k.in = out, in
	k.share = grow(k.share, in[2].Len())
	k.workers.Range(b.NumDst, rowsPer(b.NumDst, (len(b.Indices)+b.NumDst)*out.Cols), k.shareFn)
	k.workers.Range(out.Rows, rowsPer(out.Rows, (len(b.Indices)+out.Rows)*out.Cols), k.sourceFn)
	k.out, k.in = nil, nil
	return nil
}

func (k *aggregateMaxGrad) shares(_, lo, hi int) {
	x, y, dy, b := k.in[0], k.in[1], k.in[2], k.in[3].Block
	cols := x.Cols
	for i := lo; i < hi; i++ {
		ties, top, g := k.share[i*cols:(i+1)*cols], y.Row(i), dy.Row(i)
		clear(ties)
		for _, j := range b.Row(i) {
			for c, v := range x.Row(int(j))[:len(ties)] {
				if v == top[c] {
					ties[c]++
				}
			}
		}
		for c, n := range ties {
			if n > 0 {
				ties[c] = g[c] / n
			}
		}
	}
}

func (k *aggregateMaxGrad) sources(_, lo, hi int) {
	x, y, b := k.in[0], k.in[1], k.in[3].Block
	cols := x.Cols
	for j := lo; j < hi; j++ {
		dst, own := k.out.Row(j), x.Row(j)
		clear(dst)
		for _, i := range b.TIndices[b.TIndptr[j]:b.TIndptr[j+1]] {
			share, top := k.share[int(i)*cols:(int(i)+1)*cols], y.Row(int(i))
			for c, v := range own[:len(dst)] {
				if v == top[c] {
					dst[c] += share[c]
				}
			}
		}
	}
}
