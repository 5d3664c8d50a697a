package cublas

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"zerogcn/cuda"
	"zerogcn/cuda/cudatest"
	"zerogcn/dtype"
)

func TestProductCheck(t *testing.T) {
	ok := Matrix{Ptr: 1, Stride: 8}
	for _, c := range []struct {
		p       Product
		a, b, c Matrix
		text    string
	}{
		{Product{M: 2, N: 3, K: 4}, ok, ok, ok, ""},
		{Product{M: 2, N: 3, K: -1}, ok, ok, ok, "sizes must be"},
		{Product{M: math.MaxInt32 + 1, N: 3, K: 1}, ok, ok, ok, "sizes must be"},
		{Product{M: 2, N: 3, K: 9}, ok, ok, ok, "a has stride 8 for 9 columns"},
		{Product{M: 9, N: 3, K: 2, TransA: true}, ok, ok, ok, "a has stride 8 for 9 columns"},
		{Product{M: 2, N: 9, K: 2}, ok, ok, ok, "b has stride 8 for 9 columns"},
		{Product{M: 2, N: 3, K: 4}, ok, Matrix{Stride: 8}, ok, "b (4x3) has no address"},
		{Product{M: 2, N: 3, K: 0}, Matrix{Stride: 1}, Matrix{Stride: 3}, ok, ""},
		{Product{M: 2, N: 3, K: 4}, ok, Matrix{Ptr: 1, Stride: 8, Type: BFloat16}, ok, "different types"},
	} {
		err := c.p.check(c.a, c.b, c.c)
		if c.text == "" && err != nil || c.text != "" && (err == nil || !strings.Contains(err.Error(), c.text)) {
			t.Errorf("%+v: %v, want %q", c.p, err, c.text)
		}
	}
}

