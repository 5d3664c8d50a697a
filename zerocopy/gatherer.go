package zerocopy

import (
	"context"
	"fmt"
	"time"

	"zerogcn/internal/usage"
)

// Mode is the way that rows take from the table to where they are used.
type Mode uint8

// The modes. Host is the only one without a GPU.
const (
	// Auto lets the constructor choose: Host without a GPU; else it measures.
	Auto Mode = iota
	// Host gathers with CPU threads into host memory.
	Host
	// ZeroCopy lets GPU threads read the registered table over PCIe.
	ZeroCopy
	// Staged gathers with CPU threads into pinned slabs that DMA carries to
	// the GPU: the conventional way, and the baseline.
	Staged
	// Device holds the whole table in GPU memory.
	Device
	// Cached holds a prefix of the table in GPU memory and reads the rest by
	// ZeroCopy; worth it when ids are in hotness order.
	Cached
	// Hybrid splits the rows of each batch between Staged and ZeroCopy.
	Hybrid
)

var modeNames = [...]string{"auto", "host", "zerocopy", "staged", "device", "cached", "hybrid"}

// String returns the name that the flags use.
func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return fmt.Sprintf("mode(%d)", uint8(m))
}

// ParseMode reads a mode's name.
func ParseMode(s string) (Mode, error) {
	for i, n := range modeNames {
		if s == n {
			return Mode(i), nil
		}
	}
	return 0, usage.Errorf("unknown gather mode %q (auto, host, zerocopy, staged, device, cached or hybrid)", s)
}

// Gatherer copies rows of one table.
type Gatherer interface {
	// Gather stores row ids[i], widened to float32, in
	// dst[i*width:(i+1)*width] for every i, and returns when all are there.
	// Both slices are host memory; dst must have len(ids) × width values. Ids
	// may repeat and come in any order; ascending ids are fastest. An empty
	// list does nothing.
	//
	// An id outside the table gives an error that wraps an *IDError for the
	// first such position. After any error dst is undefined. Gather may be
	// called by several goroutines; calls take turns.
	Gather(ctx context.Context, ids []int32, dst []float32) error
	// Mode returns the mode in use, never Auto.
	Mode() Mode
	// Metrics returns counts since the gatherer was made.
	Metrics() Metrics
	// Close waits for a running Gather and gives up the table. Later gathers
	// return an error that wraps ErrClosed. It may be called twice.
	Close() error
}

// Metrics counts what a gatherer has done.
type Metrics struct {
	Gathers int64         // successful calls
	Rows    int64         // rows delivered by them
	Bytes   int64         // bytes of those rows as stored, so before widening
	Busy    time.Duration // time spent in Gather on the host
}

// String writes the counts on one line.
func (m Metrics) String() string {
	rate := 0.0
	if m.Busy > 0 {
		rate = float64(m.Bytes) / m.Busy.Seconds() / 1e9
	}
	return fmt.Sprintf("%d gathers, %d rows, %s in %v (%.1f GB/s)",
		m.Gathers, m.Rows, formatBytes(m.Bytes), m.Busy.Round(time.Microsecond), rate)
}

// GatherOptions adjusts a gatherer. The zero value is ready for use.
type GatherOptions struct {
	// Workers is the number of CPU threads that gather in the modes Host,
	// Staged and Hybrid; 0 means GOMAXPROCS.
	Workers int
}

// checkGather validates what all forms are called with.
func (t *Table) checkGather(ids []int32, dst []float32) error {
	if want := len(ids) * t.width; len(dst) != want {
		return fmt.Errorf("%s: gathering %d rows of %d values needs a destination of %d values, but it has %d",
			t.name, len(ids), t.width, want, len(dst))
	}
	return nil
}
