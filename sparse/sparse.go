// Package sparse holds feature matrices that are mostly zero as compressed
// rows: Cora's bag of words has 1.3 % non-zeros, and the facebook page graph
// would take 424 MB densely.
package sparse

import (
	"fmt"
	"math"
)

// Matrix is a sparse row-major matrix in CSR form. Row r holds the values
// Vals[Indptr[r]:Indptr[r+1]] in the columns Cols[…], ascending and unique.
// Indptr[0] is 0. A Matrix is read-only once shared.
type Matrix struct {
	NumRows, NumCols int
	Indptr           []int64
	Cols             []int32
	Vals             []float32
}

// NNZ returns the number of stored entries.
func (m *Matrix) NNZ() int { return len(m.Vals) }

// Row returns the columns and values of row r, which alias m.
func (m *Matrix) Row(r int) ([]int32, []float32) {
	lo, hi := m.Indptr[r], m.Indptr[r+1]
	return m.Cols[lo:hi], m.Vals[lo:hi]
}

// Validate checks every invariant of the type; its error names the first
// offending row.
func (m *Matrix) Validate() error {
	if m.NumRows < 0 || m.NumCols < 0 || len(m.Indptr) != m.NumRows+1 {
		return fmt.Errorf("sparse: %d rows × %d columns with %d offsets", m.NumRows, m.NumCols, len(m.Indptr))
	}
	if len(m.Cols) != len(m.Vals) || m.Indptr[0] != 0 || m.Indptr[m.NumRows] != int64(len(m.Vals)) {
		return fmt.Errorf("sparse: offsets run from %d to %d, but there are %d columns and %d values",
			m.Indptr[0], m.Indptr[m.NumRows], len(m.Cols), len(m.Vals))
	}
	for r := range m.NumRows {
		if m.Indptr[r+1] < m.Indptr[r] || m.Indptr[r+1] > int64(len(m.Vals)) {
			return fmt.Errorf("sparse: row %d: offsets %d, %d are not ascending", r, m.Indptr[r], m.Indptr[r+1])
		}
		cols, _ := m.Row(r)
		last := int32(-1)
		for _, c := range cols {
			if c <= last || int(c) >= m.NumCols {
				return fmt.Errorf("sparse: row %d: column %d after %d, with %d columns", r, c, last, m.NumCols)
			}
			last = c
		}
	}
	return nil
}

// Gather writes rows ids of m into dst, whose slices are reused and grown as
// needed. ids must be in range.
func (m *Matrix) Gather(dst *Matrix, ids []int32) {
	dst.NumRows, dst.NumCols = len(ids), m.NumCols
	dst.Indptr = append(dst.Indptr[:0], 0)
	dst.Cols, dst.Vals = dst.Cols[:0], dst.Vals[:0]
	for _, id := range ids {
		c, v := m.Row(int(id))
		dst.Cols = append(dst.Cols, c...)
		dst.Vals = append(dst.Vals, v...)
		dst.Indptr = append(dst.Indptr, int64(len(dst.Vals)))
	}
}

// NormalizeRows divides each row by the sum of its values, in place, as graph
// convolutional networks do with bags of words (Kipf and Welling, ICLR 2017,
// section 5.2). Rows whose sum is zero stay as they are.
func (m *Matrix) NormalizeRows() {
	for r := range m.NumRows {
		_, v := m.Row(r)
		NormalizeRow(v)
	}
}

// NormalizeRow divides v by its sum, in place, unless the sum is zero or not
// finite.
func NormalizeRow(v []float32) {
	var sum float64
	for _, x := range v {
		sum += float64(x)
	}
	if sum == 0 || math.IsNaN(sum) || math.IsInf(sum, 0) {
		return
	}
	inv := float32(1 / sum)
	for i := range v {
		v[i] *= inv
	}
}

// FromDense keeps the non-zeros of a row-major rows × cols matrix.
func FromDense(x []float32, rows, cols int) *Matrix {
	m := &Matrix{NumRows: rows, NumCols: cols, Indptr: make([]int64, 1, rows+1)}
	for r := range rows {
		m.AppendDense(x[r*cols : (r+1)*cols])
	}
	m.NumRows = rows
	return m
}

// AppendDense adds one row, given densely, below the rows stored so far.
func (m *Matrix) AppendDense(row []float32) {
	if len(m.Indptr) == 0 {
		m.Indptr = append(m.Indptr, 0)
	}
	for c, v := range row {
		if v != 0 {
			m.Cols = append(m.Cols, int32(c))
			m.Vals = append(m.Vals, v)
		}
	}
	m.Indptr = append(m.Indptr, int64(len(m.Vals)))
	m.NumRows = len(m.Indptr) - 1
}

// Dense writes row r into dst, which has NumCols elements.
func (m *Matrix) Dense(dst []float32, r int) {
	clear(dst[:m.NumCols])
	cols, vals := m.Row(r)
	for i, c := range cols {
		dst[c] = vals[i]
	}
}
