package cuda

import "sync"

// lifetime guards an object against use while it is closed: methods hold it
// for reading, Close for writing, so Close waits for calls under way.
type lifetime struct {
	mu     sync.RWMutex
	closed bool
}

// use begins a method; done ends it. After an error there is nothing to end.
func (l *lifetime) use() error {
	l.mu.RLock()
	if l.closed {
		l.mu.RUnlock()
		return ErrClosed
	}
	return nil
}

func (l *lifetime) done() { l.mu.RUnlock() }

// end closes the lifetime; it returns false if that had happened before.
func (l *lifetime) end() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.closed = true
	return true
}
