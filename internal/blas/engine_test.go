package blas

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAutoAlwaysMultiplies(t *testing.T) {
	e, err := Auto()
	if e == nil {
		t.Fatal("no engine")
	}
	if (err == nil) != (e.Info().Name == "openblas") {
		t.Errorf("engine %v with error %v", e.Info(), err)
	}
	if err := selfCheck(e); err != nil {
		t.Error(err)
	}
}

func TestOpenBLASInfo(t *testing.T) {
	i := openBLASOrSkip(t).Info()
	if i.Name != "openblas" || !strings.Contains(i.Config, "OpenBLAS") || i.Core == "" {
		t.Errorf("info %+v", i)
	}
	t.Log(i)
}

func TestOpenBLASAbsent(t *testing.T) {
	_, err := OpenBLAS(filepath.Join(t.TempDir(), "libnone.so"))
	if !errors.Is(err, ErrNotFound) {
		t.Errorf("absent file: %v", err)
	}
	junk := filepath.Join(t.TempDir(), "libjunk.so")
	if err := os.WriteFile(junk, []byte("not a library"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenBLAS(junk); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("a file that is no library: %v", err)
	}
}

// wrong multiplies like gonum but for one element, as a kernel for another
// processor might.
type wrong struct{ rankOne }

func (w wrong) gemm(tA, tB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	w.rankOne.gemm(tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
	if k > 300 {
		c[0]++
	}
}

func TestSelfCheckRefusesWrongProducts(t *testing.T) {
	err := selfCheck(&Engine{info: Info{Name: "wrong"}, kernel: wrong{}})
	if err == nil || !strings.Contains(err.Error(), "OPENBLAS_CORETYPE") {
		t.Errorf("wrong kernel: %v", err)
	}
	if err := selfCheck(Gonum()); err != nil {
		t.Errorf("gonum: %v", err)
	}
}

func TestCut(t *testing.T) {
	for _, m := range []int{1, 3, 16, 63, 64, 65, 511, 513, 1000, 97000, 2449029} {
		for _, n := range []int{1, 15, 16, 47, 255, 257, 513, 1433} {
			for _, k := range []int{1, 511, 1024, 1025, 14000, 1000000} {
				g := cut(m, n, k)
				if g.rows < 1 || g.rows > maxRows || g.cols < 1 || g.cols > maxCols || g.depth < 1 {
					t.Fatalf("%d×%d×%d: %+v", m, n, k, g)
				}
				if parts := ceil(k, g.depth); parts > maxPartials || parts > 1 && g.depth < minDepth {
					t.Fatalf("%d×%d×%d: %+v makes %d partial sums", m, n, k, g, parts)
				}
			}
		}
	}
}
