package blas

import (
	"fmt"
	"math"

	"zerogcn/internal/par"
)

// Gemm computes C = alpha·op(A)·op(B) + beta·C, where op transposes its matrix
// if transA or transB is set. op(A) is m×k, op(B) is k×n, C is m×n; all are
// row-major with lda, ldb, ldc elements from one row to the next. C must not
// overlap A or B. With beta 0, C is not read: it may hold anything. Any of m,
// n, k may be 0 (an empty sum is 0).
//
// The product runs on at most w goroutines and is done on return. Its bits do
// not depend on w.
//
// Sizes that do not fit their slices are errors of the calling program: Gemm
// panics and names the operand, before anything is written.
func (e *Engine) Gemm(w par.Workers, transA, transB bool, m, n, k int, alpha float32,
	a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	if m < 0 || n < 0 || k < 0 {
		panic(fmt.Sprintf("blas: negative size in product %d×%d×%d", m, n, k))
	}
	check("A", transA, m, k, a, lda)
	check("B", transB, k, n, b, ldb)
	check("C", false, m, n, c, ldc)
	if m == 0 || n == 0 {
		return
	}
	if k == 0 || alpha == 0 {
		scale(m, n, beta, c, ldc)
		return
	}
	p := e.acquire()
	p.transA, p.transB, p.m, p.n, p.k = transA, transB, m, n, k
	p.alpha, p.beta = alpha, beta
	p.a, p.lda, p.b, p.ldb, p.c, p.ldc = a, lda, b, ldb, c, ldc
	p.run(w)
	e.release(p)
}

// check panics unless a matrix of the given shape, stored transposed if trans,
// fits in x. Leading dimensions are bounded because Fortran integers are.
func check(name string, trans bool, rows, cols int, x []float32, ld int) {
	if trans {
		rows, cols = cols, rows
	}
	if ld < cols || ld > math.MaxInt32 {
		panic(fmt.Sprintf("blas: leading dimension of %s is %d with %d columns", name, ld, cols))
	}
	if rows > 0 && cols > 0 && len(x) < (rows-1)*ld+cols {
		panic(fmt.Sprintf("blas: %s has %d elements, too few for %d rows of %d, %d apart", name, len(x), rows, cols, ld))
	}
}

// scale multiplies C by beta; beta 0 clears it whatever it held.
func scale(m, n int, beta float32, c []float32, ldc int) {
	if beta == 1 {
		return
	}
	for i := range m {
		row := c[i*ldc : i*ldc+n]
		if beta == 0 {
			clear(row)
			continue
		}
		for j := range row {
			row[j] *= beta
		}
	}
}
