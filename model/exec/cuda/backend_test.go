package cuda

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"zerogcn/cuda"
	"zerogcn/cuda/cublas"
	"zerogcn/cuda/cudatest"
	"zerogcn/cuda/cudatest/fake"
	"zerogcn/graph"
	"zerogcn/model/exec"
	"zerogcn/model/op"
)

// fakeBackend is a back end on a device that is no GPU. ran lists the kernels that
// were launched; the driver is told the real modules' names, and package cuda
// checks the number of their arguments against the PTX.
func fakeBackend(t *testing.T, o Options) (b *Backend, ran *[]string) {
	t.Helper()
	dev, f := cudatest.Fake(t)
	ran = new([]string)
	for _, name := range []string{"add", "relu", "relu_grad", "copy_zero", "bias_add", "dropout", "gather_rows",
		"column_sum", "softmax_loss", "softmax_loss_total", "softmax_grad", "count_correct",
		"gemm_nn", "gemm_nt", "gemm_tn", "gemm_tt", "gemm_sum", "aggregate_max", "aggregate_max_share", "aggregate_max_grad",
		"aggregate_factors", "aggregate_init", "aggregate_scatter_w4", "aggregate_scatter_w1"} {
		f.Kernel(name, func(fake.Launch) { *ran = append(*ran, name) })
	}
	for _, w := range []int{4, 2, 1} {
		for _, v := range []int{1, 2, 4} {
			name := fmt.Sprintf("aggregate_w%d_v%d", w, v)
			f.Kernel(name, func(fake.Launch) { *ran = append(*ran, name) })
		}
	}
	s, err := dev.NewStream(cuda.StreamOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if o.BLAS == "" {
		o.BLAS = NoBLAS
	}
	if b, err = New(dev, s, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 2 { // closing twice does nothing
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		}
		s.Close()
	})
	return b, ran
}

// matrix is device memory that holds nothing in particular.
func matrix(t *testing.T, b *Backend, rows, cols int) *op.Value {
	t.Helper()
	buf, err := b.Alloc(rows * cols)
	if err != nil {
		t.Fatal(err)
	}
	return &op.Value{Rows: rows, Cols: cols, Dev: buf.Dev}
}

// someBlock is a block of 40 targets and 60 sources whose arrays are all there.
func someBlock(t *testing.T, b *Backend) *op.Value {
	t.Helper()
	address := func() uintptr { return matrix(t, b, 1, 100).Dev }
	return &op.Value{Block: &graph.Block{NumDst: 40, NumSrc: 60, Device: &graph.DeviceBlock{NumEdges: 100,
		Indptr: address(), Indices: address(), Scale: address(), Degree: address(),
		TIndptr: address(), TIndices: address(), TEdges: address()}}}
}

