package op

import (
	"fmt"
	"hash"
	"hash/fnv"
	"reflect"

	"github.com/chewxy/hm"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"zerogcn/graph"
	"zerogcn/sparse"
)

// Op is a Kind with its Attr, as a node of a Gorgonia graph. Make one with New.
type Op struct {
	Kind Kind
	Attr Attr
}

var _ G.SDOp = (*Op)(nil)

// New returns the operation of a kind with the given attributes.
func New(k Kind, a Attr) *Op { return &Op{Kind: k, Attr: a} }

// Apply adds the operation to the graph of its operands and returns its node.
// Gorgonia rejects operands of the wrong types or shapes.
func (o *Op) Apply(in ...*G.Node) (*G.Node, error) {
	n, err := G.ApplyOp(o, in...)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", o, err)
	}
	return n, nil
}

// Infer returns the shape of the result for run-time operands and reports those
// that do not fit each other.
func (o *Op) Infer(in []*Value) (rows, cols int, err error) {
	rows, cols, err = specs[o.Kind].infer(o.Attr, in)
	if err != nil {
		err = fmt.Errorf("%v: %w", o, err)
	}
	return rows, cols, err
}

// InPlace reports whether the result may overwrite operand 0, which then has
// the result's shape.
func (o *Op) InPlace() bool { return specs[o.Kind].inPlace }

// Reference computes the operation with plain loops: the definition that back
// ends are tested against. out has the shape that Infer gave and host memory of
// its own.
func (o *Op) Reference(out *Value, in []*Value) { specs[o.Kind].ref(o.Attr, out, in) }

// The methods below make Op a gorgonia.SDOp.

// Arity returns the number of operands.
func (o *Op) Arity() int { return len(specs[o.Kind].in) }

// Type returns the function type, fresh at each call: ApplyOp recycles it.
func (o *Op) Type() hm.Type {
	s := &specs[o.Kind]
	ts := make([]hm.Type, 0, len(s.in)+1)
	for _, in := range s.in {
		ts = append(ts, in.gorgonia())
	}
	return hm.NewFnType(append(ts, s.out.gorgonia())...)
}

// InferShape applies the static rule to placeholder shapes.
func (o *Op) InferShape(ds ...G.DimSizer) (tensor.Shape, error) {
	sh, err := G.DimSizersToShapes(ds)
	if err != nil {
		return nil, err
	}
	for i, in := range specs[o.Kind].in {
		if want := in.dims(); sh[i].Dims() != want {
			return nil, fmt.Errorf("%v: operand %d has shape %v, want %d dimensions", o, i, sh[i], want)
		}
	}
	return specs[o.Kind].shape(o.Attr, sh), nil
}

// Do runs the reference kernel; Gorgonia's TapeMachine calls it.
func (o *Op) Do(vs ...G.Value) (G.Value, error) {
	in := make([]*Value, len(vs))
	for i, v := range vs {
		x, err := fromGorgonia(v)
		if err != nil {
			return nil, fmt.Errorf("%v: operand %d: %w", o, i, err)
		}
		in[i] = x
	}
	r, c, err := o.Infer(in)
	if err != nil {
		return nil, err
	}
	out := Matrix(r, c, make([]float32, r*c))
	o.Reference(&out, in)
	switch specs[o.Kind].out {
	case scalar:
		return G.NewF32(out.Data[0]), nil
	case vector:
		return tensor.New(tensor.WithShape(c), tensor.WithBacking(out.Data)), nil
	default:
		return tensor.New(tensor.WithShape(r, c), tensor.WithBacking(out.Data)), nil
	}
}

// ReturnsPtr tells Gorgonia that results are pointers.
func (o *Op) ReturnsPtr() bool { return true }

// CallsExtern tells Gorgonia that no foreign code runs.
func (o *Op) CallsExtern() bool { return false }

// OverwritesInput tells Gorgonia that Do leaves operands alone.
func (o *Op) OverwritesInput() int { return -1 }

// WriteHash writes the operation's identity, attributes included: Gorgonia
// merges nodes of equal hash and operands.
func (o *Op) WriteHash(h hash.Hash) { fmt.Fprintf(h, "zerogcn.%d%+v", o.Kind, o.Attr) }

// Hashcode returns the hash of what WriteHash writes.
func (o *Op) Hashcode() uint32 {
	h := fnv.New32a()
	o.WriteHash(h)
	return h.Sum32()
}

