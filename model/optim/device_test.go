package optim_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"zerogcn/cuda"
	"zerogcn/cuda/cudatest"
	"zerogcn/cuda/cudatest/fake"
	"zerogcn/internal/golden"
	"zerogcn/model/optim"
)

func openDevice(t *testing.T, s *cuda.Stream, n int, segments []optim.Segment, o optim.Options) *optim.Device {
	t.Helper()
	z, err := optim.NewDevice(s, n, segments, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 2 { // closing twice does nothing
			if err := z.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return z
}

func TestGPUGolden(t *testing.T) {
	s := cudatest.Stream(t, cudatest.Device(t))
	for _, c := range goldenCases {
		t.Run(c.name, func(t *testing.T) {
			g := golden.Load(t, "optimizers/"+c.name)
			p := g.Float32s(t, g.Inputs["p0"])
			grads := g.Float32s(t, g.Inputs["grads"])
			want := g.Floats(t, g.Expect["params"])
			n := len(p)
			z := openDevice(t, s, n, []optim.Segment{{Lo: 0, Hi: n, WeightDecay: c.decay}}, c.opt)
			dp, dg := cudatest.Upload(t, s, p), cudatest.Upload(t, s, grads)
			for k := range len(grads) / n {
				if err := z.Step(uintptr(dp.Ptr()), uintptr(dg.Ptr())+uintptr(4*k*n), c.lr); err != nil {
					t.Fatal(err)
				}
				golden.Check(t, fmt.Sprintf("step %d", k+1), cudatest.Download[float32](t, s, dp.Ptr(), n), want[k*n:(k+1)*n], golden.Forward)
			}
		})
	}
}

// Both forms make the same updates, over segments with and without decay; and a
// state taken from one continues on the other.
func TestGPUMatchesHost(t *testing.T) {
	s := cudatest.Stream(t, cudatest.Device(t))
	const n, steps = 300_001, 5
	segments := []optim.Segment{{Lo: 10, Hi: 100_000, WeightDecay: 0.1}, {Lo: 100_000, Hi: 100_003, WeightDecay: 0.01}, {Lo: 200_000, Hi: 250_000}}
	for _, c := range goldenCases {
		t.Run(c.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			p, g := make([]float32, n), make([]float32, n)
			for i := range p {
				p[i] = float32(rng.NormFloat64())
			}
			host, err := optim.New(n, segments, c.opt)
			if err != nil {
				t.Fatal(err)
			}
			z := openDevice(t, s, n, segments, c.opt)
			dp := cudatest.Upload(t, s, p)
			for k := range steps {
				for i := range g {
					g[i] = float32(rng.NormFloat64() * math.Pow(10, float64(rng.IntN(9)-6)))
				}
				host.Step(p, g, c.lr)
				dg := cudatest.Upload(t, s, g)
				if err := z.Step(uintptr(dp.Ptr()), uintptr(dg.Ptr()), c.lr); err != nil {
					t.Fatal(err)
				}
				got := cudatest.Download[float32](t, s, dp.Ptr(), n)
				equal := 0
				for i, v := range got {
					if v == p[i] {
						equal++
					}
					if d := math.Abs(float64(v) - float64(p[i])); !(d <= 1e-6*math.Abs(float64(p[i]))+1e-9) {
						t.Fatalf("step %d: parameter %d is %g, on the host %g", k+1, i, v, p[i])
					}
				}
				t.Logf("step %d: %d of %d equal to the bit", k+1, equal, n)
			}
			if z.Steps() != steps {
				t.Errorf("%d steps counted, want %d", z.Steps(), steps)
			}
			continueOnHost(t, s, z, host, dp, g, segments, c.opt, c.lr)
		})
	}
}

// continueOnHost takes the device's state to a new host optimiser and to a new
// device one, and makes one more step on all three.
func continueOnHost(t *testing.T, s *cuda.Stream, z *optim.Device, host *optim.Optimizer, dp *cuda.Buffer, g []float32,
	segments []optim.Segment, o optim.Options, lr float64) {
	t.Helper()
	n := len(g)
	state, err := z.State()
	if err != nil {
		t.Fatal(err)
	}
	if len(state) != len(host.State()) {
		t.Fatalf("state has %d moments, the host's %d", len(state), len(host.State()))
	}
	next, err := optim.New(n, segments, o)
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range next.State() {
		copy(x, state[name])
	}
	next.SetSteps(z.Steps())
	p := cudatest.Download[float32](t, s, dp.Ptr(), n)
	other := openDevice(t, s, n, segments, o)
	if err := other.Restore(state); err != nil {
		t.Fatal(err)
	}
	other.SetSteps(z.Steps())
	op, dg := cudatest.Upload(t, s, p), cudatest.Upload(t, s, g)
	next.Step(p, g, lr)
	for _, d := range []struct {
		z *optim.Device
		p *cuda.Buffer
	}{{z, dp}, {other, op}} {
		if err := d.z.Step(uintptr(d.p.Ptr()), uintptr(dg.Ptr()), lr); err != nil {
			t.Fatal(err)
		}
	}
	a, b := cudatest.Download[float32](t, s, dp.Ptr(), n), cudatest.Download[float32](t, s, op.Ptr(), n)
	if !slices.Equal(a, b) {
		t.Error("a restored optimiser continues with other bits")
	}
	for i, v := range a {
		if d := math.Abs(float64(v) - float64(p[i])); !(d <= 1e-6*math.Abs(float64(p[i]))+1e-9) {
			t.Fatalf("after restoring: parameter %d is %g, on the host %g", i, v, p[i])
		}
	}
}

// Without a GPU: launches have the arguments that the kernels take, and memory is
// counted and freed.
func TestDeviceOnFake(t *testing.T) {
	for _, o := range []optim.Options{{}, {Kind: optim.AdamW}, {Kind: optim.SGD}, {Kind: optim.SGD, Momentum: 0.9}} {
		t.Run(fmt.Sprintf("%s momentum %g", o.Kind, o.Momentum), func(t *testing.T) {
			dev, f := cudatest.Fake(t)
			launches := 0
			f.Kernel("adam", func(fake.Launch) { launches++ })
			f.Kernel("sgd", func(fake.Launch) { launches++ })
			s, err := dev.NewStream(cuda.StreamOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			z, err := optim.NewDevice(s, 100, []optim.Segment{{Lo: 5, Hi: 10, WeightDecay: 1}}, o)
			if err != nil {
				t.Fatal(err)
			}
			defer z.Close()
			if err := z.Step(8, 8, 0.1); err != nil || launches != 1 || z.Steps() != 1 {
				t.Errorf("%v, %d launches, %d steps", err, launches, z.Steps())
			}
			host, err := optim.New(100, nil, o)
			if err != nil {
				t.Fatal(err)
			}
			want := host.State()
			for _, x := range want {
				for i := range x {
					x[i] = float32(i)
				}
			}
			if err := z.Restore(want); err != nil {
				t.Fatal(err)
			}
			got, err := z.State()
			if err != nil || len(got) != len(want) {
				t.Fatalf("state of %d moments, want %d; %v", len(got), len(want), err)
			}
			for name, x := range want {
				if !slices.Equal(got[name], x) {
					t.Errorf("%s is not what was restored", name)
				}
			}
			if len(want) > 0 {
				if err := z.Restore(nil); err == nil || !strings.Contains(err.Error(), "has 0 elements, want 100") {
					t.Errorf("restored nothing: %v", err)
				}
			}
			if _, err := optim.NewDevice(s, 4, []optim.Segment{{Lo: 0, Hi: 5}}, o); err == nil {
				t.Error("took a segment past the end")
			}
		})
	}
}

func BenchmarkGPUAdam(b *testing.B) {
	s := cudatest.Stream(b, cudatest.Device(b))
	const n = 206_895 // GraphSAGE 3×256 on ogbn-products
	z, err := optim.NewDevice(s, n, nil, optim.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer z.Close()
	p, g := cudatest.Upload(b, s, make([]float32, n)), cudatest.Upload(b, s, make([]float32, n))
	b.ReportAllocs()
	for b.Loop() {
		if err := z.Step(uintptr(p.Ptr()), uintptr(g.Ptr()), 1e-3); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Synchronize(); err != nil {
		b.Fatal(err)
	}
}
