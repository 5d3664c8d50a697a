package mat

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zlib"
)

// Fault is a fault of a file.
type Fault struct {
	Variable string // "" outside of one
	At       int
	Msg      string
}

func (f *Fault) Error() string {
	if f.Variable != "" {
		return fmt.Sprintf("variable %.40q: byte %d: %s", f.Variable, f.At, f.Msg)
	}
	return fmt.Sprintf("byte %d: %s", f.At, f.Msg)
}

// Types of data elements, and classes of arrays.
const (
	miINT8       = 1
	miUINT8      = 2
	miINT16      = 3
	miUINT16     = 4
	miINT32      = 5
	miUINT32     = 6
	miSINGLE     = 7
	miDOUBLE     = 9
	miINT64      = 12
	miUINT64     = 13
	miMATRIX     = 14
	miCOMPRESSED = 15

	mxSPARSE = 5
	mxDOUBLE = 6
	mxUINT64 = 15 // the last numeric class

	flagComplex = 0x08
)

var typeSize = map[uint32]int{
	miINT8: 1, miUINT8: 1, miINT16: 2, miUINT16: 2, miINT32: 4, miUINT32: 4, miSINGLE: 4, miDOUBLE: 8, miINT64: 8, miUINT64: 8,
}

const (
	headerBytes = 128
	// maxRatio bounds what a variable expands to beyond freeExpansion bytes.
	maxRatio      = 400
	freeExpansion = 1 << 28
	maxName       = 64 // MATLAB's own limit is 63
	maxVariables  = 1 << 12
)

// Recognise reports whether a file begins like a MATLAB file of level 5 or of
// version 7.3.
func Recognise(head []byte) bool {
	return bytes.HasPrefix(head, []byte("MATLAB 5.0 MAT-file")) || bytes.HasPrefix(head, []byte("MATLAB 7.3 MAT-file"))
}

// Read returns the numeric variables of a file whose bytes are data, which they
// alias where they are not deflated.
func Read(data []byte) (map[string]*Matrix, error) {
	if bytes.HasPrefix(data, []byte("MATLAB 7.3")) {
		return nil, &Fault{At: 0, Msg: "a file of version 7.3, which is HDF5: save it with -v7"}
	}
	if len(data) < headerBytes {
		return nil, &Fault{At: len(data), Msg: fmt.Sprintf("the header has %d bytes: the file is cut short", headerBytes)}
	}
	r := &reader{data: data, at: headerBytes}
	switch string(data[126:128]) {
	case "IM":
		r.order = binary.LittleEndian
	case "MI":
		r.order = binary.BigEndian
	default:
		return nil, &Fault{At: 126, Msg: "no mark of the byte order: this is no MATLAB file of level 5"}
	}
	out := map[string]*Matrix{}
	for r.at < len(data) {
		at := r.at
		kind, body, err := r.element()
		if err != nil {
			return nil, err
		}
		if kind == miCOMPRESSED {
			// No padding follows deflated elements.
			r.at = at + 8 + len(body)
			if kind, body, err = r.inflate(at, body); err != nil {
				return nil, err
			}
		}
		if kind != miMATRIX {
			continue
		}
		m, err := (&reader{data: body, order: r.order}).matrix()
		if err != nil {
			return nil, err
		}
		if m == nil {
			continue
		}
		if len(out) == maxVariables {
			return nil, &Fault{At: at, Msg: fmt.Sprintf("more than %d variables", maxVariables)}
		}
		out[m.Name] = m
	}
	return out, nil
}

// reader walks over data elements.
type reader struct {
	data     []byte
	at       int
	order    binary.ByteOrder
	variable string
}

func (r *reader) faultf(at int, format string, args ...any) error {
	return &Fault{r.variable, at, fmt.Sprintf(format, args...)}
}

// element returns the type and the data of the next element, small or not.
func (r *reader) element() (kind uint32, body []byte, err error) {
	at := r.at
	if len(r.data)-at < 8 {
		return 0, nil, r.faultf(at, "an element's tag has 8 bytes, and %d are left: the file is cut short", len(r.data)-at)
	}
	word := r.order.Uint32(r.data[at:])
	if n := word >> 16; n != 0 { // small: type and size in one word, data in the other
		if n > 4 {
			return 0, nil, r.faultf(at, "a small element of %d bytes: the file is damaged", n)
		}
		r.at = at + 8
		return word & 0xFFFF, r.data[at+4 : at+4+int(n)], nil
	}
	n := uint64(r.order.Uint32(r.data[at+4:]))
	if n > uint64(len(r.data)-at-8) {
		return 0, nil, r.faultf(at, "an element of %d bytes, and %d are left: the file is cut short", n, len(r.data)-at-8)
	}
	end := at + 8 + int(n)
	r.at = min(len(r.data), (end+7)&^7)
	return word, r.data[at+8 : end], nil
}

