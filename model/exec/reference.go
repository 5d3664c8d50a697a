package exec

import "zerogcn/model/op"

// Reference is a Backend on host memory whose kernels are package op's reference
// loops: slow, obvious, and what the others are tested against.
type Reference struct{}

// Name returns "reference".
func (Reference) Name() string { return "reference" }

// Kernel returns the operation's reference loop, on a copy of operands that the
// result would overwrite.
func (Reference) Kernel(o *op.Op) (Kernel, error) {
	return KernelFunc(func(out *op.Value, in []*op.Value) error {
		fresh := op.Matrix(out.Rows, out.Cols, make([]float32, out.Len()))
		o.Reference(&fresh, in)
		copy(out.Data, fresh.Data)
		return nil
	}), nil
}

// Alloc returns a slice of the garbage-collected heap.
func (Reference) Alloc(n int) (Buffer, error) { return HostBuffer(make([]float32, n)), nil }

// Free does nothing.
func (Reference) Free(Buffer) {}
