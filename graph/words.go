package graph

import "zerogcn/internal/philox"

// words is a philox.Stream unrolled for the sampler's inner loop: it fills an
// array with the first words of an item, two Philox blocks at a time, since the
// rounds of one block wait for each other and leave the multiplier idle half of
// the time. It took 13 ns a block where Stream.Words took 41.
type words struct {
	k0, k1     uint32
	step, site uint64
}

// wordsSlack is how much longer than the number of words the array must be.
const wordsSlack = 7

func newWords(seed uint64, p philox.Purpose, hop int, step uint64) words {
	return words{uint32(seed), uint32(seed >> 32), uint64(uint32(step)), uint64(uint32(p)<<24 | uint32(hop)&0xFFFFFF)}
}

// fill writes at least the first n words of the item, at most maxNetwork, to w.
func (s *words) fill(w *[maxNetwork + wordsSlack]uint32, item uint32, n int) {
	for i := 0; i < n; i += 8 {
		s.pair((*[8]uint32)(w[i:i+8]), item, uint32(i>>2))
	}
}

// pair computes the blocks draw and draw+1 of the item: Philox4x32-10, see
// package philox.
func (s *words) pair(w *[8]uint32, item, draw uint32) {
	const mul0, mul1 = 0xD2511F53, 0xCD9E8D57
	a0, a1, a2, a3 := uint64(item), s.step, uint64(draw), s.site
	b0, b1, b2, b3 := uint64(item), s.step, uint64(draw+1), s.site
	k0, k1 := s.k0, s.k1
	for range 10 {
		pa, qa := mul0*a0, mul1*a2
		pb, qb := mul0*b0, mul1*b2
		a0, a1, a2, a3 = qa>>32^a1^uint64(k0), uint64(uint32(qa)), pa>>32^a3^uint64(k1), uint64(uint32(pa))
		b0, b1, b2, b3 = qb>>32^b1^uint64(k0), uint64(uint32(qb)), pb>>32^b3^uint64(k1), uint64(uint32(pb))
		k0 += 0x9E3779B9
		k1 += 0xBB67AE85
	}
	*w = [8]uint32{uint32(a0), uint32(a1), uint32(a2), uint32(a3), uint32(b0), uint32(b1), uint32(b2), uint32(b3)}
}
