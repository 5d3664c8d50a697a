package zerocopy

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"zerogcn/cuda"
	"zerogcn/cuda/cudatest"
	"zerogcn/dtype"
)

// TestKernelResources: no instance may spill registers to local memory, and all
// must start in blocks of 1,024 threads.
func TestKernelResources(t *testing.T) {
	_, _, kern := gpu(t)
	for _, k := range kernelTable {
		for _, name := range []string{k.aligned, k.any} {
			f, err := kern.module.Function(name)
			if err != nil {
				t.Fatal(err)
			}
			a, err := f.Attributes()
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s: %d registers, %d bytes local", name, a.Registers, a.LocalBytes)
			if a.LocalBytes != 0 || a.MaxThreads < blockThreads {
				t.Errorf("%s: %+v", name, a)
			}
		}
	}
}

// BenchmarkKernel sweeps kernel shapes and grids over row widths, on a table of
// ZEROGCN_BENCH_GIB GiB (default 1) in host memory, ids unique and ascending.
// GB/s counts useful bytes.
func BenchmarkKernel(b *testing.B) {
	dev, s, kern := gpu(b)
	gib := 1
	if v, err := strconv.Atoi(os.Getenv("ZEROGCN_BENCH_GIB")); err == nil && v > 0 {
		gib = v
	}
	region, err := NewTable(gib<<18, 1024, dtype.Float32, Options{SkipMemoryCheck: true})
	if err != nil {
		b.Fatal(err)
	}
	defer region.Close()
	err = region.Fill(b.Context(), func(_, _ int, dst []byte) error {
		for i := 0; i < len(dst); i += 4096 {
			dst[i] = 1
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	start := time.Now()
	reg, err := dev.Register(b.Context(), region.Bytes(), cuda.RegisterOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer reg.Close()
	b.Logf("registered %d GiB in %.2f s", gib, time.Since(start).Seconds())
	for _, width := range []int{32, 100, 128, 256, 602} {
		rows := gib << 30 / (4 * width)
		n := min(507_000, rows/2)
		ids := cudatest.Upload(b, s, uniformIDs(n, rows, 1))
		out, err := dev.Alloc(cuda.Other, int64(4*n*width))
		if err != nil {
			b.Fatal(err)
		}
		tab, err := FromBytes(region.Bytes()[:rows*width*4], rows, width, dtype.Float32, Options{Owner: region})
		if err != nil {
			b.Fatal(err)
		}
		g, err := NewDeviceGatherer(context.Background(), tab, dev, DeviceOptions{Mode: ZeroCopy, Kernels: kern})
		if err != nil {
			b.Fatal(err)
		}
		chosen := chooseShape(4*width, uintptr(g.table))
		for _, k := range kernelTable {
			ks := k.shape
			if ks.lanes != chosen.lanes || ks.vectors != chosen.vectors {
				continue
			}
			for _, blocks := range []int{4, 8, 12, 16, 24, 132} {
				b.Run(fmt.Sprintf("GiB=%d/width=%d/lanes=%d,%d/rows=%d/blocks=%d", gib, width, ks.lanes, ks.vectors, ks.rows, blocks), func(b *testing.B) {
					r := g.launchFor()
					r.ids, r.n, r.dst, r.blocks, r.kernel = ids.Ptr(), n, out.Ptr(), blocks, ks
					pass := func() {
						if err := kern.launch(s, &r); err != nil {
							b.Fatal(err)
						}
						if err := s.Synchronize(); err != nil {
							b.Fatal(err)
						}
					}
					pass()
					for b.Loop() {
						pass()
					}
					b.ReportMetric(float64(n*width*4)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GB/s")
				})
			}
		}
		if err := g.Close(); err != nil {
			b.Fatal(err)
		}
		if err := tab.Close(); err != nil {
			b.Fatal(err)
		}
		if err := out.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
