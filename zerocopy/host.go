package zerocopy

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"zerogcn/internal/par"
)

// hostTile is about the bytes that a worker gathers before it takes the next
// tile.
const hostTile = 128 << 10

// HostGatherer gathers on CPU threads into host memory. A Gather allocates
// nothing. Its goroutines live until Close.
type HostGatherer struct {
	t     *Table
	crew  *crew
	tile  int
	gate  sync.Mutex // one Gather at a time
	job   hostJob
	close sync.Once

	// closed is guarded by gate.
	closed bool

	gathers, rows, busy atomic.Int64
}

var _ Gatherer = (*HostGatherer)(nil)

// hostJob is the gather that the crew works on.
type hostJob struct {
	ctx    context.Context
	ids    []int32
	dst    []float32
	copier copier
	bad    atomic.Int64 // least position of a bad id, firstBad if none
	failed atomic.Pointer[error]
}

// NewHostGatherer makes a gatherer for any table, with GatherOptions.Workers
// threads. Close it before the table.
func NewHostGatherer(t *Table, opt GatherOptions) (*HostGatherer, error) {
	if opt.Workers < 0 {
		return nil, fmt.Errorf("%s: %d gather workers", t.name, opt.Workers)
	}
	if err := t.acquire(); err != nil {
		return nil, err
	}
	g := &HostGatherer{t: t, tile: min(4096, max(16, hostTile/max(1, 4*t.width)))}
	g.crew = newCrew(par.Workers(opt.Workers).Count(), g.gatherTile)
	return g, nil
}

// Mode returns Host.
func (g *HostGatherer) Mode() Mode { return Host }

// Gather implements Gatherer.
func (g *HostGatherer) Gather(ctx context.Context, ids []int32, dst []float32) error {
	if err := g.t.checkGather(ids, dst); err != nil {
		return err
	}
	g.gate.Lock()
	defer g.gate.Unlock()
	if g.closed {
		return fmt.Errorf("%s: gatherer %w", g.t.name, ErrClosed)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	start := time.Now()
	j := &g.job
	j.ctx, j.ids, j.dst, j.copier = ctx, ids, dst, g.t.copier()
	j.bad.Store(firstBad)
	j.failed.Store(nil)
	g.crew.run(par.Tiles(len(ids), g.tile))
	j.ctx, j.ids, j.dst, j.copier = nil, nil, nil, copier{}

	if err := j.failed.Load(); err != nil {
		return *err
	}
	if at := j.bad.Load(); at != firstBad {
		return g.t.idError(int(at), int64(ids[at]))
	}
	g.gathers.Add(1)
	g.rows.Add(int64(len(ids)))
	g.busy.Add(int64(time.Since(start)))
	return nil
}

// gatherTile gathers one tile of the job. Tiles behind a bad id are skipped,
// those before it never are, so the position reported is the first.
func (g *HostGatherer) gatherTile(_, tile int) {
	j := &g.job
	lo := tile * g.tile
	if j.failed.Load() != nil || int64(lo) > j.bad.Load() {
		return
	}
	hi := min(lo+g.tile, len(j.ids))
	err := j.ctx.Err()
	at := -1
	if err == nil {
		if g.t.source == anonymous {
			at = j.copier.gather(j.dst[lo*g.t.width:hi*g.t.width], j.ids[lo:hi])
		} else {
			err = g.t.guard(func() error {
				at = j.copier.gather(j.dst[lo*g.t.width:hi*g.t.width], j.ids[lo:hi])
				return nil
			})
		}
	}
	if err != nil {
		failure := err // a copy, so that only failures allocate
		j.failed.CompareAndSwap(nil, &failure)
	}
	if at >= 0 {
		atomicMin(&j.bad, int64(lo+at))
	}
}

// Metrics implements Gatherer.
func (g *HostGatherer) Metrics() Metrics {
	rows := g.rows.Load()
	return Metrics{Gathers: g.gathers.Load(), Rows: rows, Bytes: rows * int64(g.t.rowBytes()), Busy: time.Duration(g.busy.Load())}
}

// Close implements Gatherer.
func (g *HostGatherer) Close() error {
	g.close.Do(func() {
		g.gate.Lock()
		defer g.gate.Unlock()
		g.closed = true
		g.crew.stop()
		g.t.release()
	})
	return nil
}

func atomicMin(a *atomic.Int64, v int64) {
	for {
		old := a.Load()
		if v >= old || a.CompareAndSwap(old, v) {
			return
		}
	}
}
