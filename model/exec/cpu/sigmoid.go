package cpu

import (
	"math"

	"zerogcn/internal/par"
	"zerogcn/model/op"
)

// sigmoidLoss sums the binary cross-entropy of each tile's known labels and the
// tiles' sums, in their order, in float64.
type sigmoidLoss struct {
	workers  par.Workers
	logits   []float32
	labels   []uint8
	partials []float64
	tileFn   func(t, lo, hi int)
}

func newSigmoidLoss(w par.Workers) *sigmoidLoss {
	k := &sigmoidLoss{workers: w}
	k.tileFn = k.tile
	return k
}

// sigmoidGrain is the elements of a tile; an exponential and a logarithm cost as
// much as twenty additions.
const sigmoidGrain = grain / 20

func (k *sigmoidLoss) Run(out *op.Value, in []*op.Value) error {
	l := in[1].Labels
	n := in[0].Len()
	k.logits, k.labels = in[0].Data[:n], l.Multi
	k.partials = grow(k.partials, par.Tiles(n, sigmoidGrain))
	k.workers.Range(n, sigmoidGrain, k.tileFn)
	var loss float64
	for _, p := range k.partials {
		loss += p
	}
	if n := l.Count(); n > 0 {
		loss /= n
	}
	out.Data[0] = float32(loss)
	k.logits, k.labels = nil, nil
	return nil
}

func (k *sigmoidLoss) tile(t, lo, hi int) {
	var s float64
	for i, y := range k.labels[lo:hi] {
		if y != op.Unknown {
			x := float64(k.logits[lo+i])
			s += max(x, 0) - x*float64(y) + math.Log1p(math.Exp(-math.Abs(x)))
		}
	}
	k.partials[t] = s
}

// sigmoidGrad writes factor·(sigmoid − label), 0 where the label is not known.
// The result may overwrite the logits.
type sigmoidGrad struct {
	workers     par.Workers
	out, logits []float32
	labels      []uint8
	factor      float64
	tileFn      func(t, lo, hi int)
}

func newSigmoidGrad(w par.Workers) *sigmoidGrad {
	k := &sigmoidGrad{workers: w}
	k.tileFn = k.tile
	return k
}

func (k *sigmoidGrad) Run(out *op.Value, in []*op.Value) error {
	l, n := in[1].Labels, out.Len()
	k.out, k.logits, k.labels = out.Data[:n], in[0].Data[:n], l.Multi
	// Where the count is 0 no label is known, and none uses the factor.
	k.factor = float64(in[2].Data[0]) / l.Count()
	k.workers.Range(n, sigmoidGrain, k.tileFn)
	k.out, k.logits, k.labels = nil, nil, nil
	return nil
}

func (k *sigmoidGrad) tile(_, lo, hi int) {
	for i := lo; i < hi; i++ {
		y := k.labels[i]
		if y == op.Unknown {
			k.out[i] = 0
			continue
		}
		k.out[i] = float32(k.factor * (1/(1+math.Exp(-float64(k.logits[i]))) - float64(y)))
	}
}
