package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"zerogcn/cuda"
	"zerogcn/cuda/cublas"
	"zerogcn/cuda/cudatest"
	"zerogcn/graph"
	"zerogcn/model/exec"
	"zerogcn/model/exec/cpu"
	execcuda "zerogcn/model/exec/cuda"
	"zerogcn/model/exec/cuda/devicetest"
	"zerogcn/model/op"
)

// sampled makes a batch with the shape of a sampled one: sizes are the numbers of
// sources, outermost first, and of the targets of the last layer.
func sampled(rng *rand.Rand, c *Config, sizes, fanouts []int) *Input {
	in := &Input{X: op.Matrix(sizes[0], c.In, make([]float32, sizes[0]*c.In)),
		Key: op.Key{Seed: 5, Step: rng.Uint64N(1000), Rows: make([]int32, sizes[0])}}
	for i := range in.X.Data {
		in.X.Data[i] = float32(rng.NormFloat64())
	}
	for i := range in.Key.Rows {
		in.Key.Rows[i] = rng.Int32N(1 << 30)
	}
	for l := range fanouts {
		b := &graph.Block{NumDst: sizes[l+1], NumSrc: sizes[l], Indptr: make([]int32, 1, sizes[l+1]+1),
			Degree: make([]int32, sizes[l])}
		type entry struct{ target, edge int32 }
		to := make([][]entry, b.NumSrc)
		for i := range b.NumDst {
			for range rng.IntN(fanouts[l] + 1) {
				j := rng.Int32N(int32(b.NumSrc))
				if l > 0 {
					to[j] = append(to[j], entry{int32(i), int32(len(b.Indices))})
				}
				b.Indices = append(b.Indices, j)
			}
			b.Indptr = append(b.Indptr, int32(len(b.Indices)))
			b.Scale = append(b.Scale, 1+rng.Float32())
		}
		for j := range b.Degree {
			b.Degree[j] = rng.Int32N(100)
		}
		if l > 0 { // no gradient flows to the features
			b.TIndptr = make([]int32, 1, b.NumSrc+1)
			for _, es := range to {
				for _, e := range es {
					b.TIndices, b.TEdges = append(b.TIndices, e.target), append(b.TEdges, e.edge)
				}
				b.TIndptr = append(b.TIndptr, int32(len(b.TIndices)))
			}
		}
		in.Blocks = append(in.Blocks, b)
	}
	in.Labels = &op.Labels{Class: make([]int32, sizes[len(fanouts)])}
	for i := range in.Labels.Class {
		in.Labels.Class[i] = rng.Int32N(int32(c.Classes)+1) - 1
	}
	return in
}

// trial trains a network for some steps on a cycle of batches of different sizes.
type trial struct {
	losses []float64
	params []float32
}

func (a trial) same(b trial) bool {
	return slices.Equal(a.losses, b.losses) && slices.Equal(a.params, b.params)
}

// way is how a trial is run.
type way struct {
	plain bool // by Train and an update of its own, not by Step
	ahead bool // without waiting for the loss of each step
	// settled, if not nil, is called when every batch has been seen twice and
	// returns what to call at the end.
	settled func() func()
}

