package blas

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"zerogcn/internal/par"
)

// engines calls f for every engine of this machine.
func engines(t *testing.T, f func(t *testing.T, e *Engine)) {
	t.Helper()
	t.Run("gonum", func(t *testing.T) { f(t, Gonum()) })
	t.Run("openblas", func(t *testing.T) { f(t, openBLASOrSkip(t)) })
}

func openBLASOrSkip(t testing.TB) *Engine {
	t.Helper()
	e, err := OpenBLAS("")
	if errors.Is(err, ErrNotFound) {
		t.Skipf("no OpenBLAS on this machine: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// matrix is a rows×cols matrix (as stored) with guard zones before, after and
// between its rows.
type matrix struct {
	mem        []float32
	rows, cols int
	ld         int
}

const (
	guard      = 5
	guardValue = -12345.25
)

func newMatrix(rng *rand.Rand, rows, cols, gap int) *matrix {
	x := &matrix{mem: make([]float32, guard+rows*(cols+gap)+guard), rows: rows, cols: cols, ld: cols + gap}
	for i := range x.mem {
		x.mem[i] = guardValue
	}
	for i := range rows {
		for j := range cols {
			*x.at(i, j) = float32(rng.NormFloat64())
		}
	}
	return x
}

// data is the slice that Gemm gets: no longer than the matrix.
func (x *matrix) data() []float32 {
	if x.rows == 0 || x.cols == 0 {
		return nil
	}
	n := (x.rows-1)*x.ld + x.cols
	return x.mem[guard : guard+n : guard+n]
}

func (x *matrix) at(i, j int) *float32 { return &x.mem[guard+i*x.ld+j] }

func (x *matrix) clone() *matrix {
	y := *x
	y.mem = append([]float32(nil), x.mem...)
	return &y
}

func (x *matrix) op(trans bool, i, j int) float64 {
	if trans {
		i, j = j, i
	}
	return float64(*x.at(i, j))
}

// reference is Gemm as plain loops in float64; bound is the sum of magnitudes,
// to which rounding errors are relative.
func reference(tA, tB bool, m, n, k int, alpha float64, a, b *matrix, beta float64, c *matrix) (want, bound []float64) {
	want, bound = make([]float64, m*n), make([]float64, m*n)
	for i := range m {
		for j := range n {
			var sum, mag float64
			for l := range k {
				p := a.op(tA, i, l) * b.op(tB, l, j)
				sum += p
				mag += math.Abs(p)
			}
			sum *= alpha
			mag *= math.Abs(alpha)
			if beta != 0 {
				sum += beta * float64(*c.at(i, j))
				mag += math.Abs(beta * float64(*c.at(i, j)))
			}
			want[i*n+j], bound[i*n+j] = sum, mag
		}
	}
	return want, bound
}

type gemmCase struct {
	tA, tB           bool
	m, n, k          int
	gapA, gapB, gapC int
	alpha, beta      float32
	seed             uint64
}

func (g gemmCase) String() string {
	return fmt.Sprintf("tA=%v,tB=%v,%d×%d×%d,gaps=%d/%d/%d,alpha=%g,beta=%g", g.tA, g.tB, g.m, g.n, g.k, g.gapA, g.gapB, g.gapC, g.alpha, g.beta)
}

func (g gemmCase) operands() (a, b, c *matrix) {
	rng := rand.New(rand.NewPCG(g.seed, 1))
	stored := func(trans bool, rows, cols, gap int) *matrix {
		if trans {
			rows, cols = cols, rows
		}
		return newMatrix(rng, rows, cols, gap)
	}
	a, b, c = stored(g.tA, g.m, g.k, g.gapA), stored(g.tB, g.k, g.n, g.gapB), newMatrix(rng, g.m, g.n, g.gapC)
	if g.beta == 0 && g.m > 0 && g.n > 0 {
		*c.at(g.m-1, g.n-1) = float32(math.NaN()) // must not be read
	}
	return a, b, c
}

type fataler interface {
	Helper()
	Fatalf(string, ...any)
}

// checkGemm compares with the reference, looks at the guard zones, and wants
// the same bits from 1, 2 and 8 workers.
func checkGemm(t fataler, e *Engine, g gemmCase) {
	t.Helper()
	a, b, c := g.operands()
	aBefore, bBefore := a.clone(), b.clone()
	want, bound := reference(g.tA, g.tB, g.m, g.n, g.k, float64(g.alpha), a, b, float64(g.beta), c)
	var first *matrix
	for _, w := range []par.Workers{1, 2, 8} {
		got := c.clone()
		e.Gemm(w, g.tA, g.tB, g.m, g.n, g.k, g.alpha, a.data(), a.ld, b.data(), b.ld, g.beta, got.data(), got.ld)
		if first == nil {
			first = got
		}
		for i, v := range got.mem {
			if math.Float32bits(v) != math.Float32bits(first.mem[i]) {
				t.Fatalf("%v: %d workers: element %d is %g, with one worker %g", g, w, i, v, first.mem[i])
			}
		}
	}
	same(t, g, "A", a, aBefore)
	same(t, g, "B", b, bBefore)
	for i := range g.m {
		for j := range g.n {
			// k·u is the worst case of any summation order; u = 2^-24.
			tol := (float64(g.k) + 4) * math.Exp2(-24) * bound[i*g.n+j]
			if d := math.Abs(float64(*first.at(i, j)) - want[i*g.n+j]); !(d <= tol) {
				t.Fatalf("%v: element %d, %d is %g, want %g within %g", g, i, j, *first.at(i, j), want[i*g.n+j], tol)
			}
			*first.at(i, j) = guardValue
		}
	}
	for i, v := range first.mem {
		if v != guardValue {
			t.Fatalf("%v: wrote outside C, at element %d", g, i-guard)
		}
	}
}

func same(t fataler, g gemmCase, name string, x, before *matrix) {
	t.Helper()
	for i, v := range x.mem {
		if math.Float32bits(v) != math.Float32bits(before.mem[i]) {
			t.Fatalf("%v: changed %s at element %d", g, name, i-guard)
		}
	}
}

func TestGemm(t *testing.T) {
	// Shapes that reach every path: no rows, columns or depth; one tile; edges
	// of tiles; cuts of k; packing of a transposed B.
	shapes := [][3]int{
		{0, 3, 4}, {3, 0, 4}, {3, 4, 0}, {1, 1, 1}, {1, 300, 7}, {31, 5, 9}, {32, 5, 9}, {33, 200, 17},
		{65, 257, 64}, {130, 47, 100}, {16, 24, 2100}, {1, 1, 5000}, {600, 3, 30}, {270, 530, 5},
	}
	engines(t, func(t *testing.T, e *Engine) {
		for _, s := range shapes {
			for trans := range 4 {
				for _, ab := range [][2]float32{{1, 0}, {0.5, 1}, {-2, 0.25}, {0, 0}, {0, 1}} {
					checkGemm(t, e, gemmCase{
						tA: trans&1 != 0, tB: trans&2 != 0, m: s[0], n: s[1], k: s[2],
						gapB: 1, gapC: 2, alpha: ab[0], beta: ab[1], seed: 3,
					})
				}
			}
		}
	})
}

func TestGemmProperty(t *testing.T) {
	engines(t, func(t *testing.T, e *Engine) {
		rapid.Check(t, func(r *rapid.T) {
			size := rapid.OneOf(rapid.IntRange(0, 9), rapid.IntRange(10, 70))
			gap := rapid.IntRange(0, 3)
			factor := rapid.SampledFrom([]float32{0, 1, -1, 0.75})
			checkGemm(r, e, gemmCase{
				tA: rapid.Bool().Draw(r, "tA"), tB: rapid.Bool().Draw(r, "tB"),
				m: size.Draw(r, "m"), n: size.Draw(r, "n"), k: rapid.OneOf(size, rapid.IntRange(1000, 1600)).Draw(r, "k"),
				gapA: gap.Draw(r, "gapA"), gapB: gap.Draw(r, "gapB"), gapC: gap.Draw(r, "gapC"),
				alpha: factor.Draw(r, "alpha"), beta: factor.Draw(r, "beta"), seed: rapid.Uint64().Draw(r, "seed"),
			})
		})
	})
}

// TestGemmSameBitsElsewhere repeats products on operands at other addresses:
// what the processor's vectors are aligned to must not matter.
func TestGemmSameBitsElsewhere(t *testing.T) {
	moved := func(x []float32, by int) []float32 { return append(make([]float32, by, by+len(x)), x...)[by:] }
	engines(t, func(t *testing.T, e *Engine) {
		for _, s := range [][3]int{{300, 130, 1100}, {1, 1, 77}, {4, 1, 5}, {3, 9, 40}, {17, 33, 65}, {40, 16, 200}} {
			m, n, k := s[0], s[1], s[2]
			rng := rand.New(rand.NewPCG(5, 5))
			a, b := newMatrix(rng, m, k, 0).data(), newMatrix(rng, k, n, 0).data()
			for trans := range 4 {
				tA, tB := trans&1 != 0, trans&2 != 0
				lda, ldb := k, n
				if tA {
					lda = m
				}
				if tB {
					ldb = k
				}
				var first []float32
				for shift := range 17 {
					c := make([]float32, 3*shift+m*n)[3*shift:]
					e.Gemm(2, tA, tB, m, n, k, 1, moved(a, shift), lda, moved(b, 2*shift), ldb, 0, c, n)
					if first == nil {
						first = c
					}
					for i := range c {
						if c[i] != first[i] {
							t.Fatalf("%v, transposed %v %v, operands shifted by %d elements: element %d is %g, was %g",
								s, tA, tB, shift, i, c[i], first[i])
						}
					}
				}
			}
		}
	})
}

func TestGemmConcurrent(t *testing.T) {
	engines(t, func(t *testing.T, e *Engine) {
		const m, n, k = 70, 40, 1500
		rng := rand.New(rand.NewPCG(1, 2))
		a, b := newMatrix(rng, m, k, 0), newMatrix(rng, n, k, 0)
		want := make([]float32, m*n)
		e.Gemm(1, false, true, m, n, k, 1, a.data(), k, b.data(), k, 0, want, n)
		var wg sync.WaitGroup
		for g := range 100 { // more than an OpenBLAS lets in at once
			wg.Go(func() {
				for range 2 {
					c := make([]float32, m*n)
					e.Gemm(2, false, true, m, n, k, 1, a.data(), k, b.data(), k, 0, c, n)
					for i := range c {
						if c[i] != want[i] {
							t.Errorf("goroutine %d: element %d is %g, want %g", g, i, c[i], want[i])
							return
						}
					}
				}
			})
		}
		wg.Wait()
	})
}

func TestGemmDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes purego's pool allocate")
	}
	engines(t, func(t *testing.T, e *Engine) {
		for trans := range 4 {
			const m, n, k = 64, 32, 2048
			tA, tB := trans&1 != 0, trans&2 != 0
			a, b, c := make([]float32, m*k), make([]float32, k*n), make([]float32, m*n)
			lda, ldb := k, n
			if tA {
				lda = m
			}
			if tB {
				ldb = k
			}
			if got := testing.AllocsPerRun(20, func() {
				e.Gemm(1, tA, tB, m, n, k, 1, a, lda, b, ldb, 0, c, n)
			}); got > 0 {
				t.Errorf("tA %v, tB %v: %g allocations a product", tA, tB, got)
			}
		}
	})
}

func TestGemmRefusesBadSizes(t *testing.T) {
	x := make([]float32, 12)
	for _, c := range []struct {
		name             string
		m, n, k          int
		lda, ldb, ldc    int
		lenA, lenB, lenC int
	}{
		{"negative", -1, 2, 2, 2, 2, 2, 12, 12, 12},
		{"short A", 3, 2, 4, 4, 2, 2, 11, 12, 12},
		{"short B", 3, 3, 4, 4, 3, 3, 12, 11, 12},
		{"short C", 3, 4, 1, 1, 4, 4, 12, 12, 11},
		{"lda", 3, 2, 4, 3, 2, 2, 12, 12, 12},
		{"ldb", 3, 2, 4, 4, 1, 2, 12, 12, 12},
		{"ldc", 3, 2, 4, 4, 2, 1, 12, 12, 12},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("accepted")
				}
			}()
			Gonum().Gemm(1, false, false, c.m, c.n, c.k, 1, x[:c.lenA], c.lda, x[:c.lenB], c.ldb, 0, x[:c.lenC], c.ldc)
		})
	}
}
