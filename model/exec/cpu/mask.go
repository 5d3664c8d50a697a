package cpu

import (
	"math"

	"zerogcn/internal/philox"
	"zerogcn/model/op"
	"zerogcn/sparse"
)

// mask is op.Mask laid out for speed: two Philox blocks at a time, whose chains
// of multiplications overlap, and the ten round keys made once per batch.
type mask struct {
	keys       [20]uint64 // of both words, round by round
	step, site uint64
	threshold  uint32
	scale      float32
	vector     bool // use vector instructions
}

// set prepares the mask of a dropout site. The counter and the key are laid out
// as package philox documents.
func (m *mask) set(k *op.Key, p float64, site uint32) {
	const weyl0, weyl1 = 0x9E3779B9, 0xBB67AE85
	k0, k1 := uint32(k.Seed), uint32(k.Seed>>32)
	for i := 0; i < len(m.keys); i += 2 {
		m.keys[i], m.keys[i+1] = uint64(k0), uint64(k1)
		k0 += weyl0
		k1 += weyl1
	}
	m.step, m.site = uint64(uint32(k.Step)), uint64(uint32(philox.Dropout)<<24|site&0xFFFFFF)
	ref := op.NewMask(k, p, site)
	m.threshold, m.scale = ref.Threshold, ref.Scale
	m.vector = hasVector()
}

// blocks returns blocks a2 of item a0 and b2 of item b0, four words each. All
// values stay below 2^32, in 64-bit registers that hold whole products.
func (m *mask) blocks(a0, a2, b0, b2 uint64) (_, _, _, _, _, _, _, _ uint32) {
	const mul0, mul1 = 0xD2511F53, 0xCD9E8D57
	a1, a3, b1, b3 := m.step, m.site, m.step, m.site
	for i := 0; i < len(m.keys); i += 2 {
		k0, k1 := m.keys[i], m.keys[i+1]
		p, q := mul0*a0, mul1*a2
		a0, a1, a2, a3 = q>>32^a1^k0, uint64(uint32(q)), p>>32^a3^k1, uint64(uint32(p))
		p, q = mul0*b0, mul1*b2
		b0, b1, b2, b3 = q>>32^b1^k0, uint64(uint32(q)), p>>32^b3^k1, uint64(uint32(p))
	}
	return uint32(a0), uint32(a1), uint32(a2), uint32(a3), uint32(b0), uint32(b1), uint32(b2), uint32(b3)
}

// chunk is how many words of a row are drawn before they are used.
const chunk = 256

// row masks one row of a dense matrix; dst may be src.
func (m *mask) row(dst, src []float32, item uint32) {
	draw := uint64(0)
	if n := len(src) &^ 31; n > 0 && m.vector {
		maskVector(&dst[0], &src[0], n, &m.keys, &[4]uint64{uint64(item), m.step, 0, m.site}, m.threshold, m.scale)
		dst, src, draw = dst[n:], src[n:], uint64(n/4)
	}
	var words [chunk]uint32
	for len(src) > 0 {
		n := min(chunk, len(src))
		for w := words[:(n+7)&^7]; len(w) >= 8; w = w[8:] {
			e := (*[8]uint32)(w)
			e[0], e[1], e[2], e[3], e[4], e[5], e[6], e[7] = m.blocks(uint64(item), draw, uint64(item), draw+1)
			draw += 2
		}
		m.apply(dst[:n], src[:n], words[:n])
		dst, src = dst[n:], src[n:]
	}
}

func (m *mask) apply(dst, src []float32, words []uint32) {
	threshold, scale := m.threshold, m.scale
	dst, words = dst[:len(src)], words[:len(src)]
	for i, v := range src {
		bits := math.Float32bits(v * scale)
		if words[i] < threshold {
			bits = 0
		}
		dst[i] = math.Float32frombits(bits)
	}
}

// entries masks the stored values of rows [lo, hi) of a sparse matrix: dst gets
// those from the first of row lo on.
func (m *mask) entries(dst []float32, x *sparse.Matrix, key *op.Key, lo, hi int) {
	var (
		items, draws [8]uint64
		words        [32]uint32
		picked       [8]uint32
	)
	base, end := x.Indptr[lo], x.Indptr[hi]
	r, item := lo, uint64(key.Item(lo))
	for from := base; from < end; from += int64(len(items)) {
		n := min(int64(len(items)), end-from)
		cols := x.Cols[from : from+n]
		for i, c := range cols {
			for from+int64(i) >= x.Indptr[r+1] {
				r++
				item = uint64(key.Item(r))
			}
			items[i], draws[i] = item, uint64(c>>2)
		}
		m.eight(&words, &items, &draws)
		for i, c := range cols {
			picked[i] = words[4*i+int(c&3)]
		}
		m.apply(dst[from-base:][:n], x.Vals[from:from+n], picked[:n])
	}
}

// eight computes the blocks of eight counters.
func (m *mask) eight(words *[32]uint32, items, draws *[8]uint64) {
	if m.vector {
		blocksVector(words, items, draws, &m.keys, m.step, m.site)
		return
	}
	for i := 0; i < len(items); i += 2 {
		w := (*[8]uint32)(words[4*i:])
		w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7] = m.blocks(items[i], draws[i], items[i+1], draws[i+1])
	}
}
