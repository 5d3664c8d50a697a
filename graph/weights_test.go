package graph

import (
	"context"
	"slices"
	"testing"
)

func TestWeightTable(t *testing.T) {
	const unit = 1 << 31
	for name, c := range map[string]struct {
		g           CSR
		drop        bool
		want        []uint32
		positive    []int32
		allPositive bool
	}{
		"equal":      {g: CSR{[]int64{0, 4}, []int32{0, 0, 0, 0}, []float32{1, 1, 1, 1}}, want: []uint32{unit / 4, unit / 2, unit / 4 * 3, unit}, allPositive: true},
		"one":        {g: CSR{[]int64{0, 1}, []int32{0}, []float32{3e38}}, want: []uint32{unit}, allPositive: true},
		"zero":       {g: CSR{[]int64{0, 3}, []int32{0, 0, 0}, []float32{0, 2, 0}}, want: []uint32{0, unit, unit}, positive: []int32{1}},
		"all zero":   {g: CSR{[]int64{0, 2, 3}, []int32{0, 0, 1}, []float32{0, 0, 1}}, want: []uint32{0, 0, unit}, positive: []int32{0, 1}},
		"tiny":       {g: CSR{[]int64{0, 2}, []int32{0, 0}, []float32{1e-30, 1}}, want: []uint32{1, 1 + unit}, allPositive: true},
		"subnormal":  {g: CSR{[]int64{0, 1}, []int32{0}, []float32{1e-45}}, want: []uint32{unit}, allPositive: true},
		"self loops": {g: CSR{[]int64{0, 2, 4}, []int32{0, 1, 0, 1}, []float32{5, 1, 1, 5}}, drop: true, want: []uint32{0, unit, unit, unit}, positive: []int32{1, 1}},
	} {
		got, err := NewWeightTable(context.Background(), &c.g, c.drop, 1)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Cumulative, c.want) || (got.Positive == nil) != c.allPositive || !slices.Equal(got.Positive, c.positive) {
			t.Errorf("%s: %+v, want %v and %v", name, got, c.want, c.positive)
		}
	}
}

func TestRankOrder(t *testing.T) {
	inOrder := []ranked{{1, 1 << 31, 9}, {1, 5, 0}, {2, 10, 1}, {3, 15, 2}, {1, 1, 3}, {1<<33 - 1, 1 << 31, 4}, {1<<33 - 1, 1, 5}}
	for i, a := range inOrder {
		for j, b := range inOrder {
			if a.before(b) != (i < j) {
				t.Errorf("%v before %v: %v", a, b, a.before(b))
			}
		}
	}
}
