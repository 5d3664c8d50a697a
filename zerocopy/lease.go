package zerocopy

import "runtime"

// Memory is a lease of a table's bytes: they stay mapped as long as it is
// reachable, also after the table was closed. It is for views that outlive the
// table's users and that nobody closes, such as a tensor over its rows.
type Memory struct {
	mem   *memory
	owner any
	data  []byte
}

// Memory leases the table's bytes. From then on Close releases everything but
// the mapping, which goes when neither the table nor a lease is reachable.
func (t *Table) Memory() (*Memory, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, t.closedError()
	}
	if !t.leased {
		t.leased = true
		if release := t.mem.release; release != nil {
			runtime.AddCleanup(t.mem, func(release func() error) { _ = release() }, release)
		}
	}
	return &Memory{t.mem, t.owner, t.data}, nil
}

// Bytes returns the rows as stored. The slice does not keep the memory mapped:
// keep the Memory reachable as long as it is used.
func (m *Memory) Bytes() []byte { return m.data }
