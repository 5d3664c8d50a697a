package cuda_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"zerogcn/cuda"
	"zerogcn/cuda/cudatest"
)

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
