package cuda

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"
)

// Registration is host memory of the caller that is page-locked and mapped into
// the address space of the process's GPUs.
type Registration struct {
	dev     *Device
	memory  []byte
	ptr     DevicePtr
	locked  *lockedRange // nil for no bytes
	purpose Purpose
	life    lifetime
}

// RegisterOptions are the choices of Register; the zero value is usable.
type RegisterOptions struct {
	Purpose Purpose
	// ReadOnly is required for memory that is mapped read-only, and says that
	// the GPU will not write.
	ReadOnly bool
	// ChunkBytes is how much is page-locked in one driver call; zero means
	// 4 GiB. Between chunks the context is looked at and Progress is called.
	ChunkBytes int64
	// Progress, if not nil, is called from the registering goroutine with the
	// bytes done so far and in all.
	Progress func(done, total int64)
}

const defaultChunk = 4 << 30

// Register page-locks existing host memory so that kernels read it in place and
// copies run at full speed, on every device of the process. It costs about
// 0.02 s a GiB once the pages are there, and as much to undo.
//
// Memory that is registered already, exactly or as part of a larger range, is
// not registered again: the new Registration counts as another user of it, and
// the pages are released with the last. No bytes is fine too: then there is
// nothing to lock and the address is 0. Part of another range and part not is
// an ErrOverlap.
//
// memory must be anonymous memory or of a memory file system, not Go's heap and
// not a mapped file on disk (ErrFileMapping), and must stay mapped until Close.
// If ctx ends, what was locked so far is unlocked and ctx's error returned.
func (d *Device) Register(ctx context.Context, memory []byte, o RegisterOptions) (*Registration, error) {
	r := &Registration{dev: d, memory: memory, purpose: o.Purpose.index()}
	err := d.within(func() error {
		if len(memory) > 0 {
			if err := d.lock(ctx, r, o); err != nil {
				return err
			}
		}
		if err := d.track(r); err != nil {
			return errors.Join(err, r.unlock())
		}
		d.counters.registered[r.purpose].add(int64(len(memory)))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// lock finds or makes the page-locked range under r.memory.
func (d *Device) lock(ctx context.Context, r *Registration, o RegisterOptions) error {
	page := uintptr(os.Getpagesize())
	first := uintptr(unsafe.Pointer(&r.memory[0]))
	lo, hi := first&^(page-1), (first+uintptr(len(r.memory))+page-1)&^(page-1)
	var (
		l     *lockedRange
		isNew bool
		err   error
	)
	for {
		if l, isNew, err = d.drv.registry.acquire(lo, hi); err != nil {
			return err
		}
		if isNew {
			err = d.lockChunks(ctx, l, o)
			d.drv.registry.settle(l, err)
			break
		}
		select {
		case <-l.ready:
			err = l.err
		case <-ctx.Done():
			err = ctx.Err()
		}
		// Another caller's registration that its context ended is no answer
		// for this one.
		if ctx.Err() == nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
			d.drv.registry.release(l)
			continue
		}
		break
	}
	if err != nil {
		r.locked = l
		return errors.Join(err, r.unlock())
	}
	r.locked, r.ptr = l, l.base+DevicePtr(first-l.lo)
	return nil
}

// lockChunks registers a range with the driver. On an error nothing of it stays
// registered.
func (d *Device) lockChunks(ctx context.Context, l *lockedRange, o RegisterOptions) (err error) {
	const portable, deviceMap, readOnly = 1, 2, 8
	if err := checkMapping(l.lo, l.hi); err != nil {
		return err
	}
	flags := uintptr(portable | deviceMap)
	if o.ReadOnly && d.props.RegistersReadOnly {
		flags |= readOnly
	}
	total := l.hi - l.lo
	chunk := uintptr(defaultChunk)
	if o.ChunkBytes > 0 {
		page := uintptr(os.Getpagesize())
		chunk = max(page, uintptr(o.ChunkBytes)&^(page-1))
	}
	if !d.props.SameHostAddress {
		chunk = total // the chunks' device addresses need not follow each other
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.unlockChunks(l))
		}
	}()
	dev := new(uintptr)
	for done := uintptr(0); done < total; {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("cuda: register: stopped after %s of %s: %w", byteCount(int64(done)), byteCount(int64(total)), err)
		}
		n := min(chunk, total-done)
		at := l.lo + done
		if err := d.drv.do(&d.drv.t.hostRegister, at, n, flags); err != nil {
			return hostMemoryAdvice(err, "register", int64(total), o.Purpose)
		}
		l.chunks = append(l.chunks, at)
		if err := d.drv.do(&d.drv.t.hostDevicePointer, uintptr(unsafe.Pointer(dev)), at, 0); err != nil {
			return err
		}
		if done == 0 {
			l.base = DevicePtr(*dev)
		} else if DevicePtr(*dev) != l.base+DevicePtr(done) {
			return fmt.Errorf("cuda: register: the chunk at byte %d has device address %#x, not %#x after the first: register with ChunkBytes = %d", done, *dev, uintptr(l.base)+done, total)
		}
		done += n
		if o.Progress != nil {
			o.Progress(int64(done), int64(total))
		}
	}
	return nil
}

func (d *Device) unlockChunks(l *lockedRange) error {
	var errs []error
	for _, at := range l.chunks {
		if err := d.drv.do(&d.drv.t.hostUnregister, at); err != nil {
			errs = append(errs, detail(err, "memory at %#x", at))
		}
	}
	l.chunks = nil
	return errors.Join(errs...)
}

// unlock gives up r's share of its range; the last one unregisters it.
func (r *Registration) unlock() error {
	l := r.locked
	if l == nil || !r.dev.drv.registry.release(l) {
		return nil
	}
	defer r.dev.drv.registry.forget(l)
	return r.dev.unlockChunks(l)
}

func (r *Registration) kind() string { return "registration" }

// Bytes returns the memory that was registered.
func (r *Registration) Bytes() []byte { return r.memory }

// Ptr returns the address at which kernels find the first byte, 0 for no bytes
// or once it is closed. With unified addressing it is the host's.
func (r *Registration) Ptr() DevicePtr {
	if r == nil || r.life.use() != nil {
		return 0
	}
	defer r.life.done()
	return r.ptr
}

// Close gives the registration up; no queued work may use it any more. The
// pages are unlocked when nobody else has them registered. Closing twice does
// nothing.
func (r *Registration) Close() error {
	if r == nil || !r.life.end() {
		return nil
	}
	d := r.dev
	d.untrack(r)
	d.counters.registered[r.purpose].sub(int64(len(r.memory)))
	err := d.inContext(r.unlock)
	runtime.KeepAlive(r.memory)
	return err
}
