package cuda

import (
	"fmt"

	"zerogcn/cuda"
	"zerogcn/model/exec"
	"zerogcn/model/op"
)

const reduceModule = "model_reduce"

// columnSum sums tiles of rows into scratch memory, then the tiles.
type columnSum struct {
	b *Backend
	f *cuda.Function
}

func newColumnSum(b *Backend) (exec.Kernel, error) {
	f, err := b.function(reduceModule, "column_sum")
	return &columnSum{b, f}, err
}

// columnTiles cuts rows × cols into tiles of whole rows, by shape alone: about
// 1,024 blocks of 32 columns, with at least 64 rows a tile.
func columnTiles(rows, cols int) (tileRows, tiles, groups int) {
	const blocks, least, width = 1024, 64, 32
	groups = (cols + width - 1) / width
	tileRows = max(least, (rows*groups+blocks-1)/blocks)
	return tileRows, (rows + tileRows - 1) / tileRows, groups
}

func (k *columnSum) Prepare(out *op.Value, in []*op.Value) error {
	_, tiles, _ := columnTiles(in[0].Rows, out.Cols)
	return k.b.need(4 * int64(tiles) * int64(out.Cols))
}

func (k *columnSum) Run(out *op.Value, in []*op.Value) error {
	if err := onDevice(in[0]); err != nil {
		return err
	}
	tileRows, tiles, groups := columnTiles(in[0].Rows, out.Cols)
	part, err := k.b.work(4 * int64(tiles) * int64(out.Cols))
	if err != nil {
		return err
	}
	const last = 1024 // threads of the second pass, which has few blocks
	err = k.f.Launch(k.b.stream, cuda.Linear(groups*tiles, threads), part.Arg(), ptr(in[0]),
		cuda.I64(int64(in[0].Rows)), cuda.I32(int32(out.Cols)), cuda.I64(int64(tileRows)))
	if err != nil {
		return err
	}
	return k.f.Launch(k.b.stream, cuda.Linear(groups, last), ptr(out), part.Arg(),
		cuda.I64(int64(tiles)), cuda.I32(int32(out.Cols)), cuda.I64(int64(tiles)))
}

// softmaxLoss sums tiles of rows in float64, then the tiles.
type softmaxLoss struct {
	b            *Backend
	tiles, total *cuda.Function
}

func newSoftmaxLoss(b *Backend) (exec.Kernel, error) {
	k := &softmaxLoss{b: b}
	return k, b.functions(reduceModule, map[string]**cuda.Function{
		"softmax_loss": &k.tiles, "softmax_loss_total": &k.total})
}

// lossTiles cuts rows into at most 1,024 tiles of at least a row for each of a
// block's warps.
func lossTiles(rows int) (tileRows, tiles int) {
	const most, warps = 1024, threads / 32
	tileRows = max(warps, (rows+most-1)/most)
	return tileRows, (rows + tileRows - 1) / tileRows
}

func (k *softmaxLoss) Prepare(_ *op.Value, in []*op.Value) error {
	_, tiles := lossTiles(in[0].Rows)
	return k.b.need(8 * int64(tiles))
}

func (k *softmaxLoss) Run(out *op.Value, in []*op.Value) error {
	x := in[0]
	if err := onDevice(x); err != nil {
		return err
	}
	class, count, err := labelsOf(in[1])
	if err != nil {
		return err
	}
	tileRows, tiles := lossTiles(x.Rows)
	part, err := k.b.work(8 * int64(tiles))
	if err != nil {
		return err
	}
	err = k.tiles.Launch(k.b.stream, cuda.Linear(tiles, threads), part.Arg(), ptr(x), class.Arg(),
		cuda.I64(int64(x.Rows)), cuda.I32(int32(x.Cols)), cuda.I64(int64(tileRows)))
	if err != nil {
		return err
	}
	return k.total.Launch(k.b.stream, cuda.Linear(1, 1024), ptr(out), part.Arg(), cuda.I32(int32(tiles)), cuda.F64(count))
}

type softmaxGrad struct {
	b *Backend
	f *cuda.Function
}

func newSoftmaxGrad(b *Backend) (exec.Kernel, error) {
	f, err := b.function(reduceModule, "softmax_grad")
	return &softmaxGrad{b, f}, err
}

func (k *softmaxGrad) Run(out *op.Value, in []*op.Value) error {
	x, up := in[0], in[2]
	if err := onDevice(x); err != nil {
		return err
	}
	class, count, err := labelsOf(in[1])
	if err != nil {
		return err
	}
	value, err := hostScalar(up)
	if err != nil {
		return err
	}
	return k.f.Launch(k.b.stream, k.b.byWarps(x.Rows), ptr(out), ptr(x), class.Arg(),
		cuda.I64(int64(x.Rows)), cuda.I32(int32(x.Cols)), ptr(up), cuda.F32(value), cuda.F64(count))
}

// hostScalar returns the upstream gradient of a loss (operand 2) where it lies in
// host memory. One in device memory is read there, and its value here is unused.
func hostScalar(up *op.Value) (float32, error) {
	switch {
	case up.Dev != 0:
		return 0, nil
	case len(up.Data) == 0:
		return 0, fmt.Errorf("operand 2 has no value")
	}
	return up.Data[0], nil
}
