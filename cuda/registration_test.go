package cuda

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

func mapped(t testing.TB, n int) []byte {
	t.Helper()
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(b) })
	return b
}

var background = context.Background()

func TestRegister(t *testing.T) {
	dev, f := open(t, DeviceOptions{})
	mem := mapped(t, 64<<10)
	var steps []int64
	r, err := dev.Register(background, mem[100:60_000], RegisterOptions{Purpose: Features, ChunkBytes: 16 << 10,
		Progress: func(done, total int64) { steps = append(steps, done, total) }})
	if err != nil {
		t.Fatal(err)
	}
	if want := []int64{16 << 10, 60 << 10, 32 << 10, 60 << 10, 48 << 10, 60 << 10, 60 << 10, 60 << 10}; !slices.Equal(steps, want) {
		t.Errorf("progress %v, want %v", steps, want)
	}
	if r.Ptr() != DevicePtr(addressOf(mem)+100) || len(r.Bytes()) != 59_900 {
		t.Errorf("address %#x of %#x", r.Ptr(), addressOf(mem))
	}
	// The same and a part of it: no call to the driver.
	calls := f.Calls("cuMemHostRegister_v2")
	same, err := dev.Register(background, mem[100:60_000], RegisterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	part, err := dev.Register(background, mem[5000:5001], RegisterOptions{})
	if err != nil || part.Ptr() != r.Ptr()+4900 {
		t.Fatalf("%#x, %v", part.Ptr(), err)
	}
	if n := f.Calls("cuMemHostRegister_v2"); n != calls || calls != 4 {
		t.Errorf("%d registrations, then %d", calls, n)
	}
	// More than it, a part of which is registered.
	if _, err := dev.Register(background, mem, RegisterOptions{}); !errors.Is(err, ErrOverlap) {
		t.Errorf("%v", err)
	}
	if m := dev.Metrics(); m.Registered[Features].Bytes != 59_900 || m.Registered[Other].Bytes != 59_901 {
		t.Errorf("%v", m)
	}
	if err := errors.Join(r.Close(), r.Close(), same.Close()); err != nil {
		t.Fatal(err)
	}
	if r.Ptr() != 0 || f.Calls("cuMemHostUnregister") != 0 {
		t.Error("the pages were released while a registration was left")
	}
	if err := part.Close(); err != nil || f.Calls("cuMemHostUnregister") != 4 {
		t.Errorf("%d of 4 chunks released, %v", f.Calls("cuMemHostUnregister"), err)
	}
	if r, err := dev.Register(background, mem, RegisterOptions{}); err != nil || r.Close() != nil {
		t.Errorf("after the release: %v", err)
	}
	if r, err := dev.Register(background, nil, RegisterOptions{}); err != nil || r.Ptr() != 0 || r.Close() != nil {
		t.Errorf("no bytes: %v", err)
	}
}

// A refusal or a cancellation in the middle leaves nothing registered.
func TestRegisterFailsWhole(t *testing.T) {
	dev, f := open(t, DeviceOptions{})
	mem := mapped(t, 64<<10)
	o := RegisterOptions{ChunkBytes: 16 << 10}
	f.Fail("cuMemHostRegister_v2", 2, int32(OutOfMemory))
	_, err := dev.Register(background, mem, o)
	if !errors.Is(err, OutOfMemory) || !strings.Contains(err.Error(), "64.0 KiB of host memory") || !strings.Contains(err.Error(), "memlock limit") {
		t.Errorf("%v", err)
	}
	if n := f.Locked(); n != 0 {
		t.Errorf("%d chunks stay registered", n)
	}
	ctx, cancel := context.WithCancel(background)
	o.Progress = func(done, _ int64) {
		if done == 32<<10 {
			cancel()
		}
	}
	if _, err := dev.Register(ctx, mem, o); !errors.Is(err, context.Canceled) || f.Locked() != 0 {
		t.Errorf("%v, %d chunks stay registered", err, f.Locked())
	}
	if r, err := dev.Register(background, mem, RegisterOptions{}); err != nil || r.Close() != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestRegisterRefusesFiles(t *testing.T) {
	dev, f := open(t, DeviceOptions{})
	dir := t.TempDir()
	path := filepath.Join(dir, "rows")
	if err := os.WriteFile(path, make([]byte, 8192), 0o600); err != nil {
		t.Fatal(err)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	b, err := unix.Mmap(int(file.Fd()), 0, 8192, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(b)
	if fs.Type == unix.TMPFS_MAGIC {
		t.Skip("the temporary folder is in memory")
	}
	if _, err := dev.Register(background, b, RegisterOptions{ReadOnly: true}); !errors.Is(err, ErrFileMapping) || !strings.Contains(err.Error(), path) {
		t.Errorf("%v", err)
	}
	if n := f.Calls("cuMemHostRegister_v2"); n != 0 {
		t.Error("the file mapping reached the driver")
	}
}

func TestFileMapping(t *testing.T) {
	const maps = `1000-3000 rw-p 00000000 00:00 0 
3000-5000 rw-s 00000000 00:1a 99 /dev/shm/table
5000-6000 r--p 00000000 08:01 12 /data/my set/features.npy (deleted)
garbage
7000-8000 rw-p 00000000 00:00 0 [heap]
`
	for _, c := range []struct {
		lo, hi uint64
		path   string
		at     uint64
	}{
		{0x1000, 0x3000, "", 0}, {0x2000, 0x4000, "/dev/shm/table", 0x1000},
		{0x5800, 0x5900, "/data/my set/features.npy (deleted)", 0}, {0x6000, 0x9000, "", 0},
	} {
		if p, at := fileMapping(strings.NewReader(maps), c.lo, c.hi); p != c.path || at != c.at {
			t.Errorf("%#x-%#x: %q at %#x, want %q at %#x", c.lo, c.hi, p, at, c.path, c.at)
		}
	}
	for path, want := range map[string]bool{"/dev/shm/table": true, "/memfd:x (deleted)": true, "/absent/file": false, "/proc/self/maps": false} {
		if inMemory(path) != want {
			t.Errorf("inMemory(%q) = %v", path, !want)
		}
	}
}

func FuzzFileMapping(f *testing.F) {
	f.Add("1000-3000 rw-p 00000000 00:00 0 /x\n", uint64(0x1000), uint64(0x2000))
	f.Add("-", uint64(0), uint64(1))
	f.Fuzz(func(t *testing.T, maps string, lo, hi uint64) {
		if lo >= hi {
			t.Skip()
		}
		if path, at := fileMapping(strings.NewReader(maps), lo, hi); path != "" && (path[0] != '/' || at >= hi-lo) {
			t.Errorf("%q at %d", path, at)
		}
	})
}

func TestMemAvailable(t *testing.T) {
	if kb, ok := memAvailable(strings.NewReader("MemTotal: 5 kB\nMemAvailable:   123 kB\n")); !ok || kb != 123 {
		t.Errorf("%d %v", kb, ok)
	}
	if _, ok := memAvailable(strings.NewReader("MemAvailable: x kB\n")); ok {
		t.Error("read a number from x")
	}
}

// Goroutines that register and close ranges at random: the driver sees every
// page locked at most once (the fake refuses more), and nothing stays.
func TestRegisterConcurrently(t *testing.T) {
	dev, f := open(t, DeviceOptions{})
	mem := mapped(t, 256<<10)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 60 {
				part := mem[(i%4)<<16 : (i%4+1)<<16]
				if g%2 == 1 {
					part = part[8<<10 : 16<<10]
				}
				r, err := dev.Register(background, part, RegisterOptions{ChunkBytes: 16 << 10})
				if err != nil {
					// A whole quarter, while a part of it is registered.
					if !errors.Is(err, ErrOverlap) || g%2 == 1 {
						t.Errorf("goroutine %d: %v", g, err)
						return
					}
					continue
				}
				if r.Ptr() != DevicePtr(addressOf(part)) {
					t.Errorf("address %#x", r.Ptr())
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if f.Locked() != 0 || len(dev.drv.registry.ranges) != 0 {
		t.Errorf("%d chunks and %d ranges stay", f.Locked(), len(dev.drv.registry.ranges))
	}
}

// The registry against a plain list of ranges.
func TestRegistryModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r registry
		var held []*lockedRange
		t.Repeat(map[string]func(*rapid.T){
			"acquire": func(t *rapid.T) {
				lo := uintptr(rapid.IntRange(0, 20).Draw(t, "lo"))
				hi := lo + uintptr(rapid.IntRange(1, 6).Draw(t, "n"))
				inside, touches := false, false
				for _, h := range held {
					inside = inside || h.lo <= lo && hi <= h.hi
					touches = touches || h.lo < hi && lo < h.hi
				}
				l, isNew, err := r.acquire(lo, hi)
				if inside != (err == nil && !isNew) || touches == isNew && !inside {
					t.Fatalf("[%d,%d): new %v, %v; inside %v, touches %v", lo, hi, isNew, err, inside, touches)
				}
				if err != nil {
					return
				}
				if isNew {
					if rapid.IntRange(0, 3).Draw(t, "fails") == 0 {
						r.settle(l, errors.New("refused"))
						if r.release(l) {
							t.Fatal("a range that never was is to be unregistered")
						}
						return
					}
					for at := lo; at < hi; at += 2 {
						l.chunks = append(l.chunks, at)
					}
					r.settle(l, nil)
				}
				held = append(held, l)
			},
			"release": func(t *rapid.T) {
				if len(held) == 0 {
					return
				}
				i := rapid.IntRange(0, len(held)-1).Draw(t, "i")
				l := held[i]
				held = slices.Delete(held, i, i+1)
				last := !slices.Contains(held, l)
				if r.release(l) != last {
					t.Fatalf("last user: %v", !last)
				}
				if last {
					r.forget(l)
				}
			},
			"": func(t *rapid.T) {
				at := uintptr(rapid.IntRange(0, 30).Draw(t, "at"))
				want := uintptr(100)
				for _, h := range held {
					if h.lo <= at && at < h.hi {
						if next := (at-h.lo)/2*2 + 2 + h.lo; next < h.hi {
							want = next - at
						}
					}
				}
				if got := r.span(at, 100); got != want {
					t.Fatalf("span(%d) = %d, want %d", at, got, want)
				}
			},
		})
	})
}

func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(&b[0])) }
