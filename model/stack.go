package model

import (
	"fmt"
	"sync"

	G "gorgonia.org/gorgonia"

	"zerogcn/model/op"
)

// stack is the Gorgonia graph of some consecutive layers.
type stack struct {
	g        *G.ExprGraph
	cfg      *Config
	params   *Params
	training bool

	x      *G.Node   // features or the previous layer's output
	xHead  *G.Node   // the targets' rows of sparse features; nil if unused
	blocks []*G.Node // by layer, from the first of the stack
	key    *G.Node
	labels *G.Node
	nodes  map[int]*G.Node // parameters by index, those of the stack's layers
	out    *G.Node
	loss   *G.Node
	grads  G.Nodes // in order of the parameters, if training

	err error
}

// rows returns the placeholder for the number of rows after l layers.
// Placeholders are at least 2, or shapes look like scalars, and differ, so that
// buffers are shared among matrices of like height only.
func rows(l int) int { return 1009 - l }

// buildStack builds layers lo to hi (exclusive). With training, dropout is
// included, and the loss and gradients if the stack ends in the last layer.
func buildStack(c *Config, p *Params, lo, hi int, training bool) (*stack, error) {
	warm()
	s := &stack{g: G.NewGraph(), cfg: c, params: p, training: training, nodes: map[int]*G.Node{}}
	s.key = op.NewKey(s.g, "key")
	var h *G.Node
	if lo == 0 && c.SparseInput {
		s.x = op.NewSparse(s.g, "x")
	} else {
		in, _ := c.widths(lo)
		s.x = G.NewMatrix(s.g, G.Float32, G.WithShape(rows(lo), in), G.WithName("x"))
	}
	h = s.x
	for l := lo; l < hi; l++ {
		h = s.layer(l, h)
		if l < c.Layers-1 {
			h = s.add(op.ReLU, op.Attr{}, h)
		}
	}
	s.out = h
	if training {
		s.labels = op.NewLabels(s.g, "labels")
		loss := op.SoftmaxCE
		if c.MultiLabel {
			loss = op.SigmoidBCE
		}
		s.loss = s.add(loss, op.Attr{}, h, s.labels)
		s.differentiate()
	}
	if s.err != nil {
		return nil, fmt.Errorf("model: building %s: %w", c.Arch, s.err)
	}
	return s, nil
}

func (s *stack) add(k op.Kind, a op.Attr, in ...*G.Node) *G.Node {
	if s.err != nil {
		return nil
	}
	n, err := op.New(k, a).Apply(in...)
	s.err = err
	return n
}

// param returns the node of a named parameter.
func (s *stack) param(format string, l int) *G.Node {
	name := fmt.Sprintf(format, l)
	i := s.params.Index(name)
	if i < 0 {
		if s.err == nil {
			s.err = fmt.Errorf("no parameter %s", name)
		}
		return nil
	}
	n := s.nodes[i]
	if n == nil {
		shape := s.params.List[i].Shape
		n = G.NewTensor(s.g, G.Float32, len(shape), G.WithShape(shape...), G.WithName(name))
		s.nodes[i] = n
	}
	return n
}

// layer adds layer l on x.
func (s *stack) layer(l int, x *G.Node) *G.Node {
	sp := l == 0 && s.cfg.SparseInput
	if !sp {
		x = s.dropout(l, x)
	}
	if s.cfg.Arch == MLP {
		z := s.linear(l, x, sp, "lins.%d.weight", rows(l+1))
		return s.add(op.BiasAdd, op.Attr{}, z, s.param("lins.%d.bias", l))
	}
	block := op.NewBlock(s.g, fmt.Sprintf("block.%d", l))
	s.blocks = append(s.blocks, block)
	weight, bias := "convs.%d.lin_l.weight", "convs.%d.lin_l.bias"
	if s.cfg.Arch == GCN {
		weight, bias = "convs.%d.lin.weight", "convs.%d.bias"
	}
	var z *G.Node
	if s.cfg.projectFirst(l) {
		z = s.aggregate(l, s.linear(l, x, sp, weight, rows(l)), block)
	} else {
		z = s.linear(l, s.aggregate(l, x, block), false, weight, rows(l+1))
	}
	if s.cfg.Arch == SAGE && s.cfg.Aggregator != "gcn" {
		z = s.add(op.Add, op.Attr{}, z, s.root(l, x, block, sp))
	}
	return s.add(op.BiasAdd, op.Attr{}, z, s.param(bias, l))
}

// aggregate combines the sources' rows of layer l.
func (s *stack) aggregate(l int, x, block *G.Node) *G.Node {
	a := op.Attr{Rows: rows(l + 1)}
	if s.cfg.isMax() {
		return s.add(op.AggregateMax, a, x, block)
	}
	a.Agg = s.cfg.agg()
	return s.add(op.Aggregate, a, x, block)
}

// root adds the targets' own contribution to a SAGE layer.
func (s *stack) root(l int, x, block *G.Node, sp bool) *G.Node {
	const weight = "convs.%d.lin_r.weight"
	if sp {
		s.xHead = op.NewSparse(s.g, "x.head")
		return s.linear(l, s.xHead, true, weight, rows(l+1))
	}
	head := s.add(op.Head, op.Attr{Rows: rows(l + 1)}, x, block)
	return s.linear(l, head, false, weight, rows(l+1))
}

// linear multiplies by a weight matrix. On sparse features dropout is part of
// the product: it visits non-zeros only.
func (s *stack) linear(l int, x *G.Node, sp bool, weight string, n int) *G.Node {
	w := s.param(weight, l)
	if !sp {
		return s.add(op.MatMul, op.Attr{TransB: true}, x, w)
	}
	return s.add(op.SparseLinear, op.Attr{P: s.drop(l), Site: uint32(l), Rows: n}, x, w, s.key)
}

// drop returns the drop probability on the input of layer l.
func (s *stack) drop(l int) float64 {
	switch {
	case !s.training:
		return 0
	case l == 0:
		return s.cfg.InputDropout
	default:
		return s.cfg.Dropout
	}
}

func (s *stack) dropout(l int, x *G.Node) *G.Node {
	if p := s.drop(l); p > 0 {
		return s.add(op.Dropout, op.Attr{P: p, Site: uint32(l)}, x, s.key)
	}
	return x
}

func (s *stack) differentiate() {
	if s.err != nil {
		return
	}
	nodes := make(G.Nodes, len(s.params.List))
	for i := range nodes {
		nodes[i] = s.nodes[i]
	}
	s.grads, s.err = G.Grad(s.loss, nodes...)
}

// warm makes Gorgonia compute the hash of its shared constant 1 before several
// goroutines build graphs at once: it does so lazily and without a lock.
var warm = sync.OnceFunc(func() {
	g := G.NewGraph()
	x := G.NewMatrix(g, G.Float32, G.WithShape(2, 2), G.WithName("x"))
	l := op.NewLabels(g, "labels")
	if n, err := op.New(op.SoftmaxCE, op.Attr{}).Apply(x, l); err == nil {
		// Only the side effect counts; a failure shows up in the real graph.
		_, _ = G.Grad(n, x)
	}
})
