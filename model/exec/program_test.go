package exec_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	G "gorgonia.org/gorgonia"

	"zerogcn/graph"
	"zerogcn/model/exec"
	"zerogcn/model/op"
	"zerogcn/sparse"
)

// network is a two-layer graph with every kind of operation in it: a sparse
// first layer, an aggregation, a skip connection that uses a node twice, tied
// weights, dropout.
type network struct {
	g                     *G.ExprGraph
	x, block, labels, key *G.Node
	params                []*G.Node
	loss, logits          *G.Node
	grads                 G.Nodes
}

const in, hidden, classes = 7, 5, 3

func build(t testing.TB) *network {
	t.Helper()
	n := &network{g: G.NewGraph()}
	add := func(k op.Kind, a op.Attr, in ...*G.Node) *G.Node {
		t.Helper()
		v, err := op.New(k, a).Apply(in...)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	par := func(name string, shape ...int) *G.Node {
		p := G.NewTensor(n.g, G.Float32, len(shape), G.WithShape(shape...), G.WithName(name))
		n.params = append(n.params, p)
		return p
	}
	n.x = op.NewSparse(n.g, "x")
	n.block = op.NewBlock(n.g, "block")
	n.labels = op.NewLabels(n.g, "labels")
	n.key = op.NewKey(n.g, "key")
	w0, b0 := par("w0", hidden, in), par("b0", hidden)
	w1, w2 := par("w1", hidden, hidden), par("w2", classes, hidden)
	h := add(op.SparseLinear, op.Attr{P: 0.3, Site: 0, Rows: 9}, n.x, w0, n.key)
	h = add(op.ReLU, op.Attr{}, add(op.BiasAdd, op.Attr{}, h, b0))
	h = add(op.Dropout, op.Attr{P: 0.5, Site: 1}, h, n.key)
	a := add(op.Aggregate, op.Attr{Agg: op.Mean, Rows: 4}, h, n.block)
	s := add(op.Head, op.Attr{Rows: 4}, h, n.block)
	z := add(op.Add, op.Attr{}, add(op.MatMul, op.Attr{TransB: true}, a, w1), add(op.MatMul, op.Attr{}, s, w1))
	n.logits = add(op.MatMul, op.Attr{TransB: true}, add(op.Add, op.Attr{}, z, s), w2)
	n.loss = add(op.SoftmaxCE, op.Attr{}, n.logits, n.labels)
	var err error
	if n.grads, err = G.Grad(n.loss, n.params...); err != nil {
		t.Fatal(err)
	}
	return n
}

type batch struct {
	x      *sparse.Matrix
	block  *graph.Block
	labels *op.Labels
	key    *op.Key
	params [][]float32
}

func random(rng *rand.Rand, n *network, src, dst int) *batch {
	b := &batch{
		block:  &graph.Block{NumDst: dst, NumSrc: src, Indptr: []int32{0}},
		labels: &op.Labels{}, key: &op.Key{Seed: rng.Uint64(), Step: rng.Uint64N(100)},
	}
	x := make([]float32, src*in)
	for i := range x {
		if rng.IntN(3) == 0 {
			x[i] = float32(rng.NormFloat64())
		}
	}
	b.x = sparse.FromDense(x, src, in)
	for range dst {
		for range rng.IntN(5) {
			b.block.Indices = append(b.block.Indices, rng.Int32N(int32(src)))
		}
		b.block.Indptr = append(b.block.Indptr, int32(len(b.block.Indices)))
		b.labels.Class = append(b.labels.Class, rng.Int32N(classes+1)-1)
	}
	b.labels.Class[0] = 1
	for _, p := range n.params {
		w := make([]float32, p.Shape().TotalSize())
		for i := range w {
			w[i] = float32(rng.NormFloat64()) * 0.4
		}
		b.params = append(b.params, w)
	}
	return b
}

func (n *network) bind(p *exec.Program, b *batch) {
	set := func(node *G.Node, v op.Value) {
		if dst := p.Input(node); dst != nil {
			*dst = v
		}
	}
	set(n.x, op.Value{Sparse: b.x})
	set(n.block, op.Value{Block: b.block})
	set(n.labels, op.Value{Labels: b.labels})
	set(n.key, op.Value{Key: b.key})
	for i, node := range n.params {
		r, c := 1, node.Shape()[0]
		if node.Dims() == 2 {
			r, c = c, node.Shape()[1]
		}
		set(node, op.Matrix(r, c, b.params[i]))
	}
}

func (n *network) tape(t testing.TB, b *batch) (loss float32, grads [][]float32) {
	t.Helper()
	let := func(node *G.Node, v op.Value) {
		if err := G.Let(node, op.ToGorgonia(&v, node.Dims())); err != nil {
			t.Fatal(err)
		}
	}
	let(n.x, op.Value{Sparse: b.x})
	let(n.block, op.Value{Block: b.block})
	let(n.labels, op.Value{Labels: b.labels})
	let(n.key, op.Value{Key: b.key})
	for i, node := range n.params {
		if node.Dims() == 1 {
			let(node, op.Matrix(1, len(b.params[i]), b.params[i]))
		} else {
			let(node, op.Matrix(node.Shape()[0], node.Shape()[1], b.params[i]))
		}
	}
	vm := G.NewTapeMachine(n.g)
	defer vm.Close()
	if err := vm.RunAll(); err != nil {
		t.Fatal(err)
	}
	for _, g := range n.grads {
		grads = append(grads, slices.Clone(g.Value().Data().([]float32)))
	}
	return n.loss.Value().Data().(float32), grads
}

// One compiled program, fed batches of ever other sizes, computes what
// Gorgonia's own machine computes, bit for bit: both run the reference kernels.
func TestEqualsTapeMachine(t *testing.T) {
	n := build(t)
	p, err := exec.Compile(exec.Reference{}, n.g, append(G.Nodes{n.loss}, n.grads...)...)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		dst := 2 + rng.IntN(8)
		b := random(rng, n, dst+rng.IntN(9), dst)
		n.bind(p, b)
		if err := p.Run(); err != nil {
			t.Fatal(err)
		}
		loss, grads := n.tape(t, b)
		if got := p.Output(0).Data[0]; got != loss {
			t.Fatalf("loss %v, TapeMachine has %v", got, loss)
		}
		for i, want := range grads {
			if got := p.Output(i + 1).Data; !slices.Equal(got, want) {
				t.Fatalf("gradient of %v:\n%v, TapeMachine has\n%v", n.params[i], got, want)
			}
		}
	}
}

