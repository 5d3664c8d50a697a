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
// not on the order in which they are listed. It allocates 12 bytes an id.
func ShuffleEpoch(dst, ids []int32, seed, epoch uint64) []int32 {
	type keyed struct {
		hi, lo uint32
		id     int32
	}
	stream := philox.NewStream(seed, philox.Shuffle, 0, epoch)
	keys := make([]keyed, len(ids))
	for i, id := range ids {
		w := stream.Words(uint32(id), 0)
		keys[i] = keyed{w[1], w[0], id}
	}
	slices.SortFunc(keys, func(a, b keyed) int {
		return cmp.Or(cmp.Compare(a.hi, b.hi), cmp.Compare(a.lo, b.lo), cmp.Compare(a.id, b.id))
	})
	dst = dst[:len(ids)]
	for i, k := range keys {
		dst[i] = k.id
	}
	return dst
}
