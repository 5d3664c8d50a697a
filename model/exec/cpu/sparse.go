package cpu

import (
	"math"

	"zerogcn/internal/par"
	"zerogcn/model/op"
	"zerogcn/sparse"
)

// kept holds the entries of a sparse matrix that dropout keeps, row by row. They
// are gathered once, without branches (which would be mispredicted), so that the
// loops over them have none either.
type kept struct {
	workers par.Workers
	attr    op.Attr
	mask    mask
	x       *sparse.Matrix
	key     *op.Key
	cols    []int32 // scratch: row r's at x.Indptr[r], as in x
	vals    []float32
	counts  []int32 // of entries kept in each row
	maskFn  func(t, lo, hi int)
}

// set applies the mask of the key, unused without dropout, to x.
func (k *kept) set(x *sparse.Matrix, key *op.Key) {
	k.x, k.key = x, key
	if k.attr.P == 0 {
		return
	}
	k.mask.set(key, k.attr.P, k.attr.Site)
	k.cols, k.vals, k.counts = grow(k.cols, x.NNZ()), grow(k.vals, x.NNZ()), grow(k.counts, x.NumRows)
	k.workers.Range(x.NumRows, rowsPer(x.NumRows, 8*x.NNZ()+x.NumRows), k.maskFn)
}

func (k *kept) forget() { k.x, k.key = nil, nil }

func (k *kept) maskRows(_, lo, hi int) {
	k.mask.entries(k.vals[k.x.Indptr[lo]:k.x.Indptr[hi]], k.x, k.key, lo, hi)
	for r := lo; r < hi; r++ {
		from, to := k.x.Indptr[r], k.x.Indptr[r+1]
		k.counts[r] = compact(k.cols[from:to], k.vals[from:to], k.x.Cols[from:to])
	}
}

// compact moves the values that are not 0 to the front, with their columns, and
// returns their number.
func compact(dst []int32, vals []float32, cols []int32) int32 {
	cols, dst = cols[:len(vals)], dst[:len(vals)]
	n := 0
	for i, v := range vals {
		dst[n], vals[n] = cols[i], v
		magnitude := math.Float32bits(v) << 1
		n += int((magnitude | -magnitude) >> 31)
	}
	return int32(n)
}

// row returns the columns and values kept of row r.
func (k *kept) row(r int) ([]int32, []float32) {
	if k.attr.P == 0 {
		return k.x.Row(r)
	}
	lo := k.x.Indptr[r]
	hi := lo + int64(k.counts[r])
	return k.cols[lo:hi], k.vals[lo:hi]
}

// sparseLinear adds rows of the transposed weights, one for each value kept.
type sparseLinear struct {
	kept
	out, w      *op.Value
	wt          []float32 // transposed weights, [in, out]
	flipFn, mul func(t, lo, hi int)
}

func newSparseLinear(w par.Workers, a op.Attr) *sparseLinear {
	k := &sparseLinear{kept: kept{workers: w, attr: a}}
	k.maskFn, k.flipFn, k.mul = k.maskRows, k.flip, k.tile
	return k
}

func (k *sparseLinear) Run(out *op.Value, in []*op.Value) error {
	k.out, k.w = out, in[1]
	var key *op.Key
	if k.attr.P > 0 {
		key = in[2].Key
	}
	k.set(in[0].Sparse, key)
	k.wt = grow(k.wt, k.w.Len())
	k.workers.Range(k.w.Cols, rowsPer(k.w.Cols, k.w.Len()), k.flipFn)
	rows := out.Rows
	k.workers.Range(rows, rowsPer(rows, (k.x.NNZ()+rows)*out.Cols), k.mul)
	k.out, k.w = nil, nil
	k.forget()
	return nil
}

// flip transposes columns [lo, hi) of the weights.
func (k *sparseLinear) flip(_, lo, hi int) { transpose(k.wt, k.w.Data, k.w.Rows, k.w.Cols, lo, hi) }

func (k *sparseLinear) tile(_, lo, hi int) {
	n := k.out.Cols
	for r := lo; r < hi; r++ {
		dst := k.out.Row(r)
		clear(dst)
		cols, vals := k.row(r)
		for i, v := range vals {
			c := int(cols[i])
			axpy(v, k.wt[c*n:c*n+n], dst)
		}
	}
}

// transpose writes columns [lo, hi) of the rows × cols matrix src as rows of
// dst.
func transpose(dst, src []float32, rows, cols, lo, hi int) {
	const group = 16 // a cache line of a source row
	for c0 := lo; c0 < hi; c0 += group {
		c1 := min(hi, c0+group)
		for r := range rows {
			for c, v := range src[r*cols+c0 : r*cols+c1] {
				dst[(c0+c)*rows+r] = v
			}
		}
	}
}

// sparseLinearGrad sorts the kept values by columns (a counting sort, so rows
// ascend within a column) and sums each column's rows of the gradient: every
// sum is one goroutine's, in the order of the rows.
type sparseLinearGrad struct {
	kept
	out, dy *op.Value
	start   []int     // of each column's values; one more than columns
	rows    []int32   // by columns
	sorted  []float32 // by columns
	sums    []float32 // the result transposed, [in, out]
	sumFn   func(t, lo, hi int)
}

func newSparseLinearGrad(w par.Workers, a op.Attr) *sparseLinearGrad {
	k := &sparseLinearGrad{kept: kept{workers: w, attr: a}}
	k.maskFn, k.sumFn = k.maskRows, k.tile
	return k
}

func (k *sparseLinearGrad) Run(out *op.Value, in []*op.Value) error {
	k.out, k.dy = out, in[1]
	var key *op.Key
	if k.attr.P > 0 {
		key = in[2].Key
	}
	k.set(in[0].Sparse, key)
	k.sort()
	k.sums = grow(k.sums, out.Len())
	cols := out.Cols
	k.workers.Range(cols, rowsPer(cols, (len(k.sorted)+cols)*out.Rows), k.sumFn)
	k.out, k.dy = nil, nil
	k.forget()
	return nil
}

// sort groups the kept values by columns.
func (k *sparseLinearGrad) sort() {
	n := k.x.NumCols
	k.start = grow(k.start, n+1)
	clear(k.start)
	for r := range k.x.NumRows {
		cols, _ := k.row(r)
		for _, c := range cols {
			k.start[c]++
		}
	}
	total := 0
	for c, count := range k.start {
		k.start[c] = total
		total += count
	}
	k.rows, k.sorted = grow(k.rows, total), grow(k.sorted, total)
	for r := range k.x.NumRows {
		cols, vals := k.row(r)
		for i, c := range cols {
			at := k.start[c]
			k.rows[at], k.sorted[at] = int32(r), vals[i]
			k.start[c] = at + 1
		}
	}
	// Each start has become its column's end; shift them back.
	copy(k.start[1:], k.start[:n])
	k.start[0] = 0
}

// tile sums columns [lo, hi) and writes them transposed.
func (k *sparseLinearGrad) tile(_, lo, hi int) {
	n, width := k.out.Rows, k.out.Cols
	for c := lo; c < hi; c++ {
		sum := k.sums[c*n : (c+1)*n]
		clear(sum)
		for i := k.start[c]; i < k.start[c+1]; i++ {
			axpy(k.sorted[i], k.dy.Row(int(k.rows[i])), sum)
		}
	}
	for o := range n {
		dst := k.out.Data[o*width+lo : o*width+hi]
		for c := range dst {
			dst[c] = k.sums[(lo+c)*n+o]
		}
	}
}
