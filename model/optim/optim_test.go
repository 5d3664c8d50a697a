package optim_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"zerogcn/internal/golden"
	"zerogcn/model/optim"
)

var goldenCases = []struct {
	name  string
	opt   optim.Options
	lr    float64
	decay float64
}{
	{"adam", optim.Options{}, 0.01, 0},
	{"adam_wd", optim.Options{}, 0.01, 5e-4},
	{"adamw", optim.Options{Kind: optim.AdamW}, 0.01, 0.01},
	{"sgd", optim.Options{Kind: optim.SGD}, 0.05, 0},
	{"sgd_momentum", optim.Options{Kind: optim.SGD, Momentum: 0.9}, 0.05, 0},
	{"sgd_nesterov_wd", optim.Options{Kind: optim.SGD, Momentum: 0.9, Nesterov: true}, 0.05, 5e-4},
}

func TestGolden(t *testing.T) {
	for _, c := range goldenCases {
		t.Run(c.name, func(t *testing.T) {
			g := golden.Load(t, "optimizers/"+c.name)
			p := g.Float32s(t, g.Inputs["p0"])
			grads := g.Float32s(t, g.Inputs["grads"])
			want := g.Floats(t, g.Expect["params"])
			n := len(p)
			z, err := optim.New(n, []optim.Segment{{Lo: 0, Hi: n, WeightDecay: c.decay}}, c.opt)
			if err != nil {
				t.Fatal(err)
			}
			for s := range len(grads) / n {
				z.Step(p, grads[s*n:(s+1)*n], c.lr)
				golden.Check(t, fmt.Sprintf("step %d", s+1), p, want[s*n:(s+1)*n], golden.Forward)
			}
		})
	}
}

// Decay reaches its own segment only, and workers do not change a bit.
func TestSegmentsAndWorkers(t *testing.T) {
	const n = 100_000
	rng := rand.New(rand.NewPCG(1, 2))
	p0, g := make([]float32, n), make([]float32, n)
	for i := range p0 {
		p0[i], g[i] = float32(rng.NormFloat64()), float32(rng.NormFloat64())
	}
	run := func(workers int, segments ...optim.Segment) []float32 {
		z, err := optim.New(n, segments, optim.Options{Workers: 1})
		if workers > 1 {
			z, err = optim.New(n, segments, optim.Options{Workers: 8})
		}
		if err != nil {
			t.Fatal(err)
		}
		p := slices.Clone(p0)
		for range 3 {
			z.Step(p, g, 0.1)
		}
		return p
	}
	mid := optim.Segment{Lo: 40_000, Hi: 50_000, WeightDecay: 0.1}
	one, eight, none := run(1, mid), run(8, mid), run(1)
	if !slices.Equal(one, eight) {
		t.Error("1 and 8 workers differ")
	}
	if !slices.Equal(one[:40_000], none[:40_000]) || !slices.Equal(one[50_000:], none[50_000:]) {
		t.Error("weight decay leaks out of its segment")
	}
	if slices.Equal(one[40_000:50_000], none[40_000:50_000]) {
		t.Error("weight decay has no effect in its segment")
	}
}

// A state copied into a new optimiser continues bit for bit.
func TestStateRestores(t *testing.T) {
	for _, o := range []optim.Options{{}, {Kind: optim.SGD, Momentum: 0.9}} {
		p, g := []float32{1, 2, 3}, []float32{0.5, -1, 2}
		a, err := optim.New(3, nil, o)
		if err != nil {
			t.Fatal(err)
		}
		a.Step(p, g, 0.1)
		q := slices.Clone(p)
		b, err := optim.New(3, nil, o)
		if err != nil {
			t.Fatal(err)
		}
		for name, s := range a.State() {
			copy(b.State()[name], s)
		}
		b.SetSteps(a.Steps())
		a.Step(p, g, 0.1)
		b.Step(q, g, 0.1)
		if !slices.Equal(p, q) {
			t.Errorf("%s: %v after restoring, want %v", o.Kind, q, p)
		}
	}
}

func TestStepDoesNotAllocate(t *testing.T) {
	const n = 50_000
	for _, o := range []optim.Options{{Workers: 1}, {Kind: optim.SGD, Momentum: 0.9, Workers: 1}} {
		z, err := optim.New(n, []optim.Segment{{Lo: 10, Hi: 20, WeightDecay: 1}}, o)
		if err != nil {
			t.Fatal(err)
		}
		p, g := make([]float32, n), make([]float32, n)
		if a := testing.AllocsPerRun(10, func() { z.Step(p, g, 0.1) }); a != 0 {
			t.Errorf("%s: %g allocations a step", o.Kind, a)
		}
	}
}

func TestBadOptions(t *testing.T) {
	for name, err := range map[string]error{
		"kind":     second(optim.New(4, nil, optim.Options{Kind: "adagrad"})),
		"overlap":  second(optim.New(4, []optim.Segment{{Lo: 0, Hi: 3}, {Lo: 2, Hi: 4}}, optim.Options{})),
		"past end": second(optim.New(4, []optim.Segment{{Lo: 0, Hi: 5}}, optim.Options{})),
		"negative": second(optim.New(4, []optim.Segment{{Lo: 0, Hi: 4, WeightDecay: -1}}, optim.Options{})),
		"nesterov": second(optim.New(4, nil, optim.Options{Kind: optim.SGD, Nesterov: true})),
	} {
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func second(_ *optim.Optimizer, err error) error { return err }

func BenchmarkAdam(b *testing.B) {
	const n = 206_895 // GraphSAGE 3×256 on ogbn-products
	p, g := make([]float32, n), make([]float32, n)
	for i := range g {
		g[i] = float32(i%7) - 3
	}
	z, err := optim.New(n, nil, optim.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(n * 4 * 7) // four streams read, three written
	b.ReportAllocs()
	for b.Loop() {
		z.Step(p, g, 1e-3)
	}
}
