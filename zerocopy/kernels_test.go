package zerocopy

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"zerogcn/cuda"
	"zerogcn/cuda/kernels"
)

func TestChooseShape(t *testing.T) {
	for _, c := range []struct {
		rowBytes int
		base     uintptr
		want     kernelShape
	}{
		{128, 0, kernelShape{8, 1, 2}},   // one line
		{128, 64, kernelShape{16, 1, 2}}, // two lines: the base is off
		{4, 0, kernelShape{8, 1, 2}},     // never crosses a line
		{64, 0, kernelShape{8, 1, 2}},
		{256, 0, kernelShape{16, 1, 2}},
		{400, 0, kernelShape{32, 1, 2}}, // begins up to 112 bytes into a line
		{404, 0, kernelShape{32, 2, 1}},
		{512, 0, kernelShape{32, 1, 2}},
		{1024, 0, kernelShape{32, 2, 1}},
		{2408, 0, kernelShape{32, 4, 1}},
	} {
		if got := chooseShape(c.rowBytes, c.base); got != c.want {
			t.Errorf("%d bytes at %d: %v, want %v", c.rowBytes, c.base, got, c.want)
		}
	}
}

// TestShapeReachesRow: the chosen shape, unless it is the largest, covers a row
// wherever it begins.
func TestShapeReachesRow(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(1, 1100).Draw(r, "bytes")
		base := uintptr(rapid.IntRange(0, 127).Draw(r, "base"))
		s := chooseShape(n, base)
		if s == (kernelShape{32, 4, 1}) {
			return
		}
		for id := range uintptr(128) {
			begin := (base + id*uintptr(n)) % 128
			if int(begin)+n > s.reach() {
				r.Fatalf("a row of %d bytes that begins at %d exceeds %v", n, begin, s)
			}
		}
	})
}

// TestKernelsExist: every name that launch may ask for is in the PTX.
func TestKernelsExist(t *testing.T) {
	for _, v := range kernels.Variants() {
		img, err := kernels.Find("gather", v.SM, v.Driver)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range kernelTable {
			for _, name := range []string{k.aligned, k.any} {
				if !bytes.Contains(img.PTX, []byte(".entry "+name+"(")) {
					t.Errorf("sm_%d: no kernel %s", v.SM, name)
				}
			}
		}
	}
}

// mergeRuns is the plain reference of the kernel merge_runs: for each place in
// the merged order, the position of the id in the concatenated runs.
func mergeRuns(runs [][]int32) []int {
	type item struct {
		id    int32
		index int
	}
	var all []item
	for _, run := range runs {
		for _, id := range run {
			all = append(all, item{id, len(all)})
		}
	}
	slices.SortStableFunc(all, func(a, b item) int { return int(a.id) - int(b.id) })
	order := make([]int, len(all))
	for i, it := range all {
		order[i] = it.index
	}
	return order
}

// TestRankIsMergeOrder checks the kernel's rule, rank = index in the own run +
// lower or upper bounds in the others, against a stable sort.
func TestRankIsMergeOrder(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		runs := rapid.SliceOfN(rapid.SliceOfN(rapid.Int32Range(0, 40), 0, 30), 1, 6).Draw(r, "runs")
		total := 0
		for _, run := range runs {
			slices.Sort(run)
			total += len(run)
		}
		got := make([]int, total)
		i := 0
		for k, run := range runs {
			for at, id := range run {
				rank := at
				for q, other := range runs {
					if q == k {
						continue
					}
					key := id
					if q < k {
						key++ // upper bound
					}
					n, _ := slices.BinarySearch(other, key)
					rank += n
				}
				got[rank] = i
				i++
			}
		}
		if want := mergeRuns(runs); !slices.Equal(got, want) {
			r.Fatalf("got %v, want %v", got, want)
		}
	})
}

func TestFillRuns(t *testing.T) {
	batches := []Batch{
		{N: 10, IDs: 0x1000, Dst: 0x10000, Runs: []int{0, 4, 4}},
		{N: 0, IDs: 0x2000, Dst: 0x20000},
		{N: 3, IDs: 0x3000, Dst: 0x30000},
	}
	table := make([]uint64, 3*5+3)
	fillRuns(table, batches, 8)
	want := []uint64{
		0x1000, 0x10000, 0,
		0x1010, 0x10020, 4,
		0x1010, 0x10020, 4,
		0x2000, 0x20000, 10,
		0x3000, 0x30000, 10,
		0, 0, 13,
	}
	if !slices.Equal(table, want) {
		t.Errorf("got  %#x\nwant %#x", table, want)
	}
}

func TestCheckRuns(t *testing.T) {
	for _, c := range []struct {
		runs []int
		ok   bool
	}{{nil, true}, {[]int{0}, true}, {[]int{0, 5, 5, 10}, true}, {[]int{1}, false}, {[]int{0, 11}, false}, {[]int{0, 6, 5}, false}} {
		if err := checkRuns(&Batch{N: 10, Runs: c.runs}); (err == nil) != c.ok {
			t.Errorf("%v: %v", c.runs, err)
		}
	}
}

// TestBalanceConverges: with constant rates the share settles where both sides
// take equally long, from either end.
func TestBalanceConverges(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		cpu := rapid.Float64Range(1, 100).Draw(r, "cpu")
		gpu := rapid.Float64Range(1, 100).Draw(r, "gpu")
		want := min(maxShare, max(minShare, cpu/(cpu+gpu)))
		for _, part := range []float64{minShare, maxShare} {
			for range 20 {
				part = balance(part, cpu, gpu)
			}
			if d := part - want; d > 1e-3 || d < -1e-3 {
				r.Fatalf("share %v, want %v", part, want)
			}
		}
	})
}

func TestUniformIDs(t *testing.T) {
	for _, c := range []struct{ n, rows int }{{1, 1}, {5, 10}, {1000, 1000}, {999, 1 << 30}} {
		ids := uniformIDs(c.n, c.rows, 1)
		for i, id := range ids {
			if id < 0 || int(id) >= c.rows || i > 0 && ids[i-1] >= id {
				t.Fatalf("%+v: id %d at %d", c, id, i)
			}
		}
	}
}

func TestDeviceOptionsRefused(t *testing.T) {
	tab := newTestTable(t, 10, 4, 0)
	for _, o := range []DeviceOptions{
		{Mode: Host}, {Mode: 99}, {Blocks: -1}, {CacheBytes: -1}, {BatchRows: -1}, {Mode: Staged, Workers: -1}, {Mode: Hybrid, Workers: -1},
	} {
		if _, err := NewDeviceGatherer(t.Context(), tab, (*cuda.Device)(nil), o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}
