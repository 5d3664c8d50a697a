package cuda_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

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

func anonymous(t testing.TB, n int) []byte {
	t.Helper()
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(b) })
	return b
}

// A kernel reads registered memory in place, through several chunks; copies
// cross the chunks' borders; the second registration pins nothing.
func TestGPURegister(t *testing.T) {
	dev := cudatest.Device(t)
	s := cudatest.Stream(t, dev)
	const n = 16 << 20
	mem := anonymous(t, n)
	for i := range mem {
		mem[i] = byte(i * 7 >> 3)
	}
	var steps []int64
	r, err := dev.Register(context.Background(), mem, cuda.RegisterOptions{Purpose: cuda.Features, ChunkBytes: 5 << 20,
		Progress: func(done, total int64) { steps = append(steps, done) }})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(steps, []int64{5 << 20, 10 << 20, 15 << 20, 16 << 20}) {
		t.Errorf("progress %v", steps)
	}
	inner, err := dev.Register(context.Background(), mem[100:5000], cuda.RegisterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if inner.Ptr() != r.Ptr()+100 {
		t.Errorf("inner registration at %#x, outer %#x", inner.Ptr(), r.Ptr())
	}
	b, err := dev.Alloc(cuda.Other, n)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := s.CopyHtoD(b.Ptr(), mem); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, n)
	if err := cuda.Download(s, got, b.Ptr()); err != nil || !bytes.Equal(got, mem) {
		t.Errorf("copy through chunks: equal %v, %v", bytes.Equal(got, mem), err)
	}
	// y = 0*x + y read by a kernel straight from the host, across a chunk border.
	if err := s.Set8(b.Ptr(), 0, n); err != nil {
		t.Fatal(err)
	}
	for i := range mem[:8<<20] {
		mem[i] = 0
	}
	saxpy := cudatest.Kernel(t, dev, "basic", "saxpy")
	copy(mem[5<<20-8:], floatBytes(1, 2, 3, 4))
	if err := saxpy.Launch(s, cuda.Linear(1, 32), b.Ptr().Arg(), (r.Ptr() + 5<<20 - 8).Arg(), cuda.I64(4), cuda.F32(10)); err != nil {
		t.Fatal(err)
	}
	if v := cudatest.Download[float32](t, s, b.Ptr(), 4); !slices.Equal(v, []float32{10, 20, 30, 40}) {
		t.Errorf("zero-copy read across a chunk border: %v", v)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if err := s.CopyHtoD(b.Ptr(), mem[100:200]); err != nil { // inner still holds the pages
		t.Error(err)
	}
	if err := s.Synchronize(); err != nil {
		t.Error(err)
	}
	if err := inner.Close(); err != nil {
		t.Error(err)
	}
	// Released: the driver takes the same range again.
	for range 3 {
		r, err := dev.Register(context.Background(), mem, cuda.RegisterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Registering and releasing over and over takes nothing that does not come back.
func TestGPURegisterCycles(t *testing.T) {
	dev := cudatest.Device(t)
	mem := anonymous(t, 64<<20)
	cycle := func(n int) int64 {
		for range n {
			r, err := dev.Register(context.Background(), mem, cuda.RegisterOptions{ChunkBytes: 16 << 20})
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		}
		free, _, err := dev.MemInfo()
		if err != nil {
			t.Fatal(err)
		}
		return free
	}
	before := cycle(3)
	if after := cycle(50); after < before-4<<20 {
		t.Errorf("50 cycles took %d bytes of device memory", before-after)
	}
}

// A second handle of the same GPU: calls of both restore the context that was
// current, and each closes for itself.
func TestGPUTwoHandles(t *testing.T) {
	dev := cudatest.Device(t)
	other, err := dev.Driver().Open(0, cuda.DeviceOptions{PoolLimit: -1})
	if err != nil {
		t.Fatal(err)
	}
	s, o := cudatest.Stream(t, dev), cudatest.Stream(t, other)
	b, err := dev.Bind(s)
	if err != nil {
		t.Fatal(err)
	}
	x, y := cudatest.Upload(t, s, []float32{1, 2}), cudatest.Upload(t, o, []float32{5, 5})
	if err := errors.Join(s.CopyDtoD(x.Ptr(), y.Ptr(), 8), s.Synchronize()); err != nil {
		t.Fatal(err)
	}
	if got := cudatest.Download[float32](t, o, x.Ptr(), 2); got[0] != 5 {
		t.Errorf("%v", got)
	}
	b.Release()
	if err := errors.Join(o.Synchronize(), y.Close(), o.Close(), other.Close()); err != nil {
		t.Error(err)
	}
	if err := s.Synchronize(); err != nil {
		t.Errorf("first handle after the second closed: %v", err)
	}
}

func floatBytes(v ...float32) []byte {
	b := make([]byte, 0, 4*len(v))
	for _, f := range v {
		u := math.Float32bits(f)
		b = append(b, byte(u), byte(u>>8), byte(u>>16), byte(u>>24))
	}
	return b
}

func TestGPUPinned(t *testing.T) {
	dev := cudatest.Device(t)
	s := cudatest.Stream(t, dev)
	h, err := dev.AllocHost(cuda.Staging, 1<<20, cuda.HostOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	fill := cudatest.Kernel(t, dev, "basic", "fill_u32")
	if err := fill.Launch(s, cuda.Linear(4, 256), h.Ptr().Arg(), cuda.I64(1<<18), cuda.U32(0x01010101)); err != nil {
		t.Fatal(err)
	}
	if err := s.Synchronize(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(h.Bytes(), bytes.Repeat([]byte{1}, 1<<20)) {
		t.Error("the kernel's writes did not reach pinned memory")
	}
}

func TestGPUEventsAndTime(t *testing.T) {
	dev := cudatest.Device(t)
	a, b := cudatest.Stream(t, dev), cudatest.Stream(t, dev)
	spin := cudatest.Kernel(t, dev, "selftest", "spin")
	var ev [2]*cuda.Event
	for i := range ev {
		e, err := dev.NewEvent(cuda.EventOptions{Timing: true})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		ev[i] = e
	}
	const ns = 20_000_000
	if err := errors.Join(ev[0].Record(a), spin.Launch(a, cuda.Linear(1, 1), cuda.U64(ns)), ev[1].Record(a), b.Wait(ev[1])); err != nil {
		t.Fatal(err)
	}
	if done, err := b.Done(); done || err != nil {
		t.Errorf("b did not wait for a's event: %v %v", done, err)
	}
	if err := b.Synchronize(); err != nil {
		t.Fatal(err)
	}
	if done, err := ev[1].Done(); !done || err != nil {
		t.Errorf("event after its waiter ended: %v %v", done, err)
	}
	d, err := ev[1].Since(ev[0])
	if err != nil || d.Nanoseconds() < ns || d.Nanoseconds() > 10*ns {
		t.Errorf("a 20 ms kernel took %v, %v", d, err)
	}
}

func TestGPUReplay(t *testing.T) {
	dev := cudatest.Device(t)
	s := cudatest.Stream(t, dev)
	saxpy := cudatest.Kernel(t, dev, "basic", "saxpy")
	one := cudatest.Upload(t, s, slices.Repeat([]float32{1}, 1000))
	acc := cudatest.Upload(t, s, make([]float32, 1000))
	var r cuda.Replay
	defer r.Close()
	want := make([]float32, 1000)
	for step, n := range []int{1000, 17, 500, 1, 1000} {
		kernels := 20
		if step == 3 {
			kernels = 21 // another shape: no update can take it
		}
		err := r.Run(s, func() error {
			// Memory that the pool does not have, in the middle of a capture.
			b, err := dev.Alloc(cuda.Workspace, int64(10<<20+step<<24))
			if err != nil {
				return err
			}
			defer b.Close()
			if err := b.CloseAfter(s); err == nil {
				t.Error("CloseAfter on a capturing stream")
			}
			for range kernels {
				if err := saxpy.Launch(s, cuda.Linear((n+255)/256, 256), acc.Ptr().Arg(), one.Ptr().Arg(), cuda.I64(int64(n)), cuda.F32(1)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			want[i] += float32(kernels)
		}
	}
	if got := cudatest.Download[float32](t, s, acc.Ptr(), 1000); !slices.Equal(got, want) {
		t.Errorf("replayed steps: %v…, want %v…", got[:20], want[:20])
	}
	if r.Instantiations != 3 || r.Updates != 2 {
		t.Errorf("%d instantiations, %d updates, want 3 and 2", r.Instantiations, r.Updates)
	}
	// A failing step ends the capture and leaves the stream usable.
	oops := errors.New("oops")
	if err := r.Run(s, func() error { return oops }); !errors.Is(err, oops) {
		t.Errorf("error of the step: %v", err)
	}
	err := r.Run(s, func() error { return s.Synchronize() })
	var e *cuda.Error
	if !errors.As(err, &e) || e.Advice == "" {
		t.Errorf("synchronise in a capture: %v", err)
	}
	if err := s.Synchronize(); err != nil {
		t.Errorf("stream after failed captures: %v", err)
	}
}

func TestGPUModuleErrors(t *testing.T) {
	dev := cudatest.Device(t)
	_, err := dev.LoadModule("broken", []byte(".version 6.0\n.target sm_70\n.address_size 64\n.visible .entry k()\n{\n bogus.f32 %f1;\n ret;\n}\n"))
	var me *cuda.ModuleError
	if !errors.As(err, &me) || !errors.Is(err, cuda.InvalidPTX) || !strings.Contains(me.Log, "bogus") || strings.Contains(err.Error(), "\n") {
		t.Errorf("broken PTX: %v", err)
	}
	if _, err := dev.LoadModule("future", []byte(".version 99.0\n.target sm_70\n.address_size 64\n")); !errors.Is(err, cuda.UnsupportedPTXVersion) && !errors.Is(err, cuda.InvalidPTX) {
		t.Errorf("PTX 99: %v", err)
	}
	m, err := kernels.Load(dev, "basic")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if _, err := m.Function("absent"); !errors.Is(err, cuda.NotFound) {
		t.Errorf("absent kernel: %v", err)
	}
	f, err := m.Function("saxpy")
	if err != nil {
		t.Fatal(err)
	}
	a, err := f.Attributes()
	if err != nil || a.MaxThreads < 256 || a.Registers == 0 {
		t.Errorf("attributes %+v, %v", a, err)
	}
	if n, err := f.BlocksPerSM(256, 0); err != nil || n < 1 {
		t.Errorf("occupancy %d, %v", n, err)
	}
	blocks, threads, err := f.SuggestBlock(0)
	if err != nil || blocks < dev.Properties().SMs || threads < 32 {
		t.Errorf("suggested %d x %d, %v", blocks, threads, err)
	}
	if err := f.SetDynamicShared(1 << 30); err == nil {
		t.Error("1 GiB of shared memory was allowed")
	}
}

func TestGPUOutOfMemory(t *testing.T) {
	dev := cudatest.Device(t)
	_, total, err := dev.MemInfo()
	if err != nil {
		t.Fatal(err)
	}
	_, err = dev.Alloc(cuda.Features, 2*total)
	if !errors.Is(err, cuda.OutOfMemory) || !strings.Contains(err.Error(), "features") || !strings.Contains(err.Error(), "free") {
		t.Errorf("%v", err)
	}
}

// A faulting kernel is named, later calls fail cleanly, Close works.
func TestGPUFault(t *testing.T) {
	// The fault takes the process's context with it, so it gets a process of
	// its own: this test runs itself again.
	const child = "ZEROGCN_TEST_FAULT"
	if os.Getenv(child) == "" {
		cudatest.Device(t)
		cmd := exec.Command(os.Args[0], "-test.run=^TestGPUFault$", "-test.v")
		cmd.Env = append(os.Environ(), child+"=1")
		out, err := cmd.CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte("--- PASS")) {
			t.Errorf("%v\n%s", err, out)
		}
		t.Logf("%s", out)
		return
	}
	dev := cudatest.Fresh(t)
	s, err := dev.NewStream(cuda.StreamOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := kernels.Load(dev, "selftest")
	if err != nil {
		t.Fatal(err)
	}
	f, err := m.Function("fault")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Launch(s, cuda.Linear(1, 1)); err != nil {
		t.Fatal(err)
	}
	err = s.Synchronize()
	if !errors.Is(err, cuda.ErrContextLost) || !errors.Is(err, cuda.IllegalAddress) || !strings.Contains(err.Error(), "queued on this stream is fault") {
		t.Errorf("fault: %v", err)
	}
	t.Log(err)
	if _, err := dev.Alloc(cuda.Other, 1<<20); !errors.Is(err, cuda.ErrContextLost) {
		t.Errorf("allocation on a lost context: %v", err)
	}
	if err := f.Launch(s, cuda.Linear(1, 1)); !errors.Is(err, cuda.ErrContextLost) {
		t.Errorf("launch on a lost context: %v", err)
	}
	s.Close()
	m.Close()
	if err := dev.Close(); err != nil {
		t.Errorf("closing the lost device: %v", err)
	}
	// Whether a new context works in the same process is the driver's business;
	// it is logged because callers would like to know.
	again, err := dev.Driver().Open(0, cuda.DeviceOptions{})
	if err == nil {
		_, err = again.Alloc(cuda.Other, 1<<20)
		again.Close()
	}
	t.Logf("a new context after the fault: %v", err)
}