// String returns the kind and the attributes that are set.
func (o *Op) String() string {
	s, a := o.Kind.String(), o.Attr
	switch o.Kind {
	case MatMul:
		return fmt.Sprintf("%s(%s%s)", s, transposed(a.TransA), transposed(a.TransB))
	case Aggregate, AggregateGrad:
		return fmt.Sprintf("%s(%v)", s, a.Agg)
	case Dropout, SparseLinear, SparseLinearGrad:
		return fmt.Sprintf("%s(p=%g, site %d)", s, a.P, a.Site)
	}
	return s
}

func transposed(t bool) string {
	if t {
		return "T"
	}
	return "N"
}

// opaque is a gorgonia.Value around a payload.
type opaque struct {
	t tensor.Dtype
	v any
}

func (o *opaque) Shape() tensor.Shape { return tensor.ScalarShape() }
func (o *opaque) Size() int           { return 1 }
func (o *opaque) Data() any           { return o.v }
func (o *opaque) Dtype() tensor.Dtype { return o.t }
func (o *opaque) Type() hm.Type       { return o.t }
func (o *opaque) Uintptr() uintptr    { return 0 }
func (o *opaque) MemSize() uintptr    { return 0 }
func (o *opaque) Format(s fmt.State, _ rune) {
	fmt.Fprintf(s, "%s", o.t.Name())
}

var (
	blockType  = tensor.Dtype{Type: reflect.TypeFor[graph.Block]()}
	labelType  = tensor.Dtype{Type: reflect.TypeFor[Labels]()}
	keyType    = tensor.Dtype{Type: reflect.TypeFor[Key]()}
	sparseType = tensor.Dtype{Type: reflect.TypeFor[sparse.Matrix]()}
)

// gorgonia returns the operand's type in Gorgonia's system.
func (s operand) gorgonia() hm.Type {
	switch s {
	case matrix:
		return G.TensorType{Dims: 2, Of: tensor.Float32}
	case vector:
		return G.TensorType{Dims: 1, Of: tensor.Float32}
	case blockOperand:
		return blockType
	case labelOperand:
		return labelType
	case keyOperand:
		return keyType
	case sparseOperand:
		return sparseType
	default:
		return tensor.Float32
	}
}

func (s operand) dims() int {
	switch s {
	case matrix:
		return 2
	case vector:
		return 1
	default:
		return 0
	}
}

// NewBlock adds a block input; names must be unique in a graph.
func NewBlock(g *G.ExprGraph, name string) *G.Node { return input(g, blockType, name) }

// NewLabels adds a labels input.
func NewLabels(g *G.ExprGraph, name string) *G.Node { return input(g, labelType, name) }

// NewKey adds a dropout key input.
func NewKey(g *G.ExprGraph, name string) *G.Node { return input(g, keyType, name) }

// NewSparse adds a sparse feature input.
func NewSparse(g *G.ExprGraph, name string) *G.Node { return input(g, sparseType, name) }

func input(g *G.ExprGraph, t tensor.Dtype, name string) *G.Node {
	return G.NewScalar(g, t, G.WithName(name))
}

// ToGorgonia returns v as a gorgonia.Value, for binding an input of a graph that
// a TapeMachine runs. dims is 2 for a matrix, 1 for a vector. Host memory is
// shared, not copied.
func ToGorgonia(v *Value, dims int) G.Value {
	switch {
	case v.Block != nil:
		return &opaque{blockType, v.Block}
	case v.Labels != nil:
		return &opaque{labelType, v.Labels}
	case v.Key != nil:
		return &opaque{keyType, v.Key}
	case v.Sparse != nil:
		return &opaque{sparseType, v.Sparse}
	case dims == 1:
		return tensor.New(tensor.WithShape(v.Len()), tensor.WithBacking(v.Data[:v.Len()]))
	default:
		return tensor.New(tensor.WithShape(v.Rows, v.Cols), tensor.WithBacking(v.Data[:v.Len()]))
	}
}

func fromGorgonia(v G.Value) (*Value, error) {
	switch t := v.(type) {
	case *opaque:
		switch p := t.v.(type) {
		case *graph.Block:
			return &Value{Block: p}, nil
		case *Labels:
			return &Value{Labels: p}, nil
		case *Key:
			return &Value{Key: p}, nil
		case *sparse.Matrix:
			return &Value{Sparse: p}, nil
		}
	case *G.F32:
		x := Matrix(1, 1, []float32{float32(*t)})
		return &x, nil
	case *tensor.Dense:
		data, ok := t.Data().([]float32)
		if !ok {
			return nil, fmt.Errorf("tensor of %v, want float32", t.Dtype())
		}
		x := Matrix(1, len(data), data)
		if s := t.Shape(); t.Dims() == 2 {
			x.Rows, x.Cols = s[0], s[1]
		}
		return &x, nil
	}
	return nil, fmt.Errorf("value of type %T", v)
}
