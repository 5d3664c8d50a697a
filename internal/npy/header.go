package npy

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
)

// Header is what an .npy file says about its array.
type Header struct {
	Type    Type
	Fortran bool // the first index runs fastest
	Shape   []int64
	// Offset is the byte at which the data begins.
	Offset int64
}

const (
	magic = "\x93NUMPY"
	// maxHeader bounds the header's text. NumPy itself refuses more than 10,000
	// bytes unless told to trust the file; structured types may be long.
	maxHeader = 1 << 20
	maxDims   = 32
	// maxDim bounds each dimension, so that shapes with a zero in them cannot
	// overflow a caller's products either.
	maxDim = 1 << 48
)

// Count returns the number of elements: 1 for 0 dimensions.
func (h *Header) Count() int64 {
	n := int64(1)
	for _, d := range h.Shape {
		n *= d
	}
	return n
}

// Rows returns the first dimension, 1 for 0 dimensions.
func (h *Header) Rows() int64 {
	if len(h.Shape) == 0 {
		return 1
	}
	return h.Shape[0]
}

// Width returns the number of elements of one row: the product of all
// dimensions but the first.
func (h *Header) Width() int64 {
	n := int64(1)
	for i, d := range h.Shape {
		if i > 0 {
			n *= d
		}
	}
	return n
}

// ShapeString writes the shape as Python does: (3, 4), (5,), ().
func (h *Header) ShapeString() string {
	var b bytes.Buffer
	b.WriteByte('(')
	for i, d := range h.Shape {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.FormatInt(d, 10))
	}
	if len(h.Shape) == 1 {
		b.WriteByte(',')
	}
	b.WriteByte(')')
	return b.String()
}

// faultError is a fault of a file's content at a byte.
type faultError struct {
	at  int64
	msg string
}

func (e *faultError) Error() string { return fmt.Sprintf("byte %d: %s", e.at, e.msg) }

func faultf(at int64, format string, args ...any) error {
	return &faultError{at, fmt.Sprintf(format, args...)}
}

// readHeader reads the header of an array that is held by size bytes, and
// checks that they hold all its elements.
func readHeader(r io.ReaderAt, size int64) (Header, error) {
	var h Header
	var pre [12]byte
	n, err := r.ReadAt(pre[:], 0)
	if err != nil && err != io.EOF {
		return h, err
	}
	if n < 10 || string(pre[:6]) != magic {
		if n == 0 {
			return h, faultf(0, "the file is empty: want a NumPy array")
		}
		return h, faultf(0, "not a NumPy array: want \\x93NUMPY and a version")
	}
	var length int64
	switch major := pre[6]; major {
	case 1:
		length, h.Offset = int64(binary.LittleEndian.Uint16(pre[8:])), 10
	case 2, 3:
		if n < 12 {
			return h, faultf(8, "the file ends in the header's length")
		}
		length, h.Offset = int64(binary.LittleEndian.Uint32(pre[8:])), 12
	default:
		return h, faultf(6, "format version %d.%d: 1.0, 2.0 and 3.0 are known", major, pre[7])
	}
	if h.Offset+length > size {
		return h, faultf(8, "a header of %d bytes in a file of %d", length, size)
	}
	if length > maxHeader {
		return h, faultf(8, "a header of %d bytes: at most %d are read", length, maxHeader)
	}
	text := make([]byte, length)
	if n, err := r.ReadAt(text, h.Offset); n < len(text) {
		return h, fmt.Errorf("reading the header: %w", unexpected(err))
	}
	p := literal{text: text, base: h.Offset}
	if err := p.header(&h); err != nil {
		return h, err
	}
	h.Offset += length
	return h, h.check(size)
}

// check compares the shape with the bytes that there are.
func (h *Header) check(size int64) error {
	have := size - h.Offset
	zero := false
	for i, d := range h.Shape {
		if d < 0 || d > maxDim {
			return faultf(h.at(), "dimension %d is %d: want 0 to 2^48", i, d)
		}
		zero = zero || d == 0
	}
	if h.Type.Kind == Other || h.Type.Kind == Object || zero {
		return nil // nothing of it is ever read
	}
	if h.Type.Size == 0 {
		return faultf(h.at(), "elements of type %s have no bytes", h.Type)
	}
	count := int64(1)
	for _, d := range h.Shape {
		if count > have/d {
			return faultf(h.at(), "shape %s of %s needs more than the %d bytes that follow the header: the file is cut short, or its header is wrong", h.ShapeString(), h.Type, have)
		}
		count *= d
	}
	if count > have/int64(h.Type.Size) {
		return faultf(h.at(), "shape %s of %s needs %d bytes, and %d follow the header: the file is cut short, or its header is wrong", h.ShapeString(), h.Type, count*int64(h.Type.Size), have)
	}
	return nil
}

// at is where faults of the shape are reported: where the header's text is
// (10), or the data where there is no header.
func (h *Header) at() int64 { return min(h.Offset, 10) }

