package datasets

import (
	"slices"
	"sort"

	"zerogcn/internal/npy"
	"zerogcn/internal/par"
	"zerogcn/sparse"
)

// maxFeatures bounds the columns of a feature matrix.
const maxFeatures = 1 << 24

// sparseParts makes a sparse matrix of the three arrays of a CSR matrix and its
// shape, and checks them against each other. Rows are put in order; a column
// that a row names twice counts with the sum, as in SciPy. Zeros are dropped.
// Without data every entry is 1.
func sparseParts(rows, cols int64, data, indices, indptr *npy.Array, w par.Workers) (*sparse.Matrix, error) {
	if cols < 0 || cols > maxFeatures {
		return nil, indptr.Errorf("%d columns: want 0 to %d", cols, maxFeatures)
	}
	if err := indptr.WantShape(rows + 1); err != nil {
		return nil, err
	}
	if err := indices.WantShape(-1); err != nil {
		return nil, err
	}
	ptr, err := npy.Read[int64](indptr, w)
	if err != nil {
		return nil, err
	}
	idx, err := npy.Read[int32](indices, w)
	if err != nil {
		return nil, err
	}
	val := slices.Repeat([]float32{1}, len(idx))
	if data != nil {
		if err := data.WantShape(indices.Shape[0]); err != nil {
			return nil, err
		}
		if val, err = npy.Read[float32](data, w); err != nil {
			return nil, err
		}
	}
	m := &sparse.Matrix{
		NumRows: int(rows), NumCols: int(cols), Indptr: make([]int64, 1, rows+1),
		Cols: make([]int32, 0, len(idx)), Vals: make([]float32, 0, len(idx)),
	}
	if err := checkOffsets(indptr, ptr, int64(len(idx))); err != nil {
		return nil, err
	}
	for r := range int(rows) {
		lo, hi := ptr[r], ptr[r+1]
		c, v := idx[lo:hi], val[lo:hi]
		for i, col := range c {
			if col < 0 || int64(col) >= cols {
				return nil, indices.Errorf("row %d names column %d: there are %d columns", r, col, cols)
			}
			if v[i]-v[i] != 0 {
				return nil, data.Errorf("row %d, column %d is %v: replace it by a finite number", r, col, v[i])
			}
		}
		if !slices.IsSorted(c) {
			sort.Stable(&entries{c, v})
		}
		for i := 0; i < len(c); {
			col, sum := c[i], v[i]
			for i++; i < len(c) && c[i] == col; i++ {
				sum += v[i]
			}
			if sum != 0 {
				m.Cols = append(m.Cols, col)
				m.Vals = append(m.Vals, sum)
			}
		}
		m.Indptr = append(m.Indptr, int64(len(m.Vals)))
	}
	return m, nil
}

// checkOffsets checks the offsets of rows into n entries.
func checkOffsets(from *npy.Array, ptr []int64, n int64) error {
	if ptr[0] != 0 || ptr[len(ptr)-1] != n {
		return from.Errorf("offsets run from %d to %d: want 0 to %d", ptr[0], ptr[len(ptr)-1], n)
	}
	for r := 1; r < len(ptr); r++ {
		if ptr[r] < ptr[r-1] || ptr[r] > n {
			return from.Errorf("offsets of row %d are %d and %d: want them to rise, up to %d", r-1, ptr[r-1], ptr[r], n)
		}
	}
	return nil
}

// entries sorts the columns of a row with their values.
type entries struct {
	c []int32
	v []float32
}

func (e *entries) Len() int           { return len(e.c) }
func (e *entries) Less(i, j int) bool { return e.c[i] < e.c[j] }
func (e *entries) Swap(i, j int) {
	e.c[i], e.c[j] = e.c[j], e.c[i]
	e.v[i], e.v[j] = e.v[j], e.v[i]
}
