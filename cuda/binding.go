package cuda

import (
	"fmt"
	"runtime"
	"slices"
	"unsafe"
)

// Binding is a goroutine that drives a device: it stays on its OS thread, with
// the device's context current there.
type Binding struct {
	dev     *Device
	streams []*Stream
	thread  ownThread
	before  uintptr // the context that was current
}

// Bind pins the calling goroutine to its OS thread, makes the device's context
// current there and lets calls on the given streams skip both from now on.
// Until Release only this goroutine may use those streams; another one gets an
// error (InvalidContext) or, if it runs on a thread where the context happens
// to be current, none. Release must be called by the same goroutine.
//
// Bindings nest, of different devices too, released in reverse order: while the
// inner one lasts, streams of the outer must not be used. A goroutine that ends
// without Release takes its thread with it. Binding is a matter of cost only:
// unbound calls are right from anywhere.
func (d *Device) Bind(streams ...*Stream) (*Binding, error) {
	if err := d.life.use(); err != nil {
		return nil, fmt.Errorf("cuda: %v: %w", d, err)
	}
	defer d.life.done()
	for _, s := range streams {
		if s.dev != d {
			return nil, fmt.Errorf("cuda: bind: the stream belongs to %v, not to %v", s.dev, d)
		}
	}
	b := &Binding{dev: d, streams: slices.Clone(streams)}
	runtime.LockOSThread()
	err := d.drv.do(&d.drv.t.ctxGetCurrent, uintptr(unsafe.Pointer(&b.before)))
	if err == nil {
		err = d.drv.do(&d.drv.t.ctxSetCurrent, d.ctx)
	}
	if err != nil {
		runtime.UnlockOSThread()
		return nil, detail(err, "%v", d)
	}
	b.thread.note()
	for i, s := range b.streams {
		if !s.bound.CompareAndSwap(nil, b) {
			b.streams = b.streams[:i]
			b.Release()
			return nil, fmt.Errorf("cuda: bind: stream %d is bound to another goroutine", i)
		}
	}
	return b, nil
}

// Release ends the binding. Calling it twice does nothing.
func (b *Binding) Release() {
	if b == nil || b.dev == nil {
		return
	}
	drv := b.dev.drv
	b.dev = nil
	for _, s := range b.streams {
		s.bound.CompareAndSwap(b, nil)
	}
	// It fails only if that context's device was closed meanwhile.
	drv.code(&drv.t.ctxSetCurrent, b.before)
	runtime.UnlockOSThread()
}
