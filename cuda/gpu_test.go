package cuda_test

import (
	"math"
	"slices"
	"sync"
	"testing"

	"zerogcn/cuda"
	"zerogcn/cuda/cudatest"
	"zerogcn/cuda/kernels"
	"zerogcn/dtype"
	"zerogcn/internal/philox"
)

func TestGPUBasicKernels(t *testing.T) {
	dev := cudatest.Device(t)
	s := cudatest.Stream(t, dev)
	const n = 100_003
	y := cudatest.Upload(t, s, make([]float32, n))
	x := cudatest.Upload(t, s, make([]float32, n))
	fill := cudatest.Kernel(t, dev, "basic", "fill_u32")
	saxpy := cudatest.Kernel(t, dev, "basic", "saxpy")
	iota32 := cudatest.Kernel(t, dev, "basic", "iota_i32")
	iota64 := cudatest.Kernel(t, dev, "basic", "iota_i64")
	for _, err := range []error{
		fill.Launch(s, cuda.Linear(7, 256), y.Ptr().Arg(), cuda.I64(n), cuda.U32(math.Float32bits(0.5))),
		fill.Launch(s, cuda.Linear(7, 256), x.Ptr().Arg(), cuda.I64(n), cuda.U32(math.Float32bits(3))),
		saxpy.Launch(s, cuda.Linear(7, 256), y.Ptr().Arg(), x.Ptr().Arg(), cuda.I64(n-1), cuda.F32(2)),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	got := cudatest.Download[float32](t, s, y.Ptr(), n)
	for i, v := range got[:n-1] {
		if v != 6.5 {
			t.Fatalf("saxpy: y[%d] = %v, want 6.5", i, v)
		}
	}
	if got[n-1] != 0.5 {
		t.Errorf("saxpy wrote past n: %v", got[n-1])
	}
	if err := iota32.Launch(s, cuda.Linear(3, 128), y.Ptr().Arg(), cuda.I64(n), cuda.I32(-5), cuda.I32(3)); err != nil {
		t.Fatal(err)
	}
	for i, v := range cudatest.Download[int32](t, s, y.Ptr(), n) {
		if v != int32(3*i-5) {
			t.Fatalf("iota_i32: [%d] = %d", i, v)
		}
	}
	if err := iota64.Launch(s, cuda.Linear(3, 128), y.Ptr().Arg(), cuda.I64(n/2), cuda.I64(1<<40), cuda.I64(-2)); err != nil {
		t.Fatal(err)
	}
	for i, v := range cudatest.Download[int64](t, s, y.Ptr(), n/2) {
		if v != int64(1<<40-2*i) {
			t.Fatalf("iota_i64: [%d] = %d", i, v)
		}
	}
}

// Every PTX variant that the GPU can run draws what Go draws.
func TestGPUPhiloxEqualsGo(t *testing.T) {
	dev := cudatest.Device(t)
	s := cudatest.Stream(t, dev)
	const n = 4099
	out := cudatest.Upload(t, s, make([]uint32, 4*n))
	for _, v := range kernels.Variants() {
		img, err := kernels.Find("selftest", min(v.SM, dev.Properties().ComputeCapability()), v.Driver)
		if err != nil {
			t.Fatal(err)
		}
		m, err := dev.LoadModule("selftest", img.PTX)
		if err != nil {
			t.Fatalf("sm_%d: %v", img.Variant.SM, err)
		}
		f, err := m.Function("philox_words")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			first uint32
			step  uint64
			draw  uint32
			site  uint32
			seed  uint64
		}{{0, 0, 0, 0, 0}, {math.MaxUint32 - 100, math.MaxUint32, math.MaxUint32, 0xFFFFFF, math.MaxUint64}, {7, 12345, 3, 2, 0x9E3779B97F4A7C15}} {
			st := philox.NewStream(c.seed, philox.Sample, c.site, c.step)
			site := uint32(philox.Sample)<<24 | c.site
			err := f.Launch(s, cuda.Linear(5, 128), out.Ptr().Arg(), cuda.I64(n), cuda.U32(c.first), cuda.U32(uint32(c.step)), cuda.U32(c.draw), cuda.U32(site), cuda.U64(c.seed))
			if err != nil {
				t.Fatal(err)
			}
			got := cudatest.Download[[4]uint32](t, s, out.Ptr(), n)
			for i := range got {
				if want := st.Words(c.first+uint32(i), c.draw); got[i] != want {
					t.Fatalf("sm_%d, case %+v, item %d: %x, want %x", img.Variant.SM, c, i, got[i], want)
				}
			}
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

// All 65,536 patterns of both narrow types widen and narrow as package dtype does.
func TestGPUConversionsEqualGo(t *testing.T) {
	dev := cudatest.Device(t)
	s := cudatest.Stream(t, dev)
	const n = 1 << 16
	bits := make([]uint16, n)
	for i := range bits {
		bits[i] = uint16(i)
	}
	in := cudatest.Upload(t, s, bits)
	wide := cudatest.Upload(t, s, make([]float32, n))
	back := cudatest.Upload(t, s, make([]uint16, n))
	for _, c := range []struct {
		kernel string
		typ    dtype.Type
		narrow func(float32) uint16
	}{{"convert_bf16", dtype.BFloat16, dtype.Float32ToBFloat16}, {"convert_f16", dtype.Float16, dtype.Float32ToFloat16}} {
		f := cudatest.Kernel(t, dev, "selftest", c.kernel)
		if err := f.Launch(s, cuda.Linear(16, 256), wide.Ptr().Arg(), back.Ptr().Arg(), in.Ptr().Arg(), cuda.I64(n)); err != nil {
			t.Fatal(err)
		}
		w := cudatest.Download[float32](t, s, wide.Ptr(), n)
		b := cudatest.Download[uint16](t, s, back.Ptr(), n)
		for i := range w {
			var want [1]float32
			c.typ.Widen(want[:], []byte{byte(i), byte(i >> 8)}, 1)
			if want[0] != want[0] {
				if w[i] == w[i] {
					t.Fatalf("%s(%#x) = %v, want NaN", c.kernel, i, w[i])
				}
				continue // which NaN is the GPU's choice
			}
			if math.Float32bits(w[i]) != math.Float32bits(want[0]) || b[i] != c.narrow(want[0]) {
				t.Fatalf("%s(%#x) = %v back %#x, want %v back %#x", c.kernel, i, w[i], b[i], want[0], c.narrow(want[0]))
			}
		}
	}
}

func TestGPUPrimitives(t *testing.T) {
	dev := cudatest.Device(t)
	s := cudatest.Stream(t, dev)
	in := make([]float32, 32)
	var sum float32
	for i := range in {
		in[i] = float32(i) / 32
		sum += in[i]
	}
	din := cudatest.Upload(t, s, in)
	out := cudatest.Upload(t, s, make([]float32, 68))
	cnt := cudatest.Upload(t, s, []uint32{0, 0, 0, math.MaxUint32})
	for _, v := range kernels.Variants() {
		if v.SM > dev.Properties().ComputeCapability() {
			continue
		}
		if err := cuda.Upload(s, out.Ptr(), make([]float32, 68)); err != nil {
			t.Fatal(err)
		}
		if err := cuda.Upload(s, cnt.Ptr(), []uint32{0, 0, 0, math.MaxUint32}); err != nil {
			t.Fatal(err)
		}
		img, err := kernels.Find("selftest", v.SM, v.Driver)
		if err != nil {
			t.Fatal(err)
		}
		m, err := dev.LoadModule("selftest", img.PTX)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		f, err := m.Function("primitives")
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Launch(s, cuda.Linear(1, 32), out.Ptr().Arg(), din.Ptr().Arg(), cnt.Ptr().Arg()); err != nil {
			t.Fatal(err)
		}
		o := cudatest.Download[float32](t, s, out.Ptr(), 68)
		for l := range 32 {
			if o[l] != sum || o[32+l] != float32(max(0, l-17)) {
				t.Errorf("sm_%d lane %d: sum %v rank %v, want %v %d", v.SM, l, o[l], o[32+l], sum, max(0, l-17))
			}
		}
		if want := []float32{sum, 32, 496, 16}; !slices.Equal(o[64:], want) {
			t.Errorf("sm_%d red_add4: %v, want %v", v.SM, o[64:], want)
		}
		if c := cudatest.Download[uint32](t, s, cnt.Ptr(), 4); !slices.Equal(c, []uint32{32, 16, math.MaxUint32, 69}) {
			t.Errorf("sm_%d atomics: %v", v.SM, c)
		}
	}
}

// Many goroutines, none of them locked to a thread, share the device and one
// stream; calls must find the context whatever thread they land on.
func TestGPUAnyGoroutine(t *testing.T) {
	dev := cudatest.Device(t)
	s := cudatest.Stream(t, dev)
	saxpy := cudatest.Kernel(t, dev, "basic", "saxpy")
	one := cudatest.Upload(t, s, []float32{1})
	acc := cudatest.Upload(t, s, []float32{0})
	const goroutines, each = 16, 200
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for range each {
				b, err := dev.Alloc(cuda.Workspace, 1000)
				if err != nil {
					t.Error(err)
					return
				}
				if err := saxpy.Launch(s, cuda.Linear(1, 32), acc.Ptr().Arg(), one.Ptr().Arg(), cuda.I64(1), cuda.F32(1)); err != nil {
					t.Error(err)
				}
				if err := b.CloseAfter(s); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := cudatest.Download[float32](t, s, acc.Ptr(), 1); got[0] != goroutines*each {
		t.Errorf("%v launches arrived, want %d", got[0], goroutines*each)
	}
}
