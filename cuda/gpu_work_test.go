package cuda_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"zerogcn/cuda"
	"zerogcn/cuda/cudatest"
	"zerogcn/cuda/kernels"
)

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
			kernels = 21 // another shape: no update can take it; the first comes back after it
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
	if r.Instantiations != 2 || r.Updates != 3 {
		t.Errorf("%d instantiations, %d updates, want 2 and 3", r.Instantiations, r.Updates)
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
