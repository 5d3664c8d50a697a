package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"zerogcn/graph"
	"zerogcn/internal/philox"
	"zerogcn/model/exec"
	"zerogcn/model/exec/cpu"
	"zerogcn/model/op"
	"zerogcn/sparse"
)

// Published networks have the published numbers of parameters.
func TestParameterCounts(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  Config
		want int
	}{
		{"ogbn-products SAGE", Config{Arch: SAGE, In: 100, Hidden: 256, Classes: 47, Layers: 3}, 206_895},
		{"ogbn-arxiv GCN without norms", Config{Arch: GCN, In: 128, Hidden: 256, Classes: 40, Layers: 3}, 109_096},
		{"Cora GCN", Config{Arch: GCN, In: 1433, Hidden: 16, Classes: 7, Layers: 2}, 23_063},
		{"SAGE-gcn", Config{Arch: SAGE, Aggregator: "gcn", In: 10, Hidden: 5, Classes: 2, Layers: 2}, 67},
		{"MLP", Config{Arch: MLP, In: 10, Hidden: 5, Classes: 2, Layers: 2}, 67},
	} {
		n, err := New(c.cfg, exec.Reference{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(n.Params.Data); got != c.want {
			t.Errorf("%s: %d parameters, want %d", c.name, got, c.want)
		}
		seen := make([]bool, len(n.Params.Data))
		for _, q := range n.Params.List {
			for i := q.Offset; i < q.Offset+q.Len(); i++ {
				if seen[i] {
					t.Fatalf("%s: %s overlaps another parameter", c.name, q.Name)
				}
				seen[i] = true
			}
		}
		if slices.Contains(seen, false) {
			t.Errorf("%s: the flat buffer has gaps", c.name)
		}
	}
}

// Initial values fill PyTorch Geometric's intervals, and the seed decides them.
func TestInit(t *testing.T) {
	cfg := Config{Arch: GCN, In: 50, Hidden: 40, Classes: 30, Layers: 2}
	a, err := New(cfg, exec.Reference{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := New(cfg, exec.Reference{}, 1)
	c, _ := New(cfg, exec.Reference{}, 2)
	if !slices.Equal(a.Params.Data, b.Params.Data) || slices.Equal(a.Params.Data, c.Params.Data) {
		t.Error("the seed does not decide the initial values")
	}
	for i, q := range a.Params.List {
		v := a.Params.View(i)
		if strings.HasSuffix(q.Name, "bias") {
			if slices.ContainsFunc(v, func(x float32) bool { return x != 0 }) {
				t.Errorf("%s does not begin at 0", q.Name)
			}
			continue
		}
		bound := math.Sqrt(6 / float64(q.Shape[0]+q.Shape[1]))
		var mean, top float64
		for _, x := range v {
			mean += float64(x) / float64(len(v))
			top = max(top, math.Abs(float64(x)))
		}
		if top > bound || top < 0.98*bound || math.Abs(mean) > 0.1*bound {
			t.Errorf("%s: largest %g, mean %g; want up to %g, about 0", q.Name, top, mean, bound)
		}
	}
}

func randomGraph(t *testing.T, n, edges int) *graph.CSR {
	t.Helper()
	rng := rand.New(rand.NewPCG(7, 7))
	src, dst := make([]int32, edges), make([]int32, edges)
	for i := range src {
		src[i], dst[i] = rng.Int32N(int32(n)), rng.Int32N(int32(n/2)) // half of them without in-edges
		if i%9 == 0 {
			dst[i] = src[i]
		}
	}
	g, err := graph.Builder{NumNodes: n, Deduplicate: true}.FromEdges(t.Context(), src, dst, nil)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Layers that sum are estimated without bias: the mean of a layer over 10,000
// samplings is within 3 standard errors of the layer on whole neighbourhoods, for
// nearly all outputs, and within 5 for all.
func TestSampledSumsAreUnbiased(t *testing.T) {
	const nodes, samplings = 30, 10_000
	g := randomGraph(t, nodes, 400)
	ids := make([]int32, nodes)
	for v := range ids {
		ids[v] = int32(v)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	x := make([]float32, nodes*3)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	for _, cfg := range []Config{
		{Arch: GCN, GCNNorm: "sym"}, {Arch: GCN, GCNNorm: "row"},
		{Arch: SAGE, Aggregator: "gcn"}, {Arch: SAGE, Aggregator: "sum"},
	} {
		for _, replace := range []bool{false, true} {
			cfg.In, cfg.Classes, cfg.Layers = 3, 2, 1
			n, err := New(cfg, cpu.New(cpu.Options{Workers: 1}), 3)
			if err != nil {
				t.Fatal(err)
			}
			layer := func(fanout int, step uint64, s *graph.Sampler, b *graph.Batch) []float32 {
				if err := s.Sample(11, philox.Sample, step, ids, b); err != nil {
					t.Fatal(err)
				}
				v, err := n.Layer(0, &Input{X: op.Matrix(nodes, 3, x), Blocks: []*graph.Block{&b.Blocks[0]}})
				if err != nil {
					t.Fatal(err)
				}
				return v.Data
			}
			sampler := func(fanout int) *graph.Sampler {
				needs := n.Config.Needs()
				s, err := graph.NewSampler(g, graph.Options{Fanouts: []int{fanout}, Replace: replace && fanout > 0, Workers: 1,
					DropSelfLoops: needs.DropSelfLoops, Degrees: needs.Degree, Scale: needs.Scale})
				if err != nil {
					t.Fatal(err)
				}
				return s
			}
			var b graph.Batch
			full := slices.Clone(layer(0, 0, sampler(0), &b))
			s := sampler(4)
			sum, square := make([]float64, len(full)), make([]float64, len(full))
			for k := range samplings {
				for i, v := range layer(4, uint64(k), s, &b) {
					sum[i] += float64(v)
					square[i] += float64(v) * float64(v)
				}
			}
			beyond := 0
			for i, want := range full {
				mean := sum[i] / samplings
				se := math.Sqrt(max(0, square[i]/samplings-mean*mean) / samplings)
				off := math.Abs(mean - float64(want))
				if off > 3*se+1e-5 {
					beyond++
				}
				if off > 5*se+1e-5 {
					t.Errorf("%s %s%s replace=%t: output %d: mean %g over %d samplings, exactly %g (standard error %g)",
						cfg.Arch, cfg.Aggregator, cfg.GCNNorm, replace, i, mean, samplings, want, se)
				}
			}
			if beyond > 2 { // of 60, 0.3 % each
				t.Errorf("%s %s%s replace=%t: %d of %d outputs are off by more than 3 standard errors", cfg.Arch, cfg.Aggregator, cfg.GCNNorm, replace, beyond, len(full))
			}
		}
	}
}

// A network on sparse features has the losses and gradients of the same network
// on the same features stored densely, with the same dropout masks.
func TestSparseFeaturesEqualDense(t *testing.T) {
	g := randomGraph(t, 40, 300)
	rng := rand.New(rand.NewPCG(2, 2))
	const in = 20
	x := make([]float32, 40*in)
	for i := range x {
		if rng.IntN(4) == 0 {
			x[i] = float32(rng.NormFloat64())
		}
	}
	labels := &op.Labels{}
	for range 40 {
		labels.Class = append(labels.Class, rng.Int32N(3))
	}
	for _, cfg := range []Config{{Arch: SAGE}, {Arch: SAGE, Aggregator: "gcn"}, {Arch: GCN}, {Arch: MLP}} {
		cfg.In, cfg.Hidden, cfg.Classes, cfg.Layers, cfg.Dropout, cfg.InputDropout = in, 8, 3, 2, 0.4, 0.3
		var losses []float64
		var grads [][]float32
		for _, sp := range []bool{false, true} {
			cfg.SparseInput = sp
			n, err := New(cfg, cpu.New(cpu.Options{}), 5)
			if err != nil {
				t.Fatal(err)
			}
			needs := n.Config.Needs()
			input := &Input{X: op.Matrix(40, in, x), Labels: labels, Key: op.Key{Seed: 9, Step: 4}}
			if sp {
				input.X = op.Value{Sparse: sparse.FromDense(x, 40, in)}
			}
			for range needs.Blocks {
				b, err := graph.FullBlock(t.Context(), g, graph.Options{DropSelfLoops: needs.DropSelfLoops, Degrees: needs.Degree, TransposeAll: true})
				if err != nil {
					t.Fatal(err)
				}
				input.Blocks = append(input.Blocks, b)
			}
			if err := n.Train(input); err != nil {
				t.Fatal(err)
			}
			losses, grads = append(losses, n.Loss()), append(grads, slices.Clone(n.Params.Grad))
		}
		if d := math.Abs(losses[0] - losses[1]); d > 1e-5 {
			t.Errorf("%s: loss %g dense, %g sparse", cfg.Arch, losses[0], losses[1])
		}
		for i := range grads[0] {
			if d := math.Abs(float64(grads[0][i] - grads[1][i])); d > 1e-5 {
				t.Fatalf("%s: gradient %d is %g dense, %g sparse", cfg.Arch, i, grads[0][i], grads[1][i])
			}
		}
	}
}

func TestConfigListsAllFaults(t *testing.T) {
	c := Config{Arch: "gta", Dropout: 1.5, InputDropout: math.NaN()}
	err := c.Validate()
	for _, want := range []string{"gta", "0 layers", "0 input features", "0 classes", "dropout 1.5", "input dropout NaN"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
}

// BenchmarkTrain is a products-like step: three layers of 256, 1,024 seeds.
func BenchmarkTrain(b *testing.B) {
	const n, d = 50_000, 100
	rng := rand.New(rand.NewPCG(1, 2))
	src, dst := make([]int32, 15*n), make([]int32, 15*n)
	for i := range src {
		src[i], dst[i] = rng.Int32N(n), rng.Int32N(n)
	}
	g, err := graph.Builder{NumNodes: n}.FromEdges(b.Context(), src, dst, nil)
	if err != nil {
		b.Fatal(err)
	}
	net, err := New(Config{Arch: SAGE, In: d, Hidden: 256, Classes: 47, Layers: 3, Dropout: 0.5}, cpu.New(cpu.Options{}), 0)
	if err != nil {
		b.Fatal(err)
	}
	s, err := graph.NewSampler(g, graph.Options{Fanouts: []int{15, 10, 5}, Transpose: true})
	if err != nil {
		b.Fatal(err)
	}
	var batch graph.Batch
	seeds := make([]int32, 1024)
	for i := range seeds {
		seeds[i] = int32(i * 40)
	}
	if err := s.Sample(0, philox.Sample, 0, seeds, &batch); err != nil {
		b.Fatal(err)
	}
	in := &Input{X: op.Matrix(len(batch.Nodes), d, make([]float32, len(batch.Nodes)*d)), Labels: &op.Labels{Class: make([]int32, len(seeds))},
		Key: op.Key{Rows: batch.Nodes}}
	for i := range in.X.Data {
		in.X.Data[i] = float32(rng.NormFloat64())
	}
	for i := range batch.Blocks {
		in.Blocks = append(in.Blocks, &batch.Blocks[i])
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := net.Train(in); err != nil {
			b.Fatal(err)
		}
	}
}
