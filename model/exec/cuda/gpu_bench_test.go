package cuda_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"zerogcn/cuda"
	"zerogcn/cuda/cublas"
	"zerogcn/cuda/cudatest"
	"zerogcn/graph"
	"zerogcn/model/exec"
	execcuda "zerogcn/model/exec/cuda"
	"zerogcn/model/op"
)

// randomBlock has the given number of edges for each target and its transposed
// form.
func randomBlock(rng *rand.Rand, src, dst, edges int) *graph.Block {
	b := &graph.Block{NumDst: dst, NumSrc: src, Indptr: make([]int32, 1, dst+1), TIndptr: make([]int32, src+1)}
	for range dst {
		for range edges {
			j := rng.Int32N(int32(src))
			b.Indices = append(b.Indices, j)
			b.TIndptr[j+1]++
		}
		b.Indptr = append(b.Indptr, int32(len(b.Indices)))
	}
	for j := range src {
		b.TIndptr[j+1] += b.TIndptr[j]
	}
	next := append([]int32(nil), b.TIndptr...)
	b.TIndices = make([]int32, len(b.Indices))
	for i := range dst {
		for _, j := range b.Row(i) {
			b.TIndices[next[j]] = int32(i)
			next[j]++
		}
	}
	return b
}

// BenchmarkGPUKernels times single operations at the sizes of a batch of
// ogbn-products (3-layer GraphSAGE, 1,024 seeds, fan-out 15, 10, 5). us/op is the
// device's time; GB/s counts each operand's bytes once, but rows that edges name
// once an edge; TFLOP/s counts two operations a product's term.
func BenchmarkGPUKernels(b *testing.B) {
	cudatest.Device(b) // skips before the operands are made
	const n0, n1, n2, n3 = 512_000, 100_000, 14_000, 1024
	rng := rand.New(rand.NewPCG(8, 8))
	outer, mid := randomBlock(rng, n0, n1, 5), randomBlock(rng, n1, n2, 10)
	labels := &op.Labels{Class: make([]int32, n3), Norm: n3}
	key := &op.Key{Seed: 1, Rows: make([]int32, n1)}
	random := make([]float32, n0*100)
	for i := range random {
		random[i] = float32(rng.NormFloat64())
	}
	m := func(rows, cols int) op.Value { return op.Matrix(rows, cols, random[:rows*cols]) }
	rows := func(edges, cols int) int64 { return 4 * int64(edges) * int64(cols+1) }
	matrix := func(r, c int) int64 { return 4 * int64(r) * int64(c) }
	tf32 := execcuda.Options{Precision: cublas.TF32}
	own := execcuda.Options{BLAS: execcuda.NoBLAS}
	a := op.Attr{}
	for _, c := range []struct {
		name  string
		opt   execcuda.Options
		kind  op.Kind
		attr  op.Attr
		in    []op.Value
		bytes int64
		flops float64
	}{
		{"Copy/100000x256", own, op.Copy, a, []op.Value{m(n1, 256)}, 2 * matrix(n1, 256), 0},
		{"Head/100000x100", own, op.Head, a, []op.Value{m(n0, 100), {Block: outer}}, 2 * matrix(n1, 100), 0},
		{"Aggregate/500000edges-x100", own, op.Aggregate, a, []op.Value{m(n0, 100), {Block: outer}}, rows(5*n1, 100) + matrix(n1, 100), 0},
		{"Aggregate/140000edges-x256", own, op.Aggregate, a, []op.Value{m(n1, 256), {Block: mid}}, rows(10*n2, 256) + matrix(n2, 256), 0},
		{"AggregateGrad/140000edges-x256", own, op.AggregateGrad, a, []op.Value{m(n2, 256), {Block: mid}}, rows(10*n2, 256) + matrix(n1, 256), 0},
		{"AggregateGrad/atomics-140000edges-x256", execcuda.Options{BLAS: execcuda.NoBLAS, Atomics: true}, op.AggregateGrad, a,
			[]op.Value{m(n2, 256), {Block: mid}}, rows(10*n2, 256) + matrix(n1, 256), 0},
		{"BiasAdd/100000x256", own, op.BiasAdd, a, []op.Value{m(n1, 256), m(1, 256)}, 2 * matrix(n1, 256), 0},
		{"ReLU/100000x256", own, op.ReLU, a, []op.Value{m(n1, 256)}, 2 * matrix(n1, 256), 0},
		{"ReLUGrad/100000x256", own, op.ReLUGrad, a, []op.Value{m(n1, 256), m(n1, 256)}, 3 * matrix(n1, 256), 0},
		{"Dropout/100000x256", own, op.Dropout, op.Attr{P: 0.5}, []op.Value{m(n1, 256), {Key: key}}, 2 * matrix(n1, 256), 0},
		{"ColSum/100000x256", own, op.ColSum, a, []op.Value{m(n1, 256)}, matrix(n1, 256), 0},
		{"SoftmaxCE/1024x47", own, op.SoftmaxCE, a, []op.Value{m(n3, 47), {Labels: labels}}, matrix(n3, 47), 0},
		{"SoftmaxCEGrad/1024x47", own, op.SoftmaxCEGrad, a, []op.Value{m(n3, 47), {Labels: labels}, m(1, 1)}, 2 * matrix(n3, 47), 0},
		{"MatMul/NT-100000x100x256/tf32", tf32, op.MatMul, op.Attr{TransB: true}, []op.Value{m(n1, 100), m(256, 100)}, matrix(n1, 356), 2 * n1 * 100 * 256},
		{"MatMul/NT-100000x100x256/fp32", execcuda.Options{}, op.MatMul, op.Attr{TransB: true}, []op.Value{m(n1, 100), m(256, 100)}, matrix(n1, 356), 2 * n1 * 100 * 256},
		{"MatMul/NT-100000x100x256/own", own, op.MatMul, op.Attr{TransB: true}, []op.Value{m(n1, 100), m(256, 100)}, matrix(n1, 356), 2 * n1 * 100 * 256},
		{"MatMul/TN-256x100000x100/tf32", tf32, op.MatMul, op.Attr{TransA: true}, []op.Value{m(n1, 256), m(n1, 100)}, matrix(n1, 356), 2 * n1 * 100 * 256},
		{"MatMul/TN-256x100000x100/fp32", execcuda.Options{}, op.MatMul, op.Attr{TransA: true}, []op.Value{m(n1, 256), m(n1, 100)}, matrix(n1, 356), 2 * n1 * 100 * 256},
		{"MatMul/TN-256x100000x100/own", own, op.MatMul, op.Attr{TransA: true}, []op.Value{m(n1, 256), m(n1, 100)}, matrix(n1, 356), 2 * n1 * 100 * 256},
		{"MatMul/NN-14000x256x256/tf32", tf32, op.MatMul, a, []op.Value{m(n2, 256), m(256, 256)}, matrix(n2, 512), 2 * n2 * 256 * 256},
		{"MatMul/NN-14000x256x256/own", own, op.MatMul, a, []op.Value{m(n2, 256), m(256, 256)}, matrix(n2, 512), 2 * n2 * 256 * 256},
	} {
		b.Run(c.name, func(b *testing.B) {
			d := open(b, c.opt)
			us := timeKernel(b, d, op.New(c.kind, c.attr), c.in)
			b.ReportMetric(us, "us/op")
			b.ReportMetric(float64(c.bytes)/us/1e3, "GB/s")
			if c.flops > 0 {
				b.ReportMetric(c.flops/us/1e6, "TFLOP/s")
			}
		})
	}
}

