package zerocopy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"zerogcn/cuda"
	"zerogcn/cuda/cudatest/emulator"
	"zerogcn/dtype"
)

// former makes a gatherer of one form for a table.
type former struct {
	name string
	make func(t testing.TB, tab *Table) Gatherer
}

// forms lists every form of gathering that this machine has: the host's, and on a
// GPU or the emulator all modes, on slabs so small that every batch takes many.
func forms(t testing.TB) []former {
	list := []former{}
	for _, w := range []int{1, 3} {
		list = append(list, former{fmt.Sprintf("host/workers=%d", w), func(t testing.TB, tab *Table) Gatherer {
			return newTestGatherer(t, tab, w)
		}})
	}
	if !haveGPU(t) && !emulator.Available() {
		return list
	}
	dev, _ := emulator.Either(t)
	kern, err := LoadKernels(dev)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kern.Close() })
	for _, m := range []Mode{ZeroCopy, Staged, Device, Cached, Hybrid, Auto} {
		list = append(list, former{m.String(), func(t testing.TB, tab *Table) Gatherer {
			// A cache of some 2/5 of the table, so that batches mix hot and cold.
			return newDeviceGatherer(t, tab, dev, DeviceOptions{Mode: m, Workers: 3, Kernels: kern,
				CacheBytes: int64(tab.rows) * 2 / 5 * int64(tab.rowBytes()), BatchRows: 200, slab: 4096})
		}})
	}
	return list
}

// haveGPU reports whether there is a driver with a GPU; with
// ZEROGCN_REQUIRE_GPU=1 it fails where there is none.
func haveGPU(t testing.TB) bool {
	drv, err := cuda.Load()
	if err == nil && drv.Count() > 0 {
		return true
	}
	if os.Getenv("ZEROGCN_REQUIRE_GPU") == "1" {
		t.Fatalf("no GPU: %v", err)
	}
	return false
}

