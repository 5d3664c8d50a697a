package cuda_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"zerogcn/cuda"
	"zerogcn/cuda/cudatest"
	"zerogcn/cuda/kernels"
	"zerogcn/internal/par"
)

// What a launch costs the host, in bursts that do not fill the stream's queue.
func BenchmarkGPULaunch(b *testing.B) {
	for _, bound := range []bool{false, true} {
		b.Run(fmt.Sprintf("bound=%v", bound), func(b *testing.B) {
			dev := cudatest.Device(b)
			s := cudatest.Stream(b, dev)
			saxpy := cudatest.Kernel(b, dev, "basic", "saxpy")
			y := cudatest.Upload(b, s, make([]float32, 32))
			if bound {
				bind, err := dev.Bind(s)
				if err != nil {
					b.Fatal(err)
				}
				defer bind.Release()
			}
			const burst = 200
			b.ReportAllocs()
			var issue time.Duration
			n := 0
			for b.Loop() {
				t := time.Now()
				for range burst {
					if err := saxpy.Launch(s, cuda.Linear(1, 32), y.Ptr().Arg(), y.Ptr().Arg(), cuda.I64(32), cuda.F32(1)); err != nil {
						b.Fatal(err)
					}
				}
				issue += time.Since(t)
				n += burst
				if err := s.Synchronize(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(issue.Nanoseconds())/float64(n), "ns/launch")
		})
	}
}

// The price of making the context current for a call that needs nothing else.
func BenchmarkGPUEventRecord(b *testing.B) {
	for _, bound := range []bool{false, true} {
		b.Run(fmt.Sprintf("bound=%v", bound), func(b *testing.B) {
			dev := cudatest.Device(b)
			s := cudatest.Stream(b, dev)
			e, err := dev.NewEvent(cuda.EventOptions{})
			if err != nil {
				b.Fatal(err)
			}
			defer e.Close()
			if bound {
				bind, err := dev.Bind(s)
				if err != nil {
					b.Fatal(err)
				}
				defer bind.Release()
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := e.Record(s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Launch and wait: the round trip that a pipeline must not make.
func BenchmarkGPULaunchAndSynchronize(b *testing.B) {
	dev := cudatest.Device(b)
	s := cudatest.Stream(b, dev)
	empty := cudatest.Kernel(b, dev, "selftest", "empty")
	for b.Loop() {
		if err := empty.Launch(s, cuda.Linear(1, 32)); err != nil {
			b.Fatal(err)
		}
		if err := s.Synchronize(); err != nil {
			b.Fatal(err)
		}
	}
}

// A step of 60 small kernels, as launches and as a replayed graph.
func BenchmarkGPUStepOf60(b *testing.B) {
	dev := cudatest.Device(b)
	s := cudatest.Stream(b, dev)
	saxpy := cudatest.Kernel(b, dev, "basic", "saxpy")
	y := cudatest.Upload(b, s, make([]float32, 4096))
	step := func(n int64) error {
		for range 60 {
			if err := saxpy.Launch(s, cuda.Linear(16, 256), y.Ptr().Arg(), y.Ptr().Arg(), cuda.I64(n), cuda.F32(0)); err != nil {
				return err
			}
		}
		return nil
	}
	bind, err := dev.Bind(s)
	if err != nil {
		b.Fatal(err)
	}
	defer bind.Release()
	var r cuda.Replay
	defer r.Close()
	replay := func(n int64) error { return r.Run(s, func() error { return step(n) }) }
	for name, run := range map[string]func(int64) error{"launches": step, "replay": replay} {
		for _, wait := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/synchronize=%v", name, wait), func(b *testing.B) {
				n := int64(0)
				for b.Loop() {
					n++
					if err := run(n % 4096); err != nil {
						b.Fatal(err)
					}
					if wait {
						if err := s.Synchronize(); err != nil {
							b.Fatal(err)
						}
					}
				}
				if err := s.Synchronize(); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}

// Allocating from the pool and giving back.
func BenchmarkGPUAlloc(b *testing.B) {
	dev := cudatest.Device(b)
	b.ReportAllocs()
	for b.Loop() {
		m, err := dev.Alloc(cuda.Workspace, 1<<20)
		if err != nil {
			b.Fatal(err)
		}
		if err := m.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// Page-locking touched anonymous memory with huge pages; and copying from it.
func BenchmarkGPURegister(b *testing.B) {
	cases := []struct{ bytes, chunk int64 }{{1 << 30, 0}, {8 << 30, 1 << 30}, {8 << 30, 8 << 30}}
	if gib, err := strconv.Atoi(os.Getenv("ZEROGCN_BENCH_GIB")); err == nil { // for machines with memory to spare
		cases = append(cases, struct{ bytes, chunk int64 }{int64(gib) << 30, 0})
	}
	for _, c := range cases {
		b.Run(fmt.Sprintf("%dGiB/chunk=%dGiB", c.bytes>>30, c.chunk>>30), func(b *testing.B) {
			dev := cudatest.Device(b)
			mem, err := unix.Mmap(-1, 0, int(c.bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
			if err != nil {
				b.Fatal(err)
			}
			defer unix.Munmap(mem)
			unix.Madvise(mem, unix.MADV_HUGEPAGE)
			par.Workers(0).Range(len(mem), 64<<20, func(_, lo, hi int) {
				for i := lo; i < hi; i += 4096 {
					mem[i] = 1
				}
			})
			b.SetBytes(c.bytes)
			var release time.Duration
			n := 0
			for b.Loop() {
				r, err := dev.Register(context.Background(), mem, cuda.RegisterOptions{ChunkBytes: c.chunk})
				if err != nil {
					b.Fatal(err)
				}
				t := time.Now()
				if err := r.Close(); err != nil {
					b.Fatal(err)
				}
				release += time.Since(t)
				n++
			}
			b.ReportMetric(release.Seconds()/float64(n)*1e3, "ms/release")
		})
	}
}

func BenchmarkGPUCopyHtoD(b *testing.B) {
	dev := cudatest.Device(b)
	s := cudatest.Stream(b, dev)
	const n = 256 << 20
	h, err := dev.AllocHost(cuda.Staging, n, cuda.HostOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close()
	d, err := dev.Alloc(cuda.Other, n)
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	for name, src := range map[string][]byte{"pinned": h.Bytes(), "go": make([]byte, n)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(n)
			for b.Loop() {
				if err := cuda.Upload(s, d.Ptr(), src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Loading a module that the driver has compiled before.
func BenchmarkGPULoadModule(b *testing.B) {
	dev := cudatest.Device(b)
	for b.Loop() {
		m, err := kernels.Load(dev, "selftest")
		if err != nil {
			b.Fatal(err)
		}
		if err := m.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
