package zerocopy

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"zerogcn/cuda"
	"zerogcn/internal/par"
)

// DeviceGatherer gathers into GPU memory. Its methods may be called from any
// goroutine; gathers take turns while they are queued.
type DeviceGatherer struct {
	t      *Table
	dev    *cuda.Device
	opt    DeviceOptions
	mode   Mode
	reason string
	blocks int

	kern    *Kernels
	ownKern bool
	reg     *cuda.Registration
	table   cuda.DevicePtr // of row 0 in host memory, 0 if not registered
	hot     *cuda.Buffer   // rows [0, hotRows)
	hotRows int
	hits    *cuda.Buffer // uint64: rows that the cache of a part of the table served
	scales  *cuda.Buffer

	gate    sync.Mutex // one Enqueue at a time; guards all below
	closed  bool
	own     *cuda.Stream // of Gather and of setting up
	faults  faultWords
	scratch scratch // orders the use of the buffers below
	ids     idStage
	stager  *stager
	merger  merger
	share   share
	out     *cuda.Buffer // destination of Gather
	// mergedInPlace: in mode Hybrid, merged batches gain nothing from the CPU
	// and are left to the GPU.
	mergedInPlace bool

	gathers, rows, busy atomic.Int64
}

var _ Gatherer = (*DeviceGatherer)(nil)

// NewDeviceGatherer prepares gathers from t on dev: it registers the table's
// memory (once for all gatherers of a process), fills the cache, and in mode
// Auto measures. Close it before the table and before dev.
//
// A table that maps a file cannot be read by the GPU in place: ZeroCopy, Cached
// and Hybrid refuse it. Not enough device memory is an error that wraps
// cuda.OutOfMemory.
func NewDeviceGatherer(ctx context.Context, t *Table, dev *cuda.Device, opt DeviceOptions) (_ *DeviceGatherer, err error) {
	if err := opt.check(t); err != nil {
		return nil, err
	}
	if err := t.acquire(); err != nil {
		return nil, err
	}
	g := &DeviceGatherer{t: t, dev: dev, opt: opt, mode: opt.Mode, blocks: opt.Blocks, kern: opt.Kernels,
		scratch: scratch{dev: dev}}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%s: gather mode %v: %w", t.name, opt.Mode, err), g.Close())
		}
	}()
	if g.kern == nil {
		if g.kern, err = LoadKernels(dev); err != nil {
			return nil, err
		}
		g.ownKern = true
	}
	if g.own, err = dev.NewStream(cuda.StreamOptions{}); err != nil {
		return nil, err
	}
	if err = g.faults.open(dev, g.own); err != nil {
		return nil, err
	}
	if t.scales != nil {
		if g.scales, err = cuda.Place(g.own, cuda.Features, t.scales); err != nil {
			return nil, err
		}
	}
	if opt.Mode == Auto {
		err = g.choose(ctx)
	} else {
		err = g.prepare(ctx, opt.Mode)
		g.reason = "asked for"
	}
	if err != nil {
		return nil, err
	}
	return g, nil
}

// prepare makes g ready for a mode.
func (g *DeviceGatherer) prepare(ctx context.Context, mode Mode) error {
	inPlace := mode == ZeroCopy || mode == Cached || mode == Hybrid
	hotRows := 0
	switch mode {
	case Device:
		hotRows = g.t.rows
	case Cached:
		hotRows = g.t.rows
		if n := g.t.rowBytes(); n > 0 {
			hotRows = int(min(int64(hotRows), g.opt.CacheBytes/int64(n)))
		}
		// A cache that holds everything leaves nothing to register.
		inPlace = hotRows < g.t.rows
	}
	if inPlace && g.reg == nil {
		if err := g.register(ctx); err != nil {
			return err
		}
	}
	if mode == Staged || mode == Hybrid || hotRows > 0 {
		if g.stager == nil {
			s, err := newStager(g.dev, g.t, max(0, g.opt.Workers), g.opt.slab)
			if err != nil {
				return err
			}
			g.stager = s
		}
	}
	if hotRows > 0 {
		if err := g.fillHot(ctx, hotRows); err != nil {
			return err
		}
		if mode != Staged && mode != Hybrid {
			if err := g.stager.close(); err != nil { // its slabs are no longer needed
				return err
			}
			g.stager = nil
		}
	}
	g.mode = mode
	if g.opt.Blocks == 0 {
		g.blocks = defaultBlocks(mode, g.t.dt, g.dev.Properties().SMs)
	}
	return nil
}

