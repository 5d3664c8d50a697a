package cuda

import (
	"errors"

	"zerogcn/cuda"
	"zerogcn/model/exec"
	"zerogcn/model/op"
)

const maxModule = "model_max"

type aggregateMax struct {
	b *Backend
	f *cuda.Function
}

func newAggregateMax(b *Backend) (exec.Kernel, error) {
	f, err := b.function(maxModule, "aggregate_max")
	return &aggregateMax{b, f}, err
}

func (k *aggregateMax) Run(out *op.Value, in []*op.Value) error {
	x := in[0]
	if err := onDevice(x); err != nil {
		return err
	}
	_, d, err := blockOf(in[1])
	if err != nil {
		return err
	}
	return k.f.Launch(k.b.stream, k.b.byWarps(out.Rows), ptr(out), ptr(x), cuda.I32(int32(out.Rows)),
		cuda.I32(int32(out.Cols)), cuda.DevicePtr(d.Indptr).Arg(), cuda.DevicePtr(d.Indices).Arg())
}

// aggregateMaxGrad divides each target's gradient among the sources that tie, in
// scratch memory, and then adds for each source what is its own.
type aggregateMaxGrad struct {
	b           *Backend
	share, grad *cuda.Function
}

func newAggregateMaxGrad(b *Backend) (exec.Kernel, error) {
	k := &aggregateMaxGrad{b: b}
	return k, b.functions(maxModule, map[string]**cuda.Function{
		"aggregate_max_share": &k.share, "aggregate_max_grad": &k.grad})
}

func (k *aggregateMaxGrad) Prepare(_ *op.Value, in []*op.Value) error {
	return k.b.need(4 * int64(in[1].Len()))
}

func (k *aggregateMaxGrad) Run(out *op.Value, in []*op.Value) error {
	x, y, dy := in[0], in[1], in[2]
	if err := onDevice(x, y, dy); err != nil {
		return err
	}
	b, d, err := blockOf(in[3])
	if err != nil {
		return err
	}
	if b.NumSrc > 0 && d.TIndptr == 0 {
		return errors.New("the block lacks its transposed form, which gradients need")
	}
	share, err := k.b.work(4 * int64(y.Len()))
	if err != nil {
		return err
	}
	cols := cuda.I32(int32(out.Cols))
	err = k.share.Launch(k.b.stream, k.b.byWarps(y.Rows), share.Arg(), ptr(x), ptr(y), ptr(dy),
		cuda.I32(int32(y.Rows)), cols, cuda.DevicePtr(d.Indptr).Arg(), cuda.DevicePtr(d.Indices).Arg())
	if err != nil {
		return err
	}
	return k.grad.Launch(k.b.stream, k.b.byWarps(out.Rows), ptr(out), ptr(x), ptr(y), share.Arg(),
		cuda.I32(int32(out.Rows)), cols, cuda.DevicePtr(d.TIndptr).Arg(), cuda.DevicePtr(d.TIndices).Arg())
}