// timeKernel returns the device's microseconds for one run. b.Loop bounds how often
// the kernel is queued.
func timeKernel(b *testing.B, d device, o *op.Op, in []op.Value) float64 {
	b.Helper()
	bound, err := d.Device().Bind(d.Stream())
	if err != nil {
		b.Fatal(err)
	}
	defer bound.Release()
	args := make([]*op.Value, len(in))
	for i := range in {
		v := d.Upload(b, in[i])
		args[i] = &v
	}
	rows, cols, err := o.Infer(args)
	if err != nil {
		b.Fatal(err)
	}
	buf, err := d.Alloc(rows * cols)
	if err != nil {
		b.Fatal(err)
	}
	out := &op.Value{Rows: rows, Cols: cols, Dev: buf.Dev}
	k, err := d.Kernel(o)
	if err != nil {
		b.Fatal(err)
	}
	if p, ok := k.(exec.Preparer); ok {
		if err := p.Prepare(out, args); err != nil {
			b.Fatal(err)
		}
	}
	run := func() {
		if err := k.Run(out, args); err != nil {
			b.Fatal(err)
		}
	}
	for range 3 {
		run()
	}
	var events [2]*cuda.Event
	for i := range events {
		if events[i], err = d.Device().NewEvent(cuda.EventOptions{Timing: true}); err != nil {
			b.Fatal(err)
		}
		defer events[i].Close()
	}
	if err := events[0].Record(d.Stream()); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		run()
	}
	if err := events[1].Record(d.Stream()); err != nil {
		b.Fatal(err)
	}
	if err := events[1].Synchronize(); err != nil {
		b.Fatal(err)
	}
	t, err := events[1].Since(events[0])
	if err != nil {
		b.Fatal(err)
	}
	return float64(t) / float64(time.Microsecond) / float64(b.N)
}