func unexpected(err error) error {
	if err == nil || err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// literal parses the header's text: a Python dict literal with the keys descr,
// fortran_order and shape, and nothing else.
type literal struct {
	text []byte
	i    int
	base int64
}

func (p *literal) at() int64 { return p.base + int64(p.i) }

func (p *literal) space() {
	for p.i < len(p.text) && (p.text[p.i] == ' ' || p.text[p.i] == '\n' || p.text[p.i] == '\t' || p.text[p.i] == '\r') {
		p.i++
	}
}

// accept skips space and takes c if it is next.
func (p *literal) accept(c byte) bool {
	p.space()
	if p.i < len(p.text) && p.text[p.i] == c {
		p.i++
		return true
	}
	return false
}

func (p *literal) expect(c byte) error {
	if !p.accept(c) {
		return faultf(p.at(), "header: want %q", c)
	}
	return nil
}

func (p *literal) header(h *Header) error {
	if err := p.expect('{'); err != nil {
		return err
	}
	var seen [3]bool
	for !p.accept('}') {
		at := p.at()
		key, err := p.str()
		if err != nil {
			return err
		}
		if err := p.expect(':'); err != nil {
			return err
		}
		k := -1
		switch key {
		case "descr":
			k = 0
			err = p.descr(&h.Type)
		case "fortran_order":
			k = 1
			h.Fortran, err = p.boolean()
		case "shape":
			k = 2
			h.Shape, err = p.shape()
		default:
			return faultf(at, "header: unknown key %.40q", key)
		}
		if err != nil {
			return err
		}
		if seen[k] {
			return faultf(at, "header: key %q twice", key)
		}
		seen[k] = true
		if !p.accept(',') {
			if err := p.expect('}'); err != nil {
				return err
			}
			break
		}
	}
	for k, name := range [...]string{"descr", "fortran_order", "shape"} {
		if !seen[k] {
			return faultf(p.at(), "header: key %q is missing", name)
		}
	}
	p.space()
	if p.i < len(p.text) && p.text[p.i] != 0 {
		return faultf(p.at(), "header: text after its end")
	}
	return nil
}

func (p *literal) str() (string, error) {
	p.space()
	if p.i < len(p.text) && (p.text[p.i] == 'u' || p.text[p.i] == 'b') { // u'…' of Python 2
		p.i++
	}
	if p.i >= len(p.text) || p.text[p.i] != '\'' && p.text[p.i] != '"' {
		return "", faultf(p.at(), "header: want a string")
	}
	quote := p.text[p.i]
	end := bytes.IndexByte(p.text[p.i+1:], quote)
	if end < 0 {
		return "", faultf(p.at(), "header: a string without an end")
	}
	s := string(p.text[p.i+1 : p.i+1+end])
	p.i += end + 2
	return s, nil
}

func (p *literal) boolean() (bool, error) {
	p.space()
	for word, v := range map[string]bool{"True": true, "False": false} {
		if bytes.HasPrefix(p.text[p.i:], []byte(word)) {
			p.i += len(word)
			return v, nil
		}
	}
	return false, faultf(p.at(), "header: want True or False")
}

// descr reads a type: a string, or the list of a structured type, which is
// stepped over.
func (p *literal) descr(t *Type) error {
	p.space()
	at := p.at()
	if p.i < len(p.text) && (p.text[p.i] == '[' || p.text[p.i] == '(') {
		depth := 0
		for p.i < len(p.text) {
			switch p.text[p.i] {
			case '[', '(':
				depth++
			case ']', ')':
				depth--
			case '\'', '"':
				if _, err := p.str(); err != nil {
					return err
				}
				continue
			}
			p.i++
			if depth == 0 {
				*t = Type{Kind: Other, text: "a structured type"}
				return nil
			}
		}
		return faultf(at, "header: a list without an end")
	}
	s, err := p.str()
	if err != nil {
		return err
	}
	*t, err = parseType(s)
	if err != nil {
		return faultf(at, "header: %v", err)
	}
	return nil
}

func (p *literal) shape() ([]int64, error) {
	if err := p.expect('('); err != nil {
		return nil, err
	}
	shape := []int64{}
	for !p.accept(')') {
		p.space()
		start := p.i
		for p.i < len(p.text) && (p.text[p.i] == '-' || p.text[p.i] >= '0' && p.text[p.i] <= '9') {
			p.i++
		}
		d, err := strconv.ParseInt(string(p.text[start:p.i]), 10, 64)
		if err != nil {
			return nil, faultf(p.base+int64(start), "header: want a dimension of at most 2^48")
		}
		if p.i < len(p.text) && p.text[p.i] == 'L' { // Python 2 long
			p.i++
		}
		if len(shape) == maxDims {
			return nil, faultf(p.base+int64(start), "header: more than %d dimensions", maxDims)
		}
		shape = append(shape, d)
		if !p.accept(',') {
			if err := p.expect(')'); err != nil {
				return nil, err
			}
			break
		}
	}
	return shape, nil
}
