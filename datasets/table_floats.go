package datasets

import (
	"bytes"
	"context"
	"io"
	"math"
	"slices"

	"zerogcn/dtype"
)

// floatTable is a table of numbers in memory, row-major, in pieces of whole
// rows, so that it grows without being copied: at its largest it takes no more
// than its values do.
type floatTable struct {
	table
	per    int // rows of a piece, all but the last are full
	pieces [][]float32
}

// pieceBytes is the size of a piece, if a row is not larger.
const pieceBytes = 4 << 20

// row returns row i, which aliases the table.
func (f *floatTable) row(i int) []float32 {
	p := f.pieces[i/f.per]
	i %= f.per
	return p[i*f.cols : (i+1)*f.cols]
}

// grow returns the place of the next row; the caller counts it in rows.
func (f *floatTable) grow() []float32 {
	if f.per == 0 {
		f.per = max(1, pieceBytes/(4*f.cols))
	}
	if f.rows/f.per == len(f.pieces) {
		f.pieces = append(f.pieces, make([]float32, f.per*f.cols))
	}
	return f.row(f.rows)
}

// all returns the whole table as one slice, copied unless it is one piece.
func (f *floatTable) all() []float32 {
	n := f.rows * f.cols
	if len(f.pieces) == 1 {
		return f.pieces[0][:n]
	}
	out := make([]float32, 0, n)
	for _, p := range f.pieces {
		out = append(out, p[:min(len(p), n-len(out))]...)
	}
	return out
}

// readRows lets the table stand for a file of features.
func (f *floatTable) readRows(lo, hi int, dst []byte) error {
	for lo < hi {
		n := min(hi-lo, f.per-lo%f.per)
		from := bytesOf(f.pieces[lo/f.per])[4*f.cols*(lo%f.per):]
		copy(dst, from[:4*f.cols*n])
		dst = dst[4*f.cols*n:]
		lo += n
	}
	return nil
}

// features makes Features of the table, which they keep.
func (f *floatTable) features() *Features {
	x := &Features{Rows: f.rows, Dim: f.cols, Type: dtype.Float32, name: f.name}
	if len(f.pieces) == 1 {
		x.data = bytesOf(f.all())
	} else {
		x.file = f
	}
	return x
}

// readFloatTable reads a text file of numbers, packed or not.
func readFloatTable(ctx context.Context, path string, cell cellReader) (*floatTable, error) {
	f, err := openText(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return parseFloats(ctx, path, f, cell)
}

// cellReader reads one cell, or says what is wrong with it.
type cellReader func(b []byte) (float32, string)

// finiteCell reads a finite number.
func finiteCell(b []byte) (float32, string) {
	v, err := parseFloat32(b)
	if err != nil || v-v != 0 {
		return 0, "is not a finite number"
	}
	return v, ""
}

// labelCell reads a number, or NaN where there is none.
func labelCell(b []byte) (float32, string) {
	if v, err := parseFloat32(b); err == nil && !math.IsInf(float64(v), 0) {
		return v, ""
	}
	if len(b) == 0 {
		return float32(math.NaN()), ""
	}
	return 0, "is not a number"
}

// parseFloats reads a table of numbers, in the order of the nodes.
func parseFloats(ctx context.Context, name string, r io.Reader, cell cellReader) (*floatTable, error) {
	t := newTableReader(name, r)
	f := &floatTable{table: t.table}
	sep := byte(' ')
	for {
		line, err := t.lines.filled(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if t.rows > 0 && !t.byID && floatRow(line, sep, f.grow()) {
			t.rows++
			f.rows++
			continue
		}
		row, err := t.cells(line)
		if err != nil {
			return nil, err
		}
		if row == nil {
			continue
		}
		if t.rows == 0 {
			f.cols = t.cols
			if i := bytes.IndexAny(line, ",;\t"); i >= 0 {
				sep = line[i]
			}
		}
		to := f.grow()
		for c, b := range row {
			v, wrong := cell(b)
			if wrong != "" {
				return nil, t.lines.faultf("column %d: %.40q %s", c+1, b, wrong)
			}
			to[c] = v
		}
		t.rows++
		f.rows++
	}
	if err := t.end(); err != nil {
		return nil, err
	}
	to, err := t.places()
	if err != nil || to == nil {
		return f, err
	}
	sorted := &floatTable{table: f.table, per: f.per}
	for _, p := range f.pieces {
		sorted.pieces = append(sorted.pieces, slices.Clone(p))
	}
	for i, v := range to {
		copy(sorted.row(int(v)), f.row(i))
	}
	return sorted, nil
}

// floatRow reads a row of plain decimal numbers with one separator between two.
// What it cannot read, it leaves: false.
func floatRow(line []byte, sep byte, to []float32) bool {
	last := len(to) - 1
	for c := range to {
		if c < last && len(line) > 1 && line[1] == sep && line[0]-'0' <= 9 {
			to[c] = float32(line[0] - '0')
			line = line[2:]
			continue
		}
		v, n := cutFloat(line)
		if n == 0 {
			return false
		}
		to[c] = v
		line = line[n:]
		if c == last {
			break
		}
		if len(line) == 0 || line[0] != sep {
			return false
		}
		for line = line[1:]; len(line) > 0 && line[0] == ' '; line = line[1:] {
		}
	}
	return len(line) == 0
}
