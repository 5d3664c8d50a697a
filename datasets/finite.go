package datasets

import (
	"encoding/binary"
	"math/bits"

	"zerogcn/dtype"
)

// A float is NaN or infinite when its exponent bits are all ones. Adding one to
// the lowest exponent bit then carries into the sign's place, for all lanes of
// a 64-bit word at once.
const (
	exp32  = 0x7F8000007F800000
	ulp32  = 0x0080000000800000
	sign32 = 0x8000000080000000
	exp16  = 0x7C007C007C007C00
	ulp16  = 0x0400040004000400
	expB16 = 0x7F807F807F807F80
	ulpB16 = 0x0080008000800080
	sign16 = 0x8000800080008000
)

// firstNotFinite returns the index of the first element of b that is NaN or
// infinite, -1 if there is none. b holds whole elements.
func firstNotFinite(t dtype.Type, b []byte) int {
	switch t {
	case dtype.Float32:
		return scanLanes(b, exp32, ulp32, sign32, 4)
	case dtype.Float16:
		return scanLanes(b, exp16, ulp16, sign16, 2)
	case dtype.BFloat16:
		return scanLanes(b, expB16, ulpB16, sign16, 2)
	}
	return -1
}

func scanLanes(b []byte, exp, ulp, sign uint64, size int) int {
	n := len(b)
	i := 0
	for ; i+32 <= n; i += 32 {
		p := b[i : i+32]
		w0, w1 := binary.LittleEndian.Uint64(p), binary.LittleEndian.Uint64(p[8:])
		w2, w3 := binary.LittleEndian.Uint64(p[16:]), binary.LittleEndian.Uint64(p[24:])
		if (w0&exp+ulp|w1&exp+ulp|w2&exp+ulp|w3&exp+ulp)&sign != 0 {
			break
		}
	}
	for ; i+8 <= n; i += 8 {
		if hit := (binary.LittleEndian.Uint64(b[i:])&exp + ulp) & sign; hit != 0 {
			return (i + bits.TrailingZeros64(hit)/8) / size
		}
	}
	if i < n {
		var tail [8]byte
		copy(tail[:], b[i:])
		if hit := (binary.LittleEndian.Uint64(tail[:])&exp + ulp) & sign; hit != 0 {
			return (i + bits.TrailingZeros64(hit)/8) / size
		}
	}
	return -1
}
