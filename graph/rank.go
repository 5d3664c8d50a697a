package graph

import (
	"math/bits"
	"sync/atomic"
)

// rankSet is a set of node ids that knows each member's rank: the rank bitmap
// of Jacobson ("Space-efficient static trees and graphs", FOCS 1989), with a
// directory entry beside every 32 bits so that a look-up reads one word.
//
// Marks set bits; number turns them into local ids; then rank answers. It
// takes 2 bits a node. A second bitmap tells which cache lines of the first
// were touched, so that numbering and clearing cost what was marked and not
// what the graph has.
type rankSet struct {
	words []uint64 // low half: 32 membership bits; high half: local id of the first
	lines []uint64 // one bit per lineWords words
}

const (
	wordShift = 5             // nodes per word: 32
	lineWords = 8             // words per line: one cache line, 256 nodes
	lineShift = wordShift + 3 // nodes per line
	spanShift = lineShift + 6 // nodes per word of lines: 16,384
)

func newRankSet(n int) rankSet {
	spans := (n + 1<<spanShift - 1) >> spanShift
	lines := (n + 1<<lineShift - 1) >> lineShift
	return rankSet{makeHuge[uint64](lines * lineWords), make([]uint64, spans)}
}

// mark adds ids, which are checked to be below n, up to the first that is not.
// Only one goroutine may mark at a time.
func (r *rankSet) mark(ids []int32, n uint32) (ok bool) {
	words, lines := r.words, r.lines
	for _, id := range ids {
		v := uint32(id)
		if v >= n {
			return false
		}
		words[v>>wordShift] |= 1 << (v & 31)
		lines[v>>spanShift] |= 1 << (v >> lineShift & 63)
	}
	return true
}

// markShared is mark while other goroutines do the same.
func (r *rankSet) markShared(ids []int32, n uint32) (ok bool) {
	for _, id := range ids {
		v := uint32(id)
		if v >= n {
			return false
		}
		w, bit := &r.words[v>>wordShift], uint64(1)<<(v&31)
		if atomic.LoadUint64(w)&bit != 0 {
			continue // most marks of hubs: spare them the locked write
		}
		if atomic.OrUint64(w, bit) == 0 {
			atomic.OrUint64(&r.lines[v>>spanShift], 1<<(v>>lineShift&63))
		}
	}
	return true
}

// subtract removes the members of the earlier sets from the spans [lo, hi) and
// returns how many members remain there.
func (r *rankSet) subtract(earlier []rankSet, lo, hi int) int {
	n := 0
	for s := lo; s < hi; s++ {
		for m := r.lines[s]; m != 0; m &= m - 1 {
			at := (s<<6 | bits.TrailingZeros64(m)) * lineWords
			line := r.words[at : at+lineWords]
			for _, e := range earlier {
				for i, w := range e.words[at : at+lineWords] {
					line[i] &^= w // line has no ids yet
				}
			}
			for _, w := range line {
				n += bits.OnesCount64(w)
			}
		}
	}
	return n
}

// number gives the members in the spans [lo, hi) the local ids from first on,
// ascending, and lists them in nodes, indexed by local id.
func (r *rankSet) number(nodes []int32, first, lo, hi int) {
	for s := lo; s < hi; s++ {
		for m := r.lines[s]; m != 0; m &= m - 1 {
			at := (s<<6 | bits.TrailingZeros64(m)) * lineWords
			line := r.words[at : at+lineWords]
			for i, w := range line {
				base := int32(at+i) << wordShift
				line[i] = w | uint64(first)<<32
				for ; w != 0; w &= w - 1 {
					nodes[first] = base + int32(bits.TrailingZeros64(w))
					first++
				}
			}
		}
	}
}

// rank returns the local id of v, a member, from its word.
func rank(word uint64, v uint32) int32 {
	return int32(word>>32) + int32(bits.OnesCount32(uint32(word)&(1<<(v&31)-1)))
}

// clear empties the set.
func (r *rankSet) clear() {
	for s, m := range r.lines {
		for ; m != 0; m &= m - 1 {
			at := (s<<6 | bits.TrailingZeros64(m)) * lineWords
			clear(r.words[at : at+lineWords])
		}
		r.lines[s] = 0
	}
}