// Each kind launches the kernels that it should, with as many arguments as they
// have.
func TestKernelsLaunch(t *testing.T) {
	type operands func(b *Backend) (out *op.Value, in []*op.Value)
	square := func(n int) operands {
		return func(b *Backend) (*op.Value, []*op.Value) {
			var in []*op.Value
			for range n {
				in = append(in, matrix(t, b, 60, 60))
			}
			return matrix(t, b, 60, 60), in
		}
	}
	forward := func(cols int) operands {
		return func(b *Backend) (*op.Value, []*op.Value) {
			return matrix(t, b, 40, cols), []*op.Value{matrix(t, b, 60, cols), someBlock(t, b)}
		}
	}
	backward := func(cols int) operands {
		return func(b *Backend) (*op.Value, []*op.Value) {
			return matrix(t, b, 60, cols), []*op.Value{matrix(t, b, 40, cols), someBlock(t, b)}
		}
	}
	labels := func(b *Backend) *op.Value {
		return &op.Value{Labels: &op.Labels{DevClass: matrix(t, b, 1, 60).Dev, NumRows: 60, Norm: 5}}
	}
	constant := op.Matrix(1, 1, []float32{1})
	for _, c := range []struct {
		kind op.Kind
		attr op.Attr
		args operands
		opt  Options
		want string
	}{
		{kind: op.Copy, args: square(1), want: "copy_zero"},
		{kind: op.Copy, args: func(b *Backend) (*op.Value, []*op.Value) {
			return matrix(t, b, 1, 1), []*op.Value{&constant}
		}},
		{kind: op.Add, args: square(2), want: "add"},
		{kind: op.ReLU, args: square(1), want: "relu"},
		{kind: op.ReLUGrad, args: square(2), want: "relu_grad"},
		{kind: op.BiasAdd, args: func(b *Backend) (*op.Value, []*op.Value) {
			return matrix(t, b, 60, 47), []*op.Value{matrix(t, b, 60, 47), matrix(t, b, 1, 47)}
		}, want: "bias_add"},
		{kind: op.Dropout, attr: op.Attr{P: 0.5}, args: func(b *Backend) (*op.Value, []*op.Value) {
			return matrix(t, b, 60, 47), []*op.Value{matrix(t, b, 60, 47), {Key: &op.Key{Seed: 1}}}
		}, want: "dropout"},
		{kind: op.ColSum, args: func(b *Backend) (*op.Value, []*op.Value) {
			return matrix(t, b, 1, 60), []*op.Value{matrix(t, b, 60, 60)}
		}, want: "column_sum column_sum"},
		{kind: op.MatMul, args: square(2), want: "gemm_nn"},
		{kind: op.MatMul, attr: op.Attr{TransA: true}, args: func(b *Backend) (*op.Value, []*op.Value) {
			return matrix(t, b, 10, 10), []*op.Value{matrix(t, b, 5000, 10), matrix(t, b, 5000, 10)}
		}, want: "gemm_tn gemm_sum"},
		{kind: op.MatMul, attr: op.Attr{TransB: true}, args: square(2), want: "gemm_nt"},
		{kind: op.MatMul, attr: op.Attr{TransA: true, TransB: true}, args: square(2), want: "gemm_tt"},
		{kind: op.Head, args: forward(12), want: "copy_zero"},
		{kind: op.HeadGrad, args: backward(12), want: "copy_zero"},
		{kind: op.Aggregate, attr: op.Attr{Agg: op.Mean}, args: forward(100), want: "aggregate_w4_v1"},
		{kind: op.Aggregate, attr: op.Attr{Agg: op.Sum}, args: forward(256), want: "aggregate_w4_v2"},
		{kind: op.Aggregate, attr: op.Attr{Agg: op.SelfMean}, args: forward(602), want: "aggregate_w2_v4"},
		{kind: op.Aggregate, attr: op.Attr{Agg: op.SymNorm}, args: forward(47), want: "aggregate_factors aggregate_w1_v2"},
		{kind: op.AggregateGrad, attr: op.Attr{Agg: op.Mean}, args: backward(4), want: "aggregate_factors aggregate_w4_v1"},
		{kind: op.AggregateGrad, attr: op.Attr{Agg: op.SymNorm}, args: backward(1), want: "aggregate_factors aggregate_w1_v1"},
		{kind: op.AggregateGrad, args: backward(256), opt: Options{Atomics: true}, want: "aggregate_init aggregate_scatter_w4"},
		{kind: op.AggregateGrad, args: backward(47), opt: Options{Atomics: true}, want: "aggregate_init aggregate_scatter_w1"},
		{kind: op.AggregateMax, args: forward(47), want: "aggregate_max"},
		{kind: op.AggregateMaxGrad, args: func(b *Backend) (*op.Value, []*op.Value) {
			return matrix(t, b, 60, 9), []*op.Value{matrix(t, b, 60, 9), matrix(t, b, 40, 9), matrix(t, b, 40, 9), someBlock(t, b)}
		}, want: "aggregate_max_share aggregate_max_grad"},
		{kind: op.SoftmaxCE, args: func(b *Backend) (*op.Value, []*op.Value) {
			return matrix(t, b, 1, 1), []*op.Value{matrix(t, b, 60, 9), labels(b)}
		}, want: "softmax_loss softmax_loss_total"},
		{kind: op.SoftmaxCEGrad, args: func(b *Backend) (*op.Value, []*op.Value) {
			return matrix(t, b, 60, 9), []*op.Value{matrix(t, b, 60, 9), labels(b), &constant}
		}, want: "softmax_grad"},
	} {
		o := op.New(c.kind, c.attr)
		t.Run(fmt.Sprintf("%v/%s", o, c.want), func(t *testing.T) {
			b, ran := fakeBackend(t, c.opt)
			k, err := b.Kernel(o)
			if err != nil {
				t.Fatal(err)
			}
			out, in := c.args(b)
			if p, ok := k.(exec.Preparer); ok {
				if err := p.Prepare(out, in); err != nil {
					t.Fatal(err)
				}
			}
			run := func() {
				if err := k.Run(out, in); err != nil {
					t.Fatal(err)
				}
			}
			run()
			if got := strings.Join(*ran, " "); got != c.want {
				t.Errorf("ran %q, want %q", got, c.want)
			}
			before := b.dev.Metrics()
			run()
			if m := b.dev.Metrics(); m.PoolHits+m.PoolMisses != before.PoolHits+before.PoolMisses {
				t.Error("a run allocated memory")
			}
		})
	}
}

