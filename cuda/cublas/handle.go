package cublas

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"

	"zerogcn/cuda"
	"zerogcn/cuda/internal/dynlib"
)

// Handle is cuBLAS on one stream. Any goroutine may call it; calls of several
// take turns.
type Handle struct {
	lib    *Library
	stream *cuda.Stream

	mu        sync.Mutex
	handle    uintptr // 0 once closed
	workspace *cuda.Buffer
	// What cuBLAS reads through pointers lives in the handle, so that a call
	// allocates nothing.
	scalars [2]float32
	argv    [19]uintptr
}

// HandleOptions are the choices of NewHandle; the zero value is usable.
type HandleOptions struct {
	// WorkspaceBytes is scratch memory for cuBLAS; zero means what NVIDIA
	// advises, 32 MiB on Hopper and newer and 4 MiB before.
	WorkspaceBytes int64
	// SMs, if not 0, is how many multiprocessors cuBLAS should count on, where
	// others are busy with a gather. Libraries before CUDA 11.5 ignore it.
	SMs int
}

// NewHandle makes a handle whose calls queue work on s. Close it before the
// stream.
func (l *Library) NewHandle(s *cuda.Stream, o HandleOptions) (*Handle, error) {
	n := o.WorkspaceBytes
	if n == 0 {
		n = 4 << 20
		if s.Device().Properties().Major >= 9 {
			n = 32 << 20
		}
	}
	ws, err := s.Device().Alloc(cuda.Workspace, n)
	if err != nil {
		return nil, err
	}
	h := &Handle{lib: l, stream: s, workspace: ws}
	if err := h.init(n, o.SMs); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

func (h *Handle) init(n int64, sms int) error {
	call, err := h.stream.Begin()
	if err != nil {
		return err
	}
	defer call.End()
	t := &h.lib.t
	p := new(uintptr)
	if err := check("cublasCreate", dynlib.Call(t.create, uintptr(unsafe.Pointer(p))), "%s version %d", h.lib.path, h.lib.version); err != nil {
		return err
	}
	h.handle = *p
	if err := check("cublasSetStream", dynlib.Call(t.setStream, h.handle, h.stream.Handle()), ""); err != nil {
		return err
	}
	// After SetStream, which returns to cuBLAS's own workspace.
	if err := check("cublasSetWorkspace", dynlib.Call(t.setWorkspace, h.handle, uintptr(h.workspace.Ptr()), uintptr(n)), "%d bytes", n); err != nil {
		return err
	}
	if sms > 0 && t.setSMs != 0 {
		return check("cublasSetSmCountTarget", dynlib.Call(t.setSMs, h.handle, uintptr(sms)), "%d", sms)
	}
	return nil
}

// Precision is how products are computed. Sums are float32 in all of them.
type Precision uint8

// The precisions. They govern float32 matrices; bf16 matrices are multiplied as
// they are.
const (
	FP32 Precision = iota // float32 throughout
	TF32                  // factors rounded to 10 bits of mantissa (tensor cores, sm_80)
	BF16                  // factors rounded to bf16 (tensor cores, sm_80)
)

// String returns the flag's word for it.
func (p Precision) String() string {
	switch p {
	case FP32:
		return "fp32"
	case TF32:
		return "tf32"
	case BF16:
		return "bf16"
	}
	return fmt.Sprintf("precision(%d)", uint8(p))
}

// Type is how a matrix is stored.
type Type uint8

// The storage types.
const (
	Float32 Type = iota
	BFloat16
)

// Matrix is a row-major matrix in device memory: element (i, j) is number
// i*Stride + j.
type Matrix struct {
	Ptr    cuda.DevicePtr
	Stride int // elements from row to row, at least the number of columns
	Type   Type
}

// The numbers of cudaDataType and cublasComputeType_t.
const (
	realFloat32  = 0
	realBFloat16 = 14

	computeFloat32  = 68
	computeFastBF16 = 75
	computeFastTF32 = 77

	defaultAlgorithm = ^uintptr(0) // CUBLAS_GEMM_DEFAULT = -1
)

func (t Type) real() uintptr {
	if t == BFloat16 {
		return realBFloat16
	}
	return realFloat32
}

func (p Precision) compute() uintptr {
	switch p {
	case TF32:
		return computeFastTF32
	case BF16:
		return computeFastBF16
	}
	return computeFloat32
}

// Product is c = alpha·op(a)·op(b) + beta·c for row-major matrices: op(a) is
// M×K, op(b) is K×N, c is M×N.
type Product struct {
	M, N, K        int
	TransA, TransB bool    // op transposes: a is stored K×M, b N×K
	Alpha, Beta    float32 // Beta = 0 means that c is not read
	Precision      Precision
}

// Gemm queues the product. a and b must have the same type. M or N = 0 is no
// work; K = 0 scales c. For a fixed GPU, library and shape the result is the
// same to the bit.
func (h *Handle) Gemm(p Product, a, b, c Matrix) error {
	if p.M == 0 || p.N == 0 {
		return nil
	}
	if err := p.check(a, b, c); err != nil {
		return err
	}
	call, err := h.stream.Begin()
	if err != nil {
		return err
	}
	defer call.End()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.handle == 0 {
		return fmt.Errorf("cublas: handle: %w", cuda.ErrClosed)
	}
	h.scalars = [2]float32{p.Alpha, p.Beta}
	op := func(t bool) uintptr {
		if t {
			return 1
		}
		return 0
	}
	compute := p.Precision.compute()
	if a.Type == BFloat16 {
		compute = computeFloat32
	}
	// cuBLAS is column-major: a row-major matrix is its own transpose there, so
	// c' = op(b)'·op(a)' with the factors exchanged and the flags kept.
	h.argv = [...]uintptr{h.handle, op(p.TransB), op(p.TransA), uintptr(p.N), uintptr(p.M), uintptr(p.K),
		uintptr(unsafe.Pointer(&h.scalars[0])),
		uintptr(b.Ptr), b.Type.real(), uintptr(b.Stride),
		uintptr(a.Ptr), a.Type.real(), uintptr(a.Stride),
		uintptr(unsafe.Pointer(&h.scalars[1])),
		uintptr(c.Ptr), c.Type.real(), uintptr(c.Stride),
		compute, defaultAlgorithm}
	r, _, _ := purego.SyscallN(h.lib.t.gemm, h.argv[:]...)
	if int32(r) != 0 {
		return check("cublasGemmEx", int32(r), "%dx%d = %dx%d by %dx%d, %v", p.M, p.N, p.M, p.K, p.K, p.N, p.Precision)
	}
	return nil
}

// check refuses shapes that cuBLAS would misread.
func (p Product) check(a, b, c Matrix) error {
	for _, m := range []struct {
		name       string
		m          Matrix
		rows, cols int
		trans      bool
	}{{"a", a, p.M, p.K, p.TransA}, {"b", b, p.K, p.N, p.TransB}, {"c", c, p.M, p.N, false}} {
		rows, cols := m.rows, m.cols
		if m.trans {
			rows, cols = cols, rows
		}
		switch {
		case rows < 0 || cols < 0 || max(rows, cols, m.m.Stride) > math.MaxInt32:
			return fmt.Errorf("cublas: %s is %dx%d with stride %d: sizes must be from 0 to 2^31-1", m.name, rows, cols, m.m.Stride)
		case m.m.Stride < max(cols, 1):
			return fmt.Errorf("cublas: %s has stride %d for %d columns", m.name, m.m.Stride, cols)
		case m.m.Ptr == 0 && rows*cols > 0:
			return fmt.Errorf("cublas: %s (%dx%d) has no address: its buffer is closed or was never made", m.name, rows, cols)
		}
	}
	if a.Type != b.Type {
		return fmt.Errorf("cublas: factors of different types")
	}
	return nil
}

// Close frees the handle and its workspace. Its queued work must be done.
// Closing twice does nothing.
func (h *Handle) Close() error {
	h.mu.Lock()
	handle := h.handle
	h.handle = 0
	h.mu.Unlock()
	var err error
	if handle != 0 {
		call, e := h.stream.Begin()
		if e == nil {
			err = check("cublasDestroy", dynlib.Call(h.lib.t.destroy, handle), "")
			call.End()
		} else {
			err = e
		}
	}
	return errors.Join(err, h.workspace.Close())
}
