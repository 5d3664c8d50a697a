package cuda

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSizeClass(t *testing.T) {
	for _, c := range []struct{ n, want int64 }{
		{1, 512}, {512, 512}, {513, 1024}, {2048, 2048}, {2049, 2560}, {4096, 4096}, {4097, 5120},
		{1 << 20, 1 << 20}, {1<<20 + 1, 5 << 18}, {64 << 20, 64 << 20}, {64<<20 + 1, 72 << 20},
		{1 << 30, 1 << 30}, {1<<30 + 1, 1<<30 + 2<<20}, {10<<30 + 5, 10<<30 + 2<<20},
	} {
		if got := sizeClass(c.n); got != c.want {
			t.Errorf("sizeClass(%d) = %d, want %d", c.n, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 1<<32).Draw(t, "n")
		c := sizeClass(n)
		if c < n || c%poolGrain != 0 || sizeClass(c) != c {
			t.Fatalf("sizeClass(%d) = %d, of which the class is %d", n, c, sizeClass(c))
		}
		if n > 4*poolGrain && float64(c-n) > 0.25*float64(c) {
			t.Fatalf("sizeClass(%d) = %d wastes more than a quarter", n, c)
		}
		if m := rapid.Int64Range(1, n).Draw(t, "m"); sizeClass(m) > c {
			t.Fatalf("class of %d above class of %d", m, n)
		}
	})
}

// Any order of allocations and frees keeps the pool's books and never hands a
// block out twice.
func TestPoolModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := pool{limit: rapid.Int64Range(0, 1<<16).Draw(t, "limit")}
		kept := map[DevicePtr]int64{}
		next := DevicePtr(1)
		passed := map[uintptr]bool{}
		waiting := 0
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				class := sizeClass(rapid.Int64Range(1, 4096).Draw(t, "n"))
				ptr, ok := p.take(class)
				if ok && kept[ptr] != class {
					t.Fatalf("block %d of class %d given for %d", ptr, kept[ptr], class)
				}
				delete(kept, ptr)
			},
			"keep": func(t *rapid.T) {
				class := sizeClass(rapid.Int64Range(1, 4096).Draw(t, "n"))
				if p.keep(next, class) {
					kept[next] = class
				}
				next++
			},
			"postpone": func(t *rapid.T) {
				p.postpone(pendingBlock{next, 512, uintptr(next)})
				passed[uintptr(next)] = rapid.Bool().Draw(t, "passed")
				next++
				waiting++
			},
			"settle": func(t *rapid.T) {
				for _, b := range p.settled(func(e uintptr) bool { return passed[e] }) {
					if !passed[b.event] {
						t.Fatalf("block %d came back before its event", b.ptr)
					}
					waiting--
				}
			},
			"drain": func(t *rapid.T) {
				all := p.drain()
				if len(all) != len(kept) {
					t.Fatalf("%d blocks drained, %d kept", len(all), len(kept))
				}
				clear(kept)
			},
			"": func(t *rapid.T) {
				var sum int64
				for _, c := range kept {
					sum += c
				}
				if p.cached != sum || p.cached > p.limit || len(p.pending) != waiting {
					t.Fatalf("keeps %d bytes (limit %d), books say %d; %d wait, want %d", sum, p.limit, p.cached, len(p.pending), waiting)
				}
			},
		})
	})
}