func TestRowFunctionsLaunch(t *testing.T) {
	b, ran := fakeBackend(t, Options{})
	x, out := matrix(t, b, 60, 5), matrix(t, b, 10, 5)
	if err := b.GatherRows(out, x, cuda.DevicePtr(x.Dev)); err != nil {
		t.Fatal(err)
	}
	if err := b.CountCorrect(x, Parts{Num: 3}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"gather_rows", "count_correct"}; !slices.Equal(*ran, want) {
		t.Errorf("ran %v, want %v", *ran, want)
	}
	if err := b.GatherRows(matrix(t, b, 10, 6), x, 0); err == nil {
		t.Error("gathered rows of 5 columns into 6")
	}
	if err := b.CountCorrect(x, Parts{Num: MaxParts + 1}); err == nil {
		t.Error("counted more parts than the kernel keeps")
	}
}

// Operands that a kernel cannot use are errors that say what is wrong, and
// launch nothing.
func TestBadOperands(t *testing.T) {
	b, ran := fakeBackend(t, Options{})
	host := op.Matrix(60, 9, make([]float32, 540))
	dev, out := matrix(t, b, 60, 9), matrix(t, b, 60, 9)
	lacking := func(cut func(d *graph.DeviceBlock)) *op.Value {
		v := someBlock(t, b)
		cut(v.Block.Device)
		return v
	}
	hostBlock := &op.Value{Block: &graph.Block{NumDst: 40, NumSrc: 60}}
	for _, c := range []struct {
		kind op.Kind
		attr op.Attr
		in   []*op.Value
		want string
	}{
		{op.Add, op.Attr{}, []*op.Value{dev, &host}, "operand 1 (60×9) is not in device memory"},
		{op.MatMul, op.Attr{TransB: true}, []*op.Value{&host, dev}, "operand 0 (60×9)"},
		{op.BiasAdd, op.Attr{}, []*op.Value{&host, dev}, "operand 0"},
		{op.Dropout, op.Attr{P: 0.5}, []*op.Value{dev, {Key: &op.Key{Rows: make([]int32, 60)}}}, "dropout key"},
		{op.Aggregate, op.Attr{}, []*op.Value{dev, hostBlock}, "block of 40 targets is not in device memory"},
		{op.Aggregate, op.Attr{Agg: op.SymNorm}, []*op.Value{dev, lacking(func(d *graph.DeviceBlock) { d.Degree = 0 })}, "no degrees"},
		{op.AggregateGrad, op.Attr{}, []*op.Value{dev, lacking(func(d *graph.DeviceBlock) { d.TIndptr = 0 })}, "transposed form"},
		{op.AggregateGrad, op.Attr{Agg: op.Sum}, []*op.Value{dev, lacking(func(d *graph.DeviceBlock) { d.EdgeScale, d.TEdges = d.Scale, 0 })},
			"edge positions"},
		{op.SoftmaxCE, op.Attr{}, []*op.Value{dev, {Labels: &op.Labels{Class: make([]int32, 60)}}}, "60 labels are not in device memory"},
		{op.SoftmaxCE, op.Attr{}, []*op.Value{dev, {Labels: &op.Labels{DevClass: 8, NumRows: 60}}}, "need Norm"},
		{op.SoftmaxCEGrad, op.Attr{}, []*op.Value{dev, {Labels: &op.Labels{DevClass: 8, NumRows: 60, Norm: 1}}, {Rows: 1, Cols: 1}}, "operand 2 has no value"},
		{op.ColSum, op.Attr{}, []*op.Value{dev}, "Prepare was not called"},
	} {
		o := op.New(c.kind, c.attr)
		k, err := b.Kernel(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := k.Run(out, c.in); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want %q", o, err, c.want)
		}
	}
	if len(*ran) > 0 {
		t.Errorf("launched %v", *ran)
	}
}