func (g *DeviceGatherer) register(ctx context.Context) error {
	if g.t.source == mappedFile {
		return fmt.Errorf("the table maps a file, which the GPU cannot read in place: read it into memory (NewTable and FillFrom) or use mode staged")
	}
	// The whole mapping, so that all gatherers of a table ask for one range.
	data := g.t.mem.data
	if g.t.source == foreign {
		data = g.t.data
	}
	reg, err := g.dev.Register(ctx, data, cuda.RegisterOptions{Purpose: cuda.Features, Progress: g.opt.Progress})
	if err != nil {
		return err
	}
	g.reg, g.table = reg, reg.Ptr()
	return nil
}

// fillHot copies the first rows of the table to device memory.
func (g *DeviceGatherer) fillHot(ctx context.Context, rows int) error {
	n := int64(rows) * int64(g.t.rowBytes())
	purpose := cuda.FeatureCache
	if rows == g.t.rows {
		purpose = cuda.Features
	}
	hot, err := g.dev.Alloc(purpose, n+vectorPad)
	if err != nil {
		return err
	}
	g.hot, g.hotRows = hot, rows
	if rows < g.t.rows {
		if g.hits, err = cuda.Place(g.own, cuda.FeatureCache, make([]uint64, 1)); err != nil {
			return err
		}
	}
	return g.stager.upload(ctx, g.own, hot.Ptr(), int(n))
}

// vectorPad keeps the 16-byte vectors that cover a row's end inside the buffer.
const vectorPad = 16

// Mode implements Gatherer.
func (g *DeviceGatherer) Mode() Mode { return g.mode }

// Reason says on one line why the mode was chosen, for a log.
func (g *DeviceGatherer) Reason() string { return g.reason }

// Blocks returns the grid: how many SMs a gather takes.
func (g *DeviceGatherer) Blocks() int { return g.blocks }

// CachedRows returns how many rows, the first ones, device memory holds.
func (g *DeviceGatherer) CachedRows() int { return g.hotRows }

// Enqueue queues a gather on s behind what is queued there, and returns. In the
// modes Staged and Hybrid it returns when the CPU has done its part. Work
// queued on s afterwards finds the rows in b.Dst; b's device memory must stay
// until then.
//
// Ids that the CPU reads are checked at once. Those that only the GPU reads are
// checked there: call Check when the stream has passed the gather.
func (g *DeviceGatherer) Enqueue(ctx context.Context, s *cuda.Stream, b Batch) error {
	g.gate.Lock()
	defer g.gate.Unlock()
	return g.enqueue(ctx, s, b)
}

func (g *DeviceGatherer) enqueue(ctx context.Context, s *cuda.Stream, b Batch) error {
	if err := g.begin(ctx, &b); err != nil {
		return err
	}
	if b.N == 0 {
		return nil
	}
	start := time.Now()
	if err := g.faults.prepare(s); err != nil {
		return err
	}
	var err error
	switch {
	case g.mode == Staged:
		err = g.scratch.use(s, func() error { return g.staged(ctx, s, b) })
	case g.mode == Hybrid:
		err = g.scratch.use(s, func() error { return g.hybrid(ctx, s, b) })
	case b.IDs == 0:
		err = g.scratch.use(s, func() error { return g.direct(s, b) })
	default:
		err = g.direct(s, b)
	}
	if err != nil {
		return g.abandon(s, err)
	}
	if err := g.faults.fetch(s); err != nil {
		return err
	}
	g.count(b.N, start)
	return nil
}

// abandon ends a gather that failed on the host. The GPU's part may have found
// bad ids too; they must not be taken for the next gather's.
func (g *DeviceGatherer) abandon(s *cuda.Stream, err error) error {
	g.faults.dirty = true
	return errors.Join(err, s.Synchronize())
}

// begin checks a batch and that the gatherer is open.
func (g *DeviceGatherer) begin(ctx context.Context, b *Batch) error {
	switch {
	case g.closed:
		return fmt.Errorf("%s: gatherer %w", g.t.name, ErrClosed)
	case b.N < 0 || b.N > math.MaxInt32:
		return fmt.Errorf("%s: gather of %d rows", g.t.name, b.N)
	case b.HostIDs != nil && len(b.HostIDs) != b.N:
		return fmt.Errorf("%s: gather of %d rows with %d host ids", g.t.name, b.N, len(b.HostIDs))
	case b.N > 0 && b.IDs == 0 && b.HostIDs == nil:
		return fmt.Errorf("%s: gather of %d rows without ids", g.t.name, b.N)
	case b.N > 0 && g.t.width > 0 && (b.Dst == 0 || b.Dst%4 != 0):
		return fmt.Errorf("%s: gather to the device address %#x, which is no float32's", g.t.name, uintptr(b.Dst))
	}
	return ctx.Err()
}

func (g *DeviceGatherer) count(rows int, start time.Time) {
	g.gathers.Add(1)
	g.rows.Add(int64(rows))
	g.busy.Add(int64(time.Since(start)))
}

