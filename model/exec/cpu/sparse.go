package cpu

import (
	"zerogcn/internal/par"
	"zerogcn/model/op"
	"zerogcn/sparse"
)

// kept holds the stored values of a sparse matrix after dropout.
type kept struct {
	workers par.Workers
	attr    op.Attr
	mask    mask
	x       *sparse.Matrix
	key     *op.Key
	scratch []float32
	vals    []float32 // those of x if there is no dropout
	maskFn  func(t, lo, hi int)
}

// set applies the mask of the key to x. The result is 0 where x is dropped.
func (k *kept) set(x *sparse.Matrix, key *op.Key) {
	k.x, k.key, k.vals = x, key, x.Vals
	if k.attr.P == 0 {
		return
	}
	k.mask.set(key, k.attr.P, k.attr.Site)
	k.scratch = grow(k.scratch, len(x.Vals))
	k.vals = k.scratch
	k.workers.Range(x.NumRows, rowsPer(x.NumRows, 8*len(x.Vals)+x.NumRows), k.maskFn)
}

func (k *kept) forget() { k.x, k.key, k.vals = nil, nil, nil }

func (k *kept) maskRows(_, lo, hi int) {
	k.mask.entries(k.vals[k.x.Indptr[lo]:k.x.Indptr[hi]], k.x, k.key, lo, hi)
}

// row returns the columns and values of row r.
func (k *kept) row(r int) ([]int32, []float32) {
	lo, hi := k.x.Indptr[r], k.x.Indptr[r+1]
	return k.x.Cols[lo:hi], k.vals[lo:hi]
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
	k.workers.Range(rows, rowsPer(rows, (len(k.vals)+rows)*out.Cols), k.mul)
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
			if v != 0 {
				c := int(cols[i])
				axpy(v, k.wt[c*n:c*n+n], dst)
			}
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
	for i, v := range k.vals {
		if v != 0 {
			k.start[k.x.Cols[i]]++
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
		for i, v := range vals {
			if v != 0 {
				at := &k.start[cols[i]]
				k.rows[*at], k.sorted[*at] = int32(r), v
				*at++
			}
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
