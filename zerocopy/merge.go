package zerocopy

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
	"unsafe"

	"zerogcn/cuda"
)

// merger holds the scratch of EnqueueMany.
type merger struct {
	host   *cuda.HostBuffer // the table of runs
	sent   *cuda.Event      // it has been read
	runs   *cuda.Buffer
	sorted *cuda.Buffer   // ids of all runs, ascending
	dstOf  *cuda.Buffer   // where the row of each goes
	bits   cuda.DevicePtr // of all destinations, for their alignment
}

// EnqueueMany queues the gathers of several batches as one pass over the table
// in ascending order of ids. On tables of tens of GB, where address translation
// and not the link is the limit, rows that share pages come closer together
// that way. Each batch consists of ascending runs of ids (Batch.Runs); all must
// be on the device (Batch.IDs).
//
// In the modes Staged and Device, which gain nothing, the batches are queued
// one after another. Ids that do not ascend as promised are reported by Check;
// rows are then undefined, as after an id that is no row.
func (g *DeviceGatherer) EnqueueMany(ctx context.Context, s *cuda.Stream, batches []Batch) error {
	g.gate.Lock()
	defer g.gate.Unlock()
	return g.enqueueMany(ctx, s, batches)
}

func (g *DeviceGatherer) enqueueMany(ctx context.Context, s *cuda.Stream, batches []Batch) error {
	if g.mode == Staged || g.mode == Device {
		for _, b := range batches {
			if err := g.enqueue(ctx, s, b); err != nil {
				return err
			}
		}
		return nil
	}
	total, runs := 0, 0
	for i := range batches {
		b := &batches[i]
		if err := g.begin(ctx, b); err != nil {
			return fmt.Errorf("batch %d: %w", i, err)
		}
		if b.N > 0 && b.IDs == 0 {
			return fmt.Errorf("%s: batch %d: ids to merge must be on the device", g.t.name, i)
		}
		if err := checkRuns(b); err != nil {
			return fmt.Errorf("%s: batch %d: %w", g.t.name, i, err)
		}
		total += b.N
		runs += max(1, len(b.Runs))
	}
	if total == 0 {
		return nil
	}
	if total > math.MaxInt32 {
		return fmt.Errorf("%s: %d rows in one merged gather", g.t.name, total)
	}
	start := time.Now()
	if err := g.faults.prepare(s); err != nil {
		return err
	}
	err := g.scratch.use(s, func() error {
		if err := g.merge(s, batches, total, runs); err != nil {
			return err
		}
		return g.gatherMerged(ctx, s, total)
	})
	if err != nil {
		return g.abandon(s, err)
	}
	if err := g.faults.fetch(s); err != nil {
		return err
	}
	g.count(total, start)
	return nil
}

// checkRuns validates the positions at which a batch's runs begin.
func checkRuns(b *Batch) error {
	for i, at := range b.Runs {
		if i == 0 && at != 0 || i > 0 && at < b.Runs[i-1] || at > b.N {
			return fmt.Errorf("run %d begins at position %d of %d ids: positions must ascend from 0", i, at, b.N)
		}
	}
	return nil
}

// merge queues the merging of all runs into m.sorted and m.dstOf.
func (g *DeviceGatherer) merge(s *cuda.Stream, batches []Batch, total, runs int) (err error) {
	m := &g.merger
	words := 3*runs + 3
	if m.sent == nil {
		if m.sent, err = g.dev.NewEvent(cuda.EventOptions{}); err != nil {
			return err
		}
	}
	if err := m.sent.Synchronize(); err != nil {
		return err
	}
	if m.host == nil || len(m.host.Bytes()) < 8*words {
		if m.host != nil {
			if err := m.host.Close(); err != nil {
				return err
			}
			m.host = nil
		}
		if m.host, err = g.dev.AllocHost(cuda.Staging, 8*int64(words+64), cuda.HostOptions{}); err != nil {
			return err
		}
	}
	for _, b := range []struct {
		at **cuda.Buffer
		n  int
	}{{&m.runs, 8 * words}, {&m.sorted, 4 * total}, {&m.dstOf, 8 * total}} {
		if err := g.scratch.grow(s, b.at, cuda.Indices, int64(b.n)); err != nil {
			return err
		}
	}
	m.bits = 0
	for _, b := range batches {
		m.bits |= b.Dst
	}
	table := unsafe.Slice((*uint64)(unsafe.Pointer(&m.host.Bytes()[0])), words)
	fillRuns(table, batches, 4*g.t.width)
	if err := s.CopyHtoD(m.runs.Ptr(), m.host.Bytes()[:8*words]); err != nil {
		return err
	}
	if err := m.sent.Record(s); err != nil {
		return err
	}
	if err := s.Set8(m.dstOf.Ptr(), 0, 8*int64(total)); err != nil {
		return err
	}
	blocks := max(1, min(4*g.blocks, (total+blockThreads-1)/blockThreads))
	return g.kern.merge.Launch(s, cuda.Linear(blocks, blockThreads),
		m.sorted.Ptr().Arg(), m.dstOf.Ptr().Arg(), m.runs.Ptr().Arg(), cuda.I32(int32(runs)),
		cuda.I32(int32(g.t.rows)), cuda.I32(int32(g.t.width)), g.faults.bad().Arg(), g.faults.disorder().Arg())
}

// fillRuns writes the table of runs that the kernel merge_runs reads.
func fillRuns(table []uint64, batches []Batch, rowBytes int) {
	k, before := 0, 0
	for _, b := range batches {
		starts := b.Runs
		if len(starts) == 0 {
			starts = []int{0}
		}
		for i, at := range starts {
			end := b.N
			if i+1 < len(starts) {
				end = starts[i+1]
			}
			table[3*k] = uint64(b.IDs) + uint64(4*at)
			table[3*k+1] = uint64(b.Dst) + uint64(rowBytes)*uint64(at)
			table[3*k+2] = uint64(before)
			before += end - at
			k++
		}
	}
	table[3*k], table[3*k+1], table[3*k+2] = 0, 0, uint64(before)
}

// gatherMerged queues the gather of the merged list.
func (g *DeviceGatherer) gatherMerged(ctx context.Context, s *cuda.Stream, total int) error {
	m := &g.merger
	if g.mode != Hybrid || g.mergedInPlace {
		r := g.launchFor()
		r.ids, r.dstOf, r.dstBits, r.n = m.sorted.Ptr(), m.dstOf.Ptr(), m.bits, total
		if g.opt.Blocks == 0 {
			r.blocks = max(r.blocks, moreBlocks)
		}
		return g.kern.launch(s, &r)
	}
	b := Batch{N: total, IDs: m.sorted.Ptr()}
	ids, err := g.hostIDs(s, &b)
	if err != nil {
		return err
	}
	bad, err := g.split(ctx, s, ids, m.sorted.Ptr(), 0, m.dstOf.Ptr())
	if err != nil || bad < 0 {
		return err
	}
	// The CPU met a bad id in merged order; the merge kernel knows where the
	// caller has the first.
	if err := g.faults.fetch(s); err != nil {
		return err
	}
	if err := s.Synchronize(); err != nil {
		return err
	}
	if err := g.faults.check(g.t); err != nil {
		return err
	}
	return g.t.idError(bad, int64(ids[bad]))
}

func (m *merger) close() error {
	var errs []error
	if m.sent != nil {
		errs = append(errs, m.sent.Close())
	}
	if m.host != nil {
		errs = append(errs, m.host.Close())
	}
	return errors.Join(append(errs, m.runs.Close(), m.sorted.Close(), m.dstOf.Close())...)
}
