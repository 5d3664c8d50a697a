package model

import (
	"fmt"
	"math"

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
	replay  exec.Replay // of Step, on a device, from its second run on
}

// New compiles a network and initialises its parameters from the seed. The
// configuration's errors are the user's to mend. With a DeviceBackend the
// parameters lie in device memory, and so must what Inputs hold; Close the network
// before the back end.
func New(c Config, b exec.Backend, seed uint64) (*Network, error) {
	c.EnsureDefaults()
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	n := &Network{Config: c, Params: newParams(&c), backend: b, layers: make([]*runner, c.Layers)}
	n.Params.Init(seed)
	if d, ok := b.(exec.DeviceBackend); ok {
		if err := n.Params.place(d); err != nil {
			n.Params.free()
			return nil, err
		}
	}
	return n, nil
}

// Train computes the loss of a batch and leaves the gradient of every parameter
// in Params.Grad, or at Params.DeviceGrad, where it only queues the work. On an
// error the gradients are undefined.
func (n *Network) Train(in *Input) error {
	r, err := n.training()
	if err != nil {
		return err
	}
	return r.run(in)
}

// training returns the program of Train.
func (n *Network) training() (*runner, error) {
	if n.train == nil {
		r, err := n.compile(0, n.Config.Layers, true)
		if err != nil {
			return nil, err
		}
		n.train = r
	}
	return n.train, nil
}

// Step is Train and then update, which applies an optimiser to the gradients. On
// a device it launches both as one, from its second run on, which saves most of
// the cost of the launches; update must then only queue work, and its arguments
// may change from step to step.
func (n *Network) Step(in *Input, update func() error) error {
	d, ok := n.backend.(exec.DeviceBackend)
	if !ok || n.replay == nil {
		// The first run on a device loads kernels and makes room, which cannot be
		// recorded.
		if err := n.Train(in); err != nil {
			return err
		}
		if ok {
			n.replay = d.NewReplay()
		}
		return update()
	}
	if err := n.train.bind(in); err != nil {
		return err
	}
	if err := n.train.program.Prepare(); err != nil {
		return err
	}
	return n.replay.Run(func() error {
		if err := n.train.program.Execute(); err != nil {
			return err
		}
		return update()
	})
}

// Loss returns the loss of the last Train or Step: the sum over the batch's
// labelled items divided by the labels' count. On a device it waits for it, and is
// NaN if the device fails; LossValue does not wait.
func (n *Network) Loss() float64 {
	v := n.LossValue()
	if v.Data != nil {
		return float64(v.Data[0])
	}
	var loss [1]float32
	if n.Params.device == nil || n.Params.device.Download(loss[:], v.Dev) != nil {
		return math.NaN() // every later call on the device reports the failure
	}
	return float64(loss[0])
}

// LossValue returns the loss where it is: for a device, the address of a float32
// that holds it once the queued work is done, until the next Train or Step.
func (n *Network) LossValue() *op.Value { return n.train.program.Output(0) }

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
	if n.replay != nil {
		// It can fail only where the device has, which other calls report.
		_ = n.replay.Close()
		n.replay = nil
	}
	for _, p := range n.Programs() {
		p.Close()
	}
	n.train, n.infer, n.layers = nil, nil, nil
	n.Params.free()
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
		p.BindOutput(i+1, n.Params.gradBuffer(i))
	}
	for i, node := range s.nodes {
		if v := p.Input(node); v != nil {
			*v = n.Params.value(i)
		}
	}
	return &runner{stack: s, program: p}, nil
}

// run executes the program on a batch.
func (r *runner) run(in *Input) error {
	if err := r.bind(in); err != nil {
		return err
	}
	return r.program.Run()
}

// bind sets the program's inputs to a batch's.
func (r *runner) bind(in *Input) error {
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
	return nil
}
