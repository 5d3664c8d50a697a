package datasets

import (
	"math/bits"

	"zerogcn/internal/philox"
)

// permutation is a pseudo-random bijection of [0, n) that needs no table: four
// rounds of odd multiplication, addition and xor-shift on the smallest power of
// two that holds n, each of which can be undone, repeated until the value falls
// below n ("cycle walking", Black and Rogaway, "Ciphers with Arbitrary Finite
// Domains", CT-RSA 2002).
type permutation struct {
	n     uint32
	mask  uint32
	shift uint
	round [4]struct{ mul, inv, add uint32 }
}

// newPermutation keys a permutation of [0, n), n at least 1 and at most 2^31.
func newPermutation(n uint32, seed uint64, site uint32) permutation {
	b := uint(max(1, bits.Len32(n-1)))
	p := permutation{n: n, mask: uint32(1<<b - 1), shift: (b + 1) / 2}
	s := philox.NewStream(seed, philox.Generator, site, 0)
	for i := range p.round {
		r := s.Words(uint32(i), 0)
		m := r[0] | 1
		// Newton's iteration for the inverse modulo 2^32 doubles the right bits,
		// three at first.
		inv := m
		for range 4 {
			inv *= 2 - m*inv
		}
		p.round[i].mul, p.round[i].inv, p.round[i].add = m, inv, r[1]
	}
	return p
}

// at returns the image of x, which is below n.
func (p *permutation) at(x uint32) uint32 {
	for {
		for i := range p.round {
			r := &p.round[i]
			x = (x*r.mul + r.add) & p.mask
			x ^= x >> p.shift
		}
		if x < p.n {
			return x
		}
	}
}

// of returns the value whose image is y.
func (p *permutation) of(y uint32) uint32 {
	for {
		for i := len(p.round) - 1; i >= 0; i-- {
			r := &p.round[i]
			y ^= y >> p.shift // its own inverse, as shift is half of the bits or more
			y = (y - r.add) * r.inv & p.mask
		}
		if y < p.n {
			return y
		}
	}
}