func train(t *testing.T, b exec.Backend, cfg Config, batches []*Input, steps int, w way) trial {
	t.Helper()
	n, err := New(cfg, b, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	update := optimizer(t, n)
	if g, ok := b.(*execcuda.Backend); ok {
		on := make([]*Input, len(batches))
		for i, in := range batches {
			on[i] = deviceInput(t, g, in)
		}
		batches = on
	}
	var r trial
	end := func() {}
	for s := range steps {
		if s == 2*len(batches) && w.settled != nil {
			end = w.settled()
		}
		in := batches[s%len(batches)]
		up := func() error { return update(0.003 / (1 + float64(s)/20)) }
		if w.plain {
			if err = n.Train(in); err == nil {
				err = up()
			}
		} else {
			err = n.Step(in, up)
		}
		if err != nil {
			t.Fatal(err)
		}
		if !w.ahead {
			r.losses = append(r.losses, n.Loss())
		}
	}
	end()
	if err := n.Params.Download(); err != nil {
		t.Fatal(err)
	}
	r.params = slices.Clone(n.Params.Data)
	return r
}

// 50 steps on batches of varying sizes: the GPU's losses follow the CPU's, two
// runs give the same bits whether launched one by one or as a graph, and after a
// few batches nothing is allocated on the device.
func TestGPUTraining(t *testing.T) {
	cudatest.Device(t) // skips before the batches are made
	const steps = 50
	for _, c := range []struct {
		name string
		cfg  Config
	}{
		{"sage-mean", Config{Arch: SAGE, In: 100, Hidden: 64, Classes: 47, Layers: 3, Dropout: 0.5}},
		{"sage-sum", Config{Arch: SAGE, Aggregator: "sum", In: 30, Hidden: 32, Classes: 7, Layers: 2, Dropout: 0.3, InputDropout: 0.1}},
		{"sage-max", Config{Arch: SAGE, Aggregator: "max", In: 30, Hidden: 33, Classes: 7, Layers: 2, Dropout: 0.3}},
		{"sage-gcn", Config{Arch: SAGE, Aggregator: "gcn", In: 50, Hidden: 32, Classes: 9, Layers: 2, Dropout: 0.5}},
		{"gcn", Config{Arch: GCN, In: 50, Hidden: 16, Classes: 9, Layers: 2, Dropout: 0.5, InputDropout: 0.2}},
		{"mlp", Config{Arch: MLP, In: 50, Hidden: 64, Classes: 9, Layers: 3, Dropout: 0.2}},
	} {
		rng := rand.New(rand.NewPCG(9, 9))
		var batches []*Input
		for i := range 5 {
			sizes, fanouts := []int{4000 + 300*i, 1500 - 100*i, 400 + 50*i, 100 - 7*i}, []int{4, 5, 6}
			switch {
			case c.cfg.Arch == MLP:
				sizes, fanouts = sizes[1:2], nil
			case c.cfg.Layers == 2:
				sizes, fanouts = sizes[1:], fanouts[1:]
			}
			batches = append(batches, sampled(rng, &c.cfg, sizes, fanouts))
		}
		for name, o := range map[string]execcuda.Options{"cublas": {}, "own": {BLAS: execcuda.NoBLAS}} {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				b := devicetest.Backend(t, o)
				want := train(t, cpu.New(cpu.Options{}), c.cfg, batches, steps, way{})
				got := train(t, b, c.cfg, batches, steps, way{settled: func() func() {
					before := allocations(b.Device().Metrics())
					return func() {
						if n := allocations(b.Device().Metrics()) - before; n != 0 {
							t.Errorf("%d allocations on the device after every batch was seen twice", n)
						}
					}
				}})
				var worst float64
				for i, w := range want.losses {
					worst = max(worst, math.Abs(got.losses[i]-w)/max(1, math.Abs(w)))
				}
				t.Logf("losses differ from the CPU's by at most %.2g; %g to %g", worst, want.losses[0], want.losses[steps-1])
				if !(worst <= 1e-4) {
					t.Errorf("losses differ by %g: %v, on the CPU %v", worst, got.losses, want.losses)
				}
				if !train(t, b, c.cfg, batches, steps, way{}).same(got) {
					t.Error("a second run gives other bits")
				}
				if !train(t, b, c.cfg, batches, steps, way{plain: true}).same(got) {
					t.Error("a run without graphs gives other bits")
				}
			})
		}
	}
}

func allocations(m cuda.Metrics) (n int64) {
	for _, u := range m.Device {
		n += u.Total
	}
	return n
}

// cuBLAS takes other tensor-core kernels for other row counts. A graph of one step
// becomes that of the next all the same, with the bits of plain launches.
func TestGPUTensorCores(t *testing.T) {
	cudatest.Device(t)
	cfg := Config{Arch: SAGE, In: 100, Hidden: 256, Classes: 47, Layers: 2, Dropout: 0.5}
	rng := rand.New(rand.NewPCG(4, 4))
	var batches []*Input
	for _, n := range []int{40_000, 300, 25_000, 9000, 39_000, 3000, 700} {
		batches = append(batches, sampled(rng, &cfg, []int{n, n / 2, n / 20}, []int{4, 6}))
	}
	for _, p := range []cublas.Precision{cublas.TF32, cublas.BF16} {
		t.Run(p.String(), func(t *testing.T) {
			b := devicetest.Backend(t, execcuda.Options{Precision: p})
			want := train(t, b, cfg, batches, 4*len(batches), way{plain: true})
			if got := train(t, b, cfg, batches, 4*len(batches), way{}); !got.same(want) {
				t.Errorf("losses %v, without graphs %v", got.losses, want.losses)
			}
			// Steps are captured and updated while earlier ones run.
			for _, w := range []way{{ahead: true}, {ahead: true, plain: true}} {
				if got := train(t, b, cfg, batches, 4*len(batches), w); !slices.Equal(got.params, want.params) {
					t.Errorf("%+v: other parameters than when each step is waited for", w)
				}
			}
		})
	}
}

