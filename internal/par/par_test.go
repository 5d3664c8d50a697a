package par

import (
	"sync/atomic"
	"testing"
)

func TestRangeCoversOnce(t *testing.T) {
	for _, w := range []Workers{1, 2, 8, 0} {
		for _, c := range []struct{ n, size int }{{0, 4}, {1, 4}, {4, 4}, {5, 4}, {1000, 7}, {10, 0}} {
			hits := make([]int32, c.n)
			w.Range(c.n, c.size, func(tile, lo, hi int) {
				if c.size > 0 && lo != tile*c.size {
					t.Errorf("tile %d starts at %d", tile, lo)
				}
				for i := lo; i < hi; i++ {
					atomic.AddInt32(&hits[i], 1)
				}
			})
			for i, h := range hits {
				if h != 1 {
					t.Fatalf("workers %d, n %d, size %d: item %d ran %d times", w, c.n, c.size, i, h)
				}
			}
		}
	}
}

func TestRangePanics(t *testing.T) {
	for _, w := range []Workers{1, 4} {
		func() {
			defer func() {
				if r := recover(); r != "boom" {
					t.Errorf("workers %d: recovered %v, want boom", w, r)
				}
			}()
			w.Range(100, 1, func(tile, _, _ int) {
				if tile == 50 {
					panic("boom")
				}
			})
			t.Errorf("workers %d: no panic reached the caller", w)
		}()
	}
}

func TestRangeDoesNotAllocate(t *testing.T) {
	var sum atomic.Int64
	f := func(tile, _, _ int) { sum.Add(int64(tile)) }
	if a := testing.AllocsPerRun(100, func() { Workers(4).Range(1000, 10, f) }); a >= 1 {
		t.Errorf("%v allocations a call", a)
	}
}

func BenchmarkRange(b *testing.B) {
	f := func(_, _, _ int) {}
	b.ReportAllocs()
	for b.Loop() {
		Workers(2).Range(64, 1, f)
	}
}
