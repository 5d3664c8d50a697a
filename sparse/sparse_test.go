package sparse

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestDenseRoundTripAndGather(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, cols := rapid.IntRange(0, 20).Draw(t, "rows"), rapid.IntRange(1, 9).Draw(t, "cols")
		x := rapid.SliceOfN(rapid.SampledFrom([]float32{0, 0, 0, 1, -2.5}), rows*cols, rows*cols).Draw(t, "x")
		m := FromDense(x, rows, cols)
		if err := m.Validate(); err != nil {
			t.Fatal(err)
		}
		row := make([]float32, cols)
		for r := range rows {
			if m.Dense(row, r); !slices.Equal(row, x[r*cols:(r+1)*cols]) {
				t.Fatalf("row %d is %v", r, row)
			}
		}
		if rows == 0 {
			return
		}
		ids := rapid.SliceOf(rapid.Int32Range(0, int32(rows-1))).Draw(t, "ids")
		var g Matrix
		m.Gather(&g, ids)
		if err := g.Validate(); err != nil {
			t.Fatal(err)
		}
		for i, id := range ids {
			if g.Dense(row, i); !slices.Equal(row, x[int(id)*cols:(int(id)+1)*cols]) {
				t.Fatalf("gathered row %d is %v", i, row)
			}
		}
	})
}

func TestNormalizeRows(t *testing.T) {
	m := FromDense([]float32{1, 0, 3, 0, 0, 0, 1, -1, 0}, 3, 3)
	m.NormalizeRows()
	want := []float32{0.25, 0.75, 1, -1} // the empty row and the row of sum zero stay
	if !slices.Equal(m.Vals, want) {
		t.Errorf("values %v, want %v", m.Vals, want)
	}
}

func TestValidate(t *testing.T) {
	for name, m := range map[string]*Matrix{
		"offsets":    {NumRows: 2, NumCols: 2, Indptr: []int64{0, 1}},
		"descending": {NumRows: 2, NumCols: 2, Indptr: []int64{0, 2, 1}, Cols: []int32{0}, Vals: []float32{1}},
		"past end":   {NumRows: 2, NumCols: 2, Indptr: []int64{0, 9, 1}, Cols: []int32{0}, Vals: []float32{1}},
		"column":     {NumRows: 1, NumCols: 2, Indptr: []int64{0, 1}, Cols: []int32{2}, Vals: []float32{1}},
		"twice":      {NumRows: 1, NumCols: 2, Indptr: []int64{0, 2}, Cols: []int32{1, 1}, Vals: []float32{1, 1}},
		"lengths":    {NumRows: 1, NumCols: 2, Indptr: []int64{0, 1}, Cols: []int32{1}},
	} {
		if m.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
