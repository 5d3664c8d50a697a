package cpu

import (
	"fmt"
	"math"

	"zerogcn/internal/par"
	"zerogcn/model/op"
)

// softmaxLoss sums the cross-entropy of each tile's rows and the tiles' sums, in
// their order, in float64.
type softmaxLoss struct {
	workers  par.Workers
	logits   *op.Value
	labels   *op.Labels
	partials []float64
	tileFn   func(t, lo, hi int)
}

func newSoftmaxLoss(w par.Workers) *softmaxLoss {
	k := &softmaxLoss{workers: w}
	k.tileFn = k.tile
	return k
}

func (k *softmaxLoss) Run(out *op.Value, in []*op.Value) error {
	k.logits, k.labels = in[0], in[1].Labels
	if err := checkLabels(k.labels, k.logits.Cols); err != nil {
		return err
	}
	rows := k.logits.Rows
	size := softmaxRows(k.logits)
	k.partials = grow(k.partials, par.Tiles(rows, size))
	k.workers.Range(rows, size, k.tileFn)
	var loss float64
	for _, p := range k.partials {
		loss += p
	}
	if n := k.labels.Count(); n > 0 {
		loss /= n
	}
	out.Data[0] = float32(loss)
	k.logits, k.labels = nil, nil
	return nil
}

// checkLabels reports a class that the logits do not have.
func checkLabels(l *op.Labels, classes int) error {
	for r, c := range l.Class {
		if int(c) >= classes {
			return fmt.Errorf("row %d has label %d, but there are %d classes", r, c, classes)
		}
	}
	return nil
}

// softmaxRows returns the rows of a tile; an exponential costs as much as ten
// additions.
func softmaxRows(logits *op.Value) int { return rowsPer(logits.Rows, 10*logits.Len()) }

func (k *softmaxLoss) tile(t, lo, hi int) {
	var s float64
	for r := lo; r < hi; r++ {
		if c := k.labels.Class[r]; c >= 0 {
			row := k.logits.Row(r)
			s += logSumExp(row) - float64(row[c])
		}
	}
	k.partials[t] = s
}

// logSumExp returns log Σ exp(row) without overflow.
func logSumExp(row []float32) float64 {
	top := largest(row)
	var s float64
	for _, v := range row {
		s += math.Exp(float64(v) - top)
	}
	return top + math.Log(s)
}

// largest returns the largest element that is not NaN.
func largest(row []float32) float64 {
	top := float32(math.Inf(-1))
	for _, v := range row {
		if v > top {
			top = v
		}
	}
	return float64(top)
}

// softmaxGrad writes scale·(softmax − onehot) for labelled rows and zeros for
// the others. The result may overwrite the logits.
type softmaxGrad struct {
	workers     par.Workers
	out, logits *op.Value
	labels      *op.Labels
	factor      float64
	tileFn      func(t, lo, hi int)
}

func newSoftmaxGrad(w par.Workers) *softmaxGrad {
	k := &softmaxGrad{workers: w}
	k.tileFn = k.tile
	return k
}

func (k *softmaxGrad) Run(out *op.Value, in []*op.Value) error {
	k.out, k.logits, k.labels = out, in[0], in[1].Labels
	if err := checkLabels(k.labels, out.Cols); err != nil {
		return err
	}
	// Where the count is 0 no row is labelled, and none uses the factor.
	k.factor = float64(in[2].Data[0]) / k.labels.Count()
	k.workers.Range(out.Rows, softmaxRows(out), k.tileFn)
	k.out, k.logits, k.labels = nil, nil, nil
	return nil
}

func (k *softmaxGrad) tile(_, lo, hi int) {
	for r := lo; r < hi; r++ {
		dst := k.out.Row(r)
		class := k.labels.Class[r]
		if class < 0 {
			clear(dst)
			continue
		}
		// Each logit is read before its place in dst is written, which may be
		// the same.
		top := largest(k.logits.Row(r))
		var sum float64
		for j, v := range k.logits.Row(r) {
			e := math.Exp(float64(v) - top)
			sum += e
			dst[j] = float32(e)
		}
		for j, e := range dst {
			p := float64(e) / sum
			if int32(j) == class {
				p--
			}
			dst[j] = float32(k.factor * p)
		}
	}
}
