package zerocopy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"zerogcn/dtype"
	"zerogcn/internal/usage"
)

func newTestGatherer(t testing.TB, tab *Table, workers int) *HostGatherer {
	t.Helper()
	g, err := NewHostGatherer(tab, GatherOptions{Workers: workers})
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

func TestHostGather(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		dt := rapid.SampledFrom(allTypes).Draw(r, "type")
		width := rapid.IntRange(0, 70).Draw(r, "width")
		rows := rapid.IntRange(1, 3000).Draw(r, "rows")
		n := rapid.IntRange(0, 9000).Draw(r, "ids")
		workers := rapid.IntRange(1, 4).Draw(r, "workers")
		tab, err := NewTable(rows, width, dt, Options{})
		if err != nil {
			r.Fatal(err)
		}
		defer tab.Close()
		if err := tab.Fill(context.Background(), patternReader(tab.RowBytes())); err != nil {
			r.Fatal(err)
		}
		for i := range tab.Scales() {
			tab.Scales()[i] = testScale(i)
		}
		g, err := NewHostGatherer(tab, GatherOptions{Workers: workers})
		if err != nil {
			r.Fatal(err)
		}
		defer g.Close()
		ids := drawIDs(n, rows, 7)
		if rapid.Bool().Draw(r, "ascending") {
			slices.Sort(ids)
		}
		// Guard zones around the destination catch writes outside it.
		const guard, mark = 16, 12345.5
		buf := make([]float32, n*width+2*guard)
		for i := range buf {
			buf[i] = mark
		}
		dst := buf[guard : guard+n*width]
		if err := g.Gather(context.Background(), ids, dst); err != nil {
			r.Fatal(err)
		}
		if i := diffBits(dst, wantRows(width, dt, ids), dt); i >= 0 {
			r.Fatalf("row %d (id %d) differs at value %d", i/width, ids[i/width], i%width)
		}
		for i := range guard {
			if buf[i] != mark || buf[len(buf)-1-i] != mark {
				r.Fatal("wrote outside the destination")
			}
		}
		if m := g.Metrics(); m.Gathers != 1 || m.Rows != int64(n) || m.Bytes != int64(n*tab.RowBytes()) {
			r.Fatalf("metrics %+v", m)
		}
	})
}

func TestHostGatherReportsFirstBadID(t *testing.T) {
	tab := newTestTable(t, 100, 8, dtype.Float32)
	for _, workers := range []int{1, 4} {
		g := newTestGatherer(t, tab, workers)
		for _, at := range []int{0, 15, 16, 5000, 99_999} {
			for _, bad := range []int32{-1, 100, 1 << 30, -1 << 31} {
				ids := drawIDs(100_000, 100, 3)
				ids[at], ids[len(ids)-1] = bad, bad
				err := g.Gather(context.Background(), ids, make([]float32, len(ids)*8))
				var e *IDError
				if !errors.As(err, &e) || e.Position != at || e.ID != int64(bad) || e.Rows != 100 || !usage.Is(err) {
					t.Fatalf("workers %d, bad id %d at %d: %v", workers, bad, at, err)
				}
			}
		}
		if g.Metrics().Gathers != 0 {
			t.Error("failed gathers were counted")
		}
	}
}

func TestHostGatherEdges(t *testing.T) {
	ctx := context.Background()
	g := newTestGatherer(t, newTestTable(t, 0, 8, dtype.Float32), 2)
	if err := g.Gather(ctx, nil, nil); err != nil {
		t.Errorf("no ids from an empty table: %v", err)
	}
	var e *IDError
	if err := g.Gather(ctx, []int32{0}, make([]float32, 8)); !errors.As(err, &e) {
		t.Errorf("row 0 of an empty table: %v", err)
	}
	g = newTestGatherer(t, newTestTable(t, 5, 0, dtype.Int8), 2)
	if err := g.Gather(ctx, []int32{4, 0}, nil); err != nil {
		t.Errorf("zero-width rows: %v", err)
	}
	if err := g.Gather(ctx, []int32{5}, nil); !errors.As(err, &e) {
		t.Errorf("bad id of a zero-width table: %v", err)
	}
	g = newTestGatherer(t, newTestTable(t, 5, 2, dtype.Float32), 2)
	if err := g.Gather(ctx, []int32{1, 2}, make([]float32, 3)); err == nil {
		t.Error("a destination of the wrong size was accepted")
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	if err := g.Gather(done, []int32{1}, make([]float32, 2)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestHostGatherConcurrently(t *testing.T) {
	const width, rows = 40, 2000
	tab := newTestTable(t, rows, width, dtype.BFloat16)
	g := newTestGatherer(t, tab, 3)
	var wg sync.WaitGroup
	for k := range 6 {
		wg.Go(func() {
			ids := drawIDs(3000, rows, uint64(k))
			dst := make([]float32, len(ids)*width)
			for range 5 {
				if err := g.Gather(context.Background(), ids, dst); err != nil {
					t.Error(err)
				}
			}
			if i := diffBits(dst, wantRows(width, dtype.BFloat16, ids), dtype.BFloat16); i >= 0 {
				t.Errorf("goroutine %d: value %d differs", k, i)
			}
		})
	}
	wg.Wait()
}

func TestHostGatherAllocatesNothing(t *testing.T) {
	tab := newTestTable(t, 5000, 32, dtype.Float32)
	g := newTestGatherer(t, tab, 2)
	ids := drawIDs(20_000, 5000, 1)
	dst := make([]float32, len(ids)*32)
	ctx := context.Background()
	if n := testing.AllocsPerRun(20, func() {
		if err := g.Gather(ctx, ids, dst); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations in a gather", n)
	}
}

func BenchmarkHostGather(b *testing.B) {
	for _, c := range []struct {
		dt          dtype.Type
		width, rows int
	}{{dtype.Float32, 100, 1 << 20}, {dtype.Float32, 256, 1 << 20}, {dtype.BFloat16, 128, 1 << 20}, {dtype.Float16, 128, 1 << 20}, {dtype.Int8, 128, 1 << 20}} {
		tab := newTestTable(b, c.rows, c.width, c.dt)
		ids := drawIDs(100_000, c.rows, 5)
		slices.Sort(ids)
		dst := make([]float32, len(ids)*c.width)
		for _, w := range []int{1, 2} {
			b.Run(fmt.Sprintf("%v/width=%d/workers=%d", c.dt, c.width, w), func(b *testing.B) {
				g := newTestGatherer(b, tab, w)
				b.SetBytes(int64(len(ids) * tab.RowBytes()))
				for b.Loop() {
					if err := g.Gather(context.Background(), ids, dst); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
