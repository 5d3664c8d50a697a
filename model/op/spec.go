package op

import (
	"fmt"

	"gorgonia.org/tensor"
)

// specs is the table of all kinds, indexed by Kind; never written. Derivatives
// are in SymDiff: they build ops, which look this table up.
var specs = [numKinds]spec{
	Invalid: {name: "Invalid"},
	Copy: {name: "Copy", in: []operand{matrix}, out: matrix, diff: []bool{true}, inPlace: false,
		shape: shapeOf0, infer: inferOf0, ref: refCopy},
	Add: {name: "Add", in: []operand{matrix, matrix}, out: matrix, diff: []bool{true, true}, inPlace: true,
		shape: shapeOf0, infer: inferSame, ref: refAdd},
	MatMul: {name: "MatMul", in: []operand{matrix, matrix}, out: matrix, diff: []bool{true, true},
		shape: shapeMatMul, infer: inferMatMul, ref: refMatMul},
	BiasAdd: {name: "BiasAdd", in: []operand{matrix, vector}, out: matrix, diff: []bool{true, true}, inPlace: true,
		shape: shapeOf0, infer: inferBias, ref: refBias},
	ColSum: {name: "ColSum", in: []operand{matrix}, out: vector, diff: []bool{false},
		shape: func(_ Attr, in []tensor.Shape) tensor.Shape { return tensor.Shape{in[0][1]} },
		infer: func(_ Attr, in []*Value) (int, int, error) { return 1, in[0].Cols, nil }, ref: refColSum},
	ReLU: {name: "ReLU", in: []operand{matrix}, out: matrix, diff: []bool{true}, inPlace: true,
		shape: shapeOf0, infer: inferOf0, ref: refReLU},
	ReLUGrad: {name: "ReLUGrad", in: []operand{matrix, matrix}, out: matrix, diff: []bool{false, false}, inPlace: true,
		shape: shapeOf0, infer: inferSame, ref: refReLUGrad},
	Dropout: {name: "Dropout", in: []operand{matrix, keyOperand}, out: matrix, diff: []bool{true, false}, inPlace: true,
		shape: shapeOf0, infer: inferDropout, ref: refDropout},
	Aggregate: {name: "Aggregate", in: []operand{matrix, blockOperand}, out: matrix, diff: []bool{true, false},
		shape: shapeRows, infer: inferFromSrc, ref: refAggregate},
	AggregateGrad: {name: "AggregateGrad", in: []operand{matrix, blockOperand}, out: matrix, diff: []bool{false, false},
		shape: shapeRows, infer: inferFromDst, ref: refAggregateGrad},
	AggregateMax: {name: "AggregateMax", in: []operand{matrix, blockOperand}, out: matrix, diff: []bool{true, false},
		shape: shapeRows, infer: inferFromSrc, ref: refAggregateMax},
	AggregateMaxGrad: {name: "AggregateMaxGrad", in: []operand{matrix, matrix, matrix, blockOperand}, out: matrix, diff: []bool{false, false, false, false},
		shape: shapeOf0, infer: inferMaxGrad, ref: refAggregateMaxGrad},
	Head: {name: "Head", in: []operand{matrix, blockOperand}, out: matrix, diff: []bool{true, false},
		shape: shapeRows, infer: inferFromSrc, ref: refHead},
	HeadGrad: {name: "HeadGrad", in: []operand{matrix, blockOperand}, out: matrix, diff: []bool{false, false},
		shape: shapeRows, infer: inferFromDst, ref: refHeadGrad},
	SparseLinear: {name: "SparseLinear", in: []operand{sparseOperand, matrix, keyOperand}, out: matrix, diff: []bool{false, true, false},
		shape: func(a Attr, in []tensor.Shape) tensor.Shape { return tensor.Shape{a.Rows, in[1][0]} },
		infer: inferSparse, ref: refSparseLinear},
	SparseLinearGrad: {name: "SparseLinearGrad", in: []operand{sparseOperand, matrix, keyOperand}, out: matrix, diff: []bool{false, false, false},
		shape: func(a Attr, in []tensor.Shape) tensor.Shape { return tensor.Shape{in[1][1], a.Cols} },
		infer: inferSparseGrad, ref: refSparseLinearGrad},
	SoftmaxCE: {name: "SoftmaxCE", in: []operand{matrix, labelOperand}, out: scalar, diff: []bool{true, false},
		shape: func(Attr, []tensor.Shape) tensor.Shape { return tensor.ScalarShape() },
		infer: func(a Attr, in []*Value) (int, int, error) {
			_, _, err := inferLabelled(a, in)
			return 1, 1, err
		}, ref: refSoftmaxCE},
	SoftmaxCEGrad: {name: "SoftmaxCEGrad", in: []operand{matrix, labelOperand, scalar}, out: matrix, diff: []bool{false, false, false}, inPlace: true,
		shape: shapeOf0, infer: inferLabelled, ref: refSoftmaxCEGrad},
	SigmoidBCE: {name: "SigmoidBCE", in: []operand{matrix, labelOperand}, out: scalar, diff: []bool{true, false},
		shape: func(Attr, []tensor.Shape) tensor.Shape { return tensor.ScalarShape() },
		infer: func(a Attr, in []*Value) (int, int, error) {
			_, _, err := inferMultiLabelled(a, in)
			return 1, 1, err
		}, ref: refSigmoidBCE},
	SigmoidBCEGrad: {name: "SigmoidBCEGrad", in: []operand{matrix, labelOperand, scalar}, out: matrix, diff: []bool{false, false, false}, inPlace: true,
		shape: shapeOf0, infer: inferMultiLabelled, ref: refSigmoidBCEGrad},
}

