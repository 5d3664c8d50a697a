package cuda

import (
	"math"

	"zerogcn/cuda"
	"zerogcn/internal/philox"
	"zerogcn/model/exec"
	"zerogcn/model/op"
)

const elementwiseModule = "model_elementwise"

// elementwise runs a kernel (y, operands…, n, vec).
type elementwise struct {
	b    *Backend
	f    *cuda.Function
	args []cuda.Arg
	n    int // operands
}

func newElementwise(b *Backend, name string, operands int) (exec.Kernel, error) {
	f, err := b.function(elementwiseModule, name)
	return &elementwise{b, f, make([]cuda.Arg, operands+3), operands}, err
}

func (k *elementwise) Run(out *op.Value, in []*op.Value) error {
	if err := onDevice(in[:k.n]...); err != nil {
		return err
	}
	n := out.Len()
	k.args[0] = ptr(out)
	vec := aligned(4, out)
	for i, v := range in[:k.n] {
		k.args[1+i] = ptr(v)
		vec = vec && aligned(4, v)
	}
	k.args[k.n+1], k.args[k.n+2] = cuda.I64(int64(n)), flag(vec)
	return k.f.Launch(k.b.stream, k.b.flat(int64(n)), k.args...)
}

// copyRows copies the part of its operand that fits the result, and clears the
// rest: Copy, Head and HeadGrad.
type copyRows struct {
	b *Backend
	f *cuda.Function
}

func newCopyRows(b *Backend) (exec.Kernel, error) {
	f, err := b.function(elementwiseModule, "copy_zero")
	return &copyRows{b, f}, err
}

func (k *copyRows) Run(out *op.Value, in []*op.Value) error {
	x := in[0]
	if x.Dev == 0 && x.Len() == 1 && len(x.Data) == 1 { // a constant of the graph
		return k.b.stream.Set32(cuda.DevicePtr(out.Dev), math.Float32bits(x.Data[0]), 1)
	}
	if err := onDevice(x); err != nil {
		return err
	}
	n, total := min(x.Len(), out.Len()), out.Len()
	vec := aligned(4, out, x) && (n%4 == 0 || n == total)
	return k.f.Launch(k.b.stream, k.b.flat(int64(total)), ptr(out), ptr(x),
		cuda.I64(int64(n)), cuda.I64(int64(total)), flag(vec))
}

type biasAdd struct {
	b *Backend
	f *cuda.Function
}

func newBiasAdd(b *Backend) (exec.Kernel, error) {
	f, err := b.function(elementwiseModule, "bias_add")
	return &biasAdd{b, f}, err
}

func (k *biasAdd) Run(out *op.Value, in []*op.Value) error {
	if err := onDevice(in[0], in[1]); err != nil {
		return err
	}
	vec := out.Cols%4 == 0 && aligned(4, out, in[0], in[1])
	units := out.Cols
	if vec {
		units /= 4
	}
	return k.f.Launch(k.b.stream, k.b.byRows(out.Rows, units), ptr(out), ptr(in[0]), ptr(in[1]),
		cuda.I64(int64(out.Rows)), cuda.I32(int32(out.Cols)), flag(vec))
}

// dropout is op.Mask on the device.
type dropout struct {
	b    *Backend
	f    *cuda.Function
	attr op.Attr
}

func newDropout(b *Backend, a op.Attr) (exec.Kernel, error) {
	f, err := b.function(elementwiseModule, "dropout")
	return &dropout{b, f, a}, err
}

func (k *dropout) Run(out *op.Value, in []*op.Value) error {
	if err := onDevice(in[0]); err != nil {
		return err
	}
	key := in[1].Key
	if key.DevRows == 0 && key.Rows != nil && out.Rows > 0 {
		return errHostKey
	}
	m := op.NewMask(key, k.attr.P, k.attr.Site)
	vec := out.Cols%4 == 0 && aligned(4, out, in[0])
	return k.f.Launch(k.b.stream, k.b.byRows(out.Rows, (out.Cols+3)/4), ptr(out), ptr(in[0]),
		cuda.DevicePtr(key.DevRows).Arg(), cuda.I64(int64(out.Rows)), cuda.I32(int32(out.Cols)),
		cuda.U64(key.Seed), cuda.U32(uint32(key.Step)), cuda.U32(dropoutSite(k.attr.Site)),
		cuda.U32(m.Threshold), cuda.F32(m.Scale), flag(vec))
}

// dropoutSite is the last word of the counter, as philox.NewStream makes it.
func dropoutSite(site uint32) uint32 { return uint32(philox.Dropout)<<24 | site&0xFFFFFF }
