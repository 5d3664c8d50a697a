package graph

import (
	"slices"
	"testing"

	"zerogcn/internal/philox"
)

func TestShuffleEpoch(t *testing.T) {
	ids := make([]int32, 1000)
	for i := range ids {
		ids[i] = int32(3 * i)
	}
	first := ShuffleEpoch(make([]int32, len(ids)), ids, 1, 0)
	if !slices.Equal(slices.Sorted(slices.Values(first)), ids) {
		t.Fatal("not a permutation")
	}
	for i := 1; i < len(first); i++ {
		s := philox.NewStream(1, philox.Shuffle, 0, 0)
		a, b := s.Words(uint32(first[i-1]), 0), s.Words(uint32(first[i]), 0)
		if uint64(a[1])<<32|uint64(a[0]) > uint64(b[1])<<32|uint64(b[0]) {
			t.Fatalf("position %d: keys descend", i)
		}
	}
	reversed := slices.Clone(ids)
	slices.Reverse(reversed)
	if !slices.Equal(first, ShuffleEpoch(reversed, reversed, 1, 0)) {
		t.Error("the permutation depends on how the ids are listed, or not in place")
	}
	for _, other := range [][]int32{ShuffleEpoch(make([]int32, len(ids)), ids, 1, 1), ShuffleEpoch(make([]int32, len(ids)), ids, 2, 0)} {
		same := 0
		for i := range ids {
			if first[i] == other[i] {
				same++
			}
		}
		if same > 10 { // one is expected
			t.Errorf("another epoch or seed keeps %d of %d places", same, len(ids))
		}
	}
}
