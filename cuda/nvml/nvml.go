// Package nvml reads a GPU's sensors through NVIDIA's management library,
// opened at run time: power and energy, the PCIe link, memory in use. It is for
// reports; a machine without the library goes on without them.
//
//   - [Library]: the loaded library, made by [Load], closed by its owner.
//   - [Device]: one GPU, found by the PCI address that package cuda tells. It
//     is valid until the library is closed.
//
// A reading takes some 10 to 100 µs and disturbs nothing on the GPU.
package nvml

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"

	"zerogcn/cuda"
	"zerogcn/cuda/internal/dynlib"
)

// ErrUnsupported: the GPU or the machine (virtual ones often) has no such reading.
var ErrUnsupported = errors.New("nvml: reading not supported here")

// Library is a loaded and initialised NVML.
type Library struct {
	symbol func(names ...string) (uintptr, error)
	mu     sync.RWMutex
	closed bool
}

// Load opens libnvidia-ml.so.1, which comes with the driver.
func Load() (*Library, error) {
	lib, err := dynlib.Search{Names: []string{"libnvidia-ml.so.1"}}.Open()
	if err != nil {
		return nil, fmt.Errorf("nvml: %w", err)
	}
	return load(lib.Symbol)
}

func load(symbol func(names ...string) (uintptr, error)) (*Library, error) {
	l := &Library{symbol: symbol}
	if err := l.call("nvmlInit_v2"); err != nil {
		return nil, err
	}
	return l, nil
}

// call calls a function by name: readings are too rare for a table.
//
//go:uintptrescapes
func (l *Library) call(name string, a ...uintptr) error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return fmt.Errorf("nvml: %w", cuda.ErrClosed)
	}
	f, err := l.symbol(name)
	if err != nil {
		return fmt.Errorf("%w (%v)", ErrUnsupported, err)
	}
	r, _, _ := purego.SyscallN(f, a...)
	switch int32(r) {
	case 0:
		return nil
	case 3: // NVML_ERROR_NOT_SUPPORTED
		return fmt.Errorf("%w: %s", ErrUnsupported, name)
	}
	return &Error{name, int(int32(r))}
}

// Error is a failed call of NVML.
type Error struct {
	Call string
	Code int // nvmlReturn_t
}

// Error names the usual causes.
func (e *Error) Error() string {
	text := map[int]string{1: "not initialised", 2: "invalid argument", 4: "no permission: ask for the capability in the container or run as root",
		6: "no such GPU", 9: "the driver's kernel module is not loaded", 12: "the driver library is missing", 15: "the GPU has fallen off the bus: reboot",
		18: "the driver library and the kernel module differ: reboot", 999: "unknown error"}[e.Code]
	if text == "" {
		text = "failed"
	}
	return fmt.Sprintf("%s: %s (NVML error %d)", e.Call, text, e.Code)
}

// Close shuts the library down. Closing twice does nothing.
func (l *Library) Close() error {
	err := l.call("nvmlShutdown")
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	return err
}

// Device is a GPU as NVML knows it.
type Device struct {
	lib    *Library
	handle uintptr
}

// Device finds the GPU of a PCI address, as in cuda.Properties.PCI. NVML knows
// nothing of CUDA_VISIBLE_DEVICES, so ordinals would not agree.
func (l *Library) Device(pci string) (*Device, error) {
	name := append([]byte(pci), 0)
	h := new(uintptr)
	if err := l.call("nvmlDeviceGetHandleByPciBusId_v2", uintptr(unsafe.Pointer(&name[0])), uintptr(unsafe.Pointer(h))); err != nil {
		return nil, fmt.Errorf("device %s: %w", pci, err)
	}
	return &Device{l, *h}, nil
}

// Power returns the board's draw in watts, averaged by the driver over up to a
// second.
func (d *Device) Power() (float64, error) {
	v, err := d.uint32("nvmlDeviceGetPowerUsage")
	return float64(v) / 1e3, err
}

// Energy returns the joules drawn since the driver was loaded; a difference of
// two readings is the energy between. Volta and newer.
func (d *Device) Energy() (float64, error) {
	v := new(uint64)
	err := d.lib.call("nvmlDeviceGetTotalEnergyConsumption", d.handle, uintptr(unsafe.Pointer(v)))
	return float64(*v) / 1e3, err
}

// Link is the state of the PCIe link.
type Link struct {
	Generation    int // now; an idle GPU lowers it
	Width         int // lanes, now
	MaxGeneration int // that GPU and slot allow
	MaxWidth      int
}

// Bandwidth returns the raw bytes per second of the link at its best, one way,
// before packet headers; 0 for generations that it does not know.
func (l Link) Bandwidth() float64 {
	perLane := []float64{0, 0.25e9, 0.5e9, 0.985e9, 1.969e9, 3.938e9, 7.563e9}
	if l.MaxGeneration < 0 || l.MaxGeneration >= len(perLane) {
		return 0
	}
	return perLane[l.MaxGeneration] * float64(l.MaxWidth)
}

// Link returns the state of the PCIe link.
func (d *Device) Link() (Link, error) {
	var l Link
	for _, r := range []struct {
		to   *int
		name string
	}{
		{&l.Generation, "nvmlDeviceGetCurrPcieLinkGeneration"}, {&l.Width, "nvmlDeviceGetCurrPcieLinkWidth"},
		{&l.MaxGeneration, "nvmlDeviceGetMaxPcieLinkGeneration"}, {&l.MaxWidth, "nvmlDeviceGetMaxPcieLinkWidth"},
	} {
		v, err := d.uint32(r.name)
		if err != nil {
			return l, err
		}
		*r.to = int(v)
	}
	return l, nil
}

// Memory returns the device's memory in use, of all processes, and in all, in
// bytes.
func (d *Device) Memory() (used, total int64, err error) {
	m := new([3]uint64) // nvmlMemory_t: total, free, used
	err = d.lib.call("nvmlDeviceGetMemoryInfo", d.handle, uintptr(unsafe.Pointer(m)))
	return int64(m[2]), int64(m[0]), err
}

// Utilization returns the per cent of the last sampling period in which a
// kernel ran, and in which memory was read or written.
func (d *Device) Utilization() (gpu, memory int, err error) {
	u := new([2]uint32)
	err = d.lib.call("nvmlDeviceGetUtilizationRates", d.handle, uintptr(unsafe.Pointer(u)))
	return int(u[0]), int(u[1]), err
}

// DriverVersion returns the driver's release, such as "580.159.04".
func (l *Library) DriverVersion() (string, error) {
	b := make([]byte, 80)
	if err := l.call("nvmlSystemGetDriverVersion", uintptr(unsafe.Pointer(&b[0])), uintptr(len(b))); err != nil {
		return "", err
	}
	n := 0
	for n < len(b) && b[n] != 0 {
		n++
	}
	return string(b[:n]), nil
}

func (d *Device) uint32(name string) (uint32, error) {
	v := new(uint32)
	err := d.lib.call(name, d.handle, uintptr(unsafe.Pointer(v)))
	return *v, err
}
