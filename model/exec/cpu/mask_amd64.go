package cpu

import "golang.org/x/sys/cpu"

// hasVector reports whether maskVector may be called.
func hasVector() bool { return cpu.X86.HasAVX2 }

// maskVector masks n elements, a positive multiple of 32, of a row:
//
//	for i := range n {
//		w := word i%4 of Philox block (ctr[0], ctr[1], ctr[2]+i/4, ctr[3])
//		if w >= threshold { dst[i] = src[i]*scale } else { dst[i] = 0 }
//	}
//
// It works on two times four blocks at once, each word in the low half of a
// 64-bit lane, where AVX2's 32×32→64-bit multiplication wants it: 5 instructions
// a word, where the scalar code takes about 32.
//
//go:noescape
func maskVector(dst, src *float32, n int, keys *[20]uint64, ctr *[4]uint64, threshold uint32, scale float32)

// blocksVector computes 8 Philox blocks: words 4·i to 4·i+3 of dst are those of
// counter (items[i], step, draws[i], site). The upper halves of items and draws
// must be 0.
//
//go:noescape
func blocksVector(dst *[32]uint32, items, draws *[8]uint64, keys *[20]uint64, step, site uint64)
