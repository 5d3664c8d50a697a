package model

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"zerogcn/graph"
	"zerogcn/model/exec"
	"zerogcn/model/op"
	"zerogcn/sparse"
)

// Input is one batch. Blocks come outermost first, one per layer of what runs;
// each block's targets are the first rows of its sources. X has one row per
// source of the first block, dense or sparse as the configuration says.
type Input struct {
	X      op.Value
	Blocks []*graph.Block
	Labels *op.Labels // for training
	Key    op.Key     // keys dropout, for training
}

// Network is a configuration compiled for a back end, with its parameters.
type Network struct {
	Config Config
	Params *Params

	backend exec.Backend
	train   *runner
	infer   *runner
	layers  []*runner
}

// New compiles a network and initialises its parameters from the seed. The
// configuration's errors are the user's to mend.
func New(c Config, b exec.Backend, seed uint64) (*Network, error) {
	c.EnsureDefaults()
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	n := &Network{Config: c, Params: newParams(&c), backend: b, layers: make([]*runner, c.Layers)}
	n.Params.Init(seed)
	return n, nil
}

// Train computes the loss of a batch and leaves the gradient of every parameter
// in Params.Grad. On an error the gradients are undefined.
func (n *Network) Train(in *Input) error {
	if n.train == nil {
		r, err := n.compile(0, n.Config.Layers, true)
		if err != nil {
			return err
		}
		n.train = r
	}
	return n.train.run(in)
}

// Loss returns the loss of the last Train: the sum over the batch's labelled
// items divided by the labels' count.
func (n *Network) Loss() float64 { return float64(n.train.program.Output(0).Data[0]) }

// Infer returns the network's output rows for a batch's innermost targets,
// without dropout.
func (n *Network) Infer(in *Input) (*op.Value, error) {
	if n.infer == nil {
		r, err := n.compile(0, n.Config.Layers, false)
		if err != nil {
			return nil, err
		}
		n.infer = r
	}
	err := n.infer.run(in)
	return n.infer.program.Output(0), err
}

// Layer returns the output of layer l alone, with its activation and without
// dropout: one step of layer-wise inference. in has that layer's block, if the
// network uses any, and its input rows.
func (n *Network) Layer(l int, in *Input) (*op.Value, error) {
	if n.layers[l] == nil {
		r, err := n.compile(l, l+1, false)
		if err != nil {
			return nil, err
		}
		n.layers[l] = r
	}
	err := n.layers[l].run(in)
	return n.layers[l].program.Output(0), err
}

// LayerWidths returns the input and output width of layer l.
func (n *Network) LayerWidths(l int) (in, out int) { return n.Config.widths(l) }

// Programs returns the compiled programs so far, for profiling.
func (n *Network) Programs() []*exec.Program {
	var ps []*exec.Program
	for _, r := range append([]*runner{n.train, n.infer}, n.layers...) {
		if r != nil {
			ps = append(ps, r.program)
		}
	}
	return ps
}

// Close gives the back end's memory back.
func (n *Network) Close() {
	for _, p := range n.Programs() {
		p.Close()
	}
	n.train, n.infer, n.layers = nil, nil, nil
}

// runner is a stack with its program.
type runner struct {
	*stack
	program *exec.Program
	head    sparse.Matrix // view of the targets' rows
	mask    op.Key
}

func (n *Network) compile(lo, hi int, training bool) (*runner, error) {
	s, err := buildStack(&n.Config, n.Params, lo, hi, training)
	if err != nil {
		return nil, err
	}
	outputs := G.Nodes{s.out}
	if training {
		outputs = append(G.Nodes{s.loss}, s.grads...)
	}
	p, err := exec.Compile(n.backend, s.g, outputs...)
	if err != nil {
		return nil, fmt.Errorf("model: compiling %s: %w", n.Config.Arch, err)
	}
	for i := range s.grads {
		p.BindOutput(i+1, exec.HostBuffer(n.Params.GradView(i)))
	}
	for i, node := range s.nodes {
		if v := p.Input(node); v != nil {
			shape := n.Params.List[i].Shape
			*v = op.Matrix(1, shape[0], n.Params.View(i))
			if len(shape) == 2 {
				v.Rows, v.Cols = shape[0], shape[1]
			}
		}
	}
	return &runner{stack: s, program: p}, nil
}

func (r *runner) run(in *Input) error {
	if len(in.Blocks) != len(r.blocks) {
		return fmt.Errorf("model: %d blocks for %d layers", len(in.Blocks), len(r.blocks))
	}
	*r.program.Input(r.x) = in.X
	for i, b := range r.blocks {
		*r.program.Input(b) = op.Value{Block: in.Blocks[i]}
	}
	if r.xHead != nil {
		m, rows := in.X.Sparse, in.Blocks[0].NumDst
		if rows > m.NumRows {
			return fmt.Errorf("model: sparse input of %d rows for %d targets", m.NumRows, rows)
		}
		nnz := m.Indptr[rows]
		r.head = sparse.Matrix{NumRows: rows, NumCols: m.NumCols,
			Indptr: m.Indptr[:rows+1], Cols: m.Cols[:nnz], Vals: m.Vals[:nnz]}
		*r.program.Input(r.xHead) = op.Value{Sparse: &r.head}
	}
	r.mask = in.Key
	if v := r.program.Input(r.key); v != nil {
		*v = op.Value{Key: &r.mask}
	}
	if r.labels != nil {
		*r.program.Input(r.labels) = op.Value{Labels: in.Labels}
	}
	return r.program.Run()
}
