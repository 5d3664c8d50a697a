package cuda

import (
	"fmt"

	"zerogcn/cuda"
	"zerogcn/model/exec"
	"zerogcn/model/op"
)

const sigmoidModule = "model_sigmoid"

// multiOf returns the address, the stride and the count of several labels a row.
func multiOf(v *op.Value) (at cuda.DevicePtr, stride int, count float64, err error) {
	l := v.Labels
	switch {
	case l == nil:
		return 0, 0, 0, fmt.Errorf("no labels")
	case l.DevMulti == 0 && l.Len() > 0:
		return 0, 0, 0, fmt.Errorf("labels of %d rows are not in device memory", l.Len())
	case !(l.Norm > 0) && l.Len() > 0:
		return 0, 0, 0, fmt.Errorf("labels on the device need Norm, the number that the loss is divided by")
	}
	return cuda.DevicePtr(l.DevMulti), l.Stride, l.Norm, nil
}

// sigmoidLoss sums tiles of elements in float64, then the tiles.
type sigmoidLoss struct {
	b            *Backend
	tiles, total *cuda.Function
}

func newSigmoidLoss(b *Backend) (exec.Kernel, error) {
	k := &sigmoidLoss{b: b}
	var err error
	if k.tiles, err = b.function(sigmoidModule, "sigmoid_loss"); err != nil {
		return nil, err
	}
	k.total, err = b.function(reduceModule, "softmax_loss_total")
	return k, err
}

// elementTiles cuts n elements into at most 1,024 tiles of at least 4,096.
func elementTiles(n int) (size, tiles int) {
	const most, least = 1024, 4096
	size = max(least, (n+most-1)/most)
	return size, (n + size - 1) / size
}

func (k *sigmoidLoss) Prepare(_ *op.Value, in []*op.Value) error {
	_, tiles := elementTiles(in[0].Len())
	return k.b.need(8 * int64(tiles))
}

func (k *sigmoidLoss) Run(out *op.Value, in []*op.Value) error {
	x := in[0]
	if err := onDevice(x); err != nil {
		return err
	}
	labels, stride, count, err := multiOf(in[1])
	if err != nil {
		return err
	}
	size, tiles := elementTiles(x.Len())
	part, err := k.b.work(8 * int64(tiles))
	if err != nil {
		return err
	}
	err = k.tiles.Launch(k.b.stream, cuda.Linear(tiles, threads), part.Arg(), ptr(x), labels.Arg(),
		cuda.I64(int64(x.Len())), cuda.I32(int32(x.Cols)), cuda.I32(int32(stride)), cuda.I64(int64(size)))
	if err != nil {
		return err
	}
	return k.total.Launch(k.b.stream, cuda.Linear(1, 1024), ptr(out), part.Arg(), cuda.I32(int32(tiles)), cuda.F64(count))
}

type sigmoidGrad struct {
	b *Backend
	f *cuda.Function
}

func newSigmoidGrad(b *Backend) (exec.Kernel, error) {
	f, err := b.function(sigmoidModule, "sigmoid_grad")
	return &sigmoidGrad{b, f}, err
}

func (k *sigmoidGrad) Run(out *op.Value, in []*op.Value) error {
	x, up := in[0], in[2]
	if err := onDevice(x); err != nil {
		return err
	}
	labels, stride, count, err := multiOf(in[1])
	if err != nil {
		return err
	}
	value, err := hostScalar(up)
	if err != nil {
		return err
	}
	return k.f.Launch(k.b.stream, k.b.blocks(int64(x.Len()+threads-1)/threads), ptr(out), ptr(x), labels.Arg(),
		cuda.I64(int64(x.Len())), cuda.I32(int32(x.Cols)), cuda.I32(int32(stride)), ptr(up), cuda.F32(value), cuda.F64(count))
}

// LabelCounts says what CountLabels counts. Addresses are of device memory.
type LabelCounts struct {
	Labels cuda.DevicePtr // uint8 [rows][Stride]: 0, 1, or op.Unknown
	Stride int
	Part   cuda.DevicePtr // int32 per row; outside [0, Num) counts nowhere
	Num    int
	Counts cuda.DevicePtr // int64 [Num][2]: right, wrong or missed; added to
}

// CountLabels queues the counting of labels that positive logits predict, for
// metric.MicroF1Of: with right r and wrong w it is 2r/(2r+w). Counts of several
// chunks add up; the caller clears them first.
func (b *Backend) CountLabels(logits *op.Value, c LabelCounts) error {
	if err := onDevice(logits); err != nil {
		return err
	}
	f, err := b.function(sigmoidModule, "count_labels")
	if err != nil {
		return err
	}
	return f.Launch(b.stream, b.byWarps(logits.Rows), c.Counts.Arg(), ptr(logits), c.Labels.Arg(), c.Part.Arg(),
		cuda.I32(int32(c.Num)), cuda.I64(int64(logits.Rows)), cuda.I32(int32(logits.Cols)), cuda.I32(int32(c.Stride)))
}
