package cuda

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"zerogcn/cuda/cudatest/fake"
)

func open(t testing.TB, o DeviceOptions) (*Device, *fake.Driver) {
	t.Helper()
	drv, f := newFake(t, 1)
	dev, err := drv.Open(0, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if l := f.Leaks(); l != "" {
			t.Errorf("left on the device: %s", l)
		}
	})
	return dev, f
}

func newStream(t testing.TB, d *Device) *Stream {
	t.Helper()
	s, err := d.NewStream(StreamOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestLoad(t *testing.T) {
	drv, _ := newFake(t, 2)
	if drv.Version() != 12040 || drv.Version().String() != "12.4" || drv.Count() != 2 {
		t.Errorf("version %v, %d devices", drv.Version(), drv.Count())
	}
	p, err := drv.Properties(1)
	if err != nil {
		t.Fatal(err)
	}
	if p.Name != "Fake GPU" || p.SMs != 132 || p.ComputeCapability() != 90 || p.PCI != "0000:1a:00.0" || !p.SameHostAddress || p.Integrated || p.TotalMemory != 1<<36 {
		t.Errorf("%+v", p)
	}
	for _, o := range []int{-1, 2} {
		if _, err := drv.Open(o, DeviceOptions{}); err == nil || !strings.Contains(err.Error(), "2 visible") {
			t.Errorf("device %d: %v", o, err)
		}
	}
	if _, err := LoadFrom(fake.New(0).Symbol); !Absent(err) {
		t.Errorf("a driver without devices: %v", err)
	}
	if _, err := load(func(string) uintptr { return 0 }); err == nil || !strings.Contains(err.Error(), "cuInit") {
		t.Errorf("empty library: %v", err)
	}
}

// Load on this machine either works or says that there is no driver.
func TestLoadHere(t *testing.T) {
	if _, err := Load(); err != nil && !Absent(err) {
		t.Errorf("neither a driver nor an absent one: %v", err)
	} else if err != nil {
		t.Log(err)
	}
}

func TestErrorText(t *testing.T) {
	dev, f := open(t, DeviceOptions{})
	f.SetFree(1000)
	_, err := dev.Alloc(Features, 5<<30)
	var e *Error
	if !errors.As(err, &e) || !errors.Is(err, OutOfMemory) || errors.Is(err, InvalidValue) || errors.Is(err, ErrContextLost) {
		t.Fatalf("%v", err)
	}
	want := "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (out of memory): asked 5120.0 MiB for features, 1000 bytes of 64.0 GiB free on device 0 (Fake GPU); use a smaller batch or cache, or close other programs on the GPU"
	if err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
	// A function that this driver lacks.
	dev.drv.t.graphLaunch.addr = 0
	if err := (&Executable{dev: dev}).Launch(newStream(t, dev)); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "cuGraphLaunch") {
		t.Errorf("missing function: %v", err)
	}
}

// The fake refuses calls on threads without the context, and goroutines hop
// between threads: calls from many of them work all the same.
func TestAnyGoroutine(t *testing.T) {
	dev, f := open(t, DeviceOptions{})
	s := newStream(t, dev)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				b, err := dev.Alloc(Other, 100)
				if err != nil {
					t.Error(err)
					return
				}
				runtime.Gosched()
				if err := errors.Join(s.Set8(b.Ptr(), 1, 100), s.Synchronize(), b.Close()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if n := f.Calls("cuMemAlloc_v2"); n > 8 {
		t.Errorf("%d driver allocations for at most 8 buffers at a time: the pool does not work", n)
	}
}

// With two devices open a bound goroutine may call the other device and finds
// its own context current again.
func TestTwoDevices(t *testing.T) {
	drv, f := newFake(t, 2)
	var dev [2]*Device
	for i := range dev {
		d, err := drv.Open(i, DeviceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		dev[i] = d
	}
	s, err := dev[0].NewStream(StreamOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := dev[0].Bind(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := dev[1].Synchronize(); err != nil {
		t.Fatal(err)
	}
	current := f.Current()
	if current != dev[0].Context() {
		t.Errorf("context %#x current after a call to the other device, want %#x", current, dev[0].Context())
	}
	inner, err := dev[1].Bind()
	if err != nil {
		t.Fatal(err)
	}
	inner.Release()
	if c := f.Current(); c != dev[0].Context() {
		t.Errorf("context %#x current after a nested binding, want %#x", c, dev[0].Context())
	}
	if ok, err := dev[0].EnablePeer(dev[1]); !ok || err != nil {
		t.Errorf("peer access: %v %v", ok, err)
	}
	b.Release()
	b.Release()
	m, err := dev[1].LoadModule("m", []byte(saxpyPTX))
	if err != nil {
		t.Fatal(err)
	}
	k, err := m.Function("saxpy")
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Launch(s, Linear(1, 1), 0, 0, 0, 0); err == nil || !strings.Contains(err.Error(), "device 1") {
		t.Errorf("kernel of device 1 on a stream of device 0: %v", err)
	}
	if err := errors.Join(s.Close(), m.Close(), dev[0].Close(), dev[1].Close()); err != nil {
		t.Error(err)
	}
	if l := f.Leaks(); l != "" {
		t.Error(l)
	}
}

func TestBinding(t *testing.T) {
	dev, f := open(t, DeviceOptions{})
	s := newStream(t, dev)
	b, err := dev.Bind(s)
	if err != nil {
		t.Fatal(err)
	}
	sets := f.Calls("cuCtxSetCurrent")
	for range 10 {
		if err := s.Synchronize(); err != nil {
			t.Fatal(err)
		}
	}
	if n := f.Calls("cuCtxSetCurrent") - sets; n != 0 {
		t.Errorf("%d context switches on a bound stream", n)
	}
	if _, err := dev.Bind(s); err == nil || !strings.Contains(err.Error(), "bound") {
		t.Errorf("second binding of a stream: %v", err)
	}
	// Another goroutine, on a thread without the context, gets an error; under
	// the tag invariants it panics.
	var other error
	done := make(chan bool)
	go func() {
		defer close(done)
		defer func() {
			if r := recover(); r != nil {
				other = fmt.Errorf("panic %v: Bind %w", r, InvalidContext)
			}
		}()
		runtime.LockOSThread()
		f.SetCurrent(0)
		other = s.Synchronize()
	}()
	<-done
	if !errors.Is(other, InvalidContext) || !strings.Contains(other.Error(), "Bind") {
		t.Errorf("bound stream from elsewhere: %v", other)
	}
	b.Release()
	if err := s.Synchronize(); err != nil {
		t.Error(err)
	}
	var none *Binding
	none.Release()
}

// Every method of a closed object answers, every second Close is quiet.
func TestClosed(t *testing.T) {
	dev, _ := open(t, DeviceOptions{})
	s := newStream(t, dev)
	live := newStream(t, dev)
	e, err := dev.NewEvent(EventOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := dev.LoadModule("m", []byte(saxpyPTX))
	if err != nil {
		t.Fatal(err)
	}
	k, err := m.Function("saxpy")
	if err != nil {
		t.Fatal(err)
	}
	g, err := s.Capture(func() error { return s.Set8(0x10, 0, 0) })
	if err != nil {
		t.Fatal(err)
	}
	x, err := g.Executable()
	if err != nil {
		t.Fatal(err)
	}
	buf, err := dev.Alloc(Other, 10)
	if err != nil {
		t.Fatal(err)
	}
	host, err := dev.AllocHost(Staging, 10, HostOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := errors.Join(s.Close(), e.Close(), m.Close(), x.Close(), g.Close(), buf.Close(), host.Close()); err != nil {
			t.Fatal(err)
		}
	}
	check := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v, want ErrClosed", what, err)
		}
	}
	check("stream synchronize", s.Synchronize())
	check("stream copy", s.CopyHtoD(0x10, []byte{1}))
	check("stream wait", live.Wait(e))
	check("event record", e.Record(live))
	check("event done", second(e.Done()))
	check("launch", k.Launch(live, Linear(1, 1), 0, 0, 0, 0))
	check("module function", second(m.Function("saxpy")))
	check("graph nodes", second(g.Nodes()))
	check("executable launch", x.Launch(live))
	check("capture", second(s.Capture(func() error { return nil })))
	if buf.Ptr() != 0 || host.Bytes() != nil || host.Ptr() != 0 {
		t.Error("closed memory still has an address")
	}
	if m := dev.Metrics(); m.Open() != 1 {
		t.Errorf("%d objects open, want one stream\n%v", m.Open(), m)
	}
}

func second[T any](_ T, err error) error { return err }

// Close of a device closes what was forgotten, says so, and is final.
func TestDeviceCloseReportsLeaks(t *testing.T) {
	drv, f := newFake(t, 1)
	dev, err := drv.Open(0, DeviceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s, _ := dev.NewStream(StreamOptions{})
	dev.NewStream(StreamOptions{})
	b, _ := dev.Alloc(Other, 1)
	kept, _ := dev.Alloc(Other, 1<<20)
	if err := kept.CloseAfter(s); err != nil {
		t.Fatal(err)
	}
	err = dev.Close()
	var leak *Leak
	if !errors.As(err, &leak) || leak.Objects["stream"] != 2 || leak.Objects["buffer"] != 1 || len(leak.Objects) != 2 {
		t.Errorf("%v", err)
	}
	if l := f.Leaks(); l != "" {
		t.Errorf("left on the device: %s", l)
	}
	if err := errors.Join(dev.Close(), s.Close(), b.Close()); err != nil {
		t.Errorf("closing again: %v", err)
	}
	for what, err := range map[string]error{
		"alloc": second(dev.Alloc(Other, 1)), "stream": second(dev.NewStream(StreamOptions{})), "bind": second(dev.Bind()),
		"synchronize": dev.Synchronize(), "module": second(dev.LoadModule("m", []byte(saxpyPTX))),
		"pinned": second(dev.AllocHost(Other, 1, HostOptions{})), "event": second(dev.NewEvent(EventOptions{})),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s on a closed device: %v", what, err)
		}
	}
}

func TestLostContext(t *testing.T) {
	drv, f := newFake(t, 1)
	dev, err := drv.Open(0, DeviceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s, _ := dev.NewStream(StreamOptions{})
	m, _ := dev.LoadModule("m", []byte(saxpyPTX))
	k, err := m.Function("empty")
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Launch(s, Linear(1, 1)); err != nil {
		t.Fatal(err)
	}
	f.Fail("cuStreamSynchronize", 0, int32(IllegalAddress))
	err = s.Synchronize()
	if !errors.Is(err, ErrContextLost) || !errors.Is(err, IllegalAddress) || !strings.Contains(err.Error(), "queued on this stream is empty") {
		t.Errorf("fault: %v", err)
	}
	if err := second(dev.Alloc(Other, 1)); !errors.Is(err, ErrContextLost) {
		t.Errorf("afterwards: %v", err)
	}
	var leak *Leak
	if err := dev.Close(); !errors.As(err, &leak) || errors.Is(err, ErrContextLost) {
		t.Errorf("close of a lost device should report the leak alone: %v", err)
	}
}

func TestStreamsAndEvents(t *testing.T) {
	dev, f := open(t, DeviceOptions{Schedule: ScheduleBlocking})
	least, greatest, err := dev.PriorityRange()
	if err != nil || least != 0 || greatest != -5 {
		t.Errorf("priorities %d to %d, %v", least, greatest, err)
	}
	s := newStream(t, dev)
	a, err := dev.NewEvent(EventOptions{Timing: true})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := dev.NewEvent(EventOptions{Timing: true, Blocking: true})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := errors.Join(a.Record(s), b.Record(s), s.Wait(a), b.Synchronize()); err != nil {
		t.Fatal(err)
	}
	d, err := b.Since(a)
	if err != nil || d.Microseconds() != 1250 {
		t.Errorf("elapsed %v, %v", d, err)
	}
	f.Hold(a.Handle())
	if done, err := a.Done(); done || err != nil {
		t.Errorf("pending event: %v %v", done, err)
	}
	plain, err := dev.NewEvent(EventOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if _, err := plain.Since(a); err == nil {
		t.Error("time of an event without timing")
	}
	adopted, err := dev.AdoptStream(s.Handle())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(adopted.Synchronize(), adopted.Close(), s.Synchronize()); err != nil {
		t.Errorf("adopted stream: %v", err)
	}
	if free, total, err := dev.MemInfo(); err != nil || free != 1<<36 || total != 1<<36 {
		t.Errorf("memory %d of %d, %v", free, total, err)
	}
}
