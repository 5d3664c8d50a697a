package cublas

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"

	"zerogcn/cuda/cudatest"
)

// at views memory that C passed.
func at[T any](p uintptr) *T { return (*T)(*(*unsafe.Pointer)(unsafe.Pointer(&p))) }

// columnMajor is cublasGemmEx for float32, by cuBLAS's own definition: matrices
// column-major, c = alpha*op(a)*op(b) + beta*c.
func columnMajor(a []uintptr) {
	transA, transB, m, n, k := a[1] == 1, a[2] == 1, int(a[3]), int(a[4]), int(a[5])
	alpha, beta := *at[float32](a[6]), *at[float32](a[13])
	element := func(base, ld uintptr, i, j int, trans bool) *float32 {
		if trans {
			i, j = j, i
		}
		return at[float32](base + 4*(uintptr(i)+uintptr(j)*ld))
	}
	for i := range m {
		for j := range n {
			var s float32
			for l := range k {
				s += *element(a[7], a[9], i, l, transA) * *element(a[10], a[12], l, j, transB)
			}
			c := element(a[14], a[16], i, j, false)
			*c = alpha*s + beta**c
		}
	}
}

// The row-major product through the real argument passing, against the
// definition, without a GPU.
func TestGemmIsRowMajor(t *testing.T) {
	dev, _ := cudatest.Fake(t)
	s := cudatest.Stream(t, dev)
	var last []uintptr
	status := uintptr(0)
	gemm := purego.NewCallback(func(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, u uintptr) uintptr {
		last = []uintptr{a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, u}
		if status == 0 {
			columnMajor(last)
		}
		return status
	})
	alive := 0
	create := purego.NewCallback(func(h *uintptr) uintptr { *h = 77; alive++; return 0 })
	destroy := purego.NewCallback(func(h uintptr) uintptr { alive--; return 0 })
	var set []uintptr
	note := purego.NewCallback(func(h, a, b uintptr) uintptr { set = append(set, h, a); return 0 })
	version := purego.NewCallback(func(h uintptr, v *int32) uintptr { *v = 120405; return 0 })
	lib, err := load("fake", func(names ...string) (uintptr, error) {
		switch names[0] {
		case "cublasCreate_v2":
			return create, nil
		case "cublasDestroy_v2":
			return destroy, nil
		case "cublasGetVersion_v2":
			return version, nil
		case "cublasGemmEx":
			return gemm, nil
		}
		return note, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if lib.Version() != 120405 {
		t.Errorf("version %d", lib.Version())
	}
	h, err := lib.NewHandle(s, HandleOptions{SMs: 120})
	if err != nil {
		t.Fatal(err)
	}
	if len(set) != 6 || set[1] != s.Handle() || set[3] != uintptr(h.workspace.Ptr()) || set[5] != 120 {
		t.Errorf("stream, workspace and SMs were set as %#x", set)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	small := func(n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(rng.IntN(9) - 4) // products and sums are exact
		}
		return v
	}
	for _, ta := range []bool{false, true} {
		for _, tb := range []bool{false, true} {
			p := Product{M: 3, N: 5, K: 4, TransA: ta, TransB: tb, Alpha: 2, Beta: -1, Precision: TF32}
			as, bs, cs := 7, 6, 8
			a, b, c := small(4*as), small(5*bs), small(3*cs)
			da, db, dc := cudatest.Upload(t, s, a), cudatest.Upload(t, s, b), cudatest.Upload(t, s, c)
			if err := h.Gemm(p, Matrix{Ptr: da.Ptr(), Stride: as}, Matrix{Ptr: db.Ptr(), Stride: bs}, Matrix{Ptr: dc.Ptr(), Stride: cs}); err != nil {
				t.Fatal(err)
			}
			want := reference(p, a, b, c, as, bs, cs)
			for i, v := range cudatest.Download[float32](t, s, dc.Ptr(), len(c)) {
				if float64(v) != want[i] {
					t.Errorf("trans %v %v: c[%d] = %v, want %v", ta, tb, i, v, want[i])
				}
			}
			if last[17] != computeFastTF32 || last[18] != defaultAlgorithm {
				t.Errorf("compute type %d, algorithm %#x", last[17], last[18])
			}
		}
	}
	one := cudatest.Upload(t, s, make([]uint16, 8))
	m := Matrix{Ptr: one.Ptr(), Stride: 1, Type: BFloat16}
	status = 15
	err = h.Gemm(Product{M: 1, N: 1, K: 1, Precision: BF16}, m, m, Matrix{Ptr: one.Ptr(), Stride: 1})
	var e *Error
	if !errors.As(err, &e) || e.Status != 15 || !strings.Contains(err.Error(), "CUBLAS_STATUS_NOT_SUPPORTED (15): 1x1 = 1x1 by 1x1, bf16") {
		t.Errorf("%v", err)
	}
	if last[8] != realBFloat16 || last[11] != realBFloat16 || last[15] != realFloat32 || last[17] != computeFloat32 {
		t.Errorf("types %d %d %d, compute %d", last[8], last[11], last[15], last[17])
	}
	if err := errors.Join(h.Close(), h.Close()); err != nil || alive != 0 {
		t.Errorf("%v, %d handles alive", err, alive)
	}
}
