package model

import (
	"math/rand/v2"
	"slices"
	"testing"

	"zerogcn/cuda"
	"zerogcn/model/exec/cpu"
	"zerogcn/model/exec/cuda/devicetest"
	"zerogcn/model/optim"
)

// On the host Step is Train and an update.
func TestStepOnHost(t *testing.T) {
	cfg := Config{Arch: SAGE, In: 12, Hidden: 8, Classes: 4, Layers: 2, Dropout: 0.5}
	rng := rand.New(rand.NewPCG(2, 2))
	batches := []*Input{sampled(rng, &cfg, []int{40, 10, 3}, []int{3, 3}), sampled(rng, &cfg, []int{60, 20, 5}, []int{3, 3})}
	a := train(t, cpu.New(cpu.Options{}), cfg, batches, 6, way{})
	b := train(t, cpu.New(cpu.Options{}), cfg, batches, 6, way{plain: true})
	if !a.same(b) {
		t.Errorf("losses %v by Step, %v by Train", a.losses, b.losses)
	}
	if a.losses[0] == a.losses[2] {
		t.Errorf("the updates have no effect: %v", a.losses)
	}
}

// On a device, here one whose kernels do nothing: parameters move there and back,
// the second step and later ones are launched as graphs with as many kernels as the
// first has, and Close leaves no memory behind.
func TestStepOnDevice(t *testing.T) {
	b, driver, launches := devicetest.Fake(t)
	cfg := Config{Arch: SAGE, In: 12, Hidden: 8, Classes: 4, Layers: 2, Dropout: 0.5}
	n, err := New(cfg, b, 3)
	if err != nil {
		t.Fatal(err)
	}
	initial := slices.Clone(n.Params.Data)
	clear(n.Params.Data)
	if err := n.Params.Download(); err != nil || !slices.Equal(n.Params.Data, initial) {
		t.Errorf("the device has other initial values than the host, %v", err)
	}
	copy(n.Params.View(1), []float32{7})
	if err := n.Params.Upload(); err != nil {
		t.Fatal(err)
	}
	clear(n.Params.Data)
	if err := n.Params.Download(); err != nil || n.Params.View(1)[0] != 7 {
		t.Errorf("a value that was uploaded did not come back, %v", err)
	}
	if err := n.Params.DownloadGrad(); err != nil {
		t.Error(err)
	}
	z, err := optim.NewDevice(b.Stream(), len(n.Params.Data), nil, optim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(2, 2))
	in := deviceInput(t, b, sampled(rng, &n.Config, []int{40, 10, 3}, []int{3, 3}))
	var counts []int64
	for range 3 {
		before := launches.Load()
		if err := n.Step(in, func() error { return z.Step(n.Params.DeviceData(), n.Params.DeviceGrad(), 0.1) }); err != nil {
			t.Fatal(err)
		}
		counts = append(counts, launches.Load()-before)
		if n.Loss() != 0 || n.LossValue().Dev == 0 {
			t.Errorf("loss %g at %#x, want what lies in fresh memory", n.Loss(), n.LossValue().Dev)
		}
	}
	if counts[0] == 0 || counts[1] != counts[0] || counts[2] != counts[0] {
		t.Errorf("steps launched %v kernels", counts)
	}
	if g := driver.Calls("cuGraphLaunch"); g != 2 {
		t.Errorf("%d graphs launched in 3 steps, want 2", g)
	}
	if z.Steps() != 3 {
		t.Errorf("%d steps counted, want 3", z.Steps())
	}
	if err := z.Close(); err != nil {
		t.Error(err)
	}
	n.Close()
	n.Close()
	m := b.Device().Metrics().Device
	for _, p := range []cuda.Purpose{cuda.Parameters, cuda.Gradients, cuda.Activations, cuda.OptimizerState} {
		if m[p].Live != 0 || m[p].Total == 0 {
			t.Errorf("%v: %+v, want some and none left", p, m[p])
		}
	}
}
