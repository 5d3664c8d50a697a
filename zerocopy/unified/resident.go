package unified

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"gorgonia.org/tensor"

	"zerogcn/cuda"
	"zerogcn/zerocopy"
)

var errOpaque = errors.New("the tensor is in GPU memory: copy it with unified.Host")

// resident is the engine of a tensor in GPU memory. It executes nothing; it
// marks the memory as inaccessible and keeps the buffer.
type resident struct {
	buffer *cuda.Buffer // nil for memory of others
	stream *cuda.Stream // for copies to the host
}

var _ tensor.Engine = (*resident)(nil)

func (*resident) AllocAccessible() bool                           { return false }
func (*resident) Alloc(int64) (tensor.Memory, error)              { return nil, errOpaque }
func (*resident) Free(tensor.Memory, int64) error                 { return nil }
func (*resident) Memset(tensor.Memory, interface{}) error         { return errOpaque }
func (*resident) Memclr(tensor.Memory)                            {}
func (*resident) Memcpy(_, _ tensor.Memory) error                 { return errOpaque }
func (*resident) Accessible(tensor.Memory) (tensor.Memory, error) { return nil, errOpaque }
func (*resident) WorksWith(o tensor.DataOrder) bool               { return o.IsRowMajor() }

// Upload copies ids to GPU memory, as a vector for ByIndices.
func (e *Engine) Upload(ids []int32) (*tensor.Dense, error) {
	if e.device == nil {
		return nil, errors.New("unified: the engine has no GPU")
	}
	if len(ids) == 0 {
		return nil, errors.New("unified: a tensor cannot be empty (no ids)")
	}
	b, err := cuda.Place(e.stream, cuda.Indices, ids)
	if err != nil {
		return nil, err
	}
	return e.residentTensor(b, tensor.Int32, len(ids)), nil
}

// Wrap makes a tensor of shape over GPU memory of the caller, which must stay
// until the tensor is no longer used.
func (e *Engine) Wrap(p cuda.DevicePtr, dt tensor.Dtype, shape ...int) (*tensor.Dense, error) {
	n := int(dt.Size())
	for _, s := range shape {
		n *= s
	}
	if e.device == nil || p == 0 || len(shape) == 0 || n <= 0 {
		return nil, fmt.Errorf("unified: cannot wrap %v of shape %v at %#x", dt, shape, uintptr(p))
	}
	return denseOn(&resident{stream: e.stream}, p, dt, n, shape), nil
}

// residentTensor owns b: the buffer is freed by Release or when the tensor is
// unreachable.
func (e *Engine) residentTensor(b *cuda.Buffer, dt tensor.Dtype, shape ...int) *tensor.Dense {
	r := &resident{b, e.stream}
	runtime.AddCleanup(r, func(b *cuda.Buffer) { _ = b.Close() }, b)
	n := int(dt.Size())
	for _, s := range shape {
		n *= s
	}
	return denseOn(r, b.Ptr(), dt, n, shape)
}

func denseOn(r *resident, p cuda.DevicePtr, dt tensor.Dtype, bytes int, shape []int) *tensor.Dense {
	return tensor.New(tensor.Of(dt), tensor.WithShape(shape...), tensor.WithEngine(r), tensor.FromMemory(uintptr(p), uintptr(bytes)))
}

// onDevice gathers with ids in GPU memory into a new tensor there.
func (e *Engine) onDevice(indices tensor.Tensor, opts []tensor.FuncOpt) (tensor.Tensor, error) {
	switch {
	case e.device == nil:
		return nil, errors.New("select by indices: the indices are in GPU memory, but the engine gathers on the CPU")
	case indices.Dtype() != tensor.Int32:
		return nil, fmt.Errorf("select by indices: indices in GPU memory are %v, want int32", indices.Dtype())
	case len(opts) > 0:
		return nil, errors.New("select by indices: no options are possible with indices in GPU memory")
	}
	n := indices.Shape().TotalSize()
	out, err := e.gpu.Alloc(cuda.Activations, 4*int64(n)*int64(e.width))
	if err != nil {
		return nil, err
	}
	err = e.device.Enqueue(context.Background(), e.stream, zerocopy.Batch{N: n, IDs: cuda.DevicePtr(indices.Uintptr()), Dst: out.Ptr()})
	if err == nil {
		err = e.stream.Synchronize()
	}
	runtime.KeepAlive(indices)
	if err == nil {
		err = e.device.Check()
	}
	if err != nil {
		return nil, errors.Join(err, out.Close())
	}
	return e.residentTensor(out, tensor.Float32, n, e.width), nil
}

// Host copies a tensor in GPU memory to a new one in host memory.
func Host(t *tensor.Dense) (*tensor.Dense, error) {
	r, ok := t.Engine().(*resident)
	if !ok {
		return nil, errors.New("unified: the tensor is not in GPU memory")
	}
	if r.buffer != nil && r.buffer.Ptr() == 0 {
		return nil, fmt.Errorf("unified: tensor %w", zerocopy.ErrClosed)
	}
	out := tensor.New(tensor.Of(t.Dtype()), tensor.WithShape(t.Shape().Clone()...))
	var err error
	switch v := out.Data().(type) {
	case []float32:
		err = cuda.Download(r.stream, v, cuda.DevicePtr(t.Uintptr()))
	case []int32:
		err = cuda.Download(r.stream, v, cuda.DevicePtr(t.Uintptr()))
	default:
		return nil, fmt.Errorf("unified: cannot copy %v to the host", t.Dtype())
	}
	runtime.KeepAlive(t)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Release frees the memory of a tensor in GPU memory that Upload or ByIndices
// made. The tensor must not be used afterwards. Releasing twice does nothing.
func Release(t *tensor.Dense) error {
	r, ok := t.Engine().(*resident)
	if !ok {
		return errors.New("unified: the tensor is not in GPU memory")
	}
	return r.buffer.Close()
}
