package cuda

import (
	"errors"
	"fmt"
	"unsafe"
)

// Graph is captured work: what would have run, not yet run.
type Graph struct {
	dev    *Device
	handle uintptr
	life   lifetime
}

// Capture calls f and records what it queues on s, instead of running it, into
// a graph. f may queue launches, copies, memsets and events, on s and on streams
// that wait for an event of s (and that s waits for again), from any goroutine;
// it must not synchronise with them. Alloc and Close in f take effect at once
// and are no part of the graph, which is valid as long as the memory that it
// uses; CloseAfter is refused. An error of f ends the capture and is returned.
func (s *Stream) Capture(f func() error) (*Graph, error) {
	// The stream is not held while f runs: a Close by another goroutine would
	// wait for f, and f's calls for the Close.
	if err := s.beginCapture(); err != nil {
		return nil, err
	}
	err := errPanic
	defer func() {
		if err == errPanic { // f did not return: leave the stream as it was
			s.endCapture(err)
		}
	}()
	err = f()
	g, end := s.endCapture(err)
	if err != nil {
		return nil, err // says more than the end of a capture that it broke
	}
	return g, end
}

// errPanic stands for the error of a function that has not returned.
var errPanic = errors.New("cuda: panic during capture")

func (s *Stream) beginCapture() error {
	e, err := s.begin()
	if err != nil {
		return err
	}
	defer s.end(e)
	// The stricter modes refuse calls that only might touch the capture, such as
	// the allocation of unrelated memory, and only when they reach the driver:
	// a step would fail on the day that the pool has no block for it.
	const relaxed = 2
	if err := s.dev.drv.do(&s.dev.drv.t.captureBegin, s.handle, relaxed); err != nil {
		return err
	}
	s.capturing.Store(true)
	return nil
}

// endCapture ends the capture and makes its graph unless failed is an error.
func (s *Stream) endCapture(failed error) (*Graph, error) {
	e, err := s.begin()
	if err != nil {
		return nil, err
	}
	defer s.end(e)
	s.capturing.Store(false)
	d := s.dev.drv
	h := new(uintptr)
	if err := d.do(&d.t.captureEnd, s.handle, uintptr(unsafe.Pointer(h))); err != nil {
		return nil, err
	}
	if failed != nil {
		if *h != 0 {
			d.code(&d.t.graphDestroy, *h)
		}
		return nil, failed
	}
	g := &Graph{dev: s.dev, handle: *h}
	if err := s.dev.track(g); err != nil {
		return nil, errors.Join(err, d.do(&d.t.graphDestroy, *h))
	}
	s.dev.counters.graphs.Add(1)
	return g, nil
}

func (g *Graph) kind() string { return "graph" }

// Nodes returns the number of the graph's nodes.
func (g *Graph) Nodes() (int, error) {
	n := new(uint64)
	err := g.within(func(d *Driver) error {
		return d.do(&d.t.graphNodes, g.handle, 0, uintptr(unsafe.Pointer(n)))
	})
	return int(*n), err
}

// Executable makes the graph ready to launch. It costs some microseconds a
// node; Update is cheaper for a graph of the same shape. The graph may be
// closed afterwards.
func (g *Graph) Executable() (*Executable, error) {
	x := &Executable{dev: g.dev}
	err := g.within(func(d *Driver) (err error) {
		if x.handle, err = d.instantiate(g.handle); err != nil {
			return err
		}
		if err := g.dev.track(x); err != nil {
			return errors.Join(err, d.do(&d.t.graphExecDestroy, x.handle))
		}
		g.dev.counters.executables.Add(1)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return x, nil
}

func (d *Driver) instantiate(graph uintptr) (uintptr, error) {
	h := new(uintptr)
	var err error
	if d.t.graphInstantiate.addr != 0 {
		err = d.do(&d.t.graphInstantiate, uintptr(unsafe.Pointer(h)), graph, 0)
	} else { // CUDA 11.0 to 11.3
		err = d.do(&d.t.graphInstantiateOld, uintptr(unsafe.Pointer(h)), graph, 0, 0, 0)
	}
	return *h, err
}

func (g *Graph) within(f func(d *Driver) error) error {
	if err := g.life.use(); err != nil {
		return fmt.Errorf("cuda: graph: %w", err)
	}
	defer g.life.done()
	return g.dev.inContext(func() error { return f(g.dev.drv) })
}

// Close destroys the graph, not the executables made of it. Closing twice does
// nothing.
func (g *Graph) Close() error {
	if g == nil || !g.life.end() {
		return nil
	}
	g.dev.untrack(g)
	g.dev.counters.graphs.Add(-1)
	return g.dev.inContext(func() error { return g.dev.drv.do(&g.dev.drv.t.graphDestroy, g.handle) })
}

// Executable is a graph that a stream can launch in one call.
type Executable struct {
	dev    *Device
	handle uintptr
	life   lifetime
}

func (x *Executable) kind() string { return "executable" }

// Update gives the executable the parameters of g: sizes, addresses, values. It
// returns false, and leaves x as it was, if g differs in more than an update
// can take, such as in its nodes or their order.
func (x *Executable) Update(g *Graph) (bool, error) {
	if err := x.life.use(); err != nil {
		return false, fmt.Errorf("cuda: executable: %w", err)
	}
	defer x.life.done()
	var ok bool
	err := g.within(func(d *Driver) (err error) {
		ok, err = d.update(x.handle, g.handle)
		return err
	})
	return ok, err
}

func (d *Driver) update(exec, graph uintptr) (bool, error) {
	f := &d.t.graphUpdate
	var c Code
	if f.addr != 0 {
		info := new([3]uint64) // CUgraphExecUpdateResultInfo: result and two nodes
		c = d.code(f, exec, graph, uintptr(unsafe.Pointer(info)))
	} else if f = &d.t.graphUpdateOld; f.addr != 0 { // CUDA 10.2 to 11.8
		out := new([2]uint64)
		c = d.code(f, exec, graph, uintptr(unsafe.Pointer(&out[0])), uintptr(unsafe.Pointer(&out[1])))
	} else {
		return false, d.missing(f)
	}
	switch c {
	case 0:
		return true, nil
	case GraphExecUpdateFailure:
		return false, nil
	}
	return false, d.fail(f, c)
}

// Launch queues the whole graph on s.
func (x *Executable) Launch(s *Stream) error {
	if err := x.life.use(); err != nil {
		return fmt.Errorf("cuda: executable: %w", err)
	}
	defer x.life.done()
	e, err := s.begin()
	if err != nil {
		return err
	}
	defer s.end(e)
	return s.queue(&s.dev.drv.t.graphLaunch, 2, x.handle, s.handle, 0, 0)
}

// Close destroys the executable once its launches are done. Closing twice does
// nothing.
func (x *Executable) Close() error {
	if x == nil || !x.life.end() {
		return nil
	}
	x.dev.untrack(x)
	x.dev.counters.executables.Add(-1)
	return x.dev.inContext(func() error { return x.dev.drv.do(&x.dev.drv.t.graphExecDestroy, x.handle) })
}
