package cpu

import (
	"fmt"

	"gonum.org/v1/gonum/blas/gonum"

	"zerogcn/internal/blas"
	"zerogcn/internal/par"
	"zerogcn/model/exec"
	"zerogcn/model/op"
)

// Options configure a Backend. The zero value uses all processors and gonum.
type Options struct {
	// Workers bounds the goroutines of a kernel; 0 means GOMAXPROCS. Results do
	// not depend on it.
	Workers par.Workers
	// BLAS multiplies dense matrices; nil means blas.Gonum().
	BLAS *blas.Engine
}

// Backend runs programs on the host. It is safe for concurrent use by several
// programs.
type Backend struct {
	workers par.Workers
	blas    *blas.Engine
}

var _ exec.Backend = (*Backend)(nil)

// New returns a back end.
func New(o Options) *Backend {
	if o.BLAS == nil {
		o.BLAS = blas.Gonum()
	}
	return &Backend{workers: o.Workers, blas: o.BLAS}
}

// Name returns "cpu".
func (b *Backend) Name() string { return "cpu" }

// BLAS returns the engine of the matrix products; its Info belongs in logs and
// checkpoints.
func (b *Backend) BLAS() *blas.Engine { return b.blas }

// Alloc returns a slice of the garbage-collected heap.
func (b *Backend) Alloc(n int) (exec.Buffer, error) {
	return exec.HostBuffer(make([]float32, n)), nil
}

// Free leaves the buffer to the garbage collector.
func (b *Backend) Free(exec.Buffer) {}

// Kernel returns a new kernel for an operation, with scratch memory of its own.
func (b *Backend) Kernel(o *op.Op) (exec.Kernel, error) {
	w, a := b.workers, o.Attr
	switch o.Kind {
	case op.Copy, op.Head, op.HeadGrad:
		return newElementwise(w, copyRows), nil
	case op.Add:
		return newElementwise(w, addRows), nil
	case op.BiasAdd:
		return newElementwise(w, biasRows), nil
	case op.ReLU:
		return newElementwise(w, reluRows), nil
	case op.ReLUGrad:
		return newElementwise(w, reluGradRows), nil
	case op.MatMul:
		return &matMul{backend: b, attr: a}, nil
	case op.ColSum:
		return newColumnSum(w), nil
	case op.Dropout:
		return newDropout(w, a), nil
	case op.Aggregate:
		return newAggregate(w, a.Agg, false), nil
	case op.AggregateGrad:
		return newAggregate(w, a.Agg, true), nil
	case op.AggregateMax:
		return newAggregateMax(w), nil
	case op.AggregateMaxGrad:
		return newAggregateMaxGrad(w), nil
	case op.SparseLinear:
		return newSparseLinear(w, a), nil
	case op.SparseLinearGrad:
		return newSparseLinearGrad(w, a), nil
	case op.SoftmaxCE:
		return newSoftmaxLoss(w), nil
	case op.SoftmaxCEGrad:
		return newSoftmaxGrad(w), nil
	case op.SigmoidBCE:
		return newSigmoidLoss(w), nil
	case op.SigmoidBCEGrad:
		return newSigmoidGrad(w), nil
	}
	return nil, fmt.Errorf("no kernel for %v", o)
}

type matMul struct {
	backend *Backend
	attr    op.Attr
}

func (m *matMul) Run(out *op.Value, in []*op.Value) error {
	x, y := in[0], in[1]
	rows, k, cols := op.MatMulDims(m.attr, x, y)
	m.backend.blas.Gemm(m.backend.workers, m.attr.TransA, m.attr.TransB, rows, cols, k,
		1, x.Data, x.Cols, y.Data, y.Cols, 0, out.Data, cols)
	return nil
}

// grain is the work of a tile, in elements touched: about 10 µs, so that
// starting a goroutine is cheap beside it.
const grain = 1 << 15

// rowsPer returns the rows of a tile if all rows together touch work elements.
func rowsPer(rows, work int) int {
	if work <= grain {
		return max(1, rows)
	}
	return max(1, int(float64(rows)*grain/float64(work)))
}

// axpy adds alpha·x to y; x is at least as long as y.
func axpy(alpha float32, x, y []float32) {
	gonum.Implementation{}.Saxpy(len(y), alpha, x, 1, y, 1)
}

func grow[T any](x []T, n int) []T {
	if cap(x) < n {
		return make([]T, n+n/8)[:n]
	}
	return x[:n]
}