// The gradients are derivatives: central differences of the loss agree.
func TestFiniteDifferences(t *testing.T) {
	n := build(t)
	p, err := exec.Compile(exec.Reference{}, n.g, append(G.Nodes{n.loss}, n.grads...)...)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	b := random(rng, n, 12, 6)
	n.bind(p, b)
	loss := func() float64 {
		if err := p.Run(); err != nil {
			t.Fatal(err)
		}
		return float64(p.Output(0).Data[0])
	}
	for i := range b.params {
		loss()
		grad := slices.Clone(p.Output(i + 1).Data)
		for j := range b.params[i] {
			const eps = 1e-2
			w := b.params[i][j]
			b.params[i][j] = w + eps
			up := loss()
			b.params[i][j] = w - eps
			down := loss()
			b.params[i][j] = w
			if fd := (up - down) / (2 * eps); max(fd-float64(grad[j]), float64(grad[j])-fd) > 2e-4 {
				t.Errorf("%v[%d]: gradient %g, finite differences give %g", n.params[i], j, grad[j], fd)
			}
		}
	}
}

// Forward-only programs drop everything else and share buffers.
func TestPrunesAndShares(t *testing.T) {
	n := build(t)
	full, err := exec.Compile(exec.Reference{}, n.g, append(G.Nodes{n.loss}, n.grads...)...)
	if err != nil {
		t.Fatal(err)
	}
	forward, err := exec.Compile(exec.Reference{}, n.g, n.logits)
	if err != nil {
		t.Fatal(err)
	}
	if forward.Input(n.labels) != nil {
		t.Error("a forward program wants labels")
	}
	if got := forward.NumInstructions(); got != 11 {
		t.Errorf("forward program has %d instructions, want 11", got)
	}
	if full.NumBuffers() >= full.NumInstructions()-len(n.grads)-1 {
		t.Errorf("%d buffers for %d instructions: none is shared", full.NumBuffers(), full.NumInstructions())
	}
}

