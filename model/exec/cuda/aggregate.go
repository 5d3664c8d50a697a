package cuda

import (
	"errors"
	"fmt"
	"math/bits"

	"zerogcn/cuda"
	"zerogcn/graph"
	"zerogcn/model/exec"
	"zerogcn/model/op"
)

const aggregateModule = "model_aggregate"

// modeOf returns an aggregator's number in model_aggregate.cu.
func modeOf(a op.Agg) (int32, error) {
	switch a {
	case op.Mean:
		return 0, nil
	case op.Sum:
		return 1, nil
	case op.SelfMean:
		return 2, nil
	case op.SymNorm:
		return 3, nil
	}
	return 0, fmt.Errorf("no kernel for aggregator %v on a GPU", a)
}

// aggregate is the weighted sum over a CSR matrix that model_aggregate.cu
// describes: the block's own, or its transposed form for the gradient.
type aggregate struct {
	b       *Backend
	agg     op.Agg
	mode    int32
	grad    bool
	rows    [3][3]*cuda.Function // by columns of a load (4, 2, 1) and loads of a lane (1, 2, 4)
	factors *cuda.Function
}

func newAggregate(b *Backend, agg op.Agg, grad bool) (exec.Kernel, error) {
	mode, err := modeOf(agg)
	if err != nil {
		return nil, err
	}
	k := &aggregate{b: b, agg: agg, mode: mode, grad: grad}
	to := map[string]**cuda.Function{"aggregate_factors": &k.factors}
	for i, w := range []int{4, 2, 1} {
		for j, v := range []int{1, 2, 4} {
			to[fmt.Sprintf("aggregate_w%d_v%d", w, v)] = &k.rows[i][j]
		}
	}
	return k, b.functions(aggregateModule, to)
}

// column tells whether entries of the CSR matrix have a coefficient that depends
// on their column: they read it from scratch memory, n values, of sources or of
// targets.
func (k *aggregate) column(b *graph.Block, d *graph.DeviceBlock) (n int, sources, ok bool) {
	switch {
	case !k.grad:
		return b.NumSrc, true, k.agg == op.SymNorm
	case k.agg == op.Sum:
		return b.NumDst, false, scaleOf(k.agg, d) != 0
	}
	return b.NumDst, false, true
}

// scaleOf returns the factors of targets, 0 if there are none that count.
func scaleOf(a op.Agg, d *graph.DeviceBlock) cuda.DevicePtr {
	if a == op.Mean || d.EdgeScale != 0 {
		return 0
	}
	return cuda.DevicePtr(d.Scale)
}

func (k *aggregate) Prepare(_ *op.Value, in []*op.Value) error {
	b, d, err := blockOf(in[1])
	if err != nil {
		return err
	}
	if n, _, ok := k.column(b, d); ok {
		return k.b.need(4 * int64(n))
	}
	return nil
}

func (k *aggregate) check(b *graph.Block, d *graph.DeviceBlock) error {
	switch {
	case d.Indptr == 0, d.Indices == 0 && d.NumEdges > 0:
		return errors.New("the block's edges are not in device memory")
	case k.agg == op.SymNorm && d.Degree == 0:
		return fmt.Errorf("block of %d sources has no degrees in device memory", b.NumSrc)
	case !k.grad:
		return nil
	case d.TIndptr == 0, d.TIndices == 0 && d.NumEdges > 0:
		return errors.New("the block lacks its transposed form, which gradients need")
	case d.EdgeScale != 0 && k.agg != op.Mean && d.TEdges == 0 && d.NumEdges > 0:
		return errors.New("the block's transposed form lacks the edge positions that its edge factors need")
	}
	return nil
}

