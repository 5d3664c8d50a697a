package zerocopy

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"zerogcn/cuda/cudatest"
	"zerogcn/dtype"
	"zerogcn/internal/usage"
)

// shmDir is a fresh folder in /dev/shm.
func shmDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "zerocopy-test-")
	if err != nil {
		t.Skipf("no /dev/shm: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestSharedTable(t *testing.T) {
	const rows, width = 3000, 33
	for _, dt := range allTypes {
		path := filepath.Join(shmDir(t), "features")
		a, err := NewShared(path, rows, width, dt, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := NewShared(path, rows, width, dt, Options{}); !usage.Is(err) || !strings.Contains(err.Error(), "another process") {
			t.Errorf("made twice: %v", err)
		}
		if err := a.Fill(context.Background(), patternReader(a.RowBytes())); err != nil {
			t.Fatal(err)
		}
		for i := range a.Scales() {
			a.Scales()[i] = testScale(i)
		}
		if _, err := OpenShared(path, rows, width, dt, Options{}); err == nil {
			t.Error("a table that is not published was opened")
		}
		if err := a.Publish(); err != nil {
			t.Fatal(err)
		}
		if err := a.Publish(); err == nil {
			t.Error("published twice")
		}
		b, err := OpenShared(path, rows, width, dt, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		ids := drawIDs(5000, rows, 1)
		dst := make([]float32, len(ids)*width)
		if err := newTestGatherer(t, b, 2).Gather(context.Background(), ids, dst); err != nil {
			t.Fatal(err)
		}
		if i := diffBits(dst, wantRows(width, dt, ids), dt); i >= 0 {
			t.Errorf("%v: value %d differs", dt, i)
		}
		t.Cleanup(func() { b.Close() })
	}
}

// TestSharedAbandoned: a table closed before it was published leaves nothing.
func TestSharedAbandoned(t *testing.T) {
	dir := shmDir(t)
	a, err := NewShared(filepath.Join(dir, "x"), 10, 10, dtype.Float32, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if list, _ := os.ReadDir(dir); len(list) != 0 {
		t.Errorf("left %v", list)
	}
	if err := a.Publish(); err == nil {
		t.Error("a closed table was published")
	}
}

func TestSharedRefuses(t *testing.T) {
	dir := shmDir(t)
	path := filepath.Join(dir, "x")
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		t.Fatal(err)
	}
	if fs.Blocks > 0 && fs.Blocks < 1<<30 { // else the file system has no limit
		_, err := NewShared(path, 1<<31-1, 1<<20, dtype.Float32, Options{})
		if !usage.Is(err) || !strings.Contains(err.Error(), "free in "+dir) {
			t.Errorf("more than there is: %v", err)
		}
		if list, _ := os.ReadDir(dir); len(list) != 0 {
			t.Errorf("left %v", list)
		}
	}
	if err := os.WriteFile(path, bytes.Repeat([]byte{1}, 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenShared(path, 2000, 1, dtype.Float32, Options{}); !usage.Is(err) || !strings.Contains(err.Error(), "made for another table") {
		t.Errorf("wrong size: %v", err)
	}
	if err := checkMemoryFS("/proc"); !usage.Is(err) {
		t.Errorf("not a memory file system: %v", err)
	}
}

// TestSharedOnGPU registers shared memory and gathers from it in place.
func TestSharedOnGPU(t *testing.T) {
	dev := cudatest.Device(t)
	const rows, width = 700, 50
	path := filepath.Join(shmDir(t), "features")
	tab, err := NewShared(path, rows, width, dtype.Int8, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tab.Close() })
	if err := tab.Fill(context.Background(), patternReader(width)); err != nil {
		t.Fatal(err)
	}
	for i := range tab.Scales() {
		tab.Scales()[i] = testScale(i)
	}
	g := newDeviceGatherer(t, tab, dev, DeviceOptions{Mode: ZeroCopy})
	ids := drawIDs(2000, rows, 3)
	dst := make([]float32, len(ids)*width)
	if err := g.Gather(context.Background(), ids, dst); err != nil {
		t.Fatal(err)
	}
	if i := diffBits(dst, wantRows(width, dtype.Int8, ids), dtype.Int8); i >= 0 {
		t.Errorf("value %d differs", i)
	}
}
