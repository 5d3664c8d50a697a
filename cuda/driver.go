package cuda

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Driver is the loaded libcuda. Its methods may be called at any time from any
// goroutine. The library stays loaded until the process ends.
type Driver struct {
	t       table
	version Version
	count   int

	arena    arena
	registry registry
	// contexts counts the open devices: while it is one, making a context
	// current needs no restoring afterwards (see Device.enter).
	contexts atomic.Int32
}

// Version is a version of CUDA as the driver counts it: 12010 is CUDA 12.1.
type Version int

// String returns "12.1".
func (v Version) String() string { return fmt.Sprintf("%d.%d", int(v)/1000, int(v)%1000/10) }

// Load opens libcuda.so.1 and initialises it. Where the library is absent the
// error is ErrNoDriver, where it sees no GPU the code NoDevice: Absent tells
// both.
func Load() (*Driver, error) {
	h, err := purego.Dlopen("libcuda.so.1", purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("cuda: %w: %v", ErrNoDriver, err)
	}
	return LoadFrom(func(name string) uintptr {
		p, err := purego.Dlsym(h, name)
		if err != nil {
			return 0
		}
		return p
	})
}

// LoadFrom is Load for a driver library that the caller has opened, or for a
// stand-in (package cudatest/fake): symbol returns the C address of a function,
// 0 for one that is not there.
func LoadFrom(symbol func(name string) uintptr) (*Driver, error) { return load(symbol) }

// Absent reports whether err, from Load, means that this machine has no GPU to
// offer, as opposed to one that does not work.
func Absent(err error) bool {
	return errors.Is(err, ErrNoDriver) || errors.Is(err, NoDevice)
}

func load(resolve func(string) uintptr) (*Driver, error) {
	d := new(Driver)
	if err := d.t.bind(resolve); err != nil {
		return nil, err
	}
	if err := d.do(&d.t.initialize, 0); err != nil {
		return nil, err
	}
	v, n := new(int32), new(int32)
	if err := d.do(&d.t.driverVersion, uintptr(unsafe.Pointer(v))); err != nil {
		return nil, err
	}
	if err := d.do(&d.t.deviceCount, uintptr(unsafe.Pointer(n))); err != nil {
		return nil, err
	}
	d.version, d.count = Version(*v), int(*n)
	if d.count == 0 {
		return nil, d.fail(&d.t.deviceCount, NoDevice)
	}
	return d, nil
}

// Version returns the newest CUDA version that the driver supports.
func (d *Driver) Version() Version { return d.version }

// Count returns the number of GPUs that CUDA_VISIBLE_DEVICES leaves visible.
func (d *Driver) Count() int { return d.count }

// Properties describes the GPU of the given ordinal, 0 ≤ ordinal < Count. It
// makes no context.
func (d *Driver) Properties(ordinal int) (Properties, error) {
	h, err := d.handle(ordinal)
	if err != nil {
		return Properties{}, err
	}
	return d.properties(ordinal, h)
}

func (d *Driver) handle(ordinal int) (int32, error) {
	if ordinal < 0 || ordinal >= d.count {
		return 0, fmt.Errorf("cuda: no device %d: %d visible (see nvidia-smi and CUDA_VISIBLE_DEVICES)", ordinal, d.count)
	}
	h := new(int32)
	if err := d.do(&d.t.deviceGet, uintptr(unsafe.Pointer(h)), uintptr(ordinal)); err != nil {
		return 0, err
	}
	return *h, nil
}

// Schedule is how a host thread waits for the device.
type Schedule uint32

// The ways of waiting. Spinning answers soonest and takes a core; blocking
// costs some 10 µs a wait and leaves the core to others.
const (
	ScheduleAuto     Schedule = 0 // spin unless there are more contexts than cores
	ScheduleSpin     Schedule = 1
	ScheduleYield    Schedule = 2
	ScheduleBlocking Schedule = 4
)

// DeviceOptions are the choices of Open. The zero value is usable.
type DeviceOptions struct {
	// Schedule is how synchronisations wait; zero leaves it to the driver. A
	// context that another library has made active keeps its own.
	Schedule Schedule
	// PoolLimit bounds the bytes that closed buffers keep for reuse; zero means
	// a quarter of the device's memory, negative none.
	PoolLimit int64
}

// Open retains the primary context of a GPU, the one that CUDA's runtime,
// cuBLAS and NCCL use too. Open a device once and share it: pool and counters
// belong to the handle.
func (d *Driver) Open(ordinal int, o DeviceOptions) (*Device, error) {
	h, err := d.handle(ordinal)
	if err != nil {
		return nil, err
	}
	p, err := d.properties(ordinal, h)
	if err != nil {
		return nil, err
	}
	if o.Schedule != ScheduleAuto {
		// Refused where the context is active already; waiting works all the same.
		d.code(&d.t.ctxSetFlags, uintptr(h), uintptr(o.Schedule))
	}
	ctx := new(uintptr)
	if err := d.do(&d.t.ctxRetain, uintptr(unsafe.Pointer(ctx)), uintptr(h)); err != nil {
		return nil, detail(err, "device %d, %s", ordinal, p.Name)
	}
	limit := o.PoolLimit
	switch {
	case limit == 0:
		limit = p.TotalMemory / 4
	case limit < 0:
		limit = 0
	}
	dev := &Device{drv: d, handle: h, props: p, ctx: *ctx, ctxArg: []uintptr{*ctx}, objects: make(map[closer]struct{})}
	dev.pool.limit = limit
	d.contexts.Add(1)
	return dev, nil
}
