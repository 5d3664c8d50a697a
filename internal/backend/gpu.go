package backend

import (
	"errors"
	"fmt"

	"zerogcn/cuda"
	"zerogcn/cuda/cublas"
	"zerogcn/cuda/nvml"
	"zerogcn/internal/cli"
	"zerogcn/internal/usage"
	"zerogcn/trainer"
	"zerogcn/zerocopy"
)

// GPUOptions are the flags that say how to use a GPU.
type GPUOptions struct {
	Select    cli.GPUs
	Features  zerocopy.Mode
	Blocks    int
	HostGraph bool
	Precision string // auto, fp32, tf32 or bf16
	BLAS      string
}

// GPU is an open device. Close it after everything on it.
type GPU struct {
	trainer.GPU
	Ordinal int
	driver  *cuda.Driver
	nvml    *nvml.Library
}

// CountGPUs returns how many GPUs the driver shows, and why there are none.
func CountGPUs() (int, error) {
	d, err := cuda.Load()
	if err != nil {
		return 0, err
	}
	return d.Count(), nil
}

// CheckGPUs reports a selection that this machine cannot fulfil.
func CheckGPUs(sel cli.GPUs) error {
	if sel.Auto || sel.CPU() {
		return nil
	}
	n, err := CountGPUs()
	if err != nil && !cuda.Absent(err) {
		return usage.Wrap(err)
	}
	want := max(sel.Count, len(sel.Devices))
	for _, d := range sel.Devices {
		if d >= n {
			return usage.Errorf("%s: there is no GPU %d, %s", sel, d, visible(n))
		}
	}
	if want > n {
		return usage.Errorf("%s: %s", sel, visible(n))
	}
	if want > 1 {
		return usage.Errorf("%s: training on several GPUs is not built in yet; use 1", sel)
	}
	return nil
}

func visible(n int) string {
	switch n {
	case 0:
		return "no GPU is visible to the CUDA driver"
	case 1:
		return "one GPU is visible, number 0"
	}
	return fmt.Sprintf("%d GPUs are visible", n)
}

// OpenGPU opens the device that the selection names: nil for the CPU, with a note
// if auto found no GPU.
func OpenGPU(o GPUOptions) (*GPU, []trainer.Note, error) {
	if o.Select.CPU() {
		return nil, nil, nil
	}
	driver, err := cuda.Load()
	if err != nil && (!o.Select.Auto || !cuda.Absent(err)) {
		return nil, nil, usage.Wrap(err)
	}
	if err != nil || driver.Count() == 0 {
		return nil, []trainer.Note{{Text: "no GPU found: using the CPU"}}, nil
	}
	g := &GPU{driver: driver}
	if len(o.Select.Devices) > 0 {
		g.Ordinal = o.Select.Devices[0]
	}
	dev, err := driver.Open(g.Ordinal, cuda.DeviceOptions{})
	if err != nil {
		return nil, nil, err
	}
	g.GPU = trainer.GPU{Device: dev, Mode: o.Features, Blocks: o.Blocks, HostGraph: o.HostGraph, BLAS: o.BLAS}
	switch o.Precision {
	case "fp32":
		g.Precision = cublas.FP32
	case "bf16":
		g.Precision = cublas.BF16
	case "tf32":
		g.Precision = cublas.TF32
	default:
		if dev.Properties().ComputeCapability() >= 80 {
			g.Precision = cublas.TF32
		}
	}
	if lib, err := nvml.Load(); err == nil {
		g.nvml = lib
		if d, err := lib.Device(dev.Properties().PCI); err == nil {
			g.Joules = d.Energy
		}
	}
	return g, nil, nil
}

// SizeCache sets the GPU memory that may hold feature rows, given the bytes of the
// whole table: at most half of what is free, which leaves room for batches and
// hidden layers.
func (g *GPU) SizeCache(size cli.Size, features int64) error {
	free, _, err := g.Device.MemInfo()
	if err != nil {
		return err
	}
	g.CacheBytes = min(size.Of(features, features), free/2)
	return nil
}

// Close closes the device.
func (g *GPU) Close() error {
	if g == nil {
		return nil
	}
	err := g.Device.Close()
	if g.nvml != nil {
		err = errors.Join(err, g.nvml.Close())
	}
	return err
}
