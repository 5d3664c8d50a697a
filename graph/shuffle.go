package graph

import (
	"cmp"
	"slices"

	"zerogcn/internal/philox"
)

// ShuffleEpoch writes the epoch's permutation of ids into dst, which must have
// the same length and may be the same slice, and returns it. Ids are ordered
// by a 64-bit Philox key (words 0 and 1 of item id, purpose Shuffle, site 0,
// step epoch), ties by id: so the permutation depends on the set of ids and
// not on the order in which they are listed. It allocates 16 bytes an id.
func ShuffleEpoch(dst, ids []int32, seed, epoch uint64) []int32 {
	type keyed struct {
		key uint64
		id  int32
	}
	stream := philox.NewStream(seed, philox.Shuffle, 0, epoch)
	keys := make([]keyed, len(ids))
	for i, id := range ids {
		w := stream.Words(uint32(id), 0)
		keys[i] = keyed{uint64(w[1])<<32 | uint64(w[0]), id}
	}
	slices.SortFunc(keys, func(a, b keyed) int {
		if a.key != b.key {
			return cmp.Compare(a.key, b.key)
		}
		return cmp.Compare(a.id, b.id)
	})
	dst = dst[:len(ids)]
	for i, k := range keys {
		dst[i] = k.id
	}
	return dst
}
