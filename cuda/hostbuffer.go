package cuda

import (
	"errors"
	"fmt"
	"unsafe"
)

// HostBuffer is page-locked host memory of the driver's: copies from and to it
// run at the link's full speed and asynchronously, and kernels reach it.
type HostBuffer struct {
	dev     *Device
	bytes   []byte
	ptr     DevicePtr
	purpose Purpose
	life    lifetime
}

// HostOptions are the choices of AllocHost; the zero value is usable.
type HostOptions struct {
	// WriteCombined memory is faster for the GPU to read and very slow for the
	// host to read: for slabs that the host only fills.
	WriteCombined bool
}

// AllocHost returns n bytes of page-locked host memory, usable by every device
// of the process. It takes milliseconds: allocate once and reuse. n = 0 gives a
// buffer without bytes.
func (d *Device) AllocHost(p Purpose, n int64, o HostOptions) (*HostBuffer, error) {
	if n < 0 {
		return nil, fmt.Errorf("cuda: allocate %d bytes of host memory for %v: negative size", n, p)
	}
	const portable, deviceMap, writeCombined = 1, 2, 4
	flags := uintptr(portable | deviceMap)
	if o.WriteCombined {
		flags |= writeCombined
	}
	h := &HostBuffer{dev: d, purpose: p.index()}
	err := d.within(func() error {
		if n > 0 {
			host, dev := new(uintptr), new(uintptr)
			if err := d.drv.do(&d.drv.t.memHostAlloc, uintptr(unsafe.Pointer(host)), uintptr(n), flags); err != nil {
				return hostMemoryAdvice(err, "page-lock", n, p)
			}
			h.bytes = unsafe.Slice(*(**byte)(unsafe.Pointer(host)), n)
			if err := d.drv.do(&d.drv.t.hostDevicePointer, uintptr(unsafe.Pointer(dev)), *host, 0); err != nil {
				return errors.Join(err, d.drv.do(&d.drv.t.memFreeHost, *host))
			}
			h.ptr = DevicePtr(*dev)
		}
		if err := d.track(h); err != nil {
			return errors.Join(err, h.free())
		}
		d.counters.pinned[h.purpose].add(n)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return h, nil
}

func (h *HostBuffer) kind() string { return "host buffer" }

func (h *HostBuffer) free() error {
	if len(h.bytes) == 0 {
		return nil
	}
	return h.dev.drv.do(&h.dev.drv.t.memFreeHost, uintptr(unsafe.Pointer(&h.bytes[0])))
}

// Bytes returns the memory, nil once it is closed. The slice must not be used
// after Close: the pages are gone then.
func (h *HostBuffer) Bytes() []byte {
	if h == nil || h.life.use() != nil {
		return nil
	}
	defer h.life.done()
	return h.bytes
}

// Ptr returns the address at which kernels find the memory, 0 once it is closed.
func (h *HostBuffer) Ptr() DevicePtr {
	if h == nil || h.life.use() != nil {
		return 0
	}
	defer h.life.done()
	return h.ptr
}

// Close frees the memory; no queued work may use it any more. Closing twice
// does nothing.
func (h *HostBuffer) Close() error {
	if h == nil || !h.life.end() {
		return nil
	}
	d := h.dev
	d.untrack(h)
	d.counters.pinned[h.purpose].sub(int64(len(h.bytes)))
	return d.inContext(h.free)
}
