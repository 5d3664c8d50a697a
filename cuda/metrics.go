package cuda

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
)

// Usage counts memory of one kind and purpose.
type Usage struct {
	Bytes int64 // in use now
	Peak  int64 // the most at any time
	Live  int64 // pieces in use now
	Total int64 // pieces ever made
}

type usage struct{ bytes, peak, live, total atomic.Int64 }

func (u *usage) add(n int64) {
	u.live.Add(1)
	u.total.Add(1)
	now := u.bytes.Add(n)
	for {
		p := u.peak.Load()
		if now <= p || u.peak.CompareAndSwap(p, now) {
			return
		}
	}
}

func (u *usage) sub(n int64) {
	u.live.Add(-1)
	u.bytes.Add(-n)
}

func (u *usage) load() Usage {
	return Usage{u.bytes.Load(), u.peak.Load(), u.live.Load(), u.total.Load()}
}

// counters are a device's, updated without a lock.
type counters struct {
	device, pinned, registered [numPurposes]usage

	streams, events, modules, graphs, executables atomic.Int64
}

// Metrics is a snapshot of what a device's handle holds. Its parts are read one
// after another, so they may be from slightly different moments.
type Metrics struct {
	Device     [numPurposes]Usage // device memory in buffers, by purpose
	Pinned     [numPurposes]Usage // page-locked memory of AllocHost
	Registered [numPurposes]Usage // host memory of Register

	PoolCached int64 // bytes that closed buffers keep for reuse
	PoolHits   int64 // allocations that the pool answered
	PoolMisses int64 // allocations that went to the driver
	PoolTrims  int64 // times that the pool gave its memory back

	Streams, Events, Modules, Graphs, Executables int64 // open now
}

// Metrics returns the device's counters. It may be asked after Close.
func (d *Device) Metrics() Metrics {
	var m Metrics
	for p := range numPurposes {
		m.Device[p] = d.counters.device[p].load()
		m.Pinned[p] = d.counters.pinned[p].load()
		m.Registered[p] = d.counters.registered[p].load()
	}
	m.PoolCached, m.PoolHits, m.PoolMisses, m.PoolTrims = d.pool.stats()
	c := &d.counters
	m.Streams, m.Events, m.Modules = c.streams.Load(), c.events.Load(), c.modules.Load()
	m.Graphs, m.Executables = c.graphs.Load(), c.executables.Load()
	return m
}

// DeviceBytes returns the device memory in use, without what the pool keeps.
func (m Metrics) DeviceBytes() int64 { return total(m.Device).Bytes }

// Open returns the number of objects that somebody has yet to close.
func (m Metrics) Open() int64 {
	return total(m.Device).Live + total(m.Pinned).Live + total(m.Registered).Live +
		m.Streams + m.Events + m.Modules + m.Graphs + m.Executables
}

// total adds the purposes. The sum of peaks bounds the peak from above.
func total(u [numPurposes]Usage) Usage {
	var t Usage
	for _, v := range u {
		t.Bytes += v.Bytes
		t.Peak += v.Peak
		t.Live += v.Live
		t.Total += v.Total
	}
	return t
}

// String is a table with one line for each kind and purpose in use.
func (m Metrics) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-10s %-15s %12s %12s %8s %10s\n", "memory", "purpose", "in use", "peak", "pieces", "ever")
	for _, k := range []struct {
		name string
		u    [numPurposes]Usage
	}{{"device", m.Device}, {"pinned", m.Pinned}, {"registered", m.Registered}} {
		for p, u := range k.u {
			if u.Total > 0 {
				fmt.Fprintf(&b, "%-10s %-15s %12s %12s %8d %10d\n", k.name, Purpose(p), byteCount(u.Bytes), byteCount(u.Peak), u.Live, u.Total)
			}
		}
	}
	fmt.Fprintf(&b, "pool: %s kept, %d hits, %d misses, %d trims\n", byteCount(m.PoolCached), m.PoolHits, m.PoolMisses, m.PoolTrims)
	fmt.Fprintf(&b, "open: %d streams, %d events, %d modules, %d graphs, %d executables\n", m.Streams, m.Events, m.Modules, m.Graphs, m.Executables)
	return b.String()
}

// countList prints counts by kind in a fixed order: "1 event, 2 stream".
func countList(m map[string]int) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%d %s", m[k], k))
	}
	return strings.Join(parts, ", ")
}
