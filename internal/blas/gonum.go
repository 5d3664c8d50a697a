package blas

import (
	"runtime/debug"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// Gonum returns an engine on gonum's kernels, which every platform has.
//
// Products are sums of rank-one updates by gonum's Sger, whose kernel updates
// four rows at once: where its operands stay in the second-level cache it does
// 19-22 GFLOP/s on one core where gonum's own Sgemm does 13-15 (AMD EPYC 9004;
// both use SSE).
func Gonum() *Engine {
	return &Engine{info: Info{Name: "gonum", Config: gonumVersion()}, kernel: rankOne{}}
}

// gonumVersion reads the module version that the binary was built with; tests
// have none.
func gonumVersion() string {
	if bi, ok := debug.ReadBuildInfo(); ok {
		for _, d := range bi.Deps {
			if d.Path == "gonum.org/v1/gonum" {
				return d.Version
			}
		}
	}
	return "(devel)"
}

type rankOne struct{}

// dotRows is the number of rows of A below which products with a transposed B
// are dot products: to transpose B first would cost more than it saves.
const dotRows = 32

func (rankOne) packs(m int) bool { return m >= dotRows }

func (rankOne) gemm(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int,
	b []float32, ldb int, beta float32, c []float32, ldc int) {
	if transB {
		dots(transA, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
		return
	}
	scale(m, n, beta, c, ldc)
	// A part of C of subRows×subCols is updated subDepth times while the rows
	// of A and B that it needs are in the second-level cache.
	const subRows, subCols, subDepth = 64, 256, 128
	for l := 0; l < k; l += subDepth {
		depth := min(subDepth, k-l)
		for i := 0; i < m; i += subRows {
			for j := 0; j < n; j += subCols {
				update(transA, min(subRows, m-i), min(subCols, n-j), depth, alpha,
					a[at(transA, i, l, lda):], lda, b[l*ldb+j:], ldb, c[i*ldc+j:], ldc)
			}
		}
	}
}

// update adds alpha·op(A)·B to C by rank-one updates.
func update(transA bool, m, n, k int, alpha float32, a []float32, lda int,
	b []float32, ldb int, c []float32, ldc int) {
	var lib gonum.Implementation
	for l := range k {
		if row := b[l*ldb : l*ldb+n]; transA {
			lib.Sger(m, n, alpha, a[l*lda:l*lda+m], 1, row, 1, c, ldc)
		} else {
			lib.Sger(m, n, alpha, a[l:], lda, row, 1, c, ldc)
		}
	}
}

// dots multiplies with B stored transposed, m below dotRows: gonum's Sgemm
// takes dot products of rows there. It starts goroutines of its own for more
// than three blocks of 64×64, which strips of three avoid.
func dots(transA bool, m, n, k int, alpha float32, a []float32, lda int,
	b []float32, ldb int, beta float32, c []float32, ldc int) {
	const strip = 3 * 64
	tA := blas.NoTrans
	if transA {
		tA = blas.Trans
	}
	for j := 0; j < n; j += strip {
		gonum.Implementation{}.Sgemm(tA, blas.Trans, m, min(strip, n-j), k, alpha,
			a, lda, b[j*ldb:], ldb, beta, c[j:], ldc)
	}
}
