package zerocopy

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"

	"zerogcn/cuda"
	"zerogcn/internal/par"
)

// slabBytes is the size of a page-locked slab: large enough that DMA runs at
// the link's rate, small enough that a slab stays in a core's caches between
// the gather that writes it and the DMA that reads it.
const slabBytes = 1 << 20

// slabsPerWorker lets a worker fill one slab while DMA empties the other.
const slabsPerWorker = 2

// stager is the conventional path: CPU threads gather rows into page-locked
// slabs, and DMA carries each slab to the device as soon as it is full.
type stager struct {
	t        *Table
	copies   *cuda.Stream
	crew     *crew
	slabs    [][slabsPerWorker]slab // by worker
	turn     []int                  // the worker's next slab
	slab     int                    // bytes of a slab that rows and scales may take
	slabRows int
	entry    *cuda.Event // the caller's stream has reached the gather
	join     *cuda.Event // the last slab has arrived
	rows     *cuda.Buffer
	scales   *cuda.Buffer
	job      stageJob
}

type slab struct {
	host *cuda.HostBuffer
	free *cuda.Event // DMA has read it
}

// stageJob is what the crew works on: rows by id, or a contiguous part of the
// table.
type stageJob struct {
	ctx      context.Context
	ids      []int32 // nil: bytes [0, length) of the table
	length   int
	copier   copier
	to       cuda.DevicePtr
	scalesTo cuda.DevicePtr
	bad      atomic.Int64
	failed   atomic.Pointer[error]
}

func newStager(dev *cuda.Device, t *Table, workers, slabSize int) (_ *stager, err error) {
	n := workerCount(workers)
	perRow := t.rowBytes() + t.scaleBytes()/max(1, t.rows)
	if slabSize == 0 {
		slabSize = slabBytes
	}
	size := max(slabSize, perRow)
	g := &stager{t: t, slabs: make([][slabsPerWorker]slab, n), turn: make([]int, n), slab: size, slabRows: min(size/max(1, perRow), 16384)}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.close())
		}
	}()
	if g.copies, err = dev.NewStream(cuda.StreamOptions{}); err != nil {
		return nil, err
	}
	for _, e := range []**cuda.Event{&g.entry, &g.join} {
		if *e, err = dev.NewEvent(cuda.EventOptions{}); err != nil {
			return nil, err
		}
	}
	for w := range g.slabs {
		for k := range g.slabs[w] {
			s := &g.slabs[w][k]
			if s.host, err = dev.AllocHost(cuda.Staging, int64(size)+4, cuda.HostOptions{}); err != nil {
				return nil, err
			}
			if s.free, err = dev.NewEvent(cuda.EventOptions{}); err != nil {
				return nil, err
			}
		}
	}
	g.crew = newCrew(n, g.tile)
	return g, nil
}

// close waits for queued copies and releases everything.
func (g *stager) close() error {
	var errs []error
	if g.crew != nil {
		g.crew.stop()
	}
	if g.copies != nil {
		errs = append(errs, g.copies.Synchronize(), g.copies.Close())
	}
	for _, pair := range g.slabs {
		for _, s := range pair {
			if s.host != nil {
				errs = append(errs, s.host.Close())
			}
			if s.free != nil {
				errs = append(errs, s.free.Close())
			}
		}
	}
	for _, e := range []*cuda.Event{g.entry, g.join} {
		if e != nil {
			errs = append(errs, e.Close())
		}
	}
	return errors.Join(append(errs, g.rows.Close(), g.scales.Close())...)
}

// enter lets the copies that follow begin where s is now.
func (g *stager) enter(s *cuda.Stream) error {
	if err := g.entry.Record(s); err != nil {
		return err
	}
	return g.copies.Wait(g.entry)
}

// leave makes s wait for all copies.
func (g *stager) leave(s *cuda.Stream) error {
	if err := g.join.Record(g.copies); err != nil {
		return err
	}
	return s.Wait(g.join)
}

