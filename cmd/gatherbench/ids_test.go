package main

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestUniqueIDs(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		rows := rapid.IntRange(1, 5000).Draw(r, "rows")
		n := rapid.IntRange(0, rows).Draw(r, "n")
		ids := uniqueIDs(n, rows, newStream(3, 1))
		if len(ids) != n {
			r.Fatalf("%d ids, want %d", len(ids), n)
		}
		for i, id := range ids {
			if id < 0 || int(id) >= rows || i > 0 && ids[i-1] >= id {
				r.Fatalf("id %d at %d", id, i)
			}
		}
	})
}

// TestUniqueIDsAreUniform compares the number of ids in each tenth of the table
// with its expectation: within 5 standard deviations.
func TestUniqueIDsAreUniform(t *testing.T) {
	const rows, n = 1_000_000, 100_000
	counts := make([]int, 10)
	for _, id := range uniqueIDs(n, rows, newStream(1, 0)) {
		counts[int(id)*10/rows]++
	}
	want := float64(n) / 10
	for i, c := range counts {
		if d := math.Abs(float64(c) - want); d > 5*math.Sqrt(want) {
			t.Errorf("tenth %d has %d ids, want about %.0f", i, c, want)
		}
	}
}

// TestHotIDs: about as many as asked, unique, and the first fifth of the rows
// draws far more than a fifth, as log-normal weights with σ = 1.2 make it.
func TestHotIDs(t *testing.T) {
	const rows, n = 2_400_000, 500_000
	ids := hotIDs(n, rows, newStream(1, 0))
	if d := len(ids) - n; d < -n/100 || d > n/100 {
		t.Errorf("%d ids, want about %d", len(ids), n)
	}
	head := 0
	for i, id := range ids {
		if id < 0 || id >= rows || i > 0 && ids[i-1] >= id {
			t.Fatalf("id %d at %d", id, i)
		}
		if id < rows/5 {
			head++
		}
	}
	// Independent of the code: with λw ≪ 1 the share would be
	// Φ(σ + Φ⁻¹(0.2)) = Φ(0.358) = 0.64; saturation lowers it.
	if share := float64(head) / float64(len(ids)); share < 0.45 || share > 0.64 {
		t.Errorf("the first fifth draws %.2f", share)
	}
	if small := hotIDs(3, 7, newStream(1, 0)); len(small) < 2 || len(small) > 4 {
		t.Errorf("3 of 7: %v", small)
	}
}

func TestDrawIsDeterministicAndShuffles(t *testing.T) {
	a, b := draw(random, 1000, 5000, 7, 2), draw(random, 1000, 5000, 7, 2)
	if !slices.Equal(a, b) {
		t.Error("the same seed gave other ids")
	}
	if slices.IsSorted(a) {
		t.Error("random order is sorted")
	}
	if c := draw(random, 1000, 5000, 7, 3); slices.Equal(a, c) {
		t.Error("two batches are alike")
	}
	slices.Sort(a)
	if !slices.Equal(a, draw(ascending, 1000, 5000, 7, 2)) {
		t.Error("orders draw different sets")
	}
}

func TestLines(t *testing.T) {
	c := lines([]result{
		{Mode: "zerocopy", Order: "ascending", DType: "float32", RowBytes: 512, GBps: 50},
		{Mode: "zerocopy", Order: "ascending", DType: "float32", RowBytes: 400, GBps: 46},
		{Mode: "staged", Order: "ascending", DType: "float32", RowBytes: 400, GBps: 30},
		{Mode: "staged", Order: "random", DType: "float32", RowBytes: 400, GBps: 20},
	})
	var names []string
	for _, l := range c {
		names = append(names, l.name)
	}
	if want := []string{"zerocopy, ascending", "staged, ascending", "staged, random"}; !slices.Equal(names, want) {
		t.Errorf("lines %v, want %v", names, want)
	}
	if c[0].points[0].X != 400 || c[0].points[1].Y != 50 {
		t.Errorf("points %v", c[0].points)
	}
}