func shapeOf0(_ Attr, in []tensor.Shape) tensor.Shape { return in[0].Clone() }

func shapeRows(a Attr, in []tensor.Shape) tensor.Shape { return tensor.Shape{a.Rows, in[0][1]} }

func shapeMatMul(a Attr, in []tensor.Shape) tensor.Shape {
	m, n := in[0][0], in[1][1]
	if a.TransA {
		m = in[0][1]
	}
	if a.TransB {
		n = in[1][0]
	}
	return tensor.Shape{m, n}
}

func inferOf0(_ Attr, in []*Value) (int, int, error) { return in[0].Rows, in[0].Cols, nil }

func inferSame(_ Attr, in []*Value) (int, int, error) {
	if in[0].Rows != in[1].Rows || in[0].Cols != in[1].Cols {
		return 0, 0, misfit(in[0], in[1])
	}
	return in[0].Rows, in[0].Cols, nil
}

func inferMatMul(a Attr, in []*Value) (int, int, error) {
	m, k, n := MatMulDims(a, in[0], in[1])
	k2 := in[1].Rows
	if a.TransB {
		k2 = in[1].Cols
	}
	if k != k2 {
		return 0, 0, misfit(in[0], in[1])
	}
	return m, n, nil
}

// MatMulDims returns m, k and n of the product [m, k]·[k, n] that MatMul makes
// of a and b.
func MatMulDims(t Attr, a, b *Value) (m, k, n int) {
	m, k, n = a.Rows, a.Cols, b.Cols
	if t.TransA {
		m, k = k, m
	}
	if t.TransB {
		n = b.Rows
	}
	return m, k, n
}

func inferBias(_ Attr, in []*Value) (int, int, error) {
	if in[1].Len() != in[0].Cols {
		return 0, 0, misfit(in[0], in[1])
	}
	return in[0].Rows, in[0].Cols, nil
}

func inferDropout(_ Attr, in []*Value) (int, int, error) {
	return in[0].Rows, in[0].Cols, in[1].Key.checkRows(in[0].Rows)
}

func inferFromSrc(a Attr, in []*Value) (int, int, error) {
	b := in[1].Block
	if in[0].Rows != b.NumSrc {
		return 0, 0, fmt.Errorf("matrix of %d rows for a block of %d sources", in[0].Rows, b.NumSrc)
	}
	if a.Agg == SymNorm && len(b.Degree) != b.NumSrc && (b.Device == nil || b.Device.Degree == 0) {
		return 0, 0, fmt.Errorf("sym-norm needs the degrees of %d sources, the block has %d", b.NumSrc, len(b.Degree))
	}
	return b.NumDst, in[0].Cols, nil
}

func inferFromDst(a Attr, in []*Value) (int, int, error) {
	b := in[1].Block
	if in[0].Rows != b.NumDst {
		return 0, 0, fmt.Errorf("gradient of %d rows for a block of %d targets", in[0].Rows, b.NumDst)
	}
	return b.NumSrc, in[0].Cols, nil
}

func inferMaxGrad(_ Attr, in []*Value) (int, int, error) {
	x, y, dy, b := in[0], in[1], in[2], in[3].Block
	if x.Rows != b.NumSrc || y.Rows != b.NumDst || dy.Rows != b.NumDst || y.Cols != x.Cols || dy.Cols != x.Cols {
		return 0, 0, fmt.Errorf("%d×%d, %d×%d and %d×%d for a block of %d sources and %d targets",
			x.Rows, x.Cols, y.Rows, y.Cols, dy.Rows, dy.Cols, b.NumSrc, b.NumDst)
	}
	return x.Rows, x.Cols, nil
}

func inferSparse(a Attr, in []*Value) (int, int, error) {
	x, w := in[0].Sparse, in[1]
	if x.NumCols != w.Cols {
		return 0, 0, fmt.Errorf("sparse matrix of %d columns for weights of %d", x.NumCols, w.Cols)
	}
	if a.P > 0 {
		if err := in[2].Key.checkRows(x.NumRows); err != nil {
			return 0, 0, err
		}
	}
	return x.NumRows, w.Rows, nil
}

func inferSparseGrad(_ Attr, in []*Value) (int, int, error) {
	x, dy := in[0].Sparse, in[1]
	if x.NumRows != dy.Rows {
		return 0, 0, fmt.Errorf("sparse matrix of %d rows for a gradient of %d", x.NumRows, dy.Rows)
	}
	return dy.Cols, x.NumCols, nil
}

func inferLabelled(_ Attr, in []*Value) (int, int, error) {
	if n := in[1].Labels.Len(); n != in[0].Rows {
		return 0, 0, fmt.Errorf("%d labels for %d rows", n, in[0].Rows)
	}
	return in[0].Rows, in[0].Cols, nil
}

func inferMultiLabelled(a Attr, in []*Value) (int, int, error) {
	l := in[1].Labels
	if l.DevMulti != 0 && l.NumRows == in[0].Rows && l.Stride >= in[0].Cols {
		return in[0].Rows, in[0].Cols, nil
	}
	if l.DevMulti != 0 || len(l.Multi) != in[0].Len() {
		return 0, 0, fmt.Errorf("labels of %d rows for %d rows of %d", l.Len(), in[0].Rows, in[0].Cols)
	}
	return in[0].Rows, in[0].Cols, nil
}

func misfit(a, b *Value) error {
	return fmt.Errorf("%d×%d does not fit %d×%d", a.Rows, a.Cols, b.Rows, b.Cols)
}