// launchFor fills in what all gathers of the table share.
func (g *DeviceGatherer) launchFor() rowGather {
	r := rowGather{table: g.table, hotRows: g.hotRows, shape: g.t.shape, bad: g.faults.bad(), blocks: g.blocks}
	if g.hot != nil {
		r.hot = g.hot.Ptr()
		if g.table == 0 { // nothing is cold; keep the address's alignment
			r.table = r.hot
		}
	}
	if g.scales != nil {
		r.scales = g.scales.Ptr()
	}
	return r
}

// direct lets the GPU gather all rows, from host or device memory.
func (g *DeviceGatherer) direct(s *cuda.Stream, b Batch) error {
	ids, err := g.deviceIDs(s, &b)
	if err != nil {
		return err
	}
	r := g.launchFor()
	r.dst, r.ids, r.n = b.Dst, ids, b.N
	if err := g.kern.launch(s, &r); err != nil || g.hits == nil {
		return err
	}
	return g.kern.count.Launch(s, cuda.Linear(g.blocks, 256), g.hits.Ptr().Arg(), ids.Arg(), cuda.I64(int64(b.N)), cuda.I32(int32(g.hotRows)))
}

// Hits returns how many of the rows gathered so far the cache of a part of the
// table served; 0 in other modes. Those of EnqueueMany do not count. It reads the device's counter, so it misses
// gathers that are under way.
func (g *DeviceGatherer) Hits() (int64, error) {
	g.gate.Lock()
	defer g.gate.Unlock()
	if g.closed || g.hits == nil {
		return 0, nil
	}
	var n [1]uint64
	err := cuda.Download(g.own, n[:], g.hits.Ptr())
	return int64(n[0]), err
}

// Check returns the error of the gathers that have completed since the last
// Check, nil if all their ids were rows. It does not wait: call it when the
// stream has passed a gather, before its rows are used for good. An error names
// the least bad position, counted over the batches of EnqueueMany; if several
// gathers were at fault it does not say which.
func (g *DeviceGatherer) Check() error {
	g.gate.Lock()
	defer g.gate.Unlock()
	return g.faults.check(g.t)
}

// Gather implements Gatherer: ids and rows are host memory, which the GPU path
// reaches with copies in both directions. It serves tests and small look-ups;
// a training loop uses Enqueue.
func (g *DeviceGatherer) Gather(ctx context.Context, ids []int32, dst []float32) error {
	if err := g.t.checkGather(ids, dst); err != nil {
		return err
	}
	g.gate.Lock()
	defer g.gate.Unlock()
	if g.closed {
		return fmt.Errorf("%s: gatherer %w", g.t.name, ErrClosed)
	}
	if len(ids) == 0 {
		return ctx.Err()
	}
	if err := g.scratch.grow(g.own, &g.out, cuda.Activations, 4*int64(len(dst))); err != nil {
		return err
	}
	b := Batch{N: len(ids), HostIDs: ids, Dst: g.out.Ptr()}
	if err := g.enqueue(ctx, g.own, b); err != nil {
		return errors.Join(err, g.own.Synchronize())
	}
	if err := cuda.Download(g.own, dst, g.out.Ptr()); err != nil {
		return err
	}
	// A zero-width gather downloads nothing, and its ids are checked too.
	if err := g.own.Synchronize(); err != nil {
		return err
	}
	return g.faults.check(g.t)
}

// Metrics implements Gatherer. Busy is the time that Enqueue took on the host.
func (g *DeviceGatherer) Metrics() Metrics {
	rows := g.rows.Load()
	return Metrics{Gathers: g.gathers.Load(), Rows: rows, Bytes: rows * int64(g.t.rowBytes()), Busy: time.Duration(g.busy.Load())}
}

// Close implements Gatherer. It waits for the device, so that no queued gather
// reads memory that is being released.
func (g *DeviceGatherer) Close() error {
	g.gate.Lock()
	defer g.gate.Unlock()
	if g.closed {
		return nil
	}
	g.closed = true
	errs := []error{g.dev.Synchronize()}
	if g.stager != nil {
		errs = append(errs, g.stager.close())
	}
	errs = append(errs, g.merger.close(), g.ids.close(), g.share.close(), g.scratch.close(), g.faults.close())
	for _, b := range []*cuda.Buffer{g.out, g.hot, g.hits, g.scales} {
		if b != nil {
			errs = append(errs, b.Close())
		}
	}
	errs = append(errs, g.reg.Close())
	if g.own != nil {
		errs = append(errs, g.own.Close())
	}
	if g.ownKern && g.kern != nil {
		errs = append(errs, g.kern.Close())
	}
	g.t.release()
	return errors.Join(errs...)
}

// workerCount is what 0 workers mean.
func workerCount(n int) int { return par.Workers(n).Count() }
