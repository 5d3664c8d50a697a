package npy

import (
	"fmt"
	"io"
)

// Align is the boundary at which the data of written files begins: a page, so
// that it can be mapped, read directly and aliased at any alignment.
const Align = 4096

// Writer writes one array as a stream of row-major values.
type Writer struct {
	w    io.Writer
	left int64 // bytes yet to come
}

// NewWriter writes the header, padded to Align bytes, of a row-major array of
// elements of type T. The caller then writes exactly the shape's elements and
// calls Close, which does not close w.
func NewWriter[T Element](w io.Writer, shape ...int64) (*Writer, error) {
	t := typeOf[T]()
	return newWriter(w, t.String(), t.Size, shape)
}

// NewFloat16Writer is NewWriter for binary16 values, which Go has no type for.
func NewFloat16Writer(w io.Writer, shape ...int64) (*Writer, error) {
	return newWriter(w, "<f2", 2, shape)
}

func newWriter(w io.Writer, descr string, size int, shape []int64) (*Writer, error) {
	h := Header{Shape: shape}
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, h.ShapeString())
	n := Align - 10
	if len(text) >= n {
		return nil, fmt.Errorf("npy: %d dimensions are too many", len(shape))
	}
	b := make([]byte, Align)
	copy(b, magic)
	b[6], b[7] = 1, 0
	b[8], b[9] = byte(n&0xFF), byte(n>>8)
	for i := copy(b[10:], text) + 10; i < Align; i++ {
		b[i] = ' '
	}
	b[Align-1] = '\n'
	if _, err := w.Write(b); err != nil {
		return nil, err
	}
	return &Writer{w, h.Count() * int64(size)}, nil
}

// Write adds little-endian bytes of the array.
func (w *Writer) Write(b []byte) (int, error) {
	if int64(len(b)) > w.left {
		return 0, fmt.Errorf("npy: %d bytes more than the shape holds", int64(len(b))-w.left)
	}
	n, err := w.w.Write(b)
	w.left -= int64(n)
	return n, err
}

// Close reports an array of which elements are missing.
func (w *Writer) Close() error {
	if w.left != 0 {
		return fmt.Errorf("npy: %d bytes of the shape were never written", w.left)
	}
	return nil
}

// WriteValues adds values of the array; T must be the type it was made with.
func WriteValues[T Element](w *Writer, v []T) error {
	_, err := w.Write(bytesOf(v))
	return err
}

// Write writes a whole array.
func Write[T Element](w io.Writer, v []T, shape ...int64) error {
	nw, err := NewWriter[T](w, shape...)
	if err != nil {
		return err
	}
	if err := WriteValues(nw, v); err != nil {
		return err
	}
	return nw.Close()
}
