package cuda_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"zerogcn/cuda/cublas"
	"zerogcn/cuda/cudatest"
	execcuda "zerogcn/model/exec/cuda"
	"zerogcn/model/exec/cuda/devicetest"
	"zerogcn/model/exec/exectest"
	"zerogcn/model/metric"
	"zerogcn/model/op"
)

// device is a back end as the conformance suite wants it.
type device struct{ *execcuda.Backend }

func (d device) Upload(t testing.TB, v op.Value) op.Value {
	return devicetest.Upload(t, d.Stream(), v)
}

func (d device) Download(t testing.TB, v op.Value) []float32 {
	return devicetest.Download(t, d.Stream(), v)
}

func open(t testing.TB, o execcuda.Options) device { return device{devicetest.Backend(t, o)} }

func TestGPUConformance(t *testing.T) {
	for name, o := range map[string]execcuda.Options{
		"cublas":  {},
		"own":     {BLAS: execcuda.NoBLAS},
		"atomics": {BLAS: execcuda.NoBLAS, Atomics: true},
	} {
		t.Run(name, func(t *testing.T) { exectest.Run(t, open(t, o)) })
	}
}

// The same operation gives the same bits again, wherever its operands lie and
// whatever ran before.
func TestGPURepeats(t *testing.T) {
	for name, o := range map[string]execcuda.Options{"cublas": {}, "own": {BLAS: execcuda.NoBLAS}} {
		t.Run(name, func(t *testing.T) {
			d := open(t, o)
			exectest.Same(t, d, d, d)
		})
	}
}

// Tensor cores round factors to 10 and 7 bits; sums stay float32.
func TestGPUPrecision(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	const m, k, n = 300, 128, 96
	x, y := normal(rng, m, k), normal(rng, k, n)
	want := op.Matrix(m, n, make([]float32, m*n))
	mul := op.New(op.MatMul, op.Attr{})
	mul.Reference(&want, []*op.Value{&x, &y})
	for _, c := range []struct {
		p           cublas.Precision
		least, most float64 // relative error in the Frobenius norm
	}{{cublas.FP32, 0, 1e-6}, {cublas.TF32, 1e-5, 1e-3}, {cublas.BF16, 1e-4, 1e-2}} {
		t.Run(c.p.String(), func(t *testing.T) {
			d := open(t, execcuda.Options{Precision: c.p})
			dx, dy, out := d.Upload(t, x), d.Upload(t, y), d.Upload(t, want)
			kernel, err := d.Kernel(mul)
			if err != nil {
				t.Fatal(err)
			}
			if err := kernel.Run(&out, []*op.Value{&dx, &dy}); err != nil {
				t.Fatal(err)
			}
			var diff, norm float64
			for i, v := range d.Download(t, out) {
				diff += math.Pow(float64(v)-float64(want.Data[i]), 2)
				norm += math.Pow(float64(want.Data[i]), 2)
			}
			got := math.Sqrt(diff / norm)
			t.Logf("relative error %.2g", got)
			if !(got >= c.least && got <= c.most) {
				t.Errorf("relative error %g, want between %g and %g: another precision ran", got, c.least, c.most)
			}
		})
	}
}

func TestGPUGatherRows(t *testing.T) {
	d := open(t, execcuda.Options{BLAS: execcuda.NoBLAS})
	rng := rand.New(rand.NewPCG(5, 1))
	for _, cols := range []int{1, 3, 47, 100, 1200} {
		const rows, n = 300, 1000
		x := normal(rng, rows, cols)
		ids := make([]int32, n)
		for i := range ids {
			ids[i] = rng.Int32N(rows)
		}
		ids[7], ids[8] = -1, rows // outside
		dx, out := d.Upload(t, x), d.Upload(t, op.Matrix(n, cols, make([]float32, n*cols)))
		if err := d.GatherRows(&out, &dx, cudatest.Upload(t, d.Stream(), ids).Ptr()); err != nil {
			t.Fatal(err)
		}
		got := op.Matrix(n, cols, d.Download(t, out))
		for i, id := range ids {
			for c, v := range got.Row(i) {
				switch {
				case i == 7 || i == 8:
					if v == v {
						t.Fatalf("%d columns: row %d with id %d holds %g, want NaN", cols, i, id, v)
					}
				case v != x.Row(int(id))[c]:
					t.Fatalf("%d columns: row %d column %d is %g, want %g", cols, i, c, v, x.Row(int(id))[c])
				}
			}
		}
	}
}

func TestGPUCountCorrect(t *testing.T) {
	d := open(t, execcuda.Options{BLAS: execcuda.NoBLAS})
	rng := rand.New(rand.NewPCG(6, 1))
	const parts = 3
	for _, cols := range []int{1, 2, 7, 47, 172} {
		const rows = 20_000
		x := op.Matrix(rows, cols, make([]float32, rows*cols))
		class, part := make([]int32, rows), make([]int32, rows)
		want := make([]int64, 2*parts)
		for r := range rows {
			for c := range cols {
				x.Row(r)[c] = float32(rng.IntN(5)) // ties
				if rng.IntN(50) == 0 {
					x.Row(r)[c] = float32(math.NaN())
				}
			}
			class[r], part[r] = rng.Int32N(int32(cols)+1)-1, rng.Int32N(parts+2)-1
			if r < 3 { // a row of NaN
				for c := range cols {
					x.Row(r)[c] = float32(math.NaN())
				}
				class[r], part[r] = 0, 0
			}
			if p := part[r]; class[r] >= 0 && p >= 0 && p < parts {
				want[2*p+1]++
				if metric.Argmax(x.Row(r)) == int(class[r]) {
					want[2*p]++
				}
			}
		}
		counts := cudatest.Upload(t, d.Stream(), make([]int64, 2*parts))
		dx := d.Upload(t, x)
		p := execcuda.Parts{Class: cudatest.Upload(t, d.Stream(), class).Ptr(), Part: cudatest.Upload(t, d.Stream(), part).Ptr(),
			Num: parts, Counts: counts.Ptr()}
		for range 2 { // counts add up
			if err := d.CountCorrect(&dx, p); err != nil {
				t.Fatal(err)
			}
		}
		for i, n := range cudatest.Download[int64](t, d.Stream(), counts.Ptr(), 2*parts) {
			if n != 2*want[i] {
				t.Errorf("%d columns: counter %d is %d, want %d", cols, i, n, 2*want[i])
			}
		}
	}
}

func normal(rng *rand.Rand, rows, cols int) op.Value {
	x := make([]float32, rows*cols)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return op.Matrix(rows, cols, x)
}