func TestOutputsOwnTheirMemory(t *testing.T) {
	g := G.NewGraph()
	x := G.NewMatrix(g, G.Float32, G.WithShape(2, 3), G.WithName("x"))
	y, err := op.New(op.ReLU, op.Attr{}).Apply(x)
	if err != nil {
		t.Fatal(err)
	}
	p, err := exec.Compile(exec.Reference{}, g, y, x, y)
	if err != nil {
		t.Fatal(err)
	}
	own := make([]float32, 6)
	p.BindOutput(2, exec.HostBuffer(own))
	*p.Input(x) = op.Matrix(2, 3, []float32{-1, 2, -3, 4, -5, 6})
	if err := p.Run(); err != nil {
		t.Fatal(err)
	}
	if want := []float32{0, 2, 0, 4, 0, 6}; !slices.Equal(own, want) || !slices.Equal(p.Output(0).Data, want) {
		t.Errorf("outputs %v and %v, want %v", p.Output(0).Data, own, want)
	}
	if &p.Output(0).Data[0] == &p.Output(2).Data[0] || &p.Output(1).Data[0] == &p.Input(x).Data[0] {
		t.Error("outputs share memory")
	}
	*p.Input(x) = op.Matrix(3, 3, make([]float32, 9))
	if err := p.Run(); err == nil || !strings.Contains(err.Error(), "bound memory") {
		t.Errorf("a result larger than its bound memory gave %v", err)
	}
}

func TestMisfitsAreErrors(t *testing.T) {
	n := build(t)
	p, err := exec.Compile(exec.Reference{}, n.g, n.loss)
	if err != nil {
		t.Fatal(err)
	}
	b := random(rand.New(rand.NewPCG(5, 6)), n, 9, 4)
	b.block.NumSrc++
	n.bind(p, b)
	if err := p.Run(); err == nil || !strings.Contains(err.Error(), "Aggregate(mean)") {
		t.Errorf("a block of the wrong size gave %v, want an error that names Aggregate", err)
	}
	b.block.NumSrc--
	b.labels.Class = b.labels.Class[1:]
	if err := p.Run(); err == nil || !strings.Contains(err.Error(), "labels") {
		t.Errorf("missing labels gave %v", err)
	}
}

func TestForeignOpsAreErrors(t *testing.T) {
	g := G.NewGraph()
	x := G.NewMatrix(g, G.Float32, G.WithShape(2, 3), G.WithName("x"))
	y := G.Must(G.Tanh(x))
	if _, err := exec.Compile(exec.Reference{}, g, y); err == nil {
		t.Error("tanh of Gorgonia's compiled")
	}
}

// null is a back end that computes nothing: what remains is the executor.
type null struct{ exec.Reference }

func (null) Kernel(*op.Op) (exec.Kernel, error) {
	return exec.KernelFunc(func(*op.Value, []*op.Value) error { return nil }), nil
}

// BenchmarkOverhead measures the executor alone on a training step's program.
func BenchmarkOverhead(b *testing.B) {
	n := build(b)
	p, err := exec.Compile(null{}, n.g, append(G.Nodes{n.loss}, n.grads...)...)
	if err != nil {
		b.Fatal(err)
	}
	bt := random(rand.New(rand.NewPCG(1, 2)), n, 90, 40)
	n.bind(p, bt)
	b.ReportAllocs()
	for b.Loop() {
		if err := p.Run(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(p.NumInstructions()), "instructions")
}

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	n := build(t)
	p, err := exec.Compile(null{}, n.g, append(G.Nodes{n.loss}, n.grads...)...)
	if err != nil {
		t.Fatal(err)
	}
	n.bind(p, random(rand.New(rand.NewPCG(1, 2)), n, 90, 40))
	if err := p.Run(); err != nil {
		t.Fatal(err)
	}
	if a := testing.AllocsPerRun(100, func() {
		if err := p.Run(); err != nil {
			t.Fatal(err)
		}
	}); a != 0 {
		t.Errorf("%v allocations a run", a)
	}
}

func ExampleCompile() {
	g := G.NewGraph()
	x := G.NewMatrix(g, G.Float32, G.WithShape(2, 2), G.WithName("x")) // 2 rows stand for any number
	w := G.NewMatrix(g, G.Float32, G.WithShape(3, 2), G.WithName("w"))
	y, err := op.New(op.MatMul, op.Attr{TransB: true}).Apply(x, w)
	if err != nil {
		panic(err)
	}
	p, err := exec.Compile(exec.Reference{}, g, y)
	if err != nil {
		panic(err)
	}
	*p.Input(x) = op.Matrix(1, 2, []float32{1, 2})
	*p.Input(w) = op.Matrix(3, 2, []float32{1, 0, 0, 1, 1, 1})
	if err := p.Run(); err != nil {
		panic(err)
	}
	fmt.Println(p.Output(0).Data)
	// Output: [1 2 3]
}
