package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"

	"zerogcn/graph"
	"zerogcn/internal/golden"
	"zerogcn/model/exec"
	"zerogcn/model/exec/cpu"
	execcuda "zerogcn/model/exec/cuda"
	"zerogcn/model/exec/cuda/devicetest"
	"zerogcn/model/op"
	"zerogcn/model/optim"
)

// backends are what golden tests run on: the definition and the product.
var backends = []string{"reference", "cpu", "cuda", "cuda-own"}

// open returns a back end by name; it skips the test where there is no GPU.
func open(t *testing.T, name string) exec.Backend {
	t.Helper()
	switch name {
	case "cpu":
		return cpu.New(cpu.Options{})
	case "cuda":
		return devicetest.Backend(t, execcuda.Options{})
	case "cuda-own":
		return devicetest.Backend(t, execcuda.Options{BLAS: execcuda.NoBLAS})
	}
	return exec.Reference{}
}

// fullBlock is a golden case's graph as a block with all that layers may need.
func fullBlock(t *testing.T, c *golden.Case, n int, dropSelf bool) *graph.Block {
	t.Helper()
	ends := c.Ints(t, c.Inputs["edge_index"])
	e := len(ends) / 2
	src, dst := make([]int32, e), make([]int32, e)
	for i := range e {
		src[i], dst[i] = int32(ends[i]), int32(ends[e+i])
	}
	g, err := graph.Builder{NumNodes: n}.FromEdges(t.Context(), src, dst, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := graph.FullBlock(t.Context(), g, graph.Options{DropSelfLoops: dropSelf, Degrees: dropSelf, TransposeAll: true})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestGoldenLayers compares single layers with PyTorch Geometric's: outputs and
// the gradients of sum(out × cotangent), in both orders of projecting and
// aggregating.
func TestGoldenLayers(t *testing.T) {
	sage := Config{Arch: SAGE, Aggregator: "mean"}
	gcn := Config{Arch: GCN, GCNNorm: "sym"}
	for _, c := range []struct {
		name string
		cfg  Config
	}{
		{"layers/sage_add", Config{Arch: SAGE, Aggregator: "sum"}}, {"layers/sage_add_messy", Config{Arch: SAGE, Aggregator: "sum"}},
		{"layers/sage_max", Config{Arch: SAGE, Aggregator: "max"}}, {"layers/sage_max_messy", Config{Arch: SAGE, Aggregator: "max"}},
		{"layers/sage_max_ties", Config{Arch: SAGE, Aggregator: "max"}},
		{"layers/sage_mean", sage}, {"layers/sage_mean_messy", sage},
		{"layers/gcn", gcn}, {"layers/gcn_messy", gcn},
	} {
		for _, project := range []bool{false, true} {
			for _, backend := range backends {
				t.Run(fmt.Sprintf("%s/project=%t/%s", c.name, project, backend), func(t *testing.T) {
					cfg := c.cfg
					cfg.FullGraph = project
					goldenLayer(t, c.name, cfg, open(t, backend))
				})
			}
		}
	}
}

func goldenLayer(t *testing.T, name string, cfg Config, b exec.Backend) {
	c := golden.Load(t, name)
	x := c.Float32s(t, c.Inputs["x"])
	shape := c.Inputs["x"].Shape
	out := c.Expect["out"].Shape
	cfg.In, cfg.Classes, cfg.Layers = shape[1], out[1], 1
	n, err := New(cfg, b, 0)
	if err != nil {
		t.Fatal(err)
	}
	load(t, n, c, "convs.0.")
	s, err := buildStack(&n.Config, n.Params, 0, 1, false)
	if err != nil {
		t.Fatal(err)
	}
	cot := G.NewMatrix(s.g, G.Float32, G.WithShape(rows(1), out[1]), G.WithName("cotangent"))
	wrt := G.Nodes{s.x}
	for i := range n.Params.List {
		wrt = append(wrt, s.nodes[i])
	}
	grads, err := G.Backpropagate(G.Nodes{s.out}, G.Nodes{cot}, wrt)
	if err != nil {
		t.Fatal(err)
	}
	p, err := exec.Compile(b, s.g, append(G.Nodes{s.out}, grads...)...)
	if err != nil {
		t.Fatal(err)
	}
	*p.Input(s.x) = place(t, b, op.Matrix(shape[0], shape[1], x))
	*p.Input(cot) = place(t, b, op.Matrix(out[0], out[1], c.Float32s(t, c.Inputs["cotangent"])))
	*p.Input(s.blocks[0]) = place(t, b, op.Value{Block: fullBlock(t, c, shape[0], n.Config.Needs().DropSelfLoops)})
	for i := range n.Params.List {
		if v := p.Input(s.nodes[i]); v != nil {
			*v = n.Params.value(i)
		}
	}
	if err := p.Run(); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "out", fetch(t, b, p.Output(0)), c.Floats(t, c.Expect["out"]), golden.Forward)
	if want, ok := c.Expect["grad.x"]; ok { // not unique where maxima tie
		golden.Check(t, "grad.x", fetch(t, b, p.Output(1)), c.Floats(t, want), golden.Grad)
	}
	for i, q := range n.Params.List {
		key := "grad." + strings.TrimPrefix(q.Name, "convs.0.")
		golden.Check(t, key, fetch(t, b, p.Output(i+2)), c.Floats(t, c.Expect[key]), golden.Grad)
	}
}

// load sets a network's parameters to a case's; names carry the given prefix.
func load(t *testing.T, n *Network, c *golden.Case, prefix string) {
	t.Helper()
	if len(c.Params) != len(n.Params.List) {
		t.Fatalf("%d parameters, the golden case has %v", len(n.Params.List), slices.Collect(maps.Keys(c.Params)))
	}
	for i, q := range n.Params.List {
		e, ok := c.Params[strings.TrimPrefix(q.Name, prefix)]
		if !ok {
			t.Fatalf("the golden case has no parameter %s", q.Name)
		}
		if !slices.Equal(e.Shape, q.Shape) {
			t.Fatalf("%s has shape %v, the golden case has %v", q.Name, q.Shape, e.Shape)
		}
		copy(n.Params.View(i), c.Float32s(t, e))
	}
	if err := n.Params.Upload(); err != nil {
		t.Fatal(err)
	}
}

func TestGoldenCrossEntropy(t *testing.T) {
	for _, name := range []string{"losses/ce_mean", "losses/ce_ignore", "losses/ce_extreme"} {
		checkGoldenLoss(t, name, op.SoftmaxCE, func(t *testing.T, c *golden.Case) *op.Labels {
			labels := &op.Labels{}
			for _, y := range c.Ints(t, c.Inputs["target"]) {
				labels.Class = append(labels.Class, int32(max(y, -1))) // PyTorch's ignore_index is -100
			}
			return labels
		})
	}
}

func TestGoldenBinaryCrossEntropy(t *testing.T) {
	for _, name := range []string{"losses/bce_mean", "losses/bce_masked", "losses/bce_extreme"} {
		checkGoldenLoss(t, name, op.SigmoidBCE, func(t *testing.T, c *golden.Case) *op.Labels {
			labels := &op.Labels{Width: c.Inputs["logits"].Shape[1]}
			for _, y := range c.Floats(t, c.Inputs["target"]) {
				labels.Multi = append(labels.Multi, uint8(y))
			}
			if mask, ok := c.Inputs["mask"]; ok {
				for i, m := range c.Ints(t, mask) {
					if m == 0 {
						labels.Multi[i] = op.Unknown
					}
				}
			}
			return labels
		})
	}
}

// checkGoldenLoss compares a loss of logits and labels, and its gradient, on all
// back ends.
func checkGoldenLoss(t *testing.T, name string, kind op.Kind, labelsOf func(*testing.T, *golden.Case) *op.Labels) {
	for _, backend := range backends {
		t.Run(name+"/"+backend, func(t *testing.T) {
			b := open(t, backend)
			c := golden.Load(t, name)
			shape := c.Inputs["logits"].Shape
			g := G.NewGraph()
			x := G.NewMatrix(g, G.Float32, G.WithShape(shape...), G.WithName("logits"))
			l := op.NewLabels(g, "labels")
			loss, err := op.New(kind, op.Attr{}).Apply(x, l)
			if err != nil {
				t.Fatal(err)
			}
			grads, err := G.Grad(loss, x)
			if err != nil {
				t.Fatal(err)
			}
			p, err := exec.Compile(b, g, loss, grads[0])
			if err != nil {
				t.Fatal(err)
			}
			*p.Input(x) = place(t, b, op.Matrix(shape[0], shape[1], c.Float32s(t, c.Inputs["logits"])))
			*p.Input(l) = place(t, b, op.Value{Labels: labelsOf(t, c)})
			if err := p.Run(); err != nil {
				t.Fatal(err)
			}
			golden.Check(t, "loss", fetch(t, b, p.Output(0)), c.Floats(t, c.Expect["loss"]), golden.Forward)
			golden.Check(t, "gradient", fetch(t, b, p.Output(1)), c.Floats(t, c.Expect["grad.logits"]), golden.Grad)
		})
	}
}

// TestGoldenTraining repeats 30 steps of full-graph training with Adam: the loss
// of every step, the first gradients, and what the weights and logits end as.
func TestGoldenTraining(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  Config
	}{
		{"models/gcn2", Config{Arch: GCN, Hidden: 16, Layers: 2}},
		{"models/sage3", Config{Arch: SAGE, Hidden: 16, Layers: 3}},
	} {
		for _, backend := range backends {
			t.Run(c.name+"/"+backend, func(t *testing.T) { goldenTraining(t, c.name, c.cfg, open(t, backend)) })
		}
	}
}

