// Package metric measures how good predictions are.
package metric

import "zerogcn/model/op"

// Accuracy is the name of the share of nodes whose class is predicted.
const Accuracy = "accuracy"

// Argmax returns the position of the largest value, the first on ties; NaN is
// never the largest.
func Argmax(row []float32) int {
	best := 0
	for i, v := range row {
		if v > row[best] || v == v && row[best] != row[best] {
			best = i
		}
	}
	return best
}

// AccuracyOf returns the share of the given rows whose largest output is that of
// their class, among those that have one; 0 if none has. out has a row per class
// entry.
func AccuracyOf(out op.Value, class []int32, rows []int32) float64 {
	right, n := 0, 0
	for _, r := range rows {
		c := class[r]
		if c < 0 {
			continue
		}
		n++
		if Argmax(out.Row(int(r))) == int(c) {
			right++
		}
	}
	if n == 0 {
		return 0
	}
	return float64(right) / float64(n)
}
