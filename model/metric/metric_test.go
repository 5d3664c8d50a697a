package metric_test

import (
	"math"
	"testing"

	"zerogcn/internal/golden"
	"zerogcn/model/metric"
	"zerogcn/model/op"
)

func TestArgmax(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		row  []float32
		want int
	}{{[]float32{1}, 0}, {[]float32{1, 3, 3}, 1}, {[]float32{-2, -1}, 1}, {[]float32{nan, 1, 2}, 2}, {[]float32{1, nan}, 0}, {[]float32{nan, nan}, 0}} {
		if got := metric.Argmax(c.row); got != c.want {
			t.Errorf("Argmax(%v) = %d, want %d", c.row, got, c.want)
		}
	}
}

func TestAccuracy(t *testing.T) {
	out := op.Matrix(4, 2, []float32{1, 0, 0, 1, 1, 0, 0, 1})
	class := []int32{0, 0, -1, 1}
	if got := metric.AccuracyOf(out, class, []int32{0, 1, 2, 3}); got != 2.0/3 {
		t.Errorf("accuracy %g, want 2/3: the unlabelled row does not count", got)
	}
	if got := metric.AccuracyOf(out, class, []int32{2}); got != 0 {
		t.Errorf("accuracy of no labelled row is %g", got)
	}
}

func TestGolden(t *testing.T) {
	c := golden.Load(t, "metrics/classification")
	shape := c.Inputs["logits"].Shape
	out := op.Matrix(shape[0], shape[1], c.Float32s(t, c.Inputs["logits"]))
	var class, rows []int32
	for i, y := range c.Ints(t, c.Inputs["y"]) {
		class, rows = append(class, int32(y)), append(rows, int32(i))
	}
	if got, want := metric.AccuracyOf(out, class, rows), c.Value(t, "accuracy"); math.Abs(got-want) > 1e-12 {
		t.Errorf("accuracy %v, want %v", got, want)
	}
}

func TestMicroF1Golden(t *testing.T) {
	c := golden.Load(t, "metrics/classification")
	shape := c.Inputs["ml_logits"].Shape
	out := op.Matrix(shape[0], shape[1], c.Float32s(t, c.Inputs["ml_logits"]))
	var labels []uint8
	var rows []int32
	for _, y := range c.Ints(t, c.Inputs["ml_y"]) {
		labels = append(labels, uint8(y))
	}
	for r := range shape[0] {
		rows = append(rows, int32(r))
	}
	if got, want := metric.MicroF1Of(out, labels, rows), c.Value(t, "ml_micro_f1"); math.Abs(got-want) > 1e-12 {
		t.Errorf("micro F1 %v, want %v", got, want)
	}
}

func TestMicroF1(t *testing.T) {
	out := op.Matrix(2, 3, []float32{1, -1, 2, -1, 1, -1})
	labels := []uint8{1, 1, op.Unknown, 0, 1, 1}
	// Row 0: one right, one missed, one not known; row 1: one right, one missed.
	if got := metric.MicroF1Of(out, labels, []int32{0, 1}); got != 4.0/6 {
		t.Errorf("micro F1 %v, want 2/3", got)
	}
	if got := metric.MicroF1Of(out, make([]uint8, 6), nil); got != 0 {
		t.Errorf("micro F1 of nothing is %v", got)
	}
}
