package optim

import (
	"errors"
	"fmt"

	"zerogcn/cuda"
	"zerogcn/cuda/kernels"
)

// Device is an Optimizer whose parameters, gradients and moments are in GPU
// memory: a step is one kernel over the whole buffer. It computes what Optimizer
// does, operation by operation. Steps are queued on its stream; State and Restore
// wait for them. A Device serves one goroutine at a time.
type Device struct {
	opt    Options
	n      int
	steps  int64
	stream *cuda.Stream
	module *cuda.Module
	update *cuda.Function

	moments  []*cuda.Buffer // in the order of momentNames
	segments *cuda.Buffer   // ends, then decays
	count    int
}

// NewDevice is New for buffers on a device. The moments start at zero, once the
// stream's work so far is done. Close it after the last step.
func NewDevice(s *cuda.Stream, n int, segments []Segment, o Options) (*Device, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	segments, err := cover(n, segments)
	if err != nil {
		return nil, err
	}
	z := &Device{opt: o, n: n, stream: s, count: len(segments)}
	if err := z.open(segments); err != nil {
		return nil, errors.Join(fmt.Errorf("optim: %w", err), z.Close())
	}
	return z, nil
}

func (z *Device) open(segments []Segment) (err error) {
	dev := z.stream.Device()
	if z.module, err = kernels.Load(dev, "optim"); err != nil {
		return err
	}
	name := "adam"
	if z.opt.Kind == SGD {
		name = "sgd"
	}
	if z.update, err = z.module.Function(name); err != nil {
		return err
	}
	// The kernel reads int64 ends and float64 decays; both are 8 bytes.
	ends, decays := make([]int64, z.count), make([]float64, z.count)
	for i, s := range segments {
		ends[i], decays[i] = int64(s.Hi), s.WeightDecay
	}
	if z.segments, err = dev.Alloc(cuda.OptimizerState, int64(16*z.count)); err != nil {
		return err
	}
	if err := cuda.Upload(z.stream, z.segments.Ptr(), ends); err != nil {
		return err
	}
	if err := cuda.Upload(z.stream, z.decays(), decays); err != nil {
		return err
	}
	for range z.opt.moments() {
		m, err := dev.Alloc(cuda.OptimizerState, 4*int64(z.n))
		if err != nil {
			return err
		}
		z.moments = append(z.moments, m)
		if err := z.stream.Set8(m.Ptr(), 0, m.Len()); err != nil {
			return err
		}
	}
	return nil
}

func (z *Device) decays() cuda.DevicePtr { return z.segments.Ptr() + cuda.DevicePtr(8*z.count) }

// Step queues an update of the parameters by the gradients, both n float32 of
// device memory, at learning rate lr. It allocates nothing and may be captured.
func (z *Device) Step(params, grad uintptr, lr float64) error {
	z.steps++
	// An element a thread; a buffer larger than the device is walked in strides.
	const threads, perSM = 256, 8
	c := cuda.Linear(min((z.n+threads-1)/threads, perSM*z.stream.Device().Properties().SMs), threads)
	p, g, n := cuda.DevicePtr(params).Arg(), cuda.DevicePtr(grad).Arg(), cuda.I64(int64(z.n))
	ends, decays := z.segments.Ptr().Arg(), z.decays().Arg()
	o := &z.opt
	if o.Kind == SGD {
		var m cuda.DevicePtr
		if len(z.moments) > 0 {
			m = z.moments[0].Ptr()
		}
		return z.update.Launch(z.stream, c, p, g, m.Arg(), n, ends, decays,
			cuda.F32(float32(o.Momentum)), cuda.F32(float32(lr)), flag(o.Nesterov))
	}
	size, root := o.corrected(z.steps, lr)
	return z.update.Launch(z.stream, c, p, g, z.moments[0].Ptr().Arg(), z.moments[1].Ptr().Arg(), n, ends, decays,
		cuda.F32(float32(o.Beta1)), cuda.F32(float32(o.Beta2)), cuda.F32(float32(1-o.Beta1)), cuda.F32(float32(1-o.Beta2)),
		cuda.F32(size), cuda.F32(root), cuda.F32(float32(o.Epsilon)), cuda.F64(lr), flag(o.Kind == AdamW))
}

func flag(c bool) cuda.Arg {
	if c {
		return cuda.I32(1)
	}
	return cuda.I32(0)
}

// Steps returns the number of steps so far; SetSteps restores it.
func (z *Device) Steps() int64 { return z.steps }

// SetSteps sets the number of steps so far, on resuming.
func (z *Device) SetSteps(n int64) { z.steps = n }

// State returns copies of the moments, by the names of Optimizer.State.
func (z *Device) State() (map[string][]float32, error) {
	if len(z.moments) == 0 {
		return nil, nil
	}
	state := map[string][]float32{}
	for i, name := range momentNames[len(z.moments)] {
		state[name] = make([]float32, z.n)
		if err := cuda.Download(z.stream, state[name], z.moments[i].Ptr()); err != nil {
			return nil, fmt.Errorf("optim: %w", err)
		}
	}
	return state, nil
}

// Restore sets the moments to a State of this optimiser or of the host's form. A
// missing moment or one of another length is an error, and then some may be set.
func (z *Device) Restore(state map[string][]float32) error {
	for i, name := range momentNames[len(z.moments)] {
		if n := len(state[name]); n != z.n {
			return fmt.Errorf("optim: %s has %d elements, want %d", name, n, z.n)
		}
		if err := cuda.Upload(z.stream, z.moments[i].Ptr(), state[name]); err != nil {
			return fmt.Errorf("optim: %w", err)
		}
	}
	return nil
}

// Close waits for queued steps and frees the memory. Closing twice does nothing.
func (z *Device) Close() error {
	if z.module == nil {
		return nil
	}
	errs := []error{z.stream.Synchronize(), z.segments.Close()}
	for _, m := range z.moments {
		errs = append(errs, m.Close())
	}
	errs = append(errs, z.module.Close())
	z.module, z.segments, z.moments = nil, nil, nil
	return errors.Join(errs...)
}
