// Package dtype names the element types that feature rows are stored in and
// converts rows between them and float32.
//
// Rows are little-endian bytes, as in .npy files and in GPU memory.
package dtype

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Type is a storage type of feature values.
type Type uint8

// The storage types. Int8 rows carry one float32 scale each: value = scale × q.
const (
	Float32 Type = iota
	Float16
	BFloat16
	Int8
)

var names = [...]string{"float32", "float16", "bf16", "int8"}

// String returns the name that meta.json and the flags use.
func (t Type) String() string {
	if int(t) < len(names) {
		return names[t]
	}
	return fmt.Sprintf("dtype(%d)", uint8(t))
}

// Parse reads a name; it also takes the usual short forms (fp32, f32, fp16,
// bfloat16, …).
func Parse(s string) (Type, error) {
	switch s {
	case "float32", "fp32", "f32":
		return Float32, nil
	case "float16", "fp16", "f16", "half":
		return Float16, nil
	case "bf16", "bfloat16":
		return BFloat16, nil
	case "int8", "i8":
		return Int8, nil
	}
	return 0, fmt.Errorf("unknown data type %q (float32, float16, bf16 or int8)", s)
}

// Size returns the bytes of one element.
func (t Type) Size() int {
	switch t {
	case Float32:
		return 4
	case Float16, BFloat16:
		return 2
	default:
		return 1
	}
}

// Widen converts len(dst) stored elements at the start of src to float32.
// scale is used by Int8 alone. src must hold len(dst)*t.Size() bytes.
func (t Type) Widen(dst []float32, src []byte, scale float32) {
	switch t {
	case Float32:
		src = src[:4*len(dst)]
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
		}
	case Float16:
		src = src[:2*len(dst)]
		for i := range dst {
			dst[i] = Float16ToFloat32(binary.LittleEndian.Uint16(src[2*i:]))
		}
	case BFloat16:
		src = src[:2*len(dst)]
		for i := range dst {
			dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(src[2*i:])) << 16)
		}
	case Int8:
		src = src[:len(dst)]
		for i := range dst {
			dst[i] = scale * float32(int8(src[i]))
		}
	}
}

// Narrow stores src in dst and returns the scale that Int8 needs (1 for the
// others). dst must hold len(src)*t.Size() bytes. Values round to nearest,
// ties to even; float16 overflows to infinity. Int8 scales the row's largest
// magnitude to 127; a row that is not finite gets a NaN scale.
func (t Type) Narrow(dst []byte, src []float32) (scale float32) {
	switch t {
	case Float32:
		for i, v := range src {
			binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(v))
		}
	case Float16:
		for i, v := range src {
			binary.LittleEndian.PutUint16(dst[2*i:], Float32ToFloat16(v))
		}
	case BFloat16:
		for i, v := range src {
			binary.LittleEndian.PutUint16(dst[2*i:], Float32ToBFloat16(v))
		}
	case Int8:
		return narrowInt8(dst, src)
	}
	return 1
}

func narrowInt8(dst []byte, src []float32) float32 {
	var top float32
	for _, v := range src {
		a := float32(math.Abs(float64(v)))
		if a > top || a != a {
			top = a
		}
	}
	scale := top / 127
	if top != top || math.IsInf(float64(top), 0) {
		clear(dst[:len(src)])
		return float32(math.NaN())
	}
	for i, v := range src {
		q := 0.0
		if scale > 0 {
			q = math.RoundToEven(float64(v) / float64(scale))
		}
		dst[i] = byte(int8(max(-127, min(127, q))))
	}
	return scale
}

// Float32ToBFloat16 rounds to nearest, ties to even; NaN stays NaN.
func Float32ToBFloat16(v float32) uint16 {
	b := math.Float32bits(v)
	if b&0x7FFFFFFF > 0x7F800000 {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7FFF + b>>16&1) >> 16)
}

// Float16ToFloat32 converts an IEEE 754 binary16 value exactly.
func Float16ToFloat32(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exp, man := uint32(h>>10&0x1F), uint32(h&0x3FF)
	switch {
	case exp == 0x1F:
		return math.Float32frombits(sign | 0x7F800000 | man<<13)
	case exp != 0:
		return math.Float32frombits(sign | (exp+112)<<23 | man<<13)
	default: // zero or subnormal: man × 2^-24
		f := float32(man) * (1.0 / (1 << 24))
		return math.Float32frombits(sign | math.Float32bits(f))
	}
}

// Float32ToFloat16 rounds to nearest, ties to even; too large becomes
// infinity, NaN stays NaN.
func Float32ToFloat16(v float32) uint16 {
	b := math.Float32bits(v)
	sign := uint16(b >> 16 & 0x8000)
	b &= 0x7FFFFFFF
	switch {
	case b > 0x7F800000:
		return sign | 0x7E00
	case b >= 0x477FF000: // 65520 and above round to infinity
		return sign | 0x7C00
	case b < 0x38800000: // below 2^-14: subnormal, in units of 2^-24
		q := math.RoundToEven(float64(math.Float32frombits(b)) * (1 << 24))
		return sign | uint16(q)
	default:
		b -= 112 << 23
		return sign | uint16((b+0xFFF+b>>13&1)>>13)
	}
}