func TestLoadErrors(t *testing.T) {
	if _, err := Load(Options{Driver: 9000}); err == nil || !strings.Contains(err.Error(), "CUDA 9.0") {
		t.Errorf("%v", err)
	}
	if _, err := Load(Options{Path: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "libcublas.so.13") {
		t.Errorf("%v", err)
	}
	_, err := load("x", func(n ...string) (uintptr, error) { return 0, errors.New("no " + n[0]) })
	if err == nil || err.Error() != "cublas: no cublasCreate_v2" {
		t.Errorf("%v", err)
	}
	e := check("cublasGemmEx", 15, "%dx%d", 2, 3)
	if e.Error() != "cublasGemmEx: CUBLAS_STATUS_NOT_SUPPORTED (15): 2x3" {
		t.Errorf("%v", e)
	}
}

func library(t testing.TB, dev *cuda.Device) *Library {
	t.Helper()
	l, err := Load(Options{Driver: dev.Driver().Version()})
	if err != nil {
		t.Skip(err)
	}
	return l
}

// reference is the definition, in float64.
func reference(p Product, a, b, c []float32, as, bs, cs int) []float64 {
	out := make([]float64, len(c))
	for i, v := range c {
		out[i] = float64(v)
	}
	at := func(m []float32, stride, i, j int, trans bool) float64 {
		if trans {
			i, j = j, i
		}
		return float64(m[i*stride+j])
	}
	for i := range p.M {
		for j := range p.N {
			var s float64
			for k := range p.K {
				s += at(a, as, i, k, p.TransA) * at(b, bs, k, j, p.TransB)
			}
			out[i*cs+j] = float64(p.Alpha)*s + float64(p.Beta)*out[i*cs+j]
		}
	}
	return out
}

func TestGPUGemm(t *testing.T) {
	dev := cudatest.Device(t)
	lib := library(t, dev)
	t.Logf("%s, version %d", lib.Path(), lib.Version())
	s := cudatest.Stream(t, dev)
	h, err := lib.NewHandle(s, HandleOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	rng := rand.New(rand.NewPCG(1, 2))
	for _, p := range []Product{
		{M: 37, N: 29, K: 53, Alpha: 1}, {M: 37, N: 29, K: 53, Alpha: -0.5, Beta: 2, TransA: true},
		{M: 37, N: 29, K: 53, Alpha: 1, Beta: 1, TransB: true}, {M: 37, N: 29, K: 53, Alpha: 3, TransA: true, TransB: true},
		{M: 64, N: 128, K: 256, Alpha: 1, Precision: TF32}, {M: 64, N: 128, K: 256, Alpha: 1, Precision: BF16, TransB: true},
		{M: 1, N: 1, K: 1, Alpha: 1}, {M: 5, N: 7, K: 0, Alpha: 1, Beta: 0.5}, {M: 0, N: 7, K: 3, Alpha: 1},
	} {
		for _, narrow := range []bool{false, true} {
			ar, ac, br, bc := p.M, p.K, p.K, p.N
			if p.TransA {
				ar, ac = ac, ar
			}
			if p.TransB {
				br, bc = bc, br
			}
			as, bs, cs := ac+8, bc+16, p.N+3
			random := func(n int) []float32 {
				v := make([]float32, n)
				for i := range v {
					v[i] = rng.Float32() - 0.5
					if narrow { // exactly representable
						v[i] = math.Float32frombits(uint32(dtype.Float32ToBFloat16(v[i])) << 16)
					}
				}
				return v
			}
			a, b, c := random(ar*as), random(br*bs), random(max(1, p.M*cs))
			typ := Float32
			var da, db *cuda.Buffer
			if narrow {
				typ = BFloat16
				da, db = cudatest.Upload(t, s, bf16(a)), cudatest.Upload(t, s, bf16(b))
			} else {
				da, db = cudatest.Upload(t, s, a), cudatest.Upload(t, s, b)
			}
			dc := cudatest.Upload(t, s, c)
			err := h.Gemm(p, Matrix{da.Ptr(), as, typ}, Matrix{db.Ptr(), bs, typ}, Matrix{Ptr: dc.Ptr(), Stride: cs})
			if err != nil {
				t.Errorf("%+v narrow %v: %v", p, narrow, err)
				continue
			}
			want := reference(p, a, b, c, as, bs, cs)
			got := cudatest.Download[float32](t, s, dc.Ptr(), len(c))
			tol := 1e-5
			if !narrow {
				tol = map[Precision]float64{FP32: 1e-5, TF32: 1e-2, BF16: 5e-2}[p.Precision]
			}
			for i := range got {
				if d := math.Abs(float64(got[i]) - want[i]); d > tol {
					t.Errorf("%+v narrow %v: c[%d] = %v, want %v", p, narrow, i, got[i], want[i])
					break
				}
			}
		}
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if err := h.Gemm(Product{M: 1, N: 1, Alpha: 1}, Matrix{Stride: 1}, Matrix{Stride: 1}, Matrix{Ptr: 1, Stride: 1}); !errors.Is(err, cuda.ErrClosed) {
		t.Errorf("closed handle: %v", err)
	}
}

func bf16(v []float32) []uint16 {
	o := make([]uint16, len(v))
	for i, x := range v {
		o[i] = dtype.Float32ToBFloat16(x)
	}
	return o
}

// A captured product replays with the values of the moment, and repeats to the bit.
func TestGPUGemmInGraph(t *testing.T) {
	dev := cudatest.Device(t)
	lib := library(t, dev)
	s := cudatest.Stream(t, dev)
	h, err := lib.NewHandle(s, HandleOptions{SMs: dev.Properties().SMs - 12})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	const n = 200
	x := make([]float32, n*n)
	for i := range x {
		x[i] = float32(i%17) - 8
	}
	a, c := cudatest.Upload(t, s, x), cudatest.Upload(t, s, x)
	p := Product{M: n, N: n, K: n, Alpha: 1}
	m := func(b *cuda.Buffer) Matrix { return Matrix{Ptr: b.Ptr(), Stride: n} }
	if err := h.Gemm(p, m(a), m(a), m(c)); err != nil {
		t.Fatal(err)
	}
	want := cudatest.Download[float32](t, s, c.Ptr(), n*n)
	var r cuda.Replay
	defer r.Close()
	for range 3 {
		if err := s.Set8(c.Ptr(), 0, 4*n*n); err != nil {
			t.Fatal(err)
		}
		if err := r.Run(s, func() error { return h.Gemm(p, m(a), m(a), m(c)) }); err != nil {
			t.Fatal(err)
		}
		got := cudatest.Download[float32](t, s, c.Ptr(), n*n)
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("c[%d] = %v in a graph, %v outside", i, got[i], want[i])
			}
		}
	}
}

func BenchmarkGPUGemmIssue(b *testing.B) {
	dev := cudatest.Device(b)
	lib := library(b, dev)
	s := cudatest.Stream(b, dev)
	h, err := lib.NewHandle(s, HandleOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close()
	x := cudatest.Upload(b, s, make([]float32, 128*256))
	m := Matrix{Ptr: x.Ptr(), Stride: 256}
	b.ReportAllocs()
	for b.Loop() {
		if err := h.Gemm(Product{M: 64, N: 64, K: 64, Alpha: 1, Precision: TF32}, m, m, m); err != nil {
			b.Fatal(err)
		}
	}
}
