//go:build amd64 || arm64

package blas

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
)

// OpenBLAS loads an OpenBLAS library at run time; no C compiler is involved.
// path names the file, or is empty for the system's libopenblas.so.0.
//
// The library's own threads are switched off (they spin between calls and
// starve the goroutines around them), for the whole process. It is used only
// if products of small integers, which no order of summation can change, come
// out exact: OpenBLAS has chosen wrong kernels for processors it did not know,
// and then OPENBLAS_CORETYPE in the environment helps.
//
// The library stays loaded until the process ends.
func OpenBLAS(path string) (*Engine, error) {
	lib, err := dlopen(path)
	if err != nil {
		return nil, err
	}
	k, info, err := bind(lib)
	if err != nil {
		return nil, err
	}
	e := &Engine{info: info, kernel: k}
	if err := selfCheck(e); err != nil {
		return nil, err
	}
	return e, nil
}

func dlopen(path string) (uintptr, error) {
	names := []string{path}
	if path == "" {
		names = []string{"libopenblas.so.0", "libopenblas.so"}
	}
	var errs []error
	for _, n := range names {
		lib, err := purego.Dlopen(n, purego.RTLD_NOW|purego.RTLD_LOCAL)
		if err == nil {
			return lib, nil
		}
		errs = append(errs, err)
	}
	return 0, fmt.Errorf("%w: %v", ErrNotFound, errs[0])
}

// bind looks up the functions and asks the library what it is.
func bind(lib uintptr) (*openBLAS, Info, error) {
	addr := func(name string) uintptr {
		p, err := purego.Dlsym(lib, name)
		if err != nil {
			return 0
		}
		return p
	}
	k := &openBLAS{sgemm: addr("sgemm_")}
	setThreads, config, core := addr("openblas_set_num_threads"), addr("openblas_get_config"), addr("openblas_get_corename")
	if k.sgemm == 0 || setThreads == 0 || config == 0 || core == 0 {
		return nil, Info{}, errors.New("the library lacks OpenBLAS functions (sgemm_, openblas_set_num_threads, openblas_get_config, openblas_get_corename)")
	}
	purego.SyscallN(setThreads, 1)
	var text func() string
	purego.RegisterFunc(&text, config)
	info := Info{Name: "openblas", Config: text()}
	purego.RegisterFunc(&text, core)
	info.Core = text()
	calls := maxCalls(info.Config)
	k.slots = make(chan *sgemmArgs, calls)
	for range calls {
		k.slots <- new(sgemmArgs)
	}
	return k, info, nil
}

// openBLAS multiplies tiles through the Fortran interface, which takes every
// argument by address and so goes through purego's plain call: 0.2 µs and no
// allocation, where a call with floating-point arguments costs 0.8 µs and 9.
type openBLAS struct {
	sgemm uintptr
	// slots holds the argument blocks of the calls that may run at once.
	slots chan *sgemmArgs
}

// sgemmArgs holds the arguments of a call that are passed by address. The
// integers are 64 bits wide to suit both builds of the library: the usual one
// reads their low halves (both architectures are little-endian).
type sgemmArgs struct {
	m, n, k, lda, ldb, ldc int64
	alpha, beta            float32
	transA, transB         byte

	call [15]uintptr
}

func letter(trans bool) byte {
	if trans {
		return 'T'
	}
	return 'N'
}

// packs is false: OpenBLAS packs its operands itself.
func (*openBLAS) packs() bool { return false }

// gemm passes the row-major product as its transpose: read by columns,
// C' = op(B)'·op(A)'.
func (o *openBLAS) gemm(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int,
	b []float32, ldb int, beta float32, c []float32, ldc int) {
	x := <-o.slots
	x.m, x.n, x.k = int64(n), int64(m), int64(k)
	x.lda, x.ldb, x.ldc = int64(ldb), int64(lda), int64(ldc)
	x.alpha, x.beta = alpha, beta
	x.transA, x.transB = letter(transB), letter(transA)
	// Addresses listed as arguments of SyscallN would be copied to the heap, as
	// a slice, at each call; x.call is on the heap already. The operands are
	// there as well, since they came through an interface's method, so they do
	// not move, and KeepAlive holds them until the library has returned.
	x.call = [15]uintptr{
		uintptr(unsafe.Pointer(&x.transA)), uintptr(unsafe.Pointer(&x.transB)),
		uintptr(unsafe.Pointer(&x.m)), uintptr(unsafe.Pointer(&x.n)), uintptr(unsafe.Pointer(&x.k)),
		uintptr(unsafe.Pointer(&x.alpha)),
		uintptr(unsafe.Pointer(&b[0])), uintptr(unsafe.Pointer(&x.lda)),
		uintptr(unsafe.Pointer(&a[0])), uintptr(unsafe.Pointer(&x.ldb)),
		uintptr(unsafe.Pointer(&x.beta)),
		uintptr(unsafe.Pointer(&c[0])), uintptr(unsafe.Pointer(&x.ldc)),
		1, 1, // the lengths of the two letters, which Fortran passes last
	}
	purego.SyscallN(o.sgemm, x.call[:]...)
	runtime.KeepAlive(a)
	runtime.KeepAlive(b)
	runtime.KeepAlive(c)
	o.slots <- x
}

// maxCalls bounds the calls that may be inside the library at once: it has
// working memory for twice as many threads as it was built for and gives up
// beyond that. config is its own description, "… MAX_THREADS=64".
func maxCalls(config string) int {
	const cautious = 16
	for _, f := range strings.Fields(config) {
		if v, ok := strings.CutPrefix(f, "MAX_THREADS="); ok {
			if n, err := strconv.Atoi(v); err == nil && n > 0 {
				return n
			}
		}
	}
	return cautious
}
