package op

import (
	"fmt"

	G "gorgonia.org/gorgonia"
)

// DiffWRT tells which operands have a gradient.
func (o *Op) DiffWRT(int) []bool { return specs[o.Kind].diff }

// SymDiff returns the gradient of each operand as a node, given the result's
// gradient; nil for operands without one. It builds gradients that nobody may
// need; compiled programs drop those.
func (o *Op) SymDiff(in G.Nodes, out, grad *G.Node) (G.Nodes, error) {
	b := builder{}
	switch o.Kind {
	case Copy:
		return G.Nodes{grad}, nil
	case Add:
		return G.Nodes{grad, grad}, nil
	case MatMul:
		da, db := b.matMulGrad(o.Attr, in[0], in[1], grad)
		return G.Nodes{da, db}, b.err
	case BiasAdd:
		return G.Nodes{grad, b.add(New(ColSum, Attr{}), grad)}, b.err
	case ReLU:
		return G.Nodes{b.add(New(ReLUGrad, Attr{}), out, grad)}, b.err
	case Dropout:
		return G.Nodes{b.add(o, grad, in[1]), nil}, b.err
	case Aggregate:
		a := Attr{Agg: o.Attr.Agg, Rows: in[0].Shape()[0]}
		return G.Nodes{b.add(New(AggregateGrad, a), grad, in[1]), nil}, b.err
	case AggregateMax:
		return G.Nodes{b.add(New(AggregateMaxGrad, Attr{}), in[0], out, grad, in[1]), nil}, b.err
	case Head:
		return G.Nodes{b.add(New(HeadGrad, Attr{Rows: in[0].Shape()[0]}), grad, in[1]), nil}, b.err
	case SparseLinear:
		a := Attr{P: o.Attr.P, Site: o.Attr.Site, Cols: in[1].Shape()[1]}
		return G.Nodes{nil, b.add(New(SparseLinearGrad, a), in[0], grad, in[2]), nil}, b.err
	case SoftmaxCE:
		return G.Nodes{b.add(New(SoftmaxCEGrad, Attr{}), in[0], in[1], grad), nil}, b.err
	case SigmoidBCE:
		return G.Nodes{b.add(New(SigmoidBCEGrad, Attr{}), in[0], in[1], grad), nil}, b.err
	}
	return nil, fmt.Errorf("%v has no derivative", o)
}

// builder keeps the first error of a chain of Apply calls.
type builder struct{ err error }

func (b *builder) add(o *Op, in ...*G.Node) *G.Node {
	if b.err != nil {
		return nil
	}
	n, err := o.Apply(in...)
	b.err = err
	return n
}

// matMulGrad differentiates op(x)·op(y) for all transposes: products of the
// gradient g with the other operand, transposed so that no operand is copied.
func (b *builder) matMulGrad(t Attr, x, y, g *G.Node) (dx, dy *G.Node) {
	mul := func(ta, tb bool, l, r *G.Node) *G.Node {
		return b.add(New(MatMul, Attr{TransA: ta, TransB: tb}), l, r)
	}
	switch {
	case !t.TransA && !t.TransB:
		return mul(false, true, g, y), mul(true, false, x, g)
	case !t.TransA && t.TransB:
		return mul(false, false, g, y), mul(true, false, g, x)
	case t.TransA && !t.TransB:
		return mul(false, true, y, g), mul(false, false, x, g)
	default:
		return mul(true, true, y, g), mul(true, true, g, x)
	}
}
