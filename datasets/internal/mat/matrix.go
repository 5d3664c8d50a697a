package mat

import (
	"encoding/binary"
	"math"
)

// Matrix is a numeric array. A dense one lies column by column; a sparse one has
// the entries Indptr[c] to Indptr[c+1] in column c, in the rows Rows[k].
type Matrix struct {
	Name   string
	Dims   []int64
	Sparse bool
	Indptr []int64 // sparse: offsets of columns, checked
	Rows   []int32 // sparse: rows of entries, checked

	order binary.ByteOrder
	data  values
}

// Len returns the number of values: of elements, or of a sparse array's
// entries.
func (m *Matrix) Len() int {
	if m.Sparse {
		return len(m.Rows)
	}
	return m.data.n
}

// At returns the value of element i, column-major, or of entry i.
func (m *Matrix) At(i int) float64 { return m.data.at(m.order, i) }

// values are numbers as they are stored, which may be of a narrower type than
// the array's class.
type values struct {
	kind uint32
	b    []byte
	n    int
}

// at returns a number. 64-bit integers beyond 2^53 round.
func (v values) at(o binary.ByteOrder, i int) float64 {
	switch v.kind {
	case miINT8:
		return float64(int8(v.b[i]))
	case miUINT8:
		return float64(v.b[i])
	case miINT16:
		return float64(int16(o.Uint16(v.b[2*i:])))
	case miUINT16:
		return float64(o.Uint16(v.b[2*i:]))
	case miINT32:
		return float64(int32(o.Uint32(v.b[4*i:])))
	case miUINT32:
		return float64(o.Uint32(v.b[4*i:]))
	case miSINGLE:
		return float64(math.Float32frombits(o.Uint32(v.b[4*i:])))
	case miINT64:
		return float64(int64(o.Uint64(v.b[8*i:])))
	case miUINT64:
		return float64(o.Uint64(v.b[8*i:]))
	default:
		return math.Float64frombits(o.Uint64(v.b[8*i:]))
	}
}
