package cuda

import (
	"fmt"
	"math"

	"zerogcn/cuda"
	"zerogcn/cuda/cublas"
	"zerogcn/model/exec"
	"zerogcn/model/op"
)

func newMatMul(b *Backend, a op.Attr) (exec.Kernel, error) {
	if b.blas != nil {
		clear, err := b.function(elementwiseModule, "copy_zero")
		return &blasProduct{b, a, clear}, err
	}
	k := &ownProduct{b: b, attr: a}
	name := map[bool]string{false: "n", true: "t"}
	return k, b.functions("model_gemm", map[string]**cuda.Function{
		"gemm_" + name[a.TransA] + name[a.TransB]: &k.gemm, "gemm_sum": &k.sum})
}

// blasProduct multiplies by cuBLAS.
type blasProduct struct {
	b     *Backend
	attr  op.Attr
	clear *cuda.Function
}

func (k *blasProduct) Run(out *op.Value, in []*op.Value) error {
	x, y := in[0], in[1]
	if err := onDevice(x, y); err != nil {
		return err
	}
	m, inner, n := op.MatMulDims(k.attr, x, y)
	if inner == 0 { // empty sums: x and y may have no memory
		return k.clear.Launch(k.b.stream, k.b.flat(int64(out.Len())), ptr(out), cuda.I64(0),
			cuda.I64(0), cuda.I64(int64(out.Len())), flag(aligned(4, out)))
	}
	return k.b.blas.Gemm(cublas.Product{M: m, N: n, K: inner, TransA: k.attr.TransA, TransB: k.attr.TransB,
		Alpha: 1, Precision: k.b.opt.Precision}, factor(x), factor(y), factor(out))
}

func factor(v *op.Value) cublas.Matrix {
	return cublas.Matrix{Ptr: cuda.DevicePtr(v.Dev), Stride: max(1, v.Cols)}
}

// ownProduct multiplies by model_gemm.cu. Long inner dimensions with small
// results, as gradients of weights have, are cut into splits that are added in
// order.
type ownProduct struct {
	b         *Backend
	attr      op.Attr
	gemm, sum *cuda.Function
}

// The tile of model_gemm.cu, and the slice of the inner dimension.
const (
	gemmRows  = 128
	gemmCols  = 64
	gemmInner = 16
)

// gemmSplits cuts the inner dimension k by shape alone, so that about 256 blocks
// work; a split has at least 256 positions.
func gemmSplits(m, n, k int) (tiles, splits, inner int) {
	const blocks, most, least = 256, 64, 256
	tiles = (m + gemmRows - 1) / gemmRows * ((n + gemmCols - 1) / gemmCols)
	splits = max(1, min(blocks/max(1, tiles), most, k/least))
	inner = max(gemmInner, ((k+splits-1)/splits+gemmInner-1)/gemmInner*gemmInner)
	return tiles, max(1, (k+inner-1)/inner), inner
}

func (k *ownProduct) scratch(out *op.Value, splits int) int64 {
	if splits == 1 {
		return 0
	}
	return 4 * int64(splits) * int64(out.Len())
}

func (k *ownProduct) Prepare(out *op.Value, in []*op.Value) error {
	_, splits, _ := gemmSplits(k.dims(in))
	return k.b.need(k.scratch(out, splits))
}

func (k *ownProduct) dims(in []*op.Value) (m, n, inner int) {
	m, inner, n = op.MatMulDims(k.attr, in[0], in[1])
	return m, n, inner
}

func (k *ownProduct) Run(out *op.Value, in []*op.Value) error {
	x, y := in[0], in[1]
	if err := onDevice(x, y); err != nil {
		return err
	}
	m, n, length := k.dims(in)
	if max(m, n, length, x.Cols, y.Cols) > math.MaxInt32-gemmRows {
		return fmt.Errorf("product of %d×%d by %d×%d is too large for the own kernels: install cuBLAS", m, length, length, n)
	}
	tiles, splits, inner := gemmSplits(m, n, length)
	to := cuda.DevicePtr(out.Dev)
	if splits > 1 {
		var err error
		if to, err = k.b.work(k.scratch(out, splits)); err != nil {
			return err
		}
	}
	c := cuda.Config{Grid: cuda.Dim{X: uint32(tiles), Y: uint32(splits)}, Block: cuda.Dim{X: threads}}
	err := k.gemm.Launch(k.b.stream, c, to.Arg(), ptr(x), ptr(y), cuda.I32(int32(m)), cuda.I32(int32(n)),
		cuda.I32(int32(length)), cuda.I32(int32(x.Cols)), cuda.I32(int32(y.Cols)), cuda.I32(int32(inner)))
	if err != nil || splits == 1 {
		return err
	}
	return k.sum.Launch(k.b.stream, k.b.blocks((int64(out.Len())+threads-1)/threads), ptr(out), to.Arg(),
		cuda.I64(int64(out.Len())), cuda.I32(int32(splits)))
}
