package blas

import (
	"errors"
	"fmt"
	"sync"
)

// ErrNotFound is returned by OpenBLAS where the machine has no such library,
// or where this platform cannot load one.
var ErrNotFound = errors.New("no OpenBLAS library found")

// Info names a BLAS: results are bit-identical only between runs with equal
// Info on one machine.
type Info struct {
	Name   string // "gonum" or "openblas"
	Config string // the library's version and build options
	Core   string // the processor type it chose its kernels for
}

// String returns one line for logs and checkpoints.
func (i Info) String() string {
	if i.Core == "" {
		return i.Name + " " + i.Config
	}
	return fmt.Sprintf("%s %s, kernels for %s", i.Name, i.Config, i.Core)
}

// Engine multiplies matrices with one library. It owns scratch memory, which
// it keeps and reuses. Make one per process and share it.
type Engine struct {
	info   Info
	kernel kernel

	mu   sync.Mutex
	free []*product // idle products with their scratch, most recently used last
}

// kernel multiplies one tile on the calling goroutine. Its sizes are all at
// least 1, and its slices are as long as the tile needs.
type kernel interface {
	gemm(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int,
		b []float32, ldb int, beta float32, c []float32, ldc int)
	// packs tells whether a right operand that is stored transposed must be
	// copied to its plain form first, so that transB is never set.
	packs() bool
}

// Info names the library.
func (e *Engine) Info() Info { return e.info }

// Auto returns OpenBLAS where it is found and passes its self-check, else
// gonum. The engine is never nil; the error says why OpenBLAS is not used and
// wraps ErrNotFound if there is none, which is nothing to warn about.
func Auto() (*Engine, error) {
	e, err := OpenBLAS("")
	if err != nil {
		return Gonum(), err
	}
	return e, nil
}

// acquire returns an idle product; release gives it back.
func (e *Engine) acquire() *product {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n := len(e.free); n > 0 {
		p := e.free[n-1]
		e.free = e.free[:n-1]
		return p
	}
	return newProduct(e.kernel)
}

func (e *Engine) release(p *product) {
	p.forget()
	e.mu.Lock()
	e.free = append(e.free, p)
	e.mu.Unlock()
}
