package unified

import (
	"context"
	"errors"
	"fmt"
	"math"
	"unsafe"

	"gorgonia.org/tensor"

	"zerogcn/cuda"
	"zerogcn/dtype"
	"zerogcn/zerocopy"
)

// Options adjusts New. The zero value gathers on the CPU.
type Options struct {
	// Device gathers on this GPU; nil on the CPU.
	Device *cuda.Device
	// Gather adjusts the gather on the GPU.
	Gather zerocopy.DeviceOptions
	// Workers is the number of threads of the gather on the CPU; 0 means
	// GOMAXPROCS.
	Workers int
}

// Engine executes tensor operations on the CPU as tensor.StdEng does, except
// that it gathers rows of its table by a zerocopy.Gatherer.
type Engine struct {
	tensor.StdEng

	table   *zerocopy.Table
	memory  *zerocopy.Memory // keeps the rows mapped while a Dense has the engine
	host    zerocopy.Gatherer
	device  *zerocopy.DeviceGatherer // nil on the CPU; else the same as host
	stream  *cuda.Stream
	gpu     *cuda.Device
	rows    int
	width   int
	address uintptr
}

var _ tensor.ByIndiceser = (*Engine)(nil)

// New returns the table's rows as a matrix of rows × width float32, in place,
// and its engine. Only float32 tables can be tensors, and Gorgonia has no empty
// shapes, so rows and width must be positive.
func New(ctx context.Context, t *zerocopy.Table, opt Options) (*tensor.Dense, *Engine, error) {
	if t.Type() != dtype.Float32 {
		return nil, nil, fmt.Errorf("%s: a tensor needs float32 rows, these are %v", t.Name(), t.Type())
	}
	if t.Rows() == 0 || t.Width() == 0 {
		return nil, nil, fmt.Errorf("%s: a tensor cannot be empty (%d rows × %d values)", t.Name(), t.Rows(), t.Width())
	}
	mem, err := t.Memory()
	if err != nil {
		return nil, nil, err
	}
	e := &Engine{table: t, memory: mem, gpu: opt.Device, rows: t.Rows(), width: t.Width()}
	first := unsafe.Pointer(&mem.Bytes()[0])
	if uintptr(first)%4 != 0 {
		return nil, nil, fmt.Errorf("%s: a tensor needs rows aligned to 4 bytes", t.Name())
	}
	e.address = uintptr(first)
	if opt.Device == nil {
		if e.host, err = zerocopy.NewHostGatherer(t, zerocopy.GatherOptions{Workers: opt.Workers}); err != nil {
			return nil, nil, err
		}
	} else {
		if e.device, err = zerocopy.NewDeviceGatherer(ctx, t, opt.Device, opt.Gather); err != nil {
			return nil, nil, err
		}
		e.host = e.device
		if e.stream, err = opt.Device.NewStream(cuda.StreamOptions{}); err != nil {
			return nil, nil, errors.Join(err, e.Close())
		}
	}
	values := unsafe.Slice((*float32)(first), e.rows*e.width)
	return tensor.New(tensor.WithShape(e.rows, e.width), tensor.WithBacking(values), tensor.WithEngine(e)), e, nil
}

// Gatherer returns the gatherer in use, for its mode and metrics.
func (e *Engine) Gatherer() zerocopy.Gatherer { return e.host }

// Close gives up the table. It may be called twice.
func (e *Engine) Close() error {
	err := e.host.Close()
	if e.stream != nil {
		err = errors.Join(err, e.stream.Close())
	}
	return err
}

// SelectByIndices implements tensor.ByIndices. Rows of the table are gathered;
// selections from other tensors or along other axes go to tensor.StdEng, after
// a check of the indices that it does not make itself.
//
// Of the options, a reuse tensor (tensor.WithReuse) is filled for ids in host
// memory.
func (e *Engine) SelectByIndices(a, indices tensor.Tensor, axis int, opts ...tensor.FuncOpt) (tensor.Tensor, error) {
	if !indices.Shape().IsVectorLike() {
		return nil, fmt.Errorf("select by indices: indices have shape %v, want a vector", indices.Shape())
	}
	if !e.owns(a) || axis != 0 {
		if err := checkIndices(a, indices, axis); err != nil {
			return nil, err
		}
		return e.StdEng.SelectByIndices(a, indices, axis, opts...)
	}
	if !indices.IsNativelyAccessible() {
		return e.onDevice(indices, opts)
	}
	ids, err := e.hostIDs(indices)
	if err != nil {
		return nil, err
	}
	out, err := e.result(len(ids), opts)
	if err != nil {
		return nil, err
	}
	if err := e.host.Gather(context.Background(), ids, out.Data().([]float32)); err != nil {
		return nil, err
	}
	return out, nil
}