func goldenTraining(t *testing.T, name string, cfg Config, b exec.Backend) {
	c := golden.Load(t, name)
	shape := c.Inputs["x"].Shape
	cfg.In, cfg.Classes = shape[1], c.Expect["logits"].Shape[1]
	n, err := New(cfg, b, 0)
	if err != nil {
		t.Fatal(err)
	}
	load(t, n, c, "")
	block := fullBlock(t, c, shape[0], n.Config.Needs().DropSelfLoops)
	in := &Input{X: op.Matrix(shape[0], shape[1], c.Float32s(t, c.Inputs["x"])), Labels: &op.Labels{Class: make([]int32, shape[0])}}
	for range cfg.Layers {
		in.Blocks = append(in.Blocks, block)
	}
	y := c.Ints(t, c.Inputs["y"])
	for i := range in.Labels.Class {
		in.Labels.Class[i] = -1
	}
	for _, i := range c.Ints(t, c.Inputs["train_idx"]) {
		in.Labels.Class[i] = int32(y[i])
	}
	if g, ok := b.(*execcuda.Backend); ok {
		in = deviceInput(t, g, in)
	}
	update := optimizer(t, n, optim.Segment{Lo: 0, Hi: len(n.Params.Data), WeightDecay: 5e-4})
	want := c.Floats(t, c.Expect["loss"])
	for s, w := range want {
		if err := n.Train(in); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, fmt.Sprintf("loss of step %d", s), []float32{float32(n.Loss())}, []float64{w}, golden.Forward)
		if s == 0 {
			if err := n.Params.DownloadGrad(); err != nil {
				t.Fatal(err)
			}
			for i, q := range n.Params.List {
				golden.Check(t, "gradient of "+q.Name, n.Params.GradView(i), c.Floats(t, c.Expect["grad."+q.Name]), golden.Grad)
			}
		}
		if err := update(0.01); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.Params.Download(); err != nil {
		t.Fatal(err)
	}
	for i, q := range n.Params.List {
		golden.Check(t, "final "+q.Name, n.Params.View(i), c.Floats(t, c.Expect["final."+q.Name]), golden.Grad)
	}
	out, err := n.Infer(in)
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "logits", fetch(t, b, out), c.Floats(t, c.Expect["logits"]), golden.Grad)
	// Layer by layer gives the same as all at once.
	h := in.X
	for l := range cfg.Layers {
		v, err := n.Layer(l, &Input{X: h, Blocks: in.Blocks[l : l+1]})
		if err != nil {
			t.Fatal(err)
		}
		h = place(t, b, op.Matrix(v.Rows, v.Cols, fetch(t, b, v)))
	}
	golden.Check(t, "layer-wise logits", fetch(t, b, &h), c.Floats(t, c.Expect["logits"]), golden.Grad)
}
