package cuda

import (
	"errors"
	"fmt"
	"sync"

	"zerogcn/cuda"
	"zerogcn/cuda/cublas"
	"zerogcn/cuda/kernels"
	"zerogcn/model/exec"
	"zerogcn/model/op"
)

// NoBLAS as Options.BLAS asks for the project's own product kernels.
const NoBLAS = "none"

// Options configure a Backend. The zero value is float32 throughout, cuBLAS where
// it is found, and the same bits in every run.
type Options struct {
	// Precision is that of products by cuBLAS; sums are float32 in all. The
	// project's own kernels are float32 whatever it says.
	Precision cublas.Precision
	// BLAS is the path of cuBLAS or of its folder, NoBLAS for none, or empty to
	// search and to do without where there is none (BLAS says so then).
	BLAS string
	// Atomics adds gradients of aggregations in any order, by atomic additions.
	// It needs no transposed blocks; results differ in the last bits from run
	// to run.
	Atomics bool
}

// Backend runs programs on a GPU. See the package comment for who may use it and
// when.
type Backend struct {
	dev    *cuda.Device
	stream *cuda.Stream
	opt    Options

	blas     *cublas.Handle // nil: own kernels
	blasName string

	mu      sync.Mutex // guards what Alloc and Free change
	buffers map[uintptr]*cuda.Buffer

	modules map[string]*cuda.Module // loaded when first asked for

	scratch      *cuda.Buffer // what kernels need between their launches
	scratchBytes int64
}

var _ exec.DeviceBackend = (*Backend)(nil)

// New returns a back end that queues its work on the stream, which must stay
// open until Close. A cuBLAS that was named and cannot be loaded is an error.
func New(dev *cuda.Device, stream *cuda.Stream, o Options) (*Backend, error) {
	if stream.Device() != dev {
		return nil, fmt.Errorf("exec/cuda: the stream is of %v, not of %v", stream.Device(), dev)
	}
	if o.Precision > cublas.BF16 {
		return nil, fmt.Errorf("exec/cuda: unknown precision %v (fp32, tf32 or bf16)", o.Precision)
	}
	b := &Backend{dev: dev, stream: stream, opt: o,
		buffers: map[uintptr]*cuda.Buffer{}, modules: map[string]*cuda.Module{}}
	if err := b.openBLAS(); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

func (b *Backend) openBLAS() error {
	const own = "own kernels, fp32"
	if b.opt.BLAS == NoBLAS {
		b.blasName = own
		return nil
	}
	lib, err := cublas.Load(cublas.Options{Path: b.opt.BLAS, Driver: b.dev.Driver().Version()})
	if err != nil {
		if b.opt.BLAS != "" {
			return fmt.Errorf("exec/cuda: %w", err)
		}
		b.blasName = fmt.Sprintf("%s (%v)", own, err)
		return nil
	}
	if b.blas, err = lib.NewHandle(b.stream, cublas.HandleOptions{}); err != nil {
		return fmt.Errorf("exec/cuda: %w", err)
	}
	b.blasName = fmt.Sprintf("cuBLAS %d, %v", lib.Version(), b.opt.Precision)
	return nil
}

// Name returns "cuda:0" for device 0.
func (b *Backend) Name() string { return fmt.Sprintf("cuda:%d", b.dev.Ordinal()) }

// BLAS says what multiplies matrices, and why if that is not what was hoped for:
// a line for logs and checkpoints.
func (b *Backend) BLAS() string { return b.blasName }

// Device returns the device.
func (b *Backend) Device() *cuda.Device { return b.dev }

// Stream returns the stream that work is queued on.
func (b *Backend) Stream() *cuda.Stream { return b.stream }

// Kernel returns a new kernel for an operation. exec.ErrUnsupported marks those
// that a GPU is not meant to run.
func (b *Backend) Kernel(o *op.Op) (exec.Kernel, error) {
	a := o.Attr
	switch o.Kind {
	case op.Copy, op.Head, op.HeadGrad:
		return newCopyRows(b)
	case op.Add:
		return newElementwise(b, "add", 2)
	case op.ReLU:
		return newElementwise(b, "relu", 1)
	case op.ReLUGrad:
		return newElementwise(b, "relu_grad", 2)
	case op.BiasAdd:
		return newBiasAdd(b)
	case op.Dropout:
		return newDropout(b, a)
	case op.ColSum:
		return newColumnSum(b)
	case op.MatMul:
		return newMatMul(b, a)
	case op.Aggregate:
		return newAggregate(b, a.Agg, false)
	case op.AggregateGrad:
		if b.opt.Atomics {
			return newScatter(b, a.Agg)
		}
		return newAggregate(b, a.Agg, true)
	case op.AggregateMax:
		return newAggregateMax(b)
	case op.AggregateMaxGrad:
		return newAggregateMaxGrad(b)
	case op.SoftmaxCE:
		return newSoftmaxLoss(b)
	case op.SoftmaxCEGrad:
		return newSoftmaxGrad(b)
	case op.SparseLinear, op.SparseLinearGrad:
		return nil, fmt.Errorf("%w: features must be dense on a GPU", exec.ErrUnsupported)
	case op.SigmoidBCE:
		return newSigmoidLoss(b)
	case op.SigmoidBCEGrad:
		return newSigmoidGrad(b)
	}
	return nil, fmt.Errorf("no kernel for %v on a GPU", o)
}

// function returns a kernel of a module of cuda/kernels.
func (b *Backend) function(module, name string) (*cuda.Function, error) {
	m := b.modules[module]
	if m == nil {
		var err error
		if m, err = kernels.Load(b.dev, module); err != nil {
			return nil, err
		}
		b.modules[module] = m
	}
	return m.Function(name)
}

// functions fills pointers from the names of a module's kernels.
func (b *Backend) functions(module string, to map[string]**cuda.Function) error {
	for name, p := range to {
		f, err := b.function(module, name)
		if err != nil {
			return err
		}
		*p = f
	}
	return nil
}

// NewReplay returns a Replay on the back end's stream.
func (b *Backend) NewReplay() exec.Replay { return &Replay{stream: b.stream} }

// Replay is a step captured as a CUDA graph, updated and launched.
type Replay struct {
	cuda.Replay
	stream *cuda.Stream
}

// Run captures what f queues on the back end's stream and launches it.
func (r *Replay) Run(f func() error) error { return r.Replay.Run(r.stream, f) }

// Close waits for the back end's work and frees its memory, programs' buffers
// included, and unloads its kernels. The stream stays open. Closing twice does
// nothing.
func (b *Backend) Close() error {
	errs := []error{}
	if b.modules != nil {
		errs = append(errs, b.stream.Synchronize())
	}
	if b.blas != nil {
		errs = append(errs, b.blas.Close())
	}
	errs = append(errs, b.scratch.Close())
	b.mu.Lock()
	for _, buf := range b.buffers {
		errs = append(errs, buf.Close())
	}
	b.buffers = nil
	b.mu.Unlock()
	for _, m := range b.modules {
		errs = append(errs, m.Close())
	}
	b.modules, b.scratch, b.scratchBytes, b.blas = nil, nil, 0, nil
	return errors.Join(errs...)
}
