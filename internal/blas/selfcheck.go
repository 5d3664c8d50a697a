package blas

import "fmt"

// selfCheck multiplies small integers, whose sums are exact in any order, with
// e and with gonum. The sizes reach both the kernels for small matrices and the
// blocked ones, with their edges.
func selfCheck(e *Engine) error {
	want := Gonum()
	for _, s := range [][3]int{{7, 5, 9}, {67, 33, 131}, {150, 75, 400}} {
		m, n, k := s[0], s[1], s[2]
		a, b := integers(m*k, 7), integers(k*n, 5)
		for trans := range 4 {
			tA, tB := trans&1 != 0, trans&2 != 0
			lda, ldb := k, n
			if tA {
				lda = m
			}
			if tB {
				ldb = k
			}
			got, ref := integers(m*n, 3), integers(m*n, 3)
			e.Gemm(1, tA, tB, m, n, k, 2, a, lda, b, ldb, -1, got, n)
			want.Gemm(1, tA, tB, m, n, k, 2, a, lda, b, ldb, -1, ref, n)
			for i := range got {
				if got[i] != ref[i] {
					return fmt.Errorf("%s gives wrong products on this processor (%d×%d×%d, element %d: %g, not %g): set OPENBLAS_CORETYPE, or do without it",
						e.info, m, n, k, i, got[i], ref[i])
				}
			}
		}
	}
	return nil
}

// integers returns n whole numbers from -radix/2 to radix/2 in no simple order.
func integers(n, radix int) []float32 {
	x := make([]float32, n)
	h := uint32(radix)
	for i := range x {
		h = h*1664525 + 1013904223
		x[i] = float32(int(h>>16)%radix - radix/2)
	}
	return x
}
