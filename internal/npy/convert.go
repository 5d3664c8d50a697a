package npy

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"zerogcn/dtype"
)

// convertRange reads the elements [first, first+len(dst)) of a row-major array.
func convertRange[T Element](a *Array, first int64, dst []T, width int64) error {
	size := a.Type.Size
	want := typeOf[T]()
	if a.Type.Kind == want.Kind && size == want.Size {
		b := bytesOf(dst)
		for off := 0; off < len(b); off += 4 * readBytes {
			part := b[off:min(len(b), off+4*readBytes)]
			if err := a.readAt(part, first*int64(size)+int64(off)); err != nil {
				return err
			}
		}
		if a.Type.Big {
			swap(b, size)
		}
		return nil
	}
	buf := make([]uint64, readBytes/8) // for its alignment
	raw := bytesOf(buf)
	per := len(raw) / size
	for done := 0; done < len(dst); done += per {
		n := min(per, len(dst)-done)
		part := raw[:n*size]
		if err := a.readAt(part, (first+int64(done))*int64(size)); err != nil {
			return err
		}
		if a.Type.Big {
			swap(part, size)
		}
		if i := convert(dst[done:done+n], part, a.Type); i >= 0 {
			return a.misfit(part[i*size:(i+1)*size], first+int64(done+i), width, want)
		}
	}
	return nil
}

// misfit describes an element that the wanted type cannot hold.
func (a *Array) misfit(b []byte, index, width int64, want Type) error {
	var v any
	switch a.Type.Kind {
	case Float:
		var f [1]float64
		convert(f[:], b, a.Type)
		v = f[0]
	case Uint:
		var u [1]uint64
		convert(u[:], b, a.Type)
		v = u[0]
	default:
		var i [1]int64
		convert(i[:], b, a.Type)
		v = i[0]
	}
	where := fmt.Sprintf("element %d", index)
	if len(a.Shape) > 1 {
		where = fmt.Sprintf("row %d, column %d", index/width, index%width)
	}
	return a.Errorf("%s is %v, which is not a value of type %s", where, v, want)
}

// convert turns src, little-endian and aligned, into dst and returns the index
// of the first element that does not fit, -1 if all do.
func convert[T Element](dst []T, src []byte, t Type) int {
	switch t.Kind {
	case Bool:
		for i := range dst {
			dst[i] = 0
			if src[i] != 0 {
				dst[i] = 1
			}
		}
		return -1
	case Int:
		switch t.Size {
		case 1:
			return fromInts[T, int8](dst, src)
		case 2:
			return fromInts[T, int16](dst, src)
		case 4:
			return fromInts[T, int32](dst, src)
		default:
			return fromInts[T, int64](dst, src)
		}
	case Uint:
		switch t.Size {
		case 1:
			return fromInts[T, uint8](dst, src)
		case 2:
			return fromInts[T, uint16](dst, src)
		case 4:
			return fromInts[T, uint32](dst, src)
		default:
			return fromInts[T, uint64](dst, src)
		}
	default:
		switch t.Size {
		case 2:
			return fromFloats(dst, func(i int) float64 {
				return float64(dtype.Float16ToFloat32(binary.LittleEndian.Uint16(src[2*i:])))
			})
		case 4:
			return fromFloats(dst, func(i int) float64 {
				return float64(math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:])))
			})
		default:
			return fromFloats(dst, func(i int) float64 {
				return math.Float64frombits(binary.LittleEndian.Uint64(src[8*i:]))
			})
		}
	}
}

type integer interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

func isFloat[T Element]() bool { k := typeOf[T]().Kind; return k == Float }

func fromInts[T Element, S integer](dst []T, src []byte) int {
	s := unsafe.Slice((*S)(unsafe.Pointer(&src[0])), len(dst))
	if isFloat[T]() {
		for i, v := range s {
			dst[i] = T(v)
		}
		return -1
	}
	bad := false
	for i, v := range s {
		x := T(v)
		// The round trip finds lost bits, the signs a change of meaning.
		bad = bad || S(x) != v || (x < 0) != (v < 0)
		dst[i] = x
	}
	if !bad {
		return -1
	}
	for i, v := range s {
		if x := T(v); S(x) != v || (x < 0) != (v < 0) {
			return i
		}
	}
	return -1
}

func fromFloats[T Element](dst []T, at func(i int) float64) int {
	if isFloat[T]() {
		for i := range dst {
			dst[i] = T(at(i))
		}
		return -1
	}
	t := typeOf[T]()
	lo, hi := 0.0, math.Ldexp(1, 8*t.Size)
	if t.Kind == Int {
		lo, hi = -hi/2, hi/2
	}
	for i := range dst {
		v := at(i)
		if !(v >= lo && v < hi) || v != math.Trunc(v) {
			return i
		}
		dst[i] = T(v)
	}
	return -1
}

// swap reverses the bytes of each element.
func swap(b []byte, size int) {
	switch size {
	case 2:
		for ; len(b) >= 2; b = b[2:] {
			b[0], b[1] = b[1], b[0]
		}
	case 4:
		for ; len(b) >= 4; b = b[4:] {
			binary.LittleEndian.PutUint32(b, binary.BigEndian.Uint32(b))
		}
	case 8:
		for ; len(b) >= 8; b = b[8:] {
			binary.LittleEndian.PutUint64(b, binary.BigEndian.Uint64(b))
		}
	}
}
