package blas

import "zerogcn/internal/par"

// product is one multiplication on its way: its operands, its tiling and its
// scratch. The scratch and the functions bound to the goroutines outlive it.
type product struct {
	kernel         kernel
	transA, transB bool
	m, n, k        int
	alpha, beta    float32
	a, b, c        []float32
	lda, ldb, ldc  int

	t                      tiling
	rowTiles, colTiles     int
	partials               []float32 // one m×n matrix for each cut of k but the first
	packed                 []float32 // op(B), k×n
	tileFn, packFn, addsFn func(tile, lo, hi int)
}

// Sizes of the auxiliary passes' tiles, in rows of op(B) and in elements of C.
const (
	packRows    = 64
	addElements = 1 << 14
)

func newProduct(k kernel) *product {
	p := &product{kernel: k}
	p.tileFn, p.packFn, p.addsFn = p.tile, p.pack, p.add
	return p
}

// forget drops the operands, so that an idle product keeps no caller's memory.
func (p *product) forget() { p.a, p.b, p.c = nil, nil, nil }

func (p *product) run(w par.Workers) {
	if p.transB && p.kernel.packs() {
		p.packed = grow(p.packed, p.k*p.n)
		w.Range(p.k, packRows, p.packFn)
		p.b, p.ldb, p.transB = p.packed, p.n, false
	}
	p.t = cut(p.m, p.n, p.k)
	p.rowTiles, p.colTiles = ceil(p.m, p.t.rows), ceil(p.n, p.t.cols)
	depths := ceil(p.k, p.t.depth)
	p.partials = grow(p.partials, (depths-1)*p.m*p.n)
	w.Range(p.rowTiles*p.colTiles*depths, 1, p.tileFn)
	if depths > 1 {
		w.Range(p.m, max(1, addElements/p.n), p.addsFn)
	}
}

// tile multiplies one tile. Tiles of one row range follow each other, so that
// their part of A stays in the cache.
func (p *product) tile(t, _, _ int) {
	j, rest := t%p.colTiles, t/p.colTiles
	i, d := rest%p.rowTiles, rest/p.rowTiles
	r0, c0, l0 := i*p.t.rows, j*p.t.cols, d*p.t.depth
	m, n, k := min(p.t.rows, p.m-r0), min(p.t.cols, p.n-c0), min(p.t.depth, p.k-l0)
	a := p.a[at(p.transA, r0, l0, p.lda):]
	b := p.b[at(p.transB, l0, c0, p.ldb):]
	c, ldc, beta := p.c, p.ldc, p.beta
	if d > 0 {
		c, ldc, beta = p.partials[(d-1)*p.m*p.n:], p.n, 0
	}
	p.kernel.gemm(p.transA, p.transB, m, n, k, p.alpha, a, p.lda, b, p.ldb, beta, c[r0*ldc+c0:], ldc)
}

// at returns the offset of element (i, j) of op(X).
func at(trans bool, i, j, ld int) int {
	if trans {
		i, j = j, i
	}
	return i*ld + j
}

// add adds the partial sums to rows [lo, hi) of C, in the order of k.
func (p *product) add(_, lo, hi int) {
	size := p.m * p.n
	for i := lo; i < hi; i++ {
		row := p.c[i*p.ldc : i*p.ldc+p.n]
		for at := i * p.n; at < len(p.partials); at += size {
			addTo(row, p.partials[at:at+p.n])
		}
	}
}

func addTo(dst, src []float32) {
	src = src[:len(dst)]
	for i, v := range src {
		dst[i] += v
	}
}

// pack writes rows [lo, hi) of op(B), the columns of the stored matrix. It
// goes through them by groups of rows of the stored matrix, whose lines then
// stay in the cache until all of their elements have been used.
func (p *product) pack(_, lo, hi int) {
	const group = 32
	for j0 := 0; j0 < p.n; j0 += group {
		j1 := min(p.n, j0+group)
		for l := lo; l < hi; l++ {
			dst := p.packed[l*p.n+j0 : l*p.n+j1]
			for j := range dst {
				dst[j] = p.b[(j0+j)*p.ldb+l]
			}
		}
	}
}

func grow(x []float32, n int) []float32 {
	if cap(x) < n {
		return make([]float32, n)
	}
	return x[:n]
}
