package lanes

import "zerogcn/internal/philox"

const (
	// Width is the number of lanes.
	Width = 8
	// Max is the largest number of draws per target.
	Max = 32
)

// Vector has one number per lane.
type Vector [Width]uint32

// Stream addresses the Philox words of one hop: the key, and all of the counter
// but the item and the draw. Its layout is known to the assembly.
type Stream struct {
	key0, key1 uint32
	step, site uint32
}

// NewStream returns the stream of words of philox.NewStream.
func NewStream(seed uint64, p philox.Purpose, hop int, step uint64) Stream {
	return Stream{uint32(seed), uint32(seed >> 32), uint32(step), uint32(p)<<24 | uint32(hop)&0xFFFFFF}
}

// Comparator orders the vectors Lo and Hi of a sorting network.
type Comparator struct{ Lo, Hi uint8 }

// Network returns Batcher's odd-even merge sort for n elements (Knuth, The Art
// of Computer Programming, volume 3, section 5.2.2, algorithm M).
func Network(n int) []Comparator {
	var net []Comparator
	top := 1
	for top < n {
		top *= 2
	}
	top /= 2
	for p := top; p > 0; p /= 2 {
		q, r, d := top, 0, p
		for {
			for i := 0; i < n-d; i++ {
				if i&p == r {
					net = append(net, Comparator{uint8(i), uint8(i + d)})
				}
			}
			if q == p {
				break
			}
			d, q, r = q-p, q/2, p
		}
	}
	return net
}

// Draws is the memory of one group of eight targets.
type Draws struct {
	// Items are the targets' node ids, Degrees how many positions each has to
	// choose from.
	Items, Degrees Vector
	// Positions has the i-th draw of every lane, then, ascending, the i-th
	// position.
	Positions [Max]Vector
}

// Floyd draws k positions per lane uniformly without replacement, ascending:
// Floyd's algorithm (Bentley and Floyd, "A sample of brilliance", CACM 30(9),
// 1987) on the first k words of each item. Every degree must be above k, k at
// most Max, and net the network for k.
func (d *Draws) Floyd(s *Stream, k int, net []Comparator) {
	d.words(s, k)
	floyd(&d.Positions, &d.Degrees, k)
	sort(&d.Positions, net)
}

// Replace draws k positions per lane with replacement, ascending. No degree
// may be zero.
func (d *Draws) Replace(s *Stream, k int, net []Comparator) {
	d.words(s, k)
	below(&d.Positions, &d.Degrees, k)
	sort(&d.Positions, net)
}

// words sets Positions to the first k words of each item, or a few more.
func (d *Draws) words(s *Stream, k int) {
	for block := 0; 4*block < k; block++ {
		b := uint32(block)
		words(s, &d.Items, &Vector{b, b, b, b, b, b, b, b}, (*[4]Vector)(d.Positions[4*block:]))
	}
}

// RunLen is the number of words in a Run.
const RunLen = 4 * Width

// Run holds RunLen consecutive words of one item.
type Run [4]Vector

// Word returns word i modulo RunLen of the item.
func (r *Run) Word(i int) uint32 { return r[i%4][i/4%Width] }

// Fill sets r to the words RunLen·n to RunLen·n+RunLen-1 of the item.
func (r *Run) Fill(s *Stream, item, n uint32) {
	b := Width * n
	words(s, &Vector{item, item, item, item, item, item, item, item},
		&Vector{b, b + 1, b + 2, b + 3, b + 4, b + 5, b + 6, b + 7}, (*[4]Vector)(r))
}

// twoBlocks returns two Philox blocks (see package philox). The rounds of one
// wait for each other and leave the multiplier idle half of the time: two at a
// time took 13 ns a block where philox.Block took 41.
func (s *Stream) twoBlocks(itemA, blockA, itemB, blockB uint32) (_, _, _, _, _, _, _, _ uint32) {
	const mul0, mul1 = 0xD2511F53, 0xCD9E8D57
	a0, a1, a2, a3 := uint64(itemA), uint64(s.step), uint64(blockA), uint64(s.site)
	b0, b1, b2, b3 := uint64(itemB), uint64(s.step), uint64(blockB), uint64(s.site)
	k0, k1 := s.key0, s.key1
	for range 10 {
		pa, qa := mul0*a0, mul1*a2
		pb, qb := mul0*b0, mul1*b2
		a0, a1, a2, a3 = qa>>32^a1^uint64(k0), uint64(uint32(qa)), pa>>32^a3^uint64(k1), uint64(uint32(pa))
		b0, b1, b2, b3 = qb>>32^b1^uint64(k0), uint64(uint32(qb)), pb>>32^b3^uint64(k1), uint64(uint32(pb))
		k0 += 0x9E3779B9
		k1 += 0xBB67AE85
	}
	return uint32(a0), uint32(a1), uint32(a2), uint32(a3), uint32(b0), uint32(b1), uint32(b2), uint32(b3)
}

// wordsPlain sets w[j][lane] to word j of the lane's Philox block of its item.
func wordsPlain(s *Stream, items, blocks *Vector, w *[4]Vector) {
	for l := 0; l < Width; l += 2 {
		w[0][l], w[1][l], w[2][l], w[3][l], w[0][l+1], w[1][l+1], w[2][l+1], w[3][l+1] =
			s.twoBlocks(items[l], blocks[l], items[l+1], blocks[l+1])
	}
}

// floydPlain turns the words x[:k] into positions below degrees.
func floydPlain(x *[Max]Vector, degrees *Vector, k int) {
	for lane, d := range degrees {
		j := d - uint32(k)
		for i := range k {
			t := philox.Below(x[i][lane], j+1)
			for _, earlier := range x[:i] {
				if earlier[lane] == t {
					t = j
					break
				}
			}
			x[i][lane] = t
			j++
		}
	}
}

// belowPlain turns the words x[:k] into numbers below degrees.
func belowPlain(x *[Max]Vector, degrees *Vector, k int) {
	for i := range x[:k] {
		for lane, d := range degrees {
			x[i][lane] = philox.Below(x[i][lane], d)
		}
	}
}

// sortPlain runs the network in every lane.
func sortPlain(x *[Max]Vector, net []Comparator) {
	for _, c := range net {
		lo, hi := &x[c.Lo%Max], &x[c.Hi%Max]
		for lane := range lo {
			lo[lane], hi[lane] = min(lo[lane], hi[lane]), max(lo[lane], hi[lane])
		}
	}
}
