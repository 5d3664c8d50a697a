package cuda

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Stream is a queue of work on a device: what is queued runs in order, and at
// the same time as the work of other streams. Streams here never wait for the
// legacy default stream.
type Stream struct {
	dev    *Device
	handle uintptr
	life   lifetime
	bound  atomic.Pointer[Binding]
	owned  bool // false for streams of another library

	capturing atomic.Bool

	// mu guards the argument block and the name of the last kernel, which an
	// error that comes later is reported with.
	mu   sync.Mutex
	args *slot
	argv [11]uintptr
	last *Function
}

// StreamOptions are the choices of NewStream; the zero value is usable.
type StreamOptions struct {
	Priority int // see Device.PriorityRange; 0 is the least
}

// NewStream makes a stream.
func (d *Device) NewStream(o StreamOptions) (*Stream, error) {
	const nonBlocking = 1
	h := new(uintptr)
	var s *Stream
	err := d.within(func() (err error) {
		if err := d.drv.do(&d.drv.t.streamCreate, uintptr(unsafe.Pointer(h)), nonBlocking, uintptr(o.Priority)); err != nil {
			return err
		}
		s, err = d.newStream(*h, true)
		if err != nil {
			d.drv.code(&d.drv.t.streamDestroy, *h)
		}
		return err
	})
	return s, err
}

// AdoptStream wraps a CUstream that another library made in this device's
// primary context. Close forgets it without destroying it.
func (d *Device) AdoptStream(handle uintptr) (*Stream, error) {
	var s *Stream
	err := d.within(func() (err error) {
		s, err = d.newStream(handle, false)
		return err
	})
	return s, err
}

func (d *Device) newStream(handle uintptr, owned bool) (*Stream, error) {
	args, err := d.drv.arena.get()
	if err != nil {
		return nil, err
	}
	s := &Stream{dev: d, handle: handle, owned: owned, args: args}
	if err := d.track(s); err != nil {
		d.drv.arena.put(args)
		return nil, err
	}
	d.counters.streams.Add(1)
	return s, nil
}

func (s *Stream) kind() string { return "stream" }

// Device returns the device that the stream belongs to.
func (s *Stream) Device() *Device { return s.dev }

// Handle returns the CUstream, for other libraries. It is valid until Close.
func (s *Stream) Handle() uintptr { return s.handle }

// entry is what begin did and end must undo.
type entry struct{ entered, pushed bool }

// begin starts a call on the stream: the stream is open and its device's
// context current until end.
func (s *Stream) begin() (entry, error) {
	bound := s.bound.Load()
	if bound != nil {
		bound.thread.check()
	}
	if err := s.life.use(); err != nil {
		return entry{}, fmt.Errorf("cuda: stream: %w", err)
	}
	if bound != nil {
		return entry{}, nil
	}
	pushed, err := s.dev.enter()
	if err != nil {
		s.life.done()
		return entry{}, err
	}
	return entry{true, pushed}, nil
}

func (s *Stream) end(e entry) {
	if e.entered {
		s.dev.leave(e.pushed)
	}
	s.life.done()
}

// Synchronize waits until all queued work is done and returns the error that
// it met, if any.
func (s *Stream) Synchronize() error {
	e, err := s.begin()
	if err != nil {
		return err
	}
	defer s.end(e)
	return s.blame(s.dev.drv.do(&s.dev.drv.t.streamSynchronize, s.handle))
}

// Done reports whether all queued work is done, without waiting.
func (s *Stream) Done() (bool, error) {
	e, err := s.begin()
	if err != nil {
		return false, err
	}
	defer s.end(e)
	switch c := s.dev.drv.code(&s.dev.drv.t.streamQuery, s.handle); c {
	case 0:
		return true, nil
	case NotReady:
		return false, nil
	default:
		return false, s.blame(s.dev.drv.fail(&s.dev.drv.t.streamQuery, c))
	}
}

// Wait makes what is queued on s from now on wait for what event e recorded
// last. The host does not wait. An event that was never recorded is no wait.
func (s *Stream) Wait(e *Event) error {
	b, err := s.begin()
	if err != nil {
		return err
	}
	defer s.end(b)
	if err := e.life.use(); err != nil {
		return fmt.Errorf("cuda: event: %w", err)
	}
	defer e.life.done()
	return s.queue(&s.dev.drv.t.streamWait, 3, s.handle, e.handle, 0, 0)
}

// queue calls a function of the driver that returns at once, with the first n
// of the arguments. They go through the stream's own array: a call with a
// variable number of arguments allocates otherwise.
//
//go:uintptrescapes
func (s *Stream) queue(f *symbol, n int, a, b, c, d uintptr) error {
	if f.addr == 0 {
		return s.dev.drv.missing(f)
	}
	s.mu.Lock()
	s.argv[0], s.argv[1], s.argv[2], s.argv[3] = a, b, c, d
	r, _, _ := purego.SyscallN(f.addr, s.argv[:n]...)
	s.mu.Unlock()
	if int32(r) != 0 {
		return s.blame(s.dev.drv.fail(f, Code(int32(r))))
	}
	return nil
}

// blame adds to an error of a lost context which kernel was queued last.
func (s *Stream) blame(err error) error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) && e.Code.sticky() && e.Detail == "" {
		s.mu.Lock()
		last := s.last
		s.mu.Unlock()
		if last != nil {
			e.Detail = fmt.Sprintf("a kernel faulted; the last one queued on this stream is %s", last.name)
		}
	}
	return err
}

// Close destroys the stream once its queued work is done; it does not wait for
// that. Closing twice does nothing.
func (s *Stream) Close() error {
	if !s.life.end() {
		return nil
	}
	d := s.dev
	d.untrack(s)
	d.counters.streams.Add(-1)
	defer d.drv.arena.put(s.args)
	if !s.owned {
		return nil
	}
	return d.inContext(func() error { return d.drv.do(&d.drv.t.streamDestroy, s.handle) })
}
