package datasets

import (
	"math"
	"strconv"
)

// pow10 has the powers of ten that float64 holds exactly.
var pow10 = [...]float64{
	1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
}

// cutFloat reads a decimal number at the beginning of b and returns how many
// bytes it took, 0 where the number is not one of those it can read exactly;
// the caller then leaves it to strconv.ParseFloat, with the same result.
//
// The method is Clinger's fast path ("How to Read Floating Point Numbers
// Accurately", PLDI 1990): digits below 2^53 and a power of ten up to 22 are
// both exact in float64, so that one division or product rounds correctly. The
// second rounding, to float32, errs only where the first one ended exactly half
// way between two float32 values, or below the normal range: those are left to
// strconv.
func cutFloat(b []byte) (v float32, n int) {
	i, neg := 0, false
	if len(b) > 0 && b[0] == '-' {
		neg = true
		i = 1
	}
	start := i
	var mant uint64
	for i < len(b) && b[i]-'0' <= 9 {
		mant = mant*10 + uint64(b[i]-'0')
		i++
	}
	digits := i - start
	exp := 0
	if i < len(b) && b[i] == '.' {
		i++
		from := i
		for i < len(b) && b[i]-'0' <= 9 {
			mant = mant*10 + uint64(b[i]-'0')
			i++
		}
		exp = from - i
		digits += i - from
	}
	if digits == 0 || digits > 18 { // 18 digits cannot overflow
		return 0, 0
	}
	if i+1 < len(b) && b[i]|0x20 == 'e' {
		j, sign := i+1, 1
		switch b[j] {
		case '-':
			sign = -1
			j++
		case '+':
			j++
		}
		from, e := j, 0
		for j < len(b) && b[j]-'0' <= 9 && j-from < 4 {
			e = e*10 + int(b[j]-'0')
			j++
		}
		if j == from {
			return 0, 0
		}
		exp += sign * e
		i = j
	}
	if mant == 0 {
		if neg {
			return float32(math.Copysign(0, -1)), i
		}
		return 0, i
	}
	if mant>>53 != 0 || exp < -22 || exp > 22 {
		return 0, 0
	}
	x := float64(mant)
	if exp < 0 {
		x /= pow10[-exp]
	} else if exp > 0 {
		x *= pow10[exp]
	}
	// Bits below float32's: exactly half, or too small or large to be normal.
	if math.Float64bits(x)&(1<<29-1) == 1<<28 || x < 0x1p-126 || x >= 0x1p127 {
		return 0, 0
	}
	if neg {
		x = -x
	}
	return float32(x), i
}

// parseFloat32 is strconv.ParseFloat for float32 with a short cut for the
// numbers that tables have.
func parseFloat32(b []byte) (float32, error) {
	if v, n := cutFloat(b); n == len(b) && n > 0 {
		return v, nil
	}
	x, err := strconv.ParseFloat(string(b), 32)
	return float32(x), err
}
