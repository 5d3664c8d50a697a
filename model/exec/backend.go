package exec

import "zerogcn/model/op"

// Backend brings the kernels and the memory of one device. It is shared by the
// programs compiled for it.
type Backend interface {
	// Name is a short name for logs, such as "cpu" or "cuda:0".
	Name() string
	// Kernel returns the kernel of an operation. It is called once per
	// instruction at compile time; the kernel may keep scratch memory, which
	// belongs to the program.
	Kernel(o *op.Op) (Kernel, error)
	// Alloc returns a buffer of at least n elements with any content.
	Alloc(n int) (Buffer, error)
	// Free gives a buffer of Alloc's back; the zero Buffer is ignored.
	Free(Buffer)
}

// Kernel computes one operation. out has the shape that the operation inferred
// and its memory; every element must be written. If the operation is in-place,
// out may share memory with in[0]. On an asynchronous device Run only enqueues.
type Kernel interface {
	Run(out *op.Value, in []*op.Value) error
}

// Preparer is a Kernel that needs memory beyond its result. Prepare is called
// with the operands' shapes and memory before any kernel of the run, so that Run
// allocates nothing and can be captured as a CUDA graph.
type Preparer interface {
	Prepare(out *op.Value, in []*op.Value) error
}

// KernelFunc is a function as a Kernel.
type KernelFunc func(out *op.Value, in []*op.Value) error

// Run calls f.
func (f KernelFunc) Run(out *op.Value, in []*op.Value) error { return f(out, in) }

// Buffer is memory for Cap float32 elements, on the host or on a device.
type Buffer struct {
	Data []float32
	Dev  uintptr
	Cap  int
}

// HostBuffer returns a Buffer over a slice.
func HostBuffer(data []float32) Buffer { return Buffer{Data: data, Cap: len(data)} }

// place points a value of n elements at the buffer.
func (b *Buffer) place(v *op.Value, n int) {
	v.Dev = b.Dev
	if b.Data != nil {
		v.Data = b.Data[:n]
	}
}
