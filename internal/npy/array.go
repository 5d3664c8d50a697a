package npy

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"zerogcn/internal/usage"
)

// Array is one array in a file or an archive. Its methods may be called by
// several goroutines at once.
type Array struct {
	Header
	name string // for messages
	path string // the file where the array is one of its own, else ""
	r    io.ReaderAt
	file *os.File // owned; nil for members of an archive
	// stream says that r is fast only where reads ascend.
	stream bool

	mapOnce sync.Once
	mapped  []byte
	mapErr  error
}

// Open opens an .npy file and checks its header against its size. The caller
// closes it.
func Open(path string) (*Array, error) {
	f, size, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	a, err := New(f, size, path)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	a.file, a.path = f, path
	return a, nil
}

// openRegular opens a regular file and returns its size. Others are refused
// before they are opened: a pipe would block.
func openRegular(path string) (*os.File, int64, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, 0, usage.Wrap(err)
	}
	if !st.Mode().IsRegular() {
		return nil, 0, usage.Errorf("%s: not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, usage.Wrap(err)
	}
	if st, err = f.Stat(); err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, st.Size(), nil
}

// New reads the header of an array in the first size bytes of r, which must
// stay open while the Array is used. name is for messages.
func New(r io.ReaderAt, size int64, name string) (*Array, error) {
	a := &Array{name: name, r: r}
	var err error
	if a.Header, err = readHeader(r, size); err != nil {
		return nil, a.wrap(err)
	}
	return a, nil
}

// NewRaw makes an Array of data without a header, as pickles hold them: size
// bytes of r from byte 0 on, whose type, order and shape the caller knows. They
// are checked as a header would be.
func NewRaw(r io.ReaderAt, size int64, descr string, fortran bool, shape []int64, name string) (*Array, error) {
	a := &Array{name: name, r: r, Header: Header{Fortran: fortran, Shape: shape}}
	var err error
	if a.Type, err = parseType(descr); err != nil {
		return nil, a.Errorf("%w", err)
	}
	if len(shape) > maxDims {
		return nil, a.Errorf("more than %d dimensions", maxDims)
	}
	if err := a.check(size); err != nil {
		return nil, a.wrap(err)
	}
	return a, nil
}

// Name returns the name that messages use: a path, or archive and member.
func (a *Array) Name() string { return a.name }

// Path returns the path of the .npy file, "" for a member of an archive.
func (a *Array) Path() string { return a.path }

// Sequential reports whether rows are fast to read in ascending order only, as
// from a deflated member of an archive.
func (a *Array) Sequential() bool { return a.stream }

// Close releases the file and the mapping that View made.
func (a *Array) Close() error {
	var errs []error
	if a.mapped != nil {
		errs = append(errs, unmap(a.mapped))
		a.mapped = nil
	}
	if a.file != nil {
		errs = append(errs, a.file.Close())
		a.file = nil
	}
	return errors.Join(errs...)
}

// Errorf makes an error of the user's about this array.
func (a *Array) Errorf(format string, args ...any) error {
	return usage.Errorf("%s: %w", a.name, fmt.Errorf(format, args...))
}

// wrap names the file; faults of the content are marked as the user's.
func (a *Array) wrap(err error) error {
	var fault *faultError
	if errors.As(err, &fault) || errors.Is(err, io.ErrUnexpectedEOF) {
		return a.Errorf("%w", err)
	}
	return fmt.Errorf("%s: %w", a.name, err)
}

// WantShape checks the number of dimensions and each of them; -1 takes any.
func (a *Array) WantShape(shape ...int64) error {
	ok := len(shape) == len(a.Shape)
	for i := 0; ok && i < len(shape); i++ {
		ok = shape[i] < 0 || shape[i] == a.Shape[i]
	}
	if ok {
		return nil
	}
	want := Header{Shape: shape}
	return a.Errorf("the shape is %s: want %s", a.ShapeString(), strings.ReplaceAll(want.ShapeString(), "-1", "any"))
}

// RowMajor reports whether the data lies row-major and little-endian from byte
// Offset on, so that others may read or map it as it is.
func (a *Array) RowMajor() bool {
	if a.Type.Big && a.Type.Size > 1 {
		return false
	}
	if !a.Fortran {
		return true
	}
	long := 0 // with at most one dimension above 1, both orders are the same
	for _, d := range a.Shape {
		if d > 1 {
			long++
		}
	}
	return long <= 1
}

// readAt fills b from byte off of the data.
func (a *Array) readAt(b []byte, off int64) error {
	n, err := a.r.ReadAt(b, a.Offset+off)
	if n < len(b) {
		if err == nil || err == io.EOF {
			err = faultf(a.Offset+off+int64(n), "the file became shorter while it was read")
		}
		return a.wrap(err)
	}
	return nil
}

// maxText bounds what Strings reads: 1 GiB.
const maxText = 1 << 30

// Strings reads an array of fixed-width text or bytes.
func (a *Array) Strings() ([]string, error) {
	if a.Type.Kind != Text && a.Type.Kind != Bytes {
		return nil, a.Errorf("elements are %s: want text", a.Type)
	}
	n, size := a.Count(), int64(a.Type.Size)
	if n*size > maxText {
		return nil, a.Errorf("%d bytes of text: at most %d are read", n*size, int64(maxText))
	}
	if n == 0 {
		return nil, nil
	}
	if a.Fortran && len(a.Shape) > 1 {
		return nil, a.Errorf("text in Fortran order is not read")
	}
	raw := make([]byte, n*size)
	if err := a.readAt(raw, 0); err != nil {
		return nil, err
	}
	out := make([]string, n)
	var runes []byte
	for i := range out {
		e := raw[int64(i)*size : int64(i+1)*size]
		if a.Type.Kind == Bytes {
			out[i] = strings.TrimRight(string(e), "\x00")
			continue
		}
		runes = runes[:0]
		for len(e) >= 4 {
			var c uint32
			if a.Type.Big {
				c = uint32(e[0])<<24 | uint32(e[1])<<16 | uint32(e[2])<<8 | uint32(e[3])
			} else {
				c = uint32(e[3])<<24 | uint32(e[2])<<16 | uint32(e[1])<<8 | uint32(e[0])
			}
			r := rune(utf8.RuneError)
			if c <= utf8.MaxRune {
				r = rune(c)
			}
			runes = utf8.AppendRune(runes, r)
			e = e[4:]
		}
		out[i] = strings.TrimRight(string(runes), "\x00")
	}
	return slices.Clip(out), nil
}
