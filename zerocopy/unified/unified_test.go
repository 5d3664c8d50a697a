package unified_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"zerogcn/cuda"
	"zerogcn/cuda/cudatest"
	"zerogcn/dtype"
	"zerogcn/zerocopy"
	"zerogcn/zerocopy/unified"
)

const rows, width = 500, 12

// value is what element (row, column) of the test table holds.
func value(row, column int) float32 { return float32(row) + float32(column)/100 }

func newTable(t testing.TB) *zerocopy.Table {
	t.Helper()
	tab, err := zerocopy.NewTable(rows, width, dtype.Float32, zerocopy.Options{Name: "features"})
	if err != nil {
		t.Fatal(err)
	}
	err = tab.Fill(context.Background(), func(lo, hi int, dst []byte) error {
		row := make([]float32, width)
		for r := lo; r < hi; r++ {
			for c := range row {
				row[c] = value(r, c)
			}
			dtype.Float32.Narrow(dst[(r-lo)*4*width:], row)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

// open makes a tensor for each way of gathering that the machine has.
func open(t *testing.T, run func(t *testing.T, x *tensor.Dense, e *unified.Engine)) {
	try := func(name string, opt func(t *testing.T) unified.Options) {
		t.Run(name, func(t *testing.T) {
			tab := newTable(t)
			x, e, err := unified.New(t.Context(), tab, opt(t))
			if err != nil {
				t.Fatal(err)
			}
			run(t, x, e)
			if err := errors.Join(e.Close(), tab.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	try("cpu", func(*testing.T) unified.Options { return unified.Options{Workers: 2} })
	try("gpu", func(t *testing.T) unified.Options {
		return unified.Options{Device: cudatest.Device(t), Gather: zerocopy.DeviceOptions{Mode: zerocopy.ZeroCopy}}
	})
}

func checkRows(t *testing.T, got tensor.Tensor, ids []int32) {
	t.Helper()
	if !got.Shape().Eq(tensor.Shape{len(ids), width}) {
		t.Fatalf("shape %v", got.Shape())
	}
	v := got.Data().([]float32)
	for i, id := range ids {
		for c := range width {
			if v[i*width+c] != value(int(id), c) {
				t.Fatalf("row %d (id %d) column %d: %v, want %v", i, id, c, v[i*width+c], value(int(id), c))
			}
		}
	}
}

func TestByIndices(t *testing.T) {
	open(t, func(t *testing.T, x *tensor.Dense, e *unified.Engine) {
		ids := []int32{499, 0, 7, 7, 250}
		ints := []int{499, 0, 7, 7, 250}
		for _, indices := range []*tensor.Dense{tensor.New(tensor.WithBacking(ints)), tensor.New(tensor.WithBacking(slices.Clone(ids)))} {
			got, err := tensor.ByIndices(x, indices, 0)
			if err != nil {
				t.Fatal(err)
			}
			checkRows(t, got, ids)
			reuse := tensor.New(tensor.WithShape(len(ids), width), tensor.Of(tensor.Float32))
			got, err = tensor.ByIndices(x, indices, 0, tensor.WithReuse(reuse))
			if err != nil {
				t.Fatal(err)
			}
			if got != tensor.Tensor(reuse) {
				t.Error("the reuse tensor was not used")
			}
			checkRows(t, reuse, ids)
		}
		if n := e.Gatherer().Metrics().Gathers; n != 4 {
			t.Errorf("%d gathers reached the gatherer, want 4", n)
		}
		for _, bad := range [][]int{{1, 500}, {1, -1}, {1, 1 << 40}} {
			var ide *zerocopy.IDError
			if _, err := tensor.ByIndices(x, tensor.New(tensor.WithBacking(bad)), 0); !errors.As(err, &ide) || ide.Position != 1 || ide.ID != int64(bad[1]) {
				t.Errorf("ids %v: %v", bad, err)
			}
		}
		wrong := tensor.New(tensor.WithShape(2, width), tensor.Of(tensor.Float32))
		one := tensor.New(tensor.WithBacking([]int{1}))
		for _, o := range []tensor.FuncOpt{tensor.WithReuse(wrong), tensor.UseUnsafe(), tensor.WithIncr(wrong)} {
			if _, err := tensor.ByIndices(x, one, 0, o); err == nil {
				t.Error("an impossible option was accepted")
			}
		}
		if _, err := tensor.ByIndicesB(x, wrong, one, 0); err == nil {
			t.Error("a gradient flowed into the table")
		}
	})
}

// TestOtherTensors: the engine leaves tensors that are not its table to StdEng.
func TestOtherTensors(t *testing.T) {
	open(t, func(t *testing.T, x *tensor.Dense, e *unified.Engine) {
		y := tensor.New(tensor.WithShape(3, 2), tensor.WithBacking([]float32{1, 2, 3, 4, 5, 6}), tensor.WithEngine(e))
		got, err := tensor.ByIndices(y, tensor.New(tensor.WithBacking([]int{2, 0})), 0)
		if err != nil {
			t.Fatal(err)
		}
		if want := []float32{5, 6, 1, 2}; !slices.Equal(got.Data().([]float32), want) {
			t.Errorf("got %v, want %v", got.Data(), want)
		}
		for _, bad := range []int{3, -1} {
			if _, err := tensor.ByIndices(y, tensor.New(tensor.WithBacking([]int{0, bad})), 0); err == nil || !strings.Contains(err.Error(), "position 1") {
				t.Errorf("index %d: %v", bad, err)
			}
		}
		if n := e.Gatherer().Metrics().Gathers; n != 0 {
			t.Errorf("%d gathers reached the table", n)
		}
	})
}

// TestTapeMachine runs a Gorgonia graph that gathers through the engine and
// compares with the same graph on an ordinary tensor.
func TestTapeMachine(t *testing.T) {
	open(t, func(t *testing.T, x *tensor.Dense, e *unified.Engine) {
		ids := []int{3, 499, 3, 120}
		plain := make([]float32, rows*width)
		copy(plain, x.Data().([]float32))
		results := make([][]float32, 2)
		for k, input := range []*tensor.Dense{x, tensor.New(tensor.WithShape(rows, width), tensor.WithBacking(plain))} {
			g := G.NewGraph()
			features := G.NewMatrix(g, tensor.Float32, G.WithShape(rows, width), G.WithName("features"), G.WithValue(input))
			index := G.NewVector(g, tensor.Int, G.WithShape(len(ids)), G.WithName("ids"), G.WithValue(tensor.New(tensor.WithBacking(slices.Clone(ids)))))
			picked := G.Must(G.ByIndices(features, index, 0))
			sum := G.Must(G.Sum(picked, 0))
			opts := []G.VMOpt{}
			if k == 0 {
				opts = append(opts, G.WithEngine(e))
			}
			m := G.NewTapeMachine(g, opts...)
			if err := m.RunAll(); err != nil {
				t.Fatal(err)
			}
			results[k] = slices.Clone(sum.Value().Data().([]float32))
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(results[0], results[1]) {
			t.Errorf("got %v, want %v", results[0], results[1])
		}
		if n := e.Gatherer().Metrics().Gathers; n != 1 {
			t.Errorf("%d gathers reached the gatherer, want 1", n)
		}
	})
}

// TestDeviceIndices: ids and rows both in GPU memory.
func TestDeviceIndices(t *testing.T) {
	dev := cudatest.Device(t)
	tab := newTable(t)
	x, e, err := unified.New(t.Context(), tab, unified.Options{Device: dev, Gather: zerocopy.DeviceOptions{Mode: zerocopy.ZeroCopy}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(e.Close(), tab.Close()); err != nil {
			t.Error(err)
		}
	}()
	ids := []int32{0, 499, 13, 13}
	indices, err := e.Upload(ids)
	if err != nil {
		t.Fatal(err)
	}
	got, err := tensor.ByIndices(x, indices, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got.IsNativelyAccessible() {
		t.Error("the result is in host memory")
	}
	host, err := unified.Host(got.(*tensor.Dense))
	if err != nil {
		t.Fatal(err)
	}
	checkRows(t, host, ids)
	wrapped, err := e.Wrap(cuda.DevicePtr(indices.Uintptr()), tensor.Int32, 2)
	if err != nil {
		t.Fatal(err)
	}
	two, err := tensor.ByIndices(x, wrapped, 0)
	if err != nil {
		t.Fatal(err)
	}
	if host, err = unified.Host(two.(*tensor.Dense)); err != nil {
		t.Fatal(err)
	}
	checkRows(t, host, ids[:2])
	bad, err := e.Upload([]int32{1, 2, rows})
	if err != nil {
		t.Fatal(err)
	}
	var ide *zerocopy.IDError
	if _, err := tensor.ByIndices(x, bad, 0); !errors.As(err, &ide) || ide.Position != 2 {
		t.Errorf("bad id: %v", err)
	}
	for _, d := range []tensor.Tensor{indices, got, two, bad} {
		for range 2 {
			if err := unified.Release(d.(*tensor.Dense)); err != nil {
				t.Error(err)
			}
		}
	}
	if _, err := unified.Host(got.(*tensor.Dense)); !errors.Is(err, zerocopy.ErrClosed) {
		t.Errorf("released: %v", err)
	}
}

// TestBytesOutliveClose: the tensor's rows stay readable after engine and table
// are closed, gathers fail, and the mapping goes with the last reference.
func TestBytesOutliveClose(t *testing.T) {
	tab := newTable(t)
	x, e, err := unified.New(t.Context(), tab, unified.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := tab.Close(); !errors.Is(err, zerocopy.ErrInUse) {
		t.Errorf("table closed under the engine: %v", err)
	}
	if err := errors.Join(e.Close(), e.Close(), tab.Close()); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	if got := x.Data().([]float32)[499*width+3]; got != value(499, 3) {
		t.Errorf("read %v after Close", got)
	}
	if _, err := tensor.ByIndices(x, tensor.New(tensor.WithBacking([]int{1})), 0); !errors.Is(err, zerocopy.ErrClosed) {
		t.Errorf("gather after Close: %v", err)
	}
	runtime.KeepAlive(x)
}

// TestMappingsEnd opens many tensors and forgets them: the number of mappings
// must not grow with them.
func TestMappingsEnd(t *testing.T) {
	count := func() int {
		runtime.GC()
		runtime.GC()
		b, err := os.ReadFile("/proc/self/maps")
		if err != nil {
			t.Skip(err)
		}
		return strings.Count(string(b), "\n")
	}
	before := count()
	for range 200 {
		tab := newTable(t)
		_, e, err := unified.New(t.Context(), tab, unified.Options{Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(e.Close(), tab.Close()); err != nil {
			t.Fatal(err)
		}
	}
	var after int
	for range 100 { // cleanups run some time after the collection
		if after = count(); after < before+100 {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("%d mappings after 200 tensors, %d before", after, before)
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct {
		rows, width int
		dt          dtype.Type
	}{{0, 3, dtype.Float32}, {3, 0, dtype.Float32}, {3, 3, dtype.BFloat16}, {3, 3, dtype.Int8}} {
		tab, err := zerocopy.NewTable(c.rows, c.width, c.dt, zerocopy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := unified.New(t.Context(), tab, unified.Options{}); err == nil {
			t.Errorf("%+v was accepted", c)
		}
		if err := tab.Close(); err != nil {
			t.Error(err)
		}
	}
}