func TestPoolReuse(t *testing.T) {
	dev, f := open(t, DeviceOptions{})
	a, err := dev.Alloc(Activations, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	ptr := a.Ptr()
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := dev.Alloc(Gradients, 10_100) // the same class
	if err != nil {
		t.Fatal(err)
	}
	if b.Ptr() != ptr || f.Calls("cuMemAlloc_v2") != 1 {
		t.Errorf("closed buffer was not used again: %#x, then %#x", ptr, b.Ptr())
	}
	m := dev.Metrics()
	if m.Device[Activations] != (Usage{0, 10_000, 0, 1}) || m.Device[Gradients] != (Usage{10_100, 10_100, 1, 1}) || m.PoolHits != 1 || m.PoolMisses != 1 {
		t.Errorf("%+v", m)
	}
	want := "device     gradients        10100 bytes  10100 bytes        1          1\n"
	if s := m.String(); !strings.Contains(s, want) || !strings.Contains(s, "1 hits, 1 misses") {
		t.Errorf("%s", s)
	}
	if err := errors.Join(b.Close(), dev.Trim()); err != nil {
		t.Fatal(err)
	}
	if n := f.Calls("cuMemFree_v2"); n != 1 {
		t.Errorf("%d frees after Trim", n)
	}
}

// None kept when the limit forbids it.
func TestPoolLimit(t *testing.T) {
	none, f := open(t, DeviceOptions{PoolLimit: -1})
	c, err := none.Alloc(Features, 512)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil || f.Calls("cuMemFree_v2") != 1 {
		t.Errorf("PoolLimit < 0 kept a block: %v", err)
	}
	zero, err := none.Alloc(Features, 0)
	if err != nil || zero.Ptr() != 0 || zero.Close() != nil {
		t.Errorf("no bytes: %v", err)
	}
	if _, err := none.Alloc(Features, -1); err == nil {
		t.Error("negative size was allocated")
	}
}

// A buffer closed after a stream is not handed out until the stream got there.
func TestCloseAfter(t *testing.T) {
	dev, f := open(t, DeviceOptions{})
	s := newStream(t, dev)
	a, err := dev.Alloc(Activations, 512)
	if err != nil {
		t.Fatal(err)
	}
	ptr := a.Ptr()
	if err := errors.Join(a.CloseAfter(s), a.CloseAfter(s), a.Close()); err != nil {
		t.Fatal(err)
	}
	event := dev.pool.pending[0].event
	f.Hold(event)
	b, err := dev.Alloc(Activations, 512)
	if err != nil {
		t.Fatal(err)
	}
	if b.Ptr() == ptr {
		t.Fatal("the block was handed out while its stream was using it")
	}
	f.Pass(event)
	c, err := dev.Alloc(Activations, 512)
	if err != nil {
		t.Fatal(err)
	}
	if c.Ptr() != ptr {
		t.Error("the block did not come back after its stream")
	}
	before := f.Calls("cuEventCreate")
	if err := errors.Join(b.CloseAfter(s), c.Close()); err != nil {
		t.Fatal(err)
	}
	if f.Calls("cuEventCreate") != before {
		t.Error("the pool made a second event though the first was free")
	}
	d, err := dev.Alloc(Activations, 512)
	if err != nil {
		t.Fatal(err)
	}
	f.Fail("cuEventRecord", 0, int32(OutOfMemory))
	if err := d.CloseAfter(s); !errors.Is(err, OutOfMemory) {
		t.Errorf("%v", err)
	}
}

// Out of memory gives back what the pool keeps, waits for what streams hold,
// and tries again.
func TestAllocTrimsWhenFull(t *testing.T) {
	dev, f := open(t, DeviceOptions{})
	s := newStream(t, dev)
	f.SetFree(1 << 20)
	a, err := dev.Alloc(Other, 512<<10)
	if err != nil {
		t.Fatal(err)
	}
	b, err := dev.Alloc(Other, 512<<10)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(a.Close(), b.CloseAfter(s)); err != nil {
		t.Fatal(err)
	}
	f.Hold(dev.pool.pending[0].event)
	c, err := dev.Alloc(Other, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if m := dev.Metrics(); m.PoolTrims != 1 || m.PoolCached != 0 {
		t.Errorf("%v", m)
	}
	if _, err := dev.Alloc(Other, 1); !errors.Is(err, OutOfMemory) {
		t.Errorf("%v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestHostBuffer(t *testing.T) {
	dev, f := open(t, DeviceOptions{})
	s := newStream(t, dev)
	h, err := dev.AllocHost(Staging, 4096, HostOptions{WriteCombined: true})
	if err != nil {
		t.Fatal(err)
	}
	copy(h.Bytes(), "hello")
	b, err := dev.Alloc(Other, 4096)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 5)
	if err := errors.Join(s.CopyHtoD(b.Ptr(), h.Bytes()), s.CopyDtoD(b.Ptr()+5, b.Ptr(), 5), Download(s, got, b.Ptr()+5)); err != nil || string(got) != "hello" {
		t.Errorf("%q, %v", got, err)
	}
	if m := dev.Metrics(); m.Pinned[Staging] != (Usage{4096, 4096, 1, 1}) {
		t.Errorf("%v", m)
	}
	if err := errors.Join(h.Close(), h.Close(), b.Close()); err != nil {
		t.Error(err)
	}
	f.Fail("cuMemHostAlloc", 0, int32(OutOfMemory))
	if _, err := dev.AllocHost(Staging, 1<<30, HostOptions{}); !errors.Is(err, OutOfMemory) || !strings.Contains(err.Error(), "memlock limit") || !strings.Contains(err.Error(), "1024.0 MiB of host memory for staging") {
		t.Errorf("%v", err)
	}
	if e, err := dev.AllocHost(Staging, 0, HostOptions{}); err != nil || len(e.Bytes()) != 0 || e.Close() != nil {
		t.Errorf("no bytes: %v", err)
	}
	// The second call fails: the first is undone.
	f.Fail("cuMemHostGetDevicePointer_v2", 0, int32(InvalidValue))
	if _, err := dev.AllocHost(Staging, 4096, HostOptions{}); !errors.Is(err, InvalidValue) {
		t.Errorf("%v", err)
	}
}
