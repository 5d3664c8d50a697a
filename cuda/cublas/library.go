package cublas

import (
	"fmt"
	"unsafe"

	"zerogcn/cuda"
	"zerogcn/cuda/internal/dynlib"
)

// Library is a loaded cuBLAS.
type Library struct {
	path    string
	version int
	t       table
}

type table struct {
	create, destroy, version, setStream, setWorkspace, gemm, setSMs uintptr
}

// Options are the choices of Load; the zero value searches everywhere.
type Options struct {
	// Path is a file, or a folder that holds libcublas.so.N, to use and no other.
	Path string
	// Driver, if not 0, leaves out releases of cuBLAS that are newer than the
	// driver: CUDA 13's library does not run on a driver for CUDA 12.
	Driver cuda.Version
}

// Load opens libcublas.so.13, .12 or .11, whichever is found first in that
// order and in the order of the places that the package comment lists. Where
// there is none the error says what was tried.
func Load(o Options) (*Library, error) {
	var names []string
	for _, major := range []int{13, 12, 11} {
		if o.Driver == 0 || major <= int(o.Driver)/1000 {
			names = append(names, fmt.Sprintf("libcublas.so.%d", major))
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("cublas: a driver for CUDA %s is too old: update the NVIDIA driver", o.Driver)
	}
	lib, err := dynlib.Search{Names: names, Path: o.Path}.Open()
	if err != nil {
		return nil, fmt.Errorf("cublas: %w: install CUDA's cuBLAS or `pip install nvidia-cublas`, or name the file", err)
	}
	return load(lib.Path, lib.Symbol)
}

func load(path string, symbol func(...string) (uintptr, error)) (*Library, error) {
	l := &Library{path: path}
	for _, s := range []struct {
		to    *uintptr
		names []string
	}{
		{&l.t.create, []string{"cublasCreate_v2"}},
		{&l.t.destroy, []string{"cublasDestroy_v2"}},
		{&l.t.version, []string{"cublasGetVersion_v2"}},
		{&l.t.setStream, []string{"cublasSetStream_v2"}},
		{&l.t.setWorkspace, []string{"cublasSetWorkspace_v2"}},
		{&l.t.gemm, []string{"cublasGemmEx"}},
	} {
		p, err := symbol(s.names...)
		if err != nil {
			return nil, fmt.Errorf("cublas: %w", err)
		}
		*s.to = p
	}
	// Since CUDA 11.5.
	l.t.setSMs, _ = symbol("cublasSetSmCountTarget")
	v := new(int32)
	// The version needs no handle from CUDA 11 on.
	if dynlib.Call(l.t.version, 0, uintptr(unsafe.Pointer(v))) == 0 {
		l.version = int(*v)
	}
	return l, nil
}

// Path returns the file that was opened, a bare name where the system's loader
// found it.
func (l *Library) Path() string { return l.path }

// Version returns the library's version, 120405 for 12.4.5; 0 if it does not
// tell.
func (l *Library) Version() int { return l.version }

// Error is a failed call of cuBLAS.
type Error struct {
	Call   string // "cublasGemmEx"
	Status int
	Name   string // "CUBLAS_STATUS_NOT_SUPPORTED"
	Detail string // what was asked
}

// Error is one line.
func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %s (%d)", e.Call, e.Name, e.Status)
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	switch e.Status {
	case 1: // NOT_INITIALIZED
		s += "; cuBLAS could not start: it may be newer than the driver, or the GPU is out of memory"
	case 3: // ALLOC_FAILED
		s += "; the GPU is out of memory: use a smaller batch or cache"
	}
	return s
}

var statusNames = map[int]string{
	1: "CUBLAS_STATUS_NOT_INITIALIZED", 3: "CUBLAS_STATUS_ALLOC_FAILED", 7: "CUBLAS_STATUS_INVALID_VALUE",
	8: "CUBLAS_STATUS_ARCH_MISMATCH", 11: "CUBLAS_STATUS_MAPPING_ERROR", 13: "CUBLAS_STATUS_EXECUTION_FAILED",
	14: "CUBLAS_STATUS_INTERNAL_ERROR", 15: "CUBLAS_STATUS_NOT_SUPPORTED", 16: "CUBLAS_STATUS_LICENSE_ERROR",
}

func check(call string, status int32, format string, args ...any) error {
	if status == 0 {
		return nil
	}
	name, ok := statusNames[int(status)]
	if !ok {
		name = "CUBLAS_STATUS_?"
	}
	return &Error{call, int(status), name, fmt.Sprintf(format, args...)}
}
