package safetensors

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"zerogcn/dtype"
)

// DType is the type of a tensor's elements.
type DType uint8

// The types that the package reads and writes, in the order in which the
// reference implementation has them; files hold the last ones first.
const (
	Uint8 DType = iota
	Float16
	BFloat16
	Int32
	Float32
	Float64
	Int64
)

// dtypes has the names that the header uses, and sizes in bytes.
var dtypes = [...]struct {
	name string
	size int
}{
	Uint8: {"U8", 1}, Float16: {"F16", 2}, BFloat16: {"BF16", 2}, Int32: {"I32", 4},
	Float32: {"F32", 4}, Float64: {"F64", 8}, Int64: {"I64", 8},
}

// String returns the name that the format uses, such as F32.
func (d DType) String() string {
	if int(d) < len(dtypes) {
		return dtypes[d].name
	}
	return fmt.Sprintf("DType(%d)", uint8(d))
}

// Size returns the bytes of an element.
func (d DType) Size() int { return dtypes[d].size }

func parseDType(name string) (DType, bool) {
	for i, d := range dtypes {
		if d.name == name {
			return DType(i), true
		}
	}
	return 0, false
}

// Tensor is a named array. An empty shape is a scalar with one element.
type Tensor struct {
	Name  string
	Shape []int
	Data  Data // as many elements as the product of Shape
}

// Float32s returns the elements as float32: those of F32 themselves, without a
// copy; F16 and BF16 exactly; F64 rounded to nearest. ok is false for integers.
func (t Tensor) Float32s() (values []float32, ok bool) {
	switch data := t.Data.(type) {
	case F32:
		return data, true
	case F64:
		values = make([]float32, len(data))
		for i, v := range data {
			values[i] = float32(v)
		}
	case F16:
		values = make([]float32, len(data))
		for i, v := range data {
			values[i] = dtype.Float16ToFloat32(v)
		}
	case BF16:
		values = make([]float32, len(data))
		for i, v := range data {
			values[i] = math.Float32frombits(uint32(v) << 16)
		}
	default:
		return nil, false
	}
	return values, true
}

// Data is the elements of a tensor in row-major order: one of the slice types
// below.
type Data interface {
	DType() DType
	Len() int
	// encode stores the elements from index at on in dst, as many as fit.
	encode(dst []byte, at int)
	// decode sets the elements from index at on from all of src.
	decode(src []byte, at int)
}

// The kinds of Data.
type (
	F32  []float32
	F64  []float64
	I64  []int64
	I32  []int32
	U8   []uint8
	F16  []uint16 // bits of IEEE 754 binary16
	BF16 []uint16 // upper 16 bits of a float32
)

// newData allocates n elements.
func newData(d DType, n int) Data {
	switch d {
	case Float32:
		return make(F32, n)
	case Float64:
		return make(F64, n)
	case Int64:
		return make(I64, n)
	case Int32:
		return make(I32, n)
	case Uint8:
		return make(U8, n)
	case Float16:
		return make(F16, n)
	default:
		return make(BF16, n)
	}
}

func (d F32) DType() DType  { return Float32 }
func (d F64) DType() DType  { return Float64 }
func (d I64) DType() DType  { return Int64 }
func (d I32) DType() DType  { return Int32 }
func (d U8) DType() DType   { return Uint8 }
func (d F16) DType() DType  { return Float16 }
func (d BF16) DType() DType { return BFloat16 }

func (d F32) Len() int  { return len(d) }
func (d F64) Len() int  { return len(d) }
func (d I64) Len() int  { return len(d) }
func (d I32) Len() int  { return len(d) }
func (d U8) Len() int   { return len(d) }
func (d F16) Len() int  { return len(d) }
func (d BF16) Len() int { return len(d) }

func (d F32) encode(dst []byte, at int) {
	for i, v := range d[at:min(len(d), at+len(dst)/4)] {
		binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(v))
	}
}

func (d F32) decode(src []byte, at int) {
	for i := range d[at : at+len(src)/4] {
		d[at+i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
	}
}

func (d F64) encode(dst []byte, at int) {
	for i, v := range d[at:min(len(d), at+len(dst)/8)] {
		binary.LittleEndian.PutUint64(dst[8*i:], math.Float64bits(v))
	}
}

func (d F64) decode(src []byte, at int) {
	for i := range d[at : at+len(src)/8] {
		d[at+i] = math.Float64frombits(binary.LittleEndian.Uint64(src[8*i:]))
	}
}

func (d I64) encode(dst []byte, at int) {
	for i, v := range d[at:min(len(d), at+len(dst)/8)] {
		binary.LittleEndian.PutUint64(dst[8*i:], uint64(v))
	}
}

func (d I64) decode(src []byte, at int) {
	for i := range d[at : at+len(src)/8] {
		d[at+i] = int64(binary.LittleEndian.Uint64(src[8*i:]))
	}
}

func (d I32) encode(dst []byte, at int) {
	for i, v := range d[at:min(len(d), at+len(dst)/4)] {
		binary.LittleEndian.PutUint32(dst[4*i:], uint32(v))
	}
}

func (d I32) decode(src []byte, at int) {
	for i := range d[at : at+len(src)/4] {
		d[at+i] = int32(binary.LittleEndian.Uint32(src[4*i:]))
	}
}

func (d U8) encode(dst []byte, at int)   { copy(dst, d[at:]) }
func (d U8) decode(src []byte, at int)   { copy(d[at:], src) }
func (d F16) encode(dst []byte, at int)  { encode16(dst, d, at) }
func (d F16) decode(src []byte, at int)  { decode16(d, src, at) }
func (d BF16) encode(dst []byte, at int) { encode16(dst, d, at) }
func (d BF16) decode(src []byte, at int) { decode16(d, src, at) }

func encode16(dst []byte, d []uint16, at int) {
	for i, v := range d[at:min(len(d), at+len(dst)/2)] {
		binary.LittleEndian.PutUint16(dst[2*i:], v)
	}
}

func decode16(d []uint16, src []byte, at int) {
	for i := range d[at : at+len(src)/2] {
		d[at+i] = binary.LittleEndian.Uint16(src[2*i:])
	}
}

// elements multiplies a shape out. ok is false if a size is negative or the
// product exceeds limit.
func elements(shape []int, limit int64) (n int64, ok bool) {
	if len(shape) > 0 {
		switch least := slices.Min(shape); {
		case least < 0:
			return 0, false
		case least == 0:
			return 0, true
		}
	}
	n = 1
	for _, s := range shape {
		if int64(s) > limit/n {
			return 0, false
		}
		n *= int64(s)
	}
	return n, n <= limit
}
