package graph

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestRankSet marks, subtracts, numbers, looks up and clears.
func TestRankSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40_000).Draw(t, "nodes")
		ids := rapid.SliceOf(rapid.Int32Range(0, int32(n-1)))
		old, ids1, ids2 := ids.Draw(t, "old"), ids.Draw(t, "marked"), ids.Draw(t, "marked shared")
		earlier, r := newRankSet(n), newRankSet(n)
		if !earlier.mark(old, uint32(n)) || !r.mark(ids1, uint32(n)) || !r.markShared(ids2, uint32(n)) {
			t.Fatal("ids in range were refused")
		}
		var want []int32
		for _, id := range append(slices.Clone(ids1), ids2...) {
			if !slices.Contains(old, id) {
				want = append(want, id)
			}
		}
		slices.Sort(want)
		want = slices.Compact(want)
		spans := len(r.lines)
		if got := r.subtract([]rankSet{earlier}, 0, spans); got != len(want) {
			t.Fatalf("%d members, want %d", got, len(want))
		}
		const first = 17
		nodes := make([]int32, first+len(want))
		r.number(nodes, first, 0, spans)
		if !slices.Equal(nodes[first:], want) {
			t.Fatalf("members %v, want %v", nodes[first:], want)
		}
		for i, id := range want {
			v := uint32(id)
			if w := r.words[v>>wordShift]; w>>(v&31)&1 == 0 || rank(w, v) != int32(first+i) {
				t.Fatalf("node %d is not number %d", id, first+i)
			}
		}
		r.clear()
		for _, part := range [][]uint64{r.words, r.lines} {
			if i := slices.IndexFunc(part, func(w uint64) bool { return w != 0 }); i >= 0 {
				t.Fatal("not empty after clear")
			}
		}
		if r.mark([]int32{int32(n)}, uint32(n)) || r.markShared([]int32{-1}, uint32(n)) {
			t.Fatal("ids out of range were marked")
		}
	})
}
