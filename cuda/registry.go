package cuda

import (
	"fmt"
	"slices"
	"sort"
	"sync"
)

// registry is the bookkeeping of registered host memory of a process: which
// ranges are page-locked and how many registrations share them. It calls no
// driver.
type registry struct {
	mu     sync.Mutex
	ranges []*lockedRange // sorted by lo, disjoint
}

// lockedRange is memory [lo, hi), whole pages, that is registered in chunks.
type lockedRange struct {
	lo, hi uintptr
	chunks []uintptr // first addresses of what was registered, ascending
	base   DevicePtr // the device's address of lo
	refs   int

	ready   chan struct{} // closed when registering ended; err says how
	err     error
	leaving bool          // the last user is unregistering it
	gone    chan struct{} // closed when it is out of the registry
}

// acquire finds the range that covers [lo, hi) and counts another user, or
// enters a new range that the caller has to register and then settle. A range
// that is covered in part is an ErrOverlap. It waits for ranges that are being
// unregistered.
func (r *registry) acquire(lo, hi uintptr) (l *lockedRange, isNew bool, err error) {
	for {
		r.mu.Lock()
		i := sort.Search(len(r.ranges), func(i int) bool { return r.ranges[i].hi > lo })
		if i == len(r.ranges) || r.ranges[i].lo >= hi {
			l = &lockedRange{lo: lo, hi: hi, refs: 1, ready: make(chan struct{}), gone: make(chan struct{})}
			r.ranges = slices.Insert(r.ranges, i, l)
			r.mu.Unlock()
			return l, true, nil
		}
		o := r.ranges[i]
		switch {
		case o.leaving:
			r.mu.Unlock()
			<-o.gone
			continue
		case o.lo > lo || o.hi < hi:
			err = fmt.Errorf("cuda: register: bytes %#x to %#x: %w %#x to %#x: close that first, or register the whole at once", lo, hi, ErrOverlap, o.lo, o.hi)
		default:
			o.refs++
		}
		r.mu.Unlock()
		return o, false, err
	}
}

// settle ends the registering of a new range. After an error the range is
// forgotten, and those who waited for it get the error.
func (r *registry) settle(l *lockedRange, err error) {
	r.mu.Lock()
	l.err = err
	if err != nil {
		r.remove(l)
	}
	r.mu.Unlock()
	close(l.ready)
}

// release counts a user less and returns true for the last, who has to
// unregister the chunks and then call forget.
func (r *registry) release(l *lockedRange) (last bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l.refs--
	// After a failed settle the range is out already.
	l.leaving = l.refs == 0 && l.err == nil
	return l.leaving
}

// forget ends what release began.
func (r *registry) forget(l *lockedRange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remove(l)
}

func (r *registry) remove(l *lockedRange) {
	if i := slices.Index(r.ranges, l); i >= 0 {
		r.ranges = slices.Delete(r.ranges, i, i+1)
		close(l.gone)
	}
}

// span returns the bytes from addr that lie in the same registered chunk, or n
// if that is more or addr is not registered. A copy must not cross chunks.
func (r *registry) span(addr, n uintptr) uintptr {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := sort.Search(len(r.ranges), func(i int) bool { return r.ranges[i].hi > addr })
	if i == len(r.ranges) || r.ranges[i].lo > addr {
		return n
	}
	l := r.ranges[i]
	j := sort.Search(len(l.chunks), func(j int) bool { return l.chunks[j] > addr })
	if j == len(l.chunks) {
		return n
	}
	return min(n, l.chunks[j]-addr)
}
