package cuda

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Device is a GPU whose primary context is retained. Its methods may be called
// from any goroutine. Close it when everything made on it is done.
type Device struct {
	drv    *Driver
	handle int32
	props  Properties
	ctx    uintptr
	ctxArg []uintptr // ctx as an argument list, which costs no allocation a call

	life     lifetime // methods hold it for reading, Close for writing
	pool     pool
	counters counters

	objectsMu sync.Mutex
	objects   map[closer]struct{} // nil once the device is closing
}

// closer is what a device keeps track of.
type closer interface {
	Close() error
	kind() string
}

// Driver returns the library that the device belongs to.
func (d *Device) Driver() *Driver { return d.drv }

// Ordinal returns the device's number among the visible ones.
func (d *Device) Ordinal() int { return d.props.Ordinal }

// Properties returns what is known of the GPU.
func (d *Device) Properties() Properties { return d.props }

// Context returns the CUcontext, for other libraries. It is valid until Close.
func (d *Device) Context() uintptr { return d.ctx }

// String returns "device 0 (NVIDIA H200)".
func (d *Device) String() string { return fmt.Sprintf("device %d (%s)", d.props.Ordinal, d.props.Name) }

// enter holds the calling goroutine on its thread with the device's context
// current, for the length of one call. leave undoes what the returned value
// says. With one device open, setting the context is enough, since nothing
// else of this package needs another; with several, the one that was current
// comes back, because a goroutine bound to another device may be calling.
func (d *Device) enter() (pushed bool, err error) {
	runtime.LockOSThread()
	f := &d.drv.t.ctxSetCurrent
	if d.drv.contexts.Load() > 1 {
		f, pushed = &d.drv.t.ctxPush, true
	}
	if r, _, _ := purego.SyscallN(f.addr, d.ctxArg...); int32(r) != 0 {
		runtime.UnlockOSThread()
		return false, detail(d.drv.fail(f, Code(int32(r))), "%v", d)
	}
	return pushed, nil
}

func (d *Device) leave(pushed bool) {
	if pushed {
		purego.SyscallN(d.drv.t.ctxPop.addr, noResult...)
	}
	runtime.UnlockOSThread()
}

// noResult is the argument list of cuCtxPopCurrent whose result nobody needs.
var noResult = []uintptr{0}

// within runs f with the device open and its context current.
func (d *Device) within(f func() error) error {
	if err := d.life.use(); err != nil {
		return fmt.Errorf("cuda: %v: %w", d, err)
	}
	defer d.life.done()
	return d.inContext(f)
}

// inContext is within for callers that know the device to be open.
func (d *Device) inContext(f func() error) error {
	pushed, err := d.enter()
	if err != nil {
		return err
	}
	defer d.leave(pushed)
	return f()
}

// Synchronize waits for all work on the device, of other users too.
func (d *Device) Synchronize() error {
	return d.within(func() error { return d.drv.do(&d.drv.t.ctxSynchronize) })
}

// MemInfo returns the device's free and total memory in bytes, of all
// processes. Memory that the pool keeps counts as used.
func (d *Device) MemInfo() (free, total int64, err error) {
	err = d.within(func() error {
		free, total, err = d.memInfo()
		return err
	})
	return free, total, err
}

func (d *Device) memInfo() (free, total int64, err error) {
	v := new([2]uint64)
	err = d.drv.do(&d.drv.t.memInfo, uintptr(unsafe.Pointer(&v[0])), uintptr(unsafe.Pointer(&v[1])))
	return int64(v[0]), int64(v[1]), err
}

// PriorityRange returns the stream priorities of the device: least ≥ greatest,
// as smaller numbers come first.
func (d *Device) PriorityRange() (least, greatest int, err error) {
	v := new([2]int32)
	err = d.within(func() error {
		return d.drv.do(&d.drv.t.ctxPriorityRange, uintptr(unsafe.Pointer(&v[0])), uintptr(unsafe.Pointer(&v[1])))
	})
	return int(v[0]), int(v[1]), err
}

// EnablePeer lets kernels and copies of d reach the memory of peer over NVLink
// or PCIe. It returns false where the machine does not allow it. Twice is fine.
func (d *Device) EnablePeer(peer *Device) (bool, error) {
	const peerAlready Code = 704
	if peer == d {
		return true, nil
	}
	if err := peer.life.use(); err != nil {
		return false, fmt.Errorf("cuda: %v: %w", peer, err)
	}
	defer peer.life.done()
	can := new(int32)
	if err := d.drv.do(&d.drv.t.deviceCanAccessPeer, uintptr(unsafe.Pointer(can)), uintptr(d.handle), uintptr(peer.handle)); err != nil {
		return false, err
	}
	if *can == 0 {
		return false, nil
	}
	err := d.within(func() error { return d.drv.do(&d.drv.t.ctxEnablePeer, peer.ctx, 0) })
	if errors.Is(err, peerAlready) {
		err = nil
	}
	return err == nil, detail(err, "%v to %v", d, peer)
}

// track registers an object that Close must close.
func (d *Device) track(o closer) error {
	d.objectsMu.Lock()
	defer d.objectsMu.Unlock()
	if d.objects == nil {
		return fmt.Errorf("cuda: %v: %w", d, ErrClosed)
	}
	d.objects[o] = struct{}{}
	return nil
}

func (d *Device) untrack(o closer) {
	d.objectsMu.Lock()
	delete(d.objects, o)
	d.objectsMu.Unlock()
}

// Leak is what was still open when a device was closed.
type Leak struct {
	Objects map[string]int // by kind: "stream", "buffer", …
}

// Error lists the kinds.
func (l *Leak) Error() string { return "cuda: closed with objects still open: " + countList(l.Objects) }

// Close waits for the device, closes what is still open on it and releases the
// primary context. Objects that their owners forgot are reported as a *Leak
// after they were closed. Closing twice does nothing.
func (d *Device) Close() error {
	d.objectsMu.Lock()
	open := d.objects
	d.objects = nil
	d.objectsMu.Unlock()
	if open == nil {
		return nil
	}
	// A lost context answers every call with the same error: then there is
	// nothing to wait for and nothing to keep.
	syncErr := d.Synchronize()
	var errs []error
	if syncErr != nil && !errors.Is(syncErr, ErrContextLost) {
		errs = append(errs, syncErr)
	}
	leak := &Leak{Objects: make(map[string]int)}
	// Executables and graphs before the modules whose kernels they launch,
	// buffers last: closing order by kind keeps that simple.
	for _, kind := range []string{"executable", "graph", "event", "stream", "module", "registration", "host buffer", "buffer"} {
		for o := range open {
			if o.kind() != kind {
				continue
			}
			leak.Objects[kind]++
			if err := o.Close(); err != nil && !errors.Is(err, ErrContextLost) {
				errs = append(errs, err)
			}
		}
	}
	if err := d.Trim(); err != nil && !errors.Is(err, ErrContextLost) {
		errs = append(errs, err)
	}
	d.life.end()
	if d.drv.t.ctxRelease.addr != 0 {
		if err := d.drv.do(&d.drv.t.ctxRelease, uintptr(d.handle)); err != nil && !errors.Is(err, ErrContextLost) {
			errs = append(errs, err)
		}
	}
	d.drv.contexts.Add(-1)
	if len(leak.Objects) > 0 {
		errs = append(errs, leak)
	}
	return errors.Join(errs...)
}
