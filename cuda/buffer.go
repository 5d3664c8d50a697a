package cuda

import (
	"errors"
	"fmt"
	"unsafe"
)

// Buffer is device memory. Its address and length do not change; its contents
// are whatever was there before.
type Buffer struct {
	dev     *Device
	ptr     DevicePtr
	n       int64
	class   int64
	purpose Purpose
	life    lifetime
}

// Alloc returns at least n bytes of device memory, aligned to 512 bytes. n = 0
// gives a buffer with address 0. Memory comes from the pool if it has a block
// of the size; when the device is out of memory the pool gives back what it
// keeps and Alloc tries once more.
func (d *Device) Alloc(p Purpose, n int64) (*Buffer, error) {
	if n < 0 {
		return nil, fmt.Errorf("cuda: allocate %d bytes for %v: negative size", n, p)
	}
	b := &Buffer{dev: d, n: n, purpose: p.index()}
	err := d.within(func() error {
		if n > 0 {
			d.harvest()
			b.class = sizeClass(n)
			var ok bool
			if b.ptr, ok = d.pool.take(b.class); !ok {
				var err error
				if b.ptr, err = d.allocBlock(b.class); err != nil {
					free, total, _ := d.memInfo()
					return detail(err, "asked %s for %v, %s of %s free on %v", byteCount(n), p, byteCount(free), byteCount(total), d)
				}
			}
		}
		if err := d.track(b); err != nil {
			if n > 0 {
				return errors.Join(err, d.freeBlock(b.ptr))
			}
			return err
		}
		d.counters.device[b.purpose].add(n)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return b, nil
}

func (d *Device) allocBlock(class int64) (DevicePtr, error) {
	p := new(uintptr)
	err := d.drv.do(&d.drv.t.memAlloc, uintptr(unsafe.Pointer(p)), uintptr(class))
	if errors.Is(err, OutOfMemory) {
		// Blocks that wait for their stream are free memory too, only later.
		if e := d.trim(); e != nil {
			return 0, e
		}
		err = d.drv.do(&d.drv.t.memAlloc, uintptr(unsafe.Pointer(p)), uintptr(class))
	}
	return DevicePtr(*p), err
}

func (d *Device) freeBlock(p DevicePtr) error {
	return d.drv.do(&d.drv.t.memFree, uintptr(p))
}

// release hands a block to the pool, or to the driver if the pool is full.
func (d *Device) release(p DevicePtr, class int64) error {
	if d.pool.keep(p, class) {
		return nil
	}
	return d.freeBlock(p)
}

// harvest moves blocks whose streams are done with them into the pool.
func (d *Device) harvest() {
	for _, b := range d.pool.settled(func(e uintptr) bool { return d.drv.code(&d.drv.t.eventQuery, e) == 0 }) {
		// Only freeing can fail, and only on a lost context.
		_ = d.release(b.ptr, b.class)
	}
}

// Trim returns the memory that the pool keeps to the driver. It waits for
// streams that closed buffers wait for.
func (d *Device) Trim() error {
	return d.within(func() error { return d.trim() })
}

func (d *Device) trim() error {
	var errs []error
	for _, b := range d.pool.settled(func(e uintptr) bool {
		// It fails on a lost context only, where nothing uses the block either.
		d.drv.code(&d.drv.t.eventSynchronize, e)
		return true
	}) {
		if err := d.freeBlock(b.ptr); err != nil {
			errs = append(errs, err)
		}
	}
	for {
		e := d.pool.spareEvent()
		if e == 0 {
			break
		}
		d.drv.code(&d.drv.t.eventDestroy, e)
	}
	for _, p := range d.pool.drain() {
		if err := d.freeBlock(p); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (b *Buffer) kind() string { return "buffer" }

// Ptr returns the buffer's address, 0 once it is closed.
func (b *Buffer) Ptr() DevicePtr {
	if b == nil || b.life.use() != nil {
		return 0
	}
	defer b.life.done()
	return b.ptr
}

// Len returns the bytes that were asked for.
func (b *Buffer) Len() int64 { return b.n }

// Close gives the memory back at once: the caller knows that no queued work
// uses it any more. Closing twice does nothing.
func (b *Buffer) Close() error {
	if b == nil || !b.life.end() {
		return nil
	}
	d := b.dev
	d.untrack(b)
	d.counters.device[b.purpose].sub(b.n)
	if b.n == 0 {
		return nil
	}
	return d.inContext(func() error { return d.release(b.ptr, b.class) })
}

// CloseAfter is Close once all work queued on s so far is done; it does not
// wait for that. The stream must be of the buffer's device and must not be
// capturing.
func (b *Buffer) CloseAfter(s *Stream) error {
	if b == nil {
		return nil
	}
	if s.dev != b.dev {
		return fmt.Errorf("cuda: buffer of %v closed after a stream of %v", b.dev, s.dev)
	}
	if s.capturing.Load() {
		return fmt.Errorf("cuda: buffer closed after a stream that captures: its graph may run any time later; close the buffer after the graph")
	}
	in, err := s.begin()
	if err != nil {
		return err
	}
	defer s.end(in)
	if !b.life.end() {
		return nil
	}
	d := b.dev
	d.untrack(b)
	d.counters.device[b.purpose].sub(b.n)
	if b.n == 0 {
		return nil
	}
	e := d.pool.spareEvent()
	if e == 0 {
		const disableTiming = 2
		h := new(uintptr)
		if err := d.drv.do(&d.drv.t.eventCreate, uintptr(unsafe.Pointer(h)), disableTiming); err != nil {
			return errors.Join(err, d.releaseNow(s, b))
		}
		e = *h
	}
	if err := d.drv.do(&d.drv.t.eventRecord, e, s.handle); err != nil {
		d.drv.code(&d.drv.t.eventDestroy, e)
		return errors.Join(err, d.releaseNow(s, b))
	}
	d.pool.postpone(pendingBlock{b.ptr, b.class, e})
	return nil
}

// releaseNow is the way out where no event can be had: wait, then free.
func (d *Device) releaseNow(s *Stream, b *Buffer) error {
	d.drv.code(&d.drv.t.streamSynchronize, s.handle)
	return d.freeBlock(b.ptr)
}
