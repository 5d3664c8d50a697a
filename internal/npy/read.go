package npy

import (
	"fmt"
	"unsafe"

	"zerogcn/internal/par"
)

// readBytes is how much one read asks for: large enough to hide the call,
// small enough to stay in the cache for the conversion that follows.
const readBytes = 1 << 20

// Read returns the whole array, row-major, as values of type T. Integers and
// bools convert to any T in which they fit, and floats to floats (float64 to
// float32 rounds) and, where they are whole numbers, to integers. A value that
// does not fit is an error that names its index.
func Read[T Element](a *Array, w par.Workers) ([]T, error) {
	if err := a.wantNumeric(); err != nil {
		return nil, err
	}
	dst := make([]T, a.Count())
	rows, width := a.Rows(), a.Width()
	if len(dst) == 0 {
		return dst, nil
	}
	if a.stream || a.Fortran && !a.RowMajor() {
		return dst, ReadRows(a, 0, rows, dst)
	}
	// Row-major: cut by elements, so that one long row is shared out too.
	per := max(1, 4*readBytes/a.Type.Size)
	errs := make([]error, par.Tiles(len(dst), per))
	w.Range(len(dst), per, func(t, lo, hi int) {
		errs[t] = convertRange(a, int64(lo), dst[lo:hi], width)
	})
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return dst, nil
}

// ReadRows reads the rows [lo, hi) of the first dimension into dst, row-major,
// which holds (hi-lo) × Width values. Conversion is as in Read. A 0-dimensional
// array has one row.
func ReadRows[T Element](a *Array, lo, hi int64, dst []T) error {
	if err := a.wantNumeric(); err != nil {
		return err
	}
	width := a.Width()
	if lo < 0 || hi < lo || hi > a.Rows() || int64(len(dst)) < (hi-lo)*width {
		return fmt.Errorf("npy: %s: rows [%d, %d) into %d values: the shape is %s", a.name, lo, hi, len(dst), a.ShapeString())
	}
	dst = dst[:(hi-lo)*width]
	if len(dst) == 0 {
		return nil
	}
	if a.Fortran && !a.RowMajor() {
		return fortranRows(a, lo, hi, dst)
	}
	return convertRange(a, lo*width, dst, width)
}

// RawRows reads the rows [lo, hi) as little-endian, row-major bytes of the
// array's own element type.
func RawRows(a *Array, lo, hi int64, dst []byte) error {
	switch a.Type.Size {
	case 1:
		return rawRows[uint8](a, lo, hi, dst)
	case 2:
		return rawRows[uint16](a, lo, hi, dst)
	case 4:
		return rawRows[uint32](a, lo, hi, dst)
	default:
		return rawRows[uint64](a, lo, hi, dst)
	}
}

// rawRows reads the elements as unsigned integers of the same width, which
// moves their bits unchanged.
func rawRows[T Element](a *Array, lo, hi int64, dst []byte) error {
	if err := a.wantNumeric(); err != nil {
		return err
	}
	bits := &Array{Header: a.Header, name: a.name, r: a.r, stream: a.stream}
	bits.Type.Kind = Uint
	n := (hi - lo) * a.Width()
	if lo < 0 || hi < lo || hi > a.Rows() || int64(len(dst)) < n*int64(a.Type.Size) {
		return fmt.Errorf("npy: %s: rows [%d, %d) into %d bytes: the shape is %s", a.name, lo, hi, len(dst), a.ShapeString())
	}
	if n == 0 {
		return nil
	}
	if a.RowMajor() {
		return a.readAt(dst[:n*int64(a.Type.Size)], lo*a.Width()*int64(a.Type.Size))
	}
	tmp := make([]T, n)
	if err := ReadRows(bits, lo, hi, tmp); err != nil {
		return err
	}
	copy(dst, bytesOf(tmp))
	return nil
}

// View returns the whole array without copying it, as a read-only mapping that
// lives until a.Close. ok is false where that cannot be: not Linux, a member of
// an archive, another element type, byte order or order of dimensions, or data
// that is not aligned; use Read then. Writing to the slice crashes the program,
// and so does reading it after another program cut the file short.
func View[T Element](a *Array) (v []T, ok bool, err error) {
	want := typeOf[T]()
	if a.file == nil || !a.RowMajor() || a.Type.Kind != want.Kind || a.Type.Size != want.Size || a.Offset%int64(want.Size) != 0 {
		return nil, false, nil
	}
	n := a.Count()
	if n == 0 {
		return []T{}, true, nil
	}
	a.mapOnce.Do(func() { a.mapped, a.mapErr = mapFile(a.file, a.Offset+n*int64(want.Size)) })
	if a.mapErr != nil || a.mapped == nil {
		return nil, false, a.mapErr
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&a.mapped[a.Offset])), n), true, nil
}

func (a *Array) wantNumeric() error {
	if a.Type.Kind == Object {
		return a.Errorf("elements are Python objects, which are never read: save numbers")
	}
	if !a.Type.Numeric() {
		return a.Errorf("elements are %s: want numbers of at most 64 bits", a.Type)
	}
	return nil
}

// bytesOf returns the memory of s. Elements are little-endian on every platform
// that this package is built for; see endian_test.go.
func bytesOf[T Element](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	var z T
	return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(z)))
}