func (k *aggregate) Run(out *op.Value, in []*op.Value) error {
	x := in[0]
	if err := onDevice(x); err != nil {
		return err
	}
	b, d, err := blockOf(in[1])
	if err != nil {
		return err
	}
	if out.Len() == 0 {
		return nil
	}
	if err := k.check(b, d); err != nil {
		return err
	}
	forward, scale, degree := cuda.DevicePtr(d.Indptr).Arg(), scaleOf(k.agg, d).Arg(), cuda.DevicePtr(d.Degree).Arg()
	var column cuda.DevicePtr
	if n, sources, ok := k.column(b, d); ok {
		if column, err = k.b.work(4 * int64(n)); err != nil {
			return err
		}
		err = k.factors.Launch(k.b.stream, k.b.flat(int64(n)), column.Arg(), cuda.I32(int32(n)), flag(sources),
			cuda.I32(k.mode), forward, scale, degree)
		if err != nil {
			return err
		}
	}
	indptr, indices, edges := d.Indptr, d.Indices, uintptr(0)
	if k.grad {
		indptr, indices, edges = d.TIndptr, d.TIndices, d.TEdges
	}
	edgeScale := d.EdgeScale
	if k.agg == op.Mean {
		edgeScale = 0
	}
	f, shift := k.choose(out, x)
	groups := threads >> shift // rows of a block
	return f.Launch(k.b.stream, cuda.Linear((out.Rows+groups-1)/groups, threads), ptr(out), ptr(x),
		cuda.I32(int32(out.Rows)), cuda.I32(int32(out.Cols)), cuda.I32(int32(shift)),
		cuda.DevicePtr(indptr).Arg(), cuda.DevicePtr(indices).Arg(), cuda.DevicePtr(edges).Arg(),
		cuda.DevicePtr(edgeScale).Arg(), column.Arg(), flag(k.grad), cuda.I32(int32(b.NumDst)),
		cuda.I32(k.mode), forward, scale, degree)
}

// choose returns the kernel for a width and alignment, and the binary logarithm
// of the lanes that share a row.
func (k *aggregate) choose(out, x *op.Value) (*cuda.Function, int) {
	load, units := 2, out.Cols
	switch {
	case out.Cols%4 == 0 && aligned(4, out, x):
		load, units = 0, out.Cols/4
	case out.Cols%2 == 0 && aligned(2, out, x):
		load, units = 1, out.Cols/2
	}
	shift := min(5, bits.Len(uint(units-1)))
	switch each := (units + 1<<shift - 1) >> shift; {
	case each <= 1:
		return k.rows[load][0], shift
	case each == 2:
		return k.rows[load][1], shift
	}
	return k.rows[load][2], shift
}

// scatter is the gradient by atomic additions (Options.Atomics).
type scatter struct {
	aggregate
	init   *cuda.Function
	w4, w1 *cuda.Function
}

func newScatter(b *Backend, agg op.Agg) (exec.Kernel, error) {
	mode, err := modeOf(agg)
	if err != nil {
		return nil, err
	}
	k := &scatter{aggregate: aggregate{b: b, agg: agg, mode: mode}}
	return k, b.functions(aggregateModule, map[string]**cuda.Function{
		"aggregate_init": &k.init, "aggregate_scatter_w4": &k.w4, "aggregate_scatter_w1": &k.w1})
}

// Prepare needs no memory.
func (k *scatter) Prepare(*op.Value, []*op.Value) error { return nil }

func (k *scatter) Run(out *op.Value, in []*op.Value) error {
	dy := in[0]
	if err := onDevice(dy); err != nil {
		return err
	}
	b, d, err := blockOf(in[1])
	if err != nil {
		return err
	}
	if out.Len() == 0 {
		return nil
	}
	if err := k.check(b, d); err != nil {
		return err
	}
	forward, scale, degree := cuda.DevicePtr(d.Indptr).Arg(), scaleOf(k.agg, d).Arg(), cuda.DevicePtr(d.Degree).Arg()
	err = k.init.Launch(k.b.stream, k.b.byWarps(out.Rows), ptr(out), ptr(dy), cuda.I64(int64(out.Rows)),
		cuda.I32(int32(out.Cols)), cuda.I32(int32(b.NumDst)), cuda.I32(k.mode), forward, degree)
	if err != nil {
		return err
	}
	f, edgeScale := k.w1, d.EdgeScale
	if out.Cols%4 == 0 && aligned(4, out, dy) {
		f = k.w4
	}
	if k.agg == op.Mean {
		edgeScale = 0
	}
	return f.Launch(k.b.stream, k.b.byWarps(b.NumDst), ptr(out), ptr(dy), cuda.I32(int32(b.NumDst)),
		cuda.I32(int32(out.Cols)), cuda.DevicePtr(d.Indices).Arg(), cuda.DevicePtr(edgeScale).Arg(),
		cuda.I32(k.mode), forward, scale, degree)
}