func newDeviceGatherer(t testing.TB, tab *Table, dev *cuda.Device, opt DeviceOptions) *DeviceGatherer {
	t.Helper()
	g, err := NewDeviceGatherer(context.Background(), tab, dev, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// newShiftedTable is newTestTable with rows that begin shift elements into
// page-aligned memory.
func newShiftedTable(t testing.TB, rows, width int, dt dtype.Type, shift int) *Table {
	t.Helper()
	if shift == 0 {
		return newTestTable(t, rows, width, dt)
	}
	off := shift * dt.Size()
	mem, err := mapAnonymous(off + rows*width*dt.Size())
	if err != nil {
		t.Fatal(err)
	}
	data := mem.data[off:]
	var scales []float32
	if dt == dtype.Int8 {
		scales = make([]float32, rows)
		for i := range scales {
			scales[i] = testScale(i)
		}
	}
	tab, err := FromBytes(data, rows, width, dt, Options{Scales: scales})
	if err != nil {
		t.Fatal(err)
	}
	if err := tab.Fill(context.Background(), patternReader(tab.RowBytes())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(tab.Close(), mem.free()); err != nil {
			t.Error(err)
		}
	})
	return tab
}

// conformanceWidths covers every kernel shape and both kinds of alignment:
// narrow rows, rows around a line and around the reach of each shape, and the
// widths of known data sets.
func conformanceWidths(short bool) []int {
	if short {
		return []int{1, 3, 32, 47, 100, 602}
	}
	return []int{0, 1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 47, 48, 63, 64, 65, 96, 100, 127, 128, 129, 200, 255, 256, 257,
		293, 300, 343, 500, 512, 513, 602, 768, 800, 1000, 1024, 1063, 1100}
}

// TestConformance gathers through every form and compares every bit with the
// plain loop, at all storage types, many widths and bases off every alignment.
func TestConformance(t *testing.T) {
	for _, form := range forms(t) {
		t.Run(form.name, func(t *testing.T) {
			for _, dt := range allTypes {
				for i, width := range conformanceWidths(testing.Short() || raceDetector || !haveGPU(t)) {
					// Shifts of one element, and of most of a line.
					for _, shift := range []int{0, 1 + (i%31)*4/dt.Size()} {
						t.Run(fmt.Sprintf("%v/width=%d/shift=%d", dt, width, shift), func(t *testing.T) {
							const rows, n = 300, 700
							tab := newShiftedTable(t, rows, width, dt, shift)
							g := form.make(t, tab)
							ids := drawIDs(n, rows, uint64(width))
							ids[0], ids[1], ids[n-1] = 0, rows-1, rows-1 // the table's edges
							for _, ascending := range []bool{false, true} {
								if ascending {
									slices.Sort(ids)
								}
								dst := make([]float32, n*width)
								if err := g.Gather(context.Background(), ids, dst); err != nil {
									t.Fatal(err)
								}
								want := wantRows(width, dt, ids)
								if i := diffBits(dst, want, dt); i >= 0 {
									t.Fatalf("ascending %v: row %d (id %d) value %d: got %v, want %v", ascending, i/width, ids[i/width], i%width, dst[i], want[i])
								}
							}
						})
					}
				}
			}
		})
	}
}

// TestConformanceFaults: every form reports the first bad id and its position,
// and works on afterwards.
func TestConformanceFaults(t *testing.T) {
	ctx := context.Background()
	const rows, width, n = 300, 20, 4000
	for _, form := range forms(t) {
		t.Run(form.name, func(t *testing.T) {
			tab := newTestTable(t, rows, width, dtype.Float32)
			g := form.make(t, tab)
			dst := make([]float32, n*width)
			for _, at := range []int{0, 1, 777, n - 1} {
				for _, bad := range []int32{-1, rows, 1<<31 - 1, -1 << 31} {
					ids := drawIDs(n, rows, 9)
					ids[at], ids[n-1] = bad, bad
					err := g.Gather(ctx, ids, dst)
					var e *IDError
					if !errors.As(err, &e) || e.Position != at || e.ID != int64(bad) {
						t.Fatalf("bad id %d at %d: %v", bad, at, err)
					}
				}
			}
			ids := drawIDs(n, rows, 10)
			if err := g.Gather(ctx, ids, dst); err != nil {
				t.Fatalf("after faults: %v", err)
			}
			if i := diffBits(dst, wantRows(width, dtype.Float32, ids), dtype.Float32); i >= 0 {
				t.Fatalf("after faults: value %d differs", i)
			}
			if err := g.Gather(ctx, nil, nil); err != nil {
				t.Errorf("no ids: %v", err)
			}
			done, cancel := context.WithCancel(ctx)
			cancel()
			if err := g.Gather(done, ids, dst); !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled: %v", err)
			}
			if err := g.Gather(ctx, ids, dst[1:]); err == nil {
				t.Error("a destination of the wrong size was accepted")
			}
			if err := tab.Close(); !errors.Is(err, ErrInUse) {
				t.Errorf("table closed under a gatherer: %v", err)
			}
			for range 2 {
				if err := g.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if err := g.Gather(ctx, ids, dst); !errors.Is(err, ErrClosed) {
				t.Errorf("closed: %v", err)
			}
		})
	}
}

// TestConformanceEmpty: tables without rows and rows without values.
func TestConformanceEmpty(t *testing.T) {
	ctx := context.Background()
	for _, form := range forms(t) {
		t.Run(form.name, func(t *testing.T) {
			var e *IDError
			g := form.make(t, newTestTable(t, 0, 8, dtype.Int8))
			if err := g.Gather(ctx, nil, nil); err != nil {
				t.Errorf("no ids from no rows: %v", err)
			}
			if err := g.Gather(ctx, []int32{0}, make([]float32, 8)); !errors.As(err, &e) {
				t.Errorf("row 0 of no rows: %v", err)
			}
			g = form.make(t, newTestTable(t, 5, 0, dtype.Float32))
			if err := g.Gather(ctx, []int32{4, 0}, nil); err != nil {
				t.Errorf("rows without values: %v", err)
			}
			if err := g.Gather(ctx, []int32{0, 5}, nil); !errors.As(err, &e) || e.Position != 1 {
				t.Errorf("bad id, rows without values: %v", err)
			}
		})
	}
}