// inflate unpacks one element.
func (r *reader) inflate(at int, packed []byte) (kind uint32, body []byte, err error) {
	z, err := zlib.NewReader(bytes.NewReader(packed))
	if err != nil {
		return 0, nil, r.faultf(at, "the compressed data is damaged (%v)", err)
	}
	defer z.Close()
	var tag [8]byte
	if _, err := io.ReadFull(z, tag[:]); err != nil {
		return 0, nil, r.faultf(at, "the compressed data is damaged (%v)", err)
	}
	kind = r.order.Uint32(tag[:])
	n := int64(r.order.Uint32(tag[4:]))
	if kind != miMATRIX { // nothing else is of use
		return kind, nil, nil
	}
	if n > freeExpansion && n/maxRatio > int64(len(packed)) {
		return 0, nil, r.faultf(at, "%d bytes claim to expand to %d: refused as a bomb", len(packed), n)
	}
	var b bytes.Buffer // grows with what is there, not with what is claimed
	got, err := io.CopyN(&b, z, n)
	if err == nil {
		// The checksum is compared at the end.
		var one [1]byte
		if _, end := z.Read(one[:]); end != nil && !errors.Is(end, io.EOF) {
			err = end
		}
	}
	if err != nil {
		return 0, nil, r.faultf(at, "the compressed data is damaged after %d of %d bytes (%v)", got, n, err)
	}
	return kind, b.Bytes(), nil
}

// matrix reads the elements of an array; nil where it is not numeric.
func (r *reader) matrix() (*Matrix, error) {
	if len(r.data) == 0 { // an empty element: an empty array without a name
		return nil, nil
	}
	kind, flags, err := r.element()
	if err != nil {
		return nil, err
	}
	if kind != miUINT32 || len(flags) != 8 {
		return nil, r.faultf(0, "no array flags: the file is damaged")
	}
	word := r.order.Uint32(flags)
	class, complex := word&0xFF, word>>8&flagComplex != 0
	if class < mxSPARSE || class > mxUINT64 {
		return nil, nil // cell, structure, object, char, function
	}
	at := r.at
	kind, dims, err := r.element()
	if err != nil {
		return nil, err
	}
	if kind != miINT32 || len(dims) < 8 || len(dims)%4 != 0 {
		return nil, r.faultf(at, "no dimensions: the file is damaged")
	}
	m := &Matrix{order: r.order}
	at = r.at
	kind, name, err := r.element()
	if err != nil {
		return nil, err
	}
	if kind != miINT8 || len(name) > maxName {
		return nil, r.faultf(at, "no name: the file is damaged")
	}
	m.Name = string(bytes.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return '?'
		}
		return c
	}, name))
	r.variable = m.Name
	count := int64(1)
	for ; len(dims) > 0; dims = dims[4:] {
		d := int64(int32(r.order.Uint32(dims)))
		if d < 0 || d > 0 && count > 1<<50/d {
			return nil, r.faultf(at, "a dimension of %d cannot be", d)
		}
		m.Dims = append(m.Dims, d)
		count *= d
	}
	if complex {
		return nil, r.faultf(at, "complex numbers are not read")
	}
	if class == mxSPARSE {
		return m, r.sparse(m)
	}
	if m.data, err = r.values("values", count); err != nil {
		return nil, err
	}
	return m, nil
}

// values reads an element of n numbers.
func (r *reader) values(what string, n int64) (values, error) {
	at := r.at
	kind, body, err := r.element()
	if err != nil {
		return values{}, err
	}
	size := typeSize[kind]
	if size == 0 {
		return values{}, r.faultf(at, "%s of the type %d: want numbers", what, kind)
	}
	if n < 0 {
		n = int64(len(body) / size)
	}
	if int64(len(body)) != n*int64(size) {
		return values{}, r.faultf(at, "%d bytes of %s: want %d of %d bytes", len(body), what, n, size)
	}
	return values{kind, body, int(n)}, nil
}

// sparse reads the parts of a sparse array: rows, column offsets, values.
func (r *reader) sparse(m *Matrix) error {
	if len(m.Dims) != 2 {
		return r.faultf(r.at, "a sparse array of %d dimensions", len(m.Dims))
	}
	at := r.at
	ir, err := r.values("row numbers", -1)
	if err != nil {
		return err
	}
	jc, err := r.values("column offsets", m.Dims[1]+1)
	if err != nil {
		return err
	}
	if m.data, err = r.values("values", -1); err != nil {
		return err
	}
	m.Indptr, m.Rows = make([]int64, jc.n), make([]int32, 0, ir.n)
	last := int64(0)
	for i := range m.Indptr {
		v := int64(jc.at(r.order, i))
		if v < last || v > int64(ir.n) || v > int64(m.data.n) || i == 0 && v != 0 {
			return r.faultf(at, "column offset %d is %d after %d, with %d entries", i, v, last, min(ir.n, m.data.n))
		}
		m.Indptr[i], last = v, v
	}
	for k := range int(last) { // there may be room for more entries
		v := ir.at(r.order, k)
		if v < 0 || v >= float64(m.Dims[0]) || v != float64(int32(v)) {
			return r.faultf(at, "entry %d is in row %v: there are %d", k, v, m.Dims[0])
		}
		m.Rows = append(m.Rows, int32(v))
	}
	m.Sparse = true
	return nil
}
