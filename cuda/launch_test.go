package cuda

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ebitengine/purego"
)

const saxpyPTX = `.version 6.0
.target sm_70
.visible .entry saxpy(
	.param .u64 saxpy_param_0,
	.param .u64 saxpy_param_1,
	.param .u64 saxpy_param_2,
	.param .f32 saxpy_param_3
)
{ ret; }
.visible .entry empty()
{ ret; }
`

func saxpy(t testing.TB, dev *Device) *Function {
	t.Helper()
	m, err := dev.LoadModule("m", []byte(saxpyPTX))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	f, err := m.Function("saxpy")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestLaunch(t *testing.T) {
	dev, f := open(t, DeviceOptions{})
	s := newStream(t, dev)
	k := saxpy(t, dev)
	x, err := Place(s, Activations, []float32{1, 2, 3})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	y, err := Place(s, Activations, []float32{10, 20, 30})
	if err != nil {
		t.Fatal(err)
	}
	defer y.Close()
	if err := k.Launch(s, Linear(1, 32), y.Ptr().Arg(), x.Ptr().Arg(), I64(2), F32(0.5)); err != nil {
		t.Fatal(err)
	}
	got := make([]float32, 3)
	if err := Download(s, got, y.Ptr()); err != nil || !slices.Equal(got, []float32{10.5, 21, 30}) {
		t.Errorf("%v, %v", got, err)
	}
	before := f.Calls("cuLaunchKernel")
	if err := k.Launch(s, Linear(1, 32), y.Ptr().Arg()); err == nil || !strings.Contains(err.Error(), "takes 4 arguments, got 1") {
		t.Errorf("too few arguments: %v", err)
	}
	if err := k.Launch(s, Linear(0, 32), y.Ptr().Arg(), x.Ptr().Arg(), I64(2), F32(0.5)); err != nil {
		t.Errorf("no blocks: %v", err)
	}
	if n := f.Calls("cuLaunchKernel") - before; n != 0 {
		t.Errorf("%d launches reached the driver", n)
	}
	f.Fail("cuLaunchKernel", 0, int32(LaunchOutOfResources))
	err = k.Launch(s, Config{Grid: Dim{2, 3, 0}, Block: Dim{X: 2048}, Shared: 7}, y.Ptr().Arg(), x.Ptr().Arg(), I64(2), F32(0.5))
	if !errors.Is(err, LaunchOutOfResources) || !strings.Contains(err.Error(), "kernel saxpy, grid 2x3x1, block 2048x1x1, 7 bytes shared") {
		t.Errorf("%v", err)
	}
	if a, err := k.Attributes(); err != nil || a.MaxThreads != 100 || a.Registers != 104 || a.Binary != 106 {
		t.Errorf("%+v, %v", a, err)
	}
	if n, err := k.BlocksPerSM(256, 0); err != nil || n != 8 {
		t.Errorf("%d, %v", n, err)
	}
	if b, th, err := k.SuggestBlock(0); err != nil || b != 264 || th != 256 {
		t.Errorf("%d, %d, %v", b, th, err)
	}
	if err := k.SetDynamicShared(100 << 10); err != nil {
		t.Error(err)
	}
}

// A launch, the records and waits around it and a memset allocate nothing.
func TestLaunchDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	dev, f := open(t, DeviceOptions{})
	s := newStream(t, dev)
	k := saxpy(t, dev)
	y, err := dev.Alloc(Other, 4)
	if err != nil {
		t.Fatal(err)
	}
	defer y.Close()
	e, err := dev.NewEvent(EventOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	// The fake allocates in its callbacks: measure the way to them.
	dev.drv.t.launch.addr = noop(t)
	dev.drv.t.ctxSetCurrent.addr = noop(t)
	dev.drv.t.set32.addr = noop(t)
	dev.drv.t.streamWait.addr = noop(t)
	dev.drv.t.eventRecord.addr = noop(t)
	run := func() {
		if k.Launch(s, Linear(1, 32), y.Ptr().Arg(), y.Ptr().Arg(), I64(1), F32(0.5)) != nil ||
			s.Set32(y.Ptr(), 1, 1) != nil || e.Record(s) != nil || s.Wait(e) != nil {
			t.Error("failed")
		}
	}
	if n := testing.AllocsPerRun(200, run); n != 0 {
		t.Errorf("%v allocations", n)
	}
	dev.drv.t.ctxSetCurrent.addr = f.Symbol("cuCtxSetCurrent")
}

func TestModule(t *testing.T) {
	dev, _ := open(t, DeviceOptions{})
	_, err := dev.LoadModule("bad", []byte(".version bad"))
	var me *ModuleError
	if !errors.As(err, &me) || !errors.Is(err, InvalidPTX) || me.Log != "ptxas error: line 1\nmore" {
		t.Errorf("%v", err)
	}
	if s := err.Error(); !strings.HasPrefix(s, "cuda: load module bad: cuModuleLoadDataEx: ") || !strings.HasSuffix(s, "ptxas error: line 1") {
		t.Errorf("%s", s)
	}
	for _, image := range [][]byte{nil, []byte(".version 6.0\x00rest")} {
		if _, err := dev.LoadModule("m", image); err == nil {
			t.Errorf("image %q was loaded", image)
		}
	}
	m, err := dev.LoadModule("m", []byte(saxpyPTX))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	a, err := m.Function("saxpy")
	if err != nil {
		t.Fatal(err)
	}
	if b, err := m.Function("saxpy"); err != nil || a != b {
		t.Errorf("second look-up: %p %p %v", a, b, err)
	}
	if _, err := m.Function("absent"); !errors.Is(err, NotFound) || !strings.Contains(err.Error(), "kernel absent of module m") {
		t.Errorf("%v", err)
	}
	if _, err := m.Function("a\x00b"); err == nil {
		t.Error("a name with a zero was found")
	}
}

func TestPTXParameters(t *testing.T) {
	got := ptxParameters([]byte(saxpyPTX + ".entry\tthird ( .param .align 8 .b8 third_param_0[16] ) .maxntid 256, 1, 1\n{}\n.entry"))
	if got["saxpy"] != 4 || got["empty"] != 0 || got["third"] != 1 || len(got) != 3 {
		t.Errorf("%v", got)
	}
}

func FuzzPTXParameters(f *testing.F) {
	f.Add([]byte(saxpyPTX))
	f.Add([]byte(".entry"))
	f.Add([]byte(".entry a(.param .u64 p"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for name, n := range ptxParameters(b) {
			if name == "" || n < 0 || n > len(b) {
				t.Errorf("kernel %q with %d parameters", name, n)
			}
		}
	})
}

func TestGraphs(t *testing.T) {
	dev, f := open(t, DeviceOptions{})
	s := newStream(t, dev)
	k := saxpy(t, dev)
	x, err := Place(s, Other, []float32{1})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	y, err := Place(s, Other, []float32{0})
	if err != nil {
		t.Fatal(err)
	}
	defer y.Close()
	add := func(a float32) error {
		return k.Launch(s, Linear(1, 1), y.Ptr().Arg(), x.Ptr().Arg(), I64(1), F32(a))
	}
	var r Replay
	for _, step := range [][]float32{{1, 10}, {2, 20}, {3}, {4}} {
		err := r.Run(s, func() error {
			for _, a := range step {
				if err := add(a); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	got := make([]float32, 1)
	if err := Download(s, got, y.Ptr()); err != nil || got[0] != 40 {
		t.Errorf("%v, %v", got, err)
	}
	if r.Instantiations != 2 || r.Updates != 2 {
		t.Errorf("%+v", r)
	}
	spare, err := dev.Alloc(Other, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer spare.Close()
	if err := r.Run(s, func() error { return spare.CloseAfter(s) }); err == nil || !strings.Contains(err.Error(), "captures") || spare.Ptr() == 0 {
		t.Errorf("buffer closed after a capturing stream: %v", err)
	}
	oops := errors.New("oops")
	if err := r.Run(s, func() error { add(1); return oops }); err != oops {
		t.Errorf("%v", err)
	}
	if err := r.Run(s, s.Synchronize); !errors.Is(err, CaptureUnsupported) {
		t.Errorf("synchronise while capturing: %v", err)
	}
	func() { // a panic ends the capture too
		defer func() { recover() }()
		r.Run(s, func() error { panic("step") })
	}()
	if err := s.Synchronize(); err != nil {
		t.Errorf("stream after failed captures: %v", err)
	}
	// Closing the stream in the middle neither hangs nor leaves a graph.
	gone := newStream(t, dev)
	if err := r.Run(gone, func() error { gone.Close(); return nil }); !errors.Is(err, ErrClosed) {
		t.Errorf("stream closed while capturing: %v", err)
	}
	f.Fail("cuStreamEndCapture", 0, int32(CaptureInvalidated))
	if err := r.Run(s, func() error { return nil }); !errors.Is(err, CaptureInvalidated) {
		t.Errorf("invalidated capture: %v", err)
	}
	f.EndCaptures()
	g, err := s.Capture(func() error { return add(1) })
	if err != nil {
		t.Fatal(err)
	}
	if n, err := g.Nodes(); err != nil || n != 1 {
		t.Errorf("%d nodes, %v", n, err)
	}
	if err := errors.Join(g.Close(), r.Close(), r.Close()); err != nil {
		t.Error(err)
	}
}

var noops = sync.OnceValue(func() uintptr {
	h, err := purego.Dlopen("libm.so.6", purego.RTLD_NOW)
	if err != nil {
		return 0
	}
	p, _ := purego.Dlsym(h, "fegetround") // ignores arguments, returns 0 at once
	return p
})

// noop returns a C function that does nothing and returns 0.
func noop(t testing.TB) uintptr {
	t.Helper()
	if noops() == 0 {
		t.Skip("no libm.so.6")
	}
	return noops()
}

// What this package adds to the driver's own cost of a launch.
func BenchmarkLaunchOverhead(b *testing.B) {
	for _, bound := range []bool{false, true} {
		b.Run(fmt.Sprintf("bound=%v", bound), func(b *testing.B) {
			dev, f := open(b, DeviceOptions{})
			s := newStream(b, dev)
			k := saxpy(b, dev)
			dev.drv.t.launch.addr = noop(b)
			if bound {
				bind, err := dev.Bind(s)
				if err != nil {
					b.Fatal(err)
				}
				defer bind.Release()
			}
			dev.drv.t.ctxSetCurrent.addr = noop(b)
			for b.Loop() {
				if err := k.Launch(s, Linear(1, 32), 1, 2, I64(1), F32(0.5)); err != nil {
					b.Fatal(err)
				}
			}
			dev.drv.t.ctxSetCurrent.addr = f.Symbol("cuCtxSetCurrent")
		})
	}
}

// What this package adds to the driver's own cost of a replayed step.
func BenchmarkReplayOverhead(b *testing.B) {
	dev, _ := open(b, DeviceOptions{})
	s := newStream(b, dev)
	k := saxpy(b, dev)
	bind, err := dev.Bind(s)
	if err != nil {
		b.Fatal(err)
	}
	defer bind.Release()
	var r Replay
	step := func() error {
		for range 60 {
			if err := k.Launch(s, Linear(1, 32), 1, 2, I64(1), F32(0.5)); err != nil {
				return err
			}
		}
		return nil
	}
	t := &dev.drv.t
	real := *t
	for _, p := range []*symbol{&t.launch, &t.ctxSetCurrent, &t.captureBegin, &t.captureEnd, &t.graphInstantiate, &t.graphUpdate, &t.graphLaunch, &t.graphDestroy} {
		p.addr = noop(b)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := r.Run(s, step); err != nil {
			b.Fatal(err)
		}
	}
	t.graphExecDestroy.addr = noop(b)
	r.Close()
	*t = real
}
