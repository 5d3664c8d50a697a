// Package philox is the project's only source of randomness: the counter-based
// generator Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel Random
// Numbers: As Easy as 1, 2, 3" (SC 2011), section 3.3.
//
// A draw is a pure function of what it is for, so results do not depend on
// which goroutine, device or rank makes it:
//
//	key     = the run's 64-bit seed, low word first
//	counter = (item, step, draw, purpose<<24 | site)
//
// item is a node id or another index of what is being decided, step the
// optimiser step (or epoch), draw counts blocks of four 32-bit words, and site
// tells hops or dropout layers apart. GPU kernels implement the same function.
package philox

import "math/bits"

// Purpose separates the streams of one seed. The numbers are part of what a
// seed means: never renumber, only append.
type Purpose uint32

// The purposes, in one table for all packages.
const (
	Init             Purpose = 1 // parameter initialisation
	Shuffle          Purpose = 2 // the epoch's permutation of seeds
	Sample           Purpose = 3 // neighbour sampling while training
	Dropout          Purpose = 4 // dropout masks
	AttentionDropout Purpose = 5 // dropout on attention coefficients
	Negatives        Purpose = 6 // negative edges for link prediction
	Evaluation       Purpose = 7 // neighbour sampling while evaluating (step 0)
	Generator        Purpose = 8 // synthetic graphs and features
	Split            Purpose = 9 // random train/valid/test splits
)

const (
	mul0  = 0xD2511F53
	mul1  = 0xCD9E8D57
	weyl0 = 0x9E3779B9
	weyl1 = 0xBB67AE85
)

// Block returns the four words of Philox4x32-10 for a counter and a key.
func Block(ctr [4]uint32, key [2]uint32) [4]uint32 {
	c0, c1, c2, c3 := block(ctr[0], ctr[1], ctr[2], ctr[3], key[0], key[1])
	return [4]uint32{c0, c1, c2, c3}
}

// block works on scalars, which stay in registers; arrays made it three times
// slower.
func block(c0, c1, c2, c3, k0, k1 uint32) (_, _, _, _ uint32) {
	for range 10 {
		p0 := uint64(mul0) * uint64(c0)
		p1 := uint64(mul1) * uint64(c2)
		c0, c1, c2, c3 = uint32(p1>>32)^c1^k0, uint32(p1), uint32(p0>>32)^c3^k1, uint32(p0)
		k0 += weyl0
		k1 += weyl1
	}
	return c0, c1, c2, c3
}

// Stream is a seed with a purpose, a site and a step fixed: what a stage holds
// while it works on one batch. The zero value is seed 0, purpose 0.
type Stream struct {
	k0, k1, step, site uint32
}

// NewStream fixes the seed, the purpose, the site (hop, dropout layer; below
// 2^24) and the step. Steps wrap at 2^32.
func NewStream(seed uint64, p Purpose, site uint32, step uint64) Stream {
	return Stream{uint32(seed), uint32(seed >> 32), uint32(step), uint32(p)<<24 | site&0xFFFFFF}
}

// Words returns the four words of block draw of the given item.
func (s Stream) Words(item, draw uint32) [4]uint32 {
	c0, c1, c2, c3 := block(item, s.step, draw, s.site, s.k0, s.k1)
	return [4]uint32{c0, c1, c2, c3}
}

// Word returns the i-th 32-bit word of the item: lane i%4 of block i/4.
func (s Stream) Word(item, i uint32) uint32 {
	c0, c1, c2, c3 := block(item, s.step, i>>2, s.site, s.k0, s.k1)
	switch i & 3 {
	case 0:
		return c0
	case 1:
		return c1
	case 2:
		return c2
	default:
		return c3
	}
}

// Below maps a word to [0, n) by 32-bit multiply-high. The bias is below
// n/2^32; n must be at least 1.
func Below(word, n uint32) uint32 {
	hi, _ := bits.Mul32(word, n)
	return hi
}

// Float32 maps a word to [0, 1) with 24 bits. For values only: decisions that
// shape a batch compare integers.
func Float32(word uint32) float32 { return float32(word>>8) * (1.0 / (1 << 24)) }

// Threshold turns a probability into an integer bound: word < Threshold(p) has
// probability p, to 2^-32. Threshold(1) saturates at 2^32-1.
func Threshold(p float64) uint32 {
	switch t := p * (1 << 32); {
	case !(t > 0):
		return 0
	case t >= 1<<32-1:
		return 1<<32 - 1
	default:
		return uint32(t)
	}
}
