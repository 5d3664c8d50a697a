// Package metric measures how good predictions are.
package metric

import "zerogcn/model/op"

// Accuracy is the name of the share of nodes whose class is predicted.
const Accuracy = "accuracy"

// MicroF1 is the name of the F1 score over all known labels of all nodes.
const MicroF1 = "micro_f1"

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

// MicroF1Of returns the F1 score of the labels that are predicted, those with a
// positive output, over all known labels of the given rows taken together:
// 2·TP/(2·TP + FP + FN), 0 if there are neither labels nor predictions. labels has
// one entry per output, 0, 1 or op.Unknown.
func MicroF1Of(out op.Value, labels []uint8, rows []int32) float64 {
	var tp, wrong int
	for _, r := range rows {
		row := out.Row(int(r))
		for j, y := range labels[int(r)*out.Cols : (int(r)+1)*out.Cols] {
			switch yes := row[j] > 0; {
			case y == op.Unknown:
			case yes && y == 1:
				tp++
			case yes != (y == 1):
				wrong++
			}
		}
	}
	if tp == 0 {
		return 0
	}
	return 2 * float64(tp) / float64(2*tp+wrong)
}