// A batch without targets on this rank, and one of a single target, train too.
func TestGPUSmallBatches(t *testing.T) {
	cfg := Config{Arch: SAGE, In: 12, Hidden: 8, Classes: 4, Layers: 2, Dropout: 0.5}
	b := devicetest.Backend(t, execcuda.Options{BLAS: execcuda.NoBLAS})
	rng := rand.New(rand.NewPCG(2, 2))
	var batches []*Input
	for _, sizes := range [][]int{{40, 10, 3}, {0, 0, 0}, {1, 1, 1}, {30, 4, 1}} {
		in := sampled(rng, &cfg, []int{max(1, sizes[0]), max(1, sizes[1]), max(1, sizes[2])}, []int{3, 3})
		if sizes[0] == 0 {
			in = &Input{X: op.Value{Cols: cfg.In}, Labels: &op.Labels{Class: []int32{}, Norm: 7}, Blocks: []*graph.Block{
				{Indptr: []int32{0}, TIndptr: []int32{0}}, {Indptr: []int32{0}, TIndptr: []int32{0}}}}
		}
		in.Labels.Norm = 7
		batches = append(batches, in)
	}
	want := train(t, cpu.New(cpu.Options{}), cfg, batches, 12, way{})
	got := train(t, b, cfg, batches, 12, way{})
	for i, w := range want.losses {
		if !(math.Abs(got.losses[i]-w) <= 1e-5*max(1, w)) {
			t.Errorf("step %d: loss %g, on the CPU %g", i, got.losses[i], w)
		}
	}
}

// BenchmarkGPUStep is a training step of the 3-layer GraphSAGE of ogbn-products
// with Adam, on sampled batches of 1,024 seeds, and on small ones, where launches
// cost more than work. us/step is the device's time, issue-us/step the host's to
// queue it.
func BenchmarkGPUStep(b *testing.B) {
	cudatest.Device(b)
	cfg := Config{Arch: SAGE, In: 100, Hidden: 256, Classes: 47, Layers: 3, Dropout: 0.5}
	rng := rand.New(rand.NewPCG(7, 7))
	var products, small []*Input
	for i := range 2 {
		// About 5, 10 and 15 edges a target.
		products = append(products, sampled(rng, &cfg, []int{512_000 - 5000*i, 100_000 + 2000*i, 14_000 + 100*i, 1024}, []int{10, 20, 30}))
		small = append(small, sampled(rng, &cfg, []int{4000 + 100*i, 1500 - 30*i, 400, 100}, []int{10, 20, 30}))
	}
	tf32 := execcuda.Options{Precision: cublas.TF32}
	for _, c := range []struct {
		name    string
		opt     execcuda.Options
		batches []*Input
		plain   bool
	}{
		{"tf32/graph", tf32, products, false},
		{"tf32/plain", tf32, products, true},
		{"bf16/graph", execcuda.Options{Precision: cublas.BF16}, products, false},
		{"fp32/graph", execcuda.Options{}, products, false},
		{"atomics/graph", execcuda.Options{Precision: cublas.TF32, Atomics: true}, products, false},
		{"own/graph", execcuda.Options{BLAS: execcuda.NoBLAS}, products, false},
		{"small-tf32/graph", tf32, small, false},
		{"small-tf32/plain", tf32, small, true},
	} {
		b.Run(c.name, func(b *testing.B) { benchmarkGPUStep(b, cfg, c.batches, c.opt, c.plain) })
	}
}

func benchmarkGPUStep(b *testing.B, cfg Config, host []*Input, o execcuda.Options, plain bool) {
	g := devicetest.Backend(b, o)
	bound, err := g.Device().Bind(g.Stream())
	if err != nil {
		b.Fatal(err)
	}
	defer bound.Release()
	n, err := New(cfg, g, 1)
	if err != nil {
		b.Fatal(err)
	}
	defer n.Close()
	update := optimizer(b, n)
	var batches []*Input
	for _, in := range host {
		batches = append(batches, deviceInput(b, g, in))
	}
	i := 0
	step := func() {
		in := batches[i%len(batches)]
		i++
		up := func() error { return update(1e-3) }
		var err error
		if plain {
			if err = n.Train(in); err == nil {
				err = up()
			}
		} else {
			err = n.Step(in, up)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	for range 6 {
		step()
	}
	start, end := timer(b, g), timer(b, g)
	var issue time.Duration
	if err := start.Record(g.Stream()); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		t := time.Now()
		step()
		issue += time.Since(t)
	}
	if err := end.Record(g.Stream()); err != nil {
		b.Fatal(err)
	}
	if err := end.Synchronize(); err != nil {
		b.Fatal(err)
	}
	d, err := end.Since(start)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(d.Nanoseconds())/1e3/float64(b.N), "us/step")
	b.ReportMetric(float64(issue.Nanoseconds())/1e3/float64(b.N), "issue-us/step")
	if r, ok := n.replay.(*execcuda.Replay); ok {
		b.ReportMetric(float64(r.Instantiations), "instantiations")
		b.ReportMetric(float64(r.Updates), "updates")
	}
}

func timer(b *testing.B, g *execcuda.Backend) *cuda.Event {
	b.Helper()
	e, err := g.Device().NewEvent(cuda.EventOptions{Timing: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { e.Close() })
	return e
}
