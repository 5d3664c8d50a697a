package graph

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestRadixSort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(0, 31).Draw(t, "width")
		n := rapid.SampledFrom([]int{0, 1, 31, 32, 127, 128, 511, 512, 700}).Draw(t, "n")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		plain, pairs := make([]int32, n), make([]uint64, n)
		for i := range n {
			plain[i] = int32(r.Uint32() & (1<<width - 1))
			pairs[i] = uint64(plain[i])<<32 | uint64(i)
		}
		var a radixSorter[int32]
		var b radixSorter[uint64]
		want := slices.Sorted(slices.Values(plain))
		wantPairs := slices.SortedStableFunc(slices.Values(pairs), func(x, y uint64) int { return cmp.Compare(x>>32, y>>32) })
		byInsertion := slices.Clone(pairs)
		a.sort(plain, 0, width)
		b.sort(pairs, 32, width)
		insertionSort(byInsertion)
		if !slices.Equal(plain, want) || !slices.Equal(pairs, wantPairs) || !slices.Equal(byInsertion, wantPairs) {
			t.Fatal("not sorted, or not stably")
		}
	})
}

func BenchmarkRowSort(b *testing.B) {
	for _, n := range []int{12, 24, 32, 48, 127, 128, 511, 512, 4096} {
		for _, width := range []int{18, 27} {
			rows := make([][]int32, 1<<20/n)
			r := rand.New(rand.NewPCG(1, 2))
			for i := range rows {
				rows[i] = make([]int32, n)
				for j := range rows[i] {
					rows[i][j] = r.Int32N(1 << width)
				}
			}
			row := make([]int32, n)
			var s radixSorter[int32]
			for _, how := range []struct {
				name string
				sort func()
			}{
				{"radix", func() { s.sort(row, 0, width) }},
				{"compare", func() { slices.Sort(row) }},
			} {
				b.Run(fmt.Sprintf("row=%d/bits=%d/%s", n, width, how.name), func(b *testing.B) {
					i, cpu0 := 0, cpuSeconds()
					for b.Loop() {
						copy(row, rows[i%len(rows)])
						how.sort()
						i++
					}
					b.ReportMetric((cpuSeconds()-cpu0)/float64(b.N)/float64(n)*1e9, "cpu-ns/key")
				})
			}
		}
	}
}
