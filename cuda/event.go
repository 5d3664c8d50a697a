package cuda

import (
	"fmt"
	"math"
	"time"
	"unsafe"
)

// Event marks a point in a stream: others wait for it, the host asks whether
// it has passed, two of them measure time.
type Event struct {
	dev    *Device
	handle uintptr
	timing bool
	life   lifetime
}

// EventOptions are the choices of NewEvent. The zero value, which measures no
// time and waits as the device does, is the cheapest.
type EventOptions struct {
	Timing   bool // Elapsed may be asked
	Blocking bool // Synchronize sleeps instead of spinning
}

// NewEvent makes an event.
func (d *Device) NewEvent(o EventOptions) (*Event, error) {
	const blockingSync, disableTiming = 1, 2
	flags := uintptr(0)
	if o.Blocking {
		flags |= blockingSync
	}
	if !o.Timing {
		flags |= disableTiming
	}
	h := new(uintptr)
	var e *Event
	err := d.within(func() error {
		if err := d.drv.do(&d.drv.t.eventCreate, uintptr(unsafe.Pointer(h)), flags); err != nil {
			return err
		}
		e = &Event{dev: d, handle: *h, timing: o.Timing}
		if err := d.track(e); err != nil {
			d.drv.code(&d.drv.t.eventDestroy, *h)
			return err
		}
		d.counters.events.Add(1)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return e, nil
}

func (e *Event) kind() string { return "event" }

// Handle returns the CUevent, for other libraries. It is valid until Close.
func (e *Event) Handle() uintptr { return e.handle }

// Record moves the event to the end of what is queued on s now.
func (e *Event) Record(s *Stream) error {
	if e.dev != s.dev {
		return fmt.Errorf("cuda: event of %v recorded on a stream of %v", e.dev, s.dev)
	}
	b, err := s.begin()
	if err != nil {
		return err
	}
	defer s.end(b)
	if err := e.life.use(); err != nil {
		return fmt.Errorf("cuda: event: %w", err)
	}
	defer e.life.done()
	return s.queue(&s.dev.drv.t.eventRecord, 2, e.handle, s.handle, 0, 0)
}

// Done reports whether the work before the last Record is done; an event that
// was never recorded is done.
func (e *Event) Done() (bool, error) {
	var c Code
	err := e.within(func() error {
		if c = e.dev.drv.code(&e.dev.drv.t.eventQuery, e.handle); c != 0 && c != NotReady {
			return e.dev.drv.fail(&e.dev.drv.t.eventQuery, c)
		}
		return nil
	})
	return err == nil && c == 0, err
}

// Synchronize waits until the work before the last Record is done.
func (e *Event) Synchronize() error {
	return e.within(func() error { return e.dev.drv.do(&e.dev.drv.t.eventSynchronize, e.handle) })
}

// Since returns the device time between two events with Timing that have both
// passed, to about half a microsecond.
func (e *Event) Since(start *Event) (time.Duration, error) {
	if !e.timing || !start.timing {
		return 0, fmt.Errorf("cuda: event: made without Timing")
	}
	ms := new(float32)
	err := e.within(func() error {
		if err := start.life.use(); err != nil {
			return fmt.Errorf("cuda: event: %w", err)
		}
		defer start.life.done()
		return e.dev.drv.do(&e.dev.drv.t.eventElapsed, uintptr(unsafe.Pointer(ms)), start.handle, e.handle)
	})
	return time.Duration(math.Round(float64(*ms) * 1e6)), err
}

func (e *Event) within(f func() error) error {
	if err := e.life.use(); err != nil {
		return fmt.Errorf("cuda: event: %w", err)
	}
	defer e.life.done()
	return e.dev.inContext(f)
}

// Close destroys the event; streams that wait for it go on waiting. Closing
// twice does nothing.
func (e *Event) Close() error {
	if !e.life.end() {
		return nil
	}
	e.dev.untrack(e)
	e.dev.counters.events.Add(-1)
	return e.dev.inContext(func() error { return e.dev.drv.do(&e.dev.drv.t.eventDestroy, e.handle) })
}
