package blas

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"zerogcn/internal/par"
)

// The products of a training step: products-sized SAGE layers, a weight
// gradient, GCN's first layer on Cora; forward products with PyG's [out, in]
// weights are A·Bᵀ.
var benchShapes = []struct {
	name    string
	tA, tB  bool
	m, n, k int
}{
	{"NN-97000x256x100", false, false, 97000, 256, 100},
	{"NT-97000x256x100", false, true, 97000, 256, 100},
	{"NN-14000x256x512", false, false, 14000, 256, 512},
	{"NT-14000x256x512", false, true, 14000, 256, 512},
	{"TN-256x512x14000", true, false, 256, 512, 14000},
	{"TN-256x100x97000", true, false, 256, 100, 97000},
	{"NT-1024x47x256", false, true, 1024, 47, 256},
	{"NN-2708x16x1433", false, false, 2708, 16, 1433},
	{"NT-2708x16x1433", false, true, 2708, 16, 1433},
	{"TN-16x1433x2708", true, false, 16, 1433, 2708},
	{"NN-64x64x64", false, false, 64, 64, 64},
}

func BenchmarkGemm(b *testing.B) {
	for _, name := range []string{"gonum", "openblas"} {
		for _, s := range benchShapes {
			for _, w := range []par.Workers{1, 2} {
				b.Run(fmt.Sprintf("%s/%s/workers=%d", name, s.name, w), func(b *testing.B) {
					e := Gonum()
					if name == "openblas" {
						e = openBLASOrSkip(b)
					}
					rng := rand.New(rand.NewPCG(1, 1))
					x, y, z := normal(rng, s.m*s.k), normal(rng, s.k*s.n), make([]float32, s.m*s.n)
					lda, ldb := s.k, s.n
					if s.tA {
						lda = s.m
					}
					if s.tB {
						ldb = s.k
					}
					b.ReportAllocs()
					for b.Loop() {
						e.Gemm(w, s.tA, s.tB, s.m, s.n, s.k, 1, x, lda, y, ldb, 0, z, s.n)
					}
					flop := 2 * float64(s.m) * float64(s.n) * float64(s.k) * float64(b.N)
					b.ReportMetric(flop/b.Elapsed().Seconds()/1e9, "GFLOP/s")
				})
			}
		}
	}
}

func normal(rng *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return x
}
