package cuda

import (
	"math/bits"
	"sync"
)

// DevicePtr is an address in the GPU's address space. Adding bytes to it moves
// it. The zero value points nowhere.
type DevicePtr uintptr

// pool keeps blocks of device memory by size class. It knows no driver: it
// only stores what it is given, so that it can be tested alone.
type pool struct {
	mu      sync.Mutex
	limit   int64 // most bytes to keep
	cached  int64 // bytes kept
	free    map[int64][]DevicePtr
	pending []pendingBlock // in the order of their release
	events  []uintptr      // spare CUevents for pending blocks

	hits, misses, trims int64
}

// pendingBlock becomes free when its event has passed.
type pendingBlock struct {
	ptr   DevicePtr
	class int64
	event uintptr
}

// The size classes: steps of 512 bytes, then four a doubling up to 64 MiB (at
// most 25 % of a block unused), then eight (12.5 %). From poolBypass on a block is rounded to
// poolLarge and never kept: such blocks are tables that live long.
const (
	poolGrain  = 512
	poolFine   = 64 << 20
	poolLarge  = 2 << 20
	poolBypass = 1 << 30
)

// sizeClass returns the bytes to allocate for n > 0.
func sizeClass(n int64) int64 {
	round := func(step int64) int64 { return (n + step - 1) / step * step }
	switch {
	case n >= poolBypass:
		return round(poolLarge)
	case n <= 4*poolGrain:
		return round(poolGrain)
	}
	below := int64(1) << (bits.Len64(uint64(n-1)) - 1) // largest power of two < n
	if n > poolFine {
		return round(below / 8)
	}
	return round(below / 4)
}

// take returns a kept block of the class.
func (p *pool) take(class int64) (DevicePtr, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.free[class]
	if len(l) == 0 {
		p.misses++
		return 0, false
	}
	p.hits++
	p.free[class] = l[:len(l)-1]
	p.cached -= class
	return l[len(l)-1], true
}

// keep stores a block; false means that the caller must free it.
func (p *pool) keep(ptr DevicePtr, class int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if class >= poolBypass || p.cached+class > p.limit {
		return false
	}
	if p.free == nil {
		p.free = make(map[int64][]DevicePtr)
	}
	p.free[class] = append(p.free[class], ptr)
	p.cached += class
	return true
}

// drain empties the pool and returns its blocks.
func (p *pool) drain() []DevicePtr {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []DevicePtr
	for _, l := range p.free {
		all = append(all, l...)
	}
	if len(all) > 0 {
		p.trims++
	}
	p.free, p.cached = nil, 0
	return all
}

// postpone adds a block that is free once its event has passed.
func (p *pool) postpone(b pendingBlock) {
	p.mu.Lock()
	p.pending = append(p.pending, b)
	p.mu.Unlock()
}

// settled removes and returns the pending blocks whose event has passed, from
// the oldest to the first that has not.
func (p *pool) settled(passed func(event uintptr) bool) []pendingBlock {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for n < len(p.pending) && passed(p.pending[n].event) {
		n++
	}
	if n == 0 {
		return nil
	}
	done := append([]pendingBlock(nil), p.pending[:n]...)
	p.pending = append(p.pending[:0], p.pending[n:]...)
	for _, b := range done {
		p.events = append(p.events, b.event)
	}
	return done
}

// spareEvent returns a CUevent that settled gave back, or 0.
func (p *pool) spareEvent() uintptr {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.events) == 0 {
		return 0
	}
	e := p.events[len(p.events)-1]
	p.events = p.events[:len(p.events)-1]
	return e
}

func (p *pool) stats() (cached, hits, misses, trims int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cached, p.hits, p.misses, p.trims
}