// SelectByIndicesB would be the gradient of SelectByIndices. Tables are
// read-only; gradients of other tensors go to tensor.StdEng.
func (e *Engine) SelectByIndicesB(input, outGrad, indices tensor.Tensor, axis int, opts ...tensor.FuncOpt) (tensor.Tensor, error) {
	if e.owns(input) {
		return nil, fmt.Errorf("%s: a feature table takes no gradient", e.table.Name())
	}
	if err := checkIndices(input, indices, axis); err != nil {
		return nil, err
	}
	return e.StdEng.SelectByIndicesB(input, outGrad, indices, axis, opts...)
}

// owns reports whether a is the whole table.
func (e *Engine) owns(a tensor.Tensor) bool {
	d, ok := a.(*tensor.Dense)
	return ok && d.Uintptr() == e.address && d.Dims() == 2 && d.Shape()[0] == e.rows && d.Shape()[1] == e.width && !d.RequiresIterator()
}

// hostIDs returns indices as int32. Ints that do not fit are reported as the
// ids that they are.
func (e *Engine) hostIDs(indices tensor.Tensor) ([]int32, error) {
	if indices.RequiresIterator() {
		return nil, errors.New("select by indices: indices must be contiguous")
	}
	switch v := indices.Data().(type) {
	case []int32:
		return v, nil
	case int32:
		return []int32{v}, nil
	case int:
		return e.narrow([]int{v})
	case []int:
		return e.narrow(v)
	}
	return nil, fmt.Errorf("select by indices: indices are %v, want int or int32", indices.Dtype())
}

func (e *Engine) narrow(v []int) ([]int32, error) {
	ids := make([]int32, len(v))
	for i, id := range v {
		if id < 0 || id > math.MaxInt32 {
			return nil, &zerocopy.IDError{Table: e.table.Name(), Position: i, ID: int64(id), Rows: e.rows}
		}
		ids[i] = int32(id)
	}
	return ids, nil
}

// result makes or checks the tensor that n gathered rows go to.
func (e *Engine) result(n int, opts []tensor.FuncOpt) (*tensor.Dense, error) {
	o := tensor.ParseFuncOpts(opts...)
	if o.Incr() != nil || !o.Safe() {
		return nil, errors.New("select by indices: neither WithIncr nor UseUnsafe is possible on a table")
	}
	if o.Reuse() == nil {
		return tensor.New(tensor.WithShape(n, e.width), tensor.Of(tensor.Float32)), nil
	}
	out, ok := o.Reuse().(*tensor.Dense)
	switch {
	case !ok || !out.IsNativelyAccessible() || out.Dtype() != tensor.Float32 || out.RequiresIterator():
		return nil, errors.New("select by indices: the reuse tensor must be a contiguous float32 Dense in host memory")
	case !out.Shape().Eq(tensor.Shape{n, e.width}):
		return nil, fmt.Errorf("select by indices: the reuse tensor has shape %v, want (%d, %d)", out.Shape(), n, e.width)
	}
	return out, nil
}

// checkIndices refuses indices that tensor.StdEng would not, but panic or copy
// something else for.
func checkIndices(a, indices tensor.Tensor, axis int) error {
	if axis < 0 || axis >= a.Dims() {
		return fmt.Errorf("select by indices: axis %d of a tensor with %d dimensions", axis, a.Dims())
	}
	if !indices.IsNativelyAccessible() || !a.IsNativelyAccessible() {
		return errors.New("select by indices: only rows of the table can be selected in GPU memory")
	}
	v, ok := indices.Data().([]int)
	if !ok {
		return nil // StdEng refuses other types itself
	}
	for i, id := range v {
		if id < 0 || id >= a.Shape()[axis] {
			return fmt.Errorf("select by indices: index %d at position %d is outside axis %d of shape %v", id, i, axis, a.Shape())
		}
	}
	return nil
}