func TestUnsupported(t *testing.T) {
	b, _ := fakeBackend(t, Options{})
	for _, kind := range []op.Kind{op.SparseLinear, op.SparseLinearGrad} {
		if _, err := b.Kernel(op.New(kind, op.Attr{})); !errors.Is(err, exec.ErrUnsupported) {
			t.Errorf("%v: %v", kind, err)
		}
	}
	for _, o := range []*op.Op{op.New(op.Invalid, op.Attr{}), op.New(op.Aggregate, op.Attr{Agg: 99})} {
		if _, err := b.Kernel(o); err == nil || errors.Is(err, exec.ErrUnsupported) {
			t.Errorf("%v: %v, want an error of its own", o, err)
		}
	}
	if _, err := New(b.dev, b.stream, Options{Precision: 9}); err == nil {
		t.Error("took a precision that does not exist")
	}
	if _, err := New(b.dev, b.stream, Options{BLAS: "/nowhere/libcublas.so.12"}); err == nil {
		t.Error("took a cuBLAS that does not exist")
	}
	if _, err := New(b.dev, b.stream, Options{BLAS: NoBLAS, Precision: cublas.TF32}); err != nil {
		t.Error(err)
	}
}

// Memory is counted by what it is for and returns to the pool, the scratch buffer
// grows, and what a program forgot goes with the back end.
func TestMemory(t *testing.T) {
	b, _ := fakeBackend(t, Options{})
	for u, p := range map[exec.Use]cuda.Purpose{exec.Activations: cuda.Activations, exec.Parameters: cuda.Parameters, exec.Gradients: cuda.Gradients} {
		x, err := b.AllocFor(u, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if got := b.dev.Metrics().Device[p].Bytes; got != 4000 || x.Cap != 1000 || x.Dev == 0 {
			t.Errorf("%v: %d bytes counted, buffer %+v", p, got, x)
		}
		want := []float32{1, 2, 3}
		if err := b.Upload(x.Dev, want); err != nil {
			t.Fatal(err)
		}
		got := make([]float32, 3)
		if err := b.Download(got, x.Dev); err != nil || !slices.Equal(got, want) {
			t.Errorf("%v came back, %v", got, err)
		}
		b.Free(x)
		b.Free(x) // the second does nothing
		if got := b.dev.Metrics().Device[p].Bytes; got != 0 {
			t.Errorf("%v: %d bytes counted after Free", p, got)
		}
	}
	b.Free(exec.Buffer{})
	if _, err := b.work(1); err == nil {
		t.Error("scratch memory out of nothing")
	}
	for _, n := range []int64{100, 50, 10_000} {
		if err := b.need(n); err != nil {
			t.Fatal(err)
		}
		if p, err := b.work(n); err != nil || p == 0 {
			t.Errorf("scratch of %d bytes: %v, %v", n, p, err)
		}
	}
	if m := b.dev.Metrics().Device[cuda.Workspace]; m.Live != 1 || m.Total != 2 {
		t.Errorf("scratch buffers: %+v, want 1 of 2", m)
	}
	matrix(t, b, 10, 10) // forgotten; the fake reports it if Close does not free it
}

// Cuts cover everything once and stay within their limits, for any shape.
func TestCuts(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		m, n := rapid.IntRange(0, 1<<22).Draw(r, "m"), rapid.IntRange(1, 4096).Draw(r, "n")
		k := rapid.IntRange(0, 1<<22).Draw(r, "k")
		covers := func(what string, total, each, parts int) {
			if each*parts < total || parts > 0 && each*(parts-1) >= max(total, 1) {
				r.Fatalf("%s: %d parts of %d for %d", what, parts, each, total)
			}
		}
		tileRows, tiles, groups := columnTiles(m, n)
		covers("column tiles", m, tileRows, tiles)
		if groups*32 < n || tiles > 1024 {
			r.Fatalf("column sum of %d×%d: %d groups, %d tiles", m, n, groups, tiles)
		}
		tileRows, tiles = lossTiles(m)
		covers("loss tiles", m, tileRows, tiles)
		if tiles > 1024 {
			r.Fatalf("loss of %d rows: %d tiles", m, tiles)
		}
		_, splits, inner := gemmSplits(m, n, k)
		covers("splits", k, inner, splits)
		if inner%gemmInner != 0 || splits > 64 {
			r.Fatalf("product %d×%d×%d: %d splits of %d", m, k, n, splits, inner)
		}
	})
}
