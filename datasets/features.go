package datasets

import (
	"context"
	"fmt"
	"sync/atomic"

	"zerogcn/dtype"
	"zerogcn/sparse"
)

// Features is the table of node features: Rows × Dim values of one storage
// type. It lies in one of three places: in memory densely, in memory as sparse
// rows (float32), or in a file that is read when asked.
//
// Whatever the place, every value that is read is checked: NaN and infinities
// are an error that names row and column.
type Features struct {
	Rows, Dim int
	Type      dtype.Type

	name   string // for messages
	data   []byte
	sparse *sparse.Matrix
	scales []float32
	file   rowReader
	path   string
	offset int64

	narrowing atomic.Pointer[Narrowing] // set by Write
}

// rowReader reads rows [lo, hi) of a table as little-endian row-major bytes.
type rowReader interface {
	readRows(lo, hi int, dst []byte) error
}

// DenseFeatures wraps a row-major rows × dim matrix, which it keeps.
func DenseFeatures(x []float32, rows, dim int) (*Features, error) {
	if rows < 0 || dim < 0 || len(x) != rows*dim {
		return nil, fmt.Errorf("features: %d values are not %d × %d", len(x), rows, dim)
	}
	return &Features{Rows: rows, Dim: dim, Type: dtype.Float32, name: "features", data: bytesOf(x)}, nil
}

// RawFeatures wraps a row-major table of any storage type, which it keeps.
// scales has one factor per row for Int8 and is nil for the other types.
func RawFeatures(data []byte, rows, dim int, t dtype.Type, scales []float32) (*Features, error) {
	if rows < 0 || dim < 0 || len(data) != rows*dim*t.Size() {
		return nil, fmt.Errorf("features: %d bytes are not %d × %d of %s", len(data), rows, dim, t)
	}
	if (t == dtype.Int8) != (scales != nil) || scales != nil && len(scales) != rows {
		return nil, fmt.Errorf("features: %d scales for %d rows of %s", len(scales), rows, t)
	}
	return &Features{Rows: rows, Dim: dim, Type: t, name: "features", data: data, scales: scales}, nil
}

// SparseFeatures wraps a sparse matrix, which it keeps.
func SparseFeatures(m *sparse.Matrix) *Features {
	return &Features{Rows: m.NumRows, Dim: m.NumCols, Type: dtype.Float32, name: "features", sparse: m}
}

// RowBytes returns the bytes of one row in storage, without a scale.
func (f *Features) RowBytes() int { return f.Dim * f.Type.Size() }

// Bytes returns the whole table where it lies in memory densely, else nil. It
// has not been checked; ReadRows and CheckFinite do that.
func (f *Features) Bytes() []byte { return f.data }

// Sparse returns the sparse matrix where the features are sparse, else nil. It
// has not been checked for NaN; CheckFinite does that.
func (f *Features) Sparse() *sparse.Matrix { return f.sparse }

// File returns the path of the file and the byte at which the row-major,
// little-endian table begins in it. ok is false where there is no such file.
func (f *Features) File() (path string, offset int64, ok bool) {
	return f.path, f.offset, f.path != ""
}

// Scales returns one factor per row for Int8 tables, else nil. The slice
// aliases f.
func (f *Features) Scales() []float32 { return f.scales }

// chunkBytes bounds the work between two looks at the context.
const chunkBytes = 4 << 20

// ReadRows copies rows [lo, hi) as stored to dst, which holds (hi-lo) ×
// RowBytes bytes: little-endian, row-major. It may be called by several
// goroutines at once.
func (f *Features) ReadRows(ctx context.Context, lo, hi int, dst []byte) error {
	rb := f.RowBytes()
	if lo < 0 || hi < lo || hi > f.Rows || len(dst) < (hi-lo)*rb {
		return fmt.Errorf("%s: rows [%d, %d) into %d bytes: there are %d rows of %d bytes", f.name, lo, hi, len(dst), f.Rows, rb)
	}
	step := max(1, chunkBytes/max(1, rb))
	for ; lo < hi; lo += step {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(step, hi-lo)
		part := dst[:n*rb]
		dst = dst[n*rb:]
		switch {
		case f.sparse != nil:
			row := make([]float32, f.Dim)
			for r := range n {
				f.sparse.Dense(row, lo+r)
				f.Type.Narrow(part[r*rb:], row)
			}
		case f.file != nil:
			if err := f.file.readRows(lo, lo+n, part); err != nil {
				return err
			}
		default:
			copy(part, f.data[lo*rb:(lo+n)*rb])
		}
		if err := f.checkRows(lo, n, part); err != nil {
			return err
		}
	}
	return nil
}

// Float32Rows writes rows [lo, hi), widened to float32, to dst, which holds
// (hi-lo) × Dim values.
func (f *Features) Float32Rows(ctx context.Context, lo, hi int, dst []float32) error {
	if lo < 0 || hi < lo || hi > f.Rows || len(dst) < (hi-lo)*f.Dim {
		return fmt.Errorf("%s: rows [%d, %d) into %d values: there are %d rows of %d values", f.name, lo, hi, len(dst), f.Rows, f.Dim)
	}
	if f.Dim == 0 || lo == hi {
		return nil
	}
	if f.Type == dtype.Float32 {
		return f.ReadRows(ctx, lo, hi, bytesOf(dst[:(hi-lo)*f.Dim]))
	}
	rb := f.RowBytes()
	step := max(1, chunkBytes/rb)
	buf := make([]byte, min(step, hi-lo)*rb)
	for ; lo < hi; lo += step {
		n := min(step, hi-lo)
		if err := f.ReadRows(ctx, lo, lo+n, buf[:n*rb]); err != nil {
			return err
		}
		for r := range n {
			s := float32(1)
			if f.scales != nil {
				s = f.scales[lo+r]
			}
			f.Type.Widen(dst[:f.Dim], buf[r*rb:], s)
			dst = dst[f.Dim:]
		}
	}
	return nil
}

func (f *Features) checkRows(lo, n int, b []byte) error {
	if f.scales != nil {
		for r, s := range f.scales[lo : lo+n] {
			if s-s != 0 {
				return usageErrorf("%s: row %d has the scale %v: want a finite number", f.name, lo+r, s)
			}
		}
	}
	i := firstNotFinite(f.Type, b)
	if i < 0 {
		return nil
	}
	var v [1]float32
	f.Type.Widen(v[:], b[i*f.Type.Size():], 1)
	return f.notFinite(lo+i/f.Dim, i%f.Dim, v[0])
}

func (f *Features) notFinite(row, col int, v float32) error {
	return usageErrorf("%s: row %d, column %d is %v: replace it by a finite number", f.name, row, col, v)
}