// gather brings the rows ids, as stored, to the device address to, and their
// scales to scalesTo. It returns when the last copy is queued. bad is the first
// position of an id that is no row, -1 for none.
func (g *stager) gather(ctx context.Context, ids []int32, to, scalesTo cuda.DevicePtr) (bad int, err error) {
	j := &g.job
	j.ids, j.to, j.scalesTo = ids, to, scalesTo
	return g.run(ctx, par.Tiles(len(ids), g.slabRows))
}

// upload brings the first n bytes of the table to the device address to and
// returns when they are there.
func (g *stager) upload(ctx context.Context, s *cuda.Stream, to cuda.DevicePtr, n int) error {
	if err := g.enter(s); err != nil {
		return err
	}
	j := &g.job
	j.length, j.to, j.scalesTo = n, to, 0
	_, err := g.run(ctx, par.Tiles(n, g.slab))
	if e := g.leave(s); err == nil {
		err = e
	}
	if e := s.Synchronize(); err == nil {
		err = e
	}
	return err
}

func (g *stager) run(ctx context.Context, tiles int) (bad int, err error) {
	j := &g.job
	j.ctx, j.copier = ctx, g.t.copier()
	j.bad.Store(firstBad)
	j.failed.Store(nil)
	g.crew.run(tiles)
	j.ctx, j.ids, j.copier = nil, nil, copier{}
	if e := j.failed.Load(); e != nil {
		return -1, *e
	}
	if at := j.bad.Load(); at != firstBad {
		return int(at), nil
	}
	return -1, nil
}

// tile fills a slab and queues its copy.
func (g *stager) tile(worker, tile int) {
	j := &g.job
	if j.failed.Load() != nil || int64(tile)*int64(g.slabRows) > j.bad.Load() {
		return
	}
	k := g.turn[worker]
	g.turn[worker] = (k + 1) % slabsPerWorker
	s := &g.slabs[worker][k]
	err := j.ctx.Err()
	if err == nil {
		err = await(s.free)
	}
	if err == nil {
		err = g.t.guard(func() error { return g.fill(s, tile) })
	}
	if err == nil {
		err = s.free.Record(g.copies)
	}
	if err != nil {
		failure := err // a copy, so that only failures allocate
		j.failed.CompareAndSwap(nil, &failure)
	}
}

func (g *stager) fill(s *slab, tile int) error {
	j := &g.job
	buf := s.host.Bytes()
	if j.ids == nil {
		lo := tile * g.slab
		n := copy(buf[:g.slab], j.copier.data[lo:j.length])
		return g.copies.CopyHtoD(j.to+cuda.DevicePtr(lo), buf[:n])
	}
	lo := tile * g.slabRows
	ids := j.ids[lo:min(lo+g.slabRows, len(j.ids))]
	n := len(ids) * j.copier.rowBytes
	if at := j.copier.gatherRaw(buf[:n], ids); at >= 0 {
		atomicMin(&j.bad, int64(lo+at))
		return nil
	}
	if err := g.copies.CopyHtoD(j.to+cuda.DevicePtr(lo*j.copier.rowBytes), buf[:n]); err != nil {
		return err
	}
	if j.scalesTo == 0 {
		return nil
	}
	scales := floats(buf[roundUp(n, 4):], len(ids))
	for i, id := range ids {
		scales[i] = j.copier.scales[id]
	}
	return g.copies.CopyHtoD(j.scalesTo+cuda.DevicePtr(4*lo), buf[roundUp(n, 4):][:4*len(ids)])
}

// await waits until DMA has read a slab. It asks again and again, but lets other
// goroutines run in between: an event that sleeps wakes too late (27 GB/s
// instead of 32 with 14 threads), and spinning inside the driver would hold the
// thread.
func await(e *cuda.Event) error {
	for {
		done, err := e.Done()
		if done || err != nil {
			return err
		}
		runtime.Gosched()
	}
}
