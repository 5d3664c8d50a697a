package op

import (
	"fmt"

	"gorgonia.org/tensor"
)

// Kind tells operations apart.
type Kind uint8

// The kinds. Operands are given in order; "grad" kinds exist for the backward
// pass only and are not differentiable again.
const (
	Invalid Kind = iota

	// Copy(x): a copy. Programs add it where an output must have memory of its own.
	Copy
	// Add(a, b) = a + b.
	Add
	// MatMul(a, b) = op(a)·op(b), op transposing where TransA, TransB say so.
	MatMul
	// BiasAdd(x, b): adds vector b to each row.
	BiasAdd
	// ColSum(x): the vector of column sums.
	ColSum
	// ReLU(x) = max(x, 0).
	ReLU
	// ReLUGrad(y, dy): dy where the output y of ReLU is positive, else 0.
	ReLUGrad
	// Dropout(x, key): x/(1-P) where the keyed draw keeps it, else 0. Its own
	// derivative: the same mask on the gradient.
	Dropout
	// Aggregate(x, block): for each target a combination of its sources' rows,
	// as Agg says.
	Aggregate
	// AggregateGrad(dy, block): the gradient of Aggregate with respect to x. The
	// block must have its transposed form.
	AggregateGrad
	// AggregateMax(x, block): for each target and column the largest value of its
	// sources' rows, 0 without sources.
	AggregateMax
	// AggregateMaxGrad(x, y, dy, block): the gradient of AggregateMax, whose
	// result is y, with respect to x. Sources that tie for a maximum share its
	// gradient equally. The block must have its transposed form.
	AggregateMaxGrad
	// Head(x, block): the targets' own rows, the first NumDst of x.
	Head
	// HeadGrad(dy, block): dy above NumSrc-NumDst rows of zeros.
	HeadGrad
	// SparseLinear(x, w, key) = dropout(x)·wᵀ for sparse x and w [out, in]; the
	// mask is Dropout's.
	SparseLinear
	// SparseLinearGrad(x, dy, key) = dyᵀ·dropout(x), the gradient with respect
	// to w.
	SparseLinearGrad
	// SoftmaxCE(logits, labels): cross-entropy summed over labelled rows,
	// divided by Labels.Count.
	SoftmaxCE
	// SoftmaxCEGrad(logits, labels, g): g × the gradient of SoftmaxCE.
	SoftmaxCEGrad
	// SigmoidBCE(logits, labels): binary cross-entropy of each known label of
	// Labels.Multi, summed and divided by Labels.Count.
	SigmoidBCE
	// SigmoidBCEGrad(logits, labels, g): g × the gradient of SigmoidBCE.
	SigmoidBCEGrad

	numKinds
)

// String returns the kind's name.
func (k Kind) String() string {
	if k < numKinds {
		return specs[k].name
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Kinds lists every kind, for conformance suites.
func Kinds() []Kind {
	ks := make([]Kind, 0, numKinds)
	for k := Invalid + 1; k < numKinds; k++ {
		ks = append(ks, k)
	}
	return ks
}

// Agg says how Aggregate combines. For target i let there be k sampled edges
// (repeats count), s the factor that makes sums over the sample estimate full
// sums (the edge's EdgeScale, else the target's Scale, else 1), d its full
// in-degree (the block's Degree, else k) and D = d+1.
type Agg uint8

// The aggregators.
const (
	// Mean: 1/k Σ x_j, 0 if k is 0 (GraphSAGE, Hamilton et al., NeurIPS 2017).
	Mean Agg = iota
	// Sum: Σ s·x_j.
	Sum
	// SelfMean: (Σ s·x_j + x_i)/D: GraphSAGE's "gcn" aggregator (section 3.3,
	// equation 2) and GCN with row normalisation.
	SelfMean
	// SymNorm: Σ s·x_j/√(D_i·D_j) + x_i/D_i (GCN, Kipf and Welling, ICLR 2017,
	// equation 2). Needs the block's Degree.
	SymNorm
)

var aggNames = [...]string{"mean", "sum", "self-mean", "sym-norm"}

func (a Agg) String() string {
	if int(a) < len(aggNames) {
		return aggNames[a]
	}
	return fmt.Sprintf("Agg(%d)", uint8(a))
}

// Attr holds the attributes of an operation; each kind uses those that its
// description names. Two ops are the same operation if kind and Attr are equal.
type Attr struct {
	TransA, TransB bool
	P              float64 // drop probability, in [0, 1)
	Site           uint32  // dropout site, unique in a model
	Agg            Agg
	Rows           int // placeholder for the number of rows of the result
	Cols           int // columns of the result, where operands do not tell
}

// operand is what an operand or result is.
type operand uint8

const (
	matrix operand = iota
	vector
	scalar
	blockOperand
	labelOperand
	keyOperand
	sparseOperand
)

// spec is what the package knows of a kind.
type spec struct {
	name    string
	in      []operand
	out     operand
	diff    []bool // which operands have a gradient
	inPlace bool   // the result may overwrite operand 0
	// shape is the static rule, over Gorgonia's placeholder shapes.
	shape func(a Attr, in []tensor.Shape) tensor.Shape
	// infer is the run-time rule; it checks that operands fit each other.
	infer func(a Attr, in []*Value) (rows, cols int, err error)
	ref   func(a Attr, out *Value, in []*Value)
}
