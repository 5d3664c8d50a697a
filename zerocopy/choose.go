package zerocopy

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"zerogcn/cuda"
	"zerogcn/internal/philox"
)

// usualBatch is the batch that Auto measures with if it is not told another:
// the frontier of 1,024 seeds with fan-outs 15, 10, 5 on ogbn-products.
const usualBatch = 500_000

// probeBytes bounds the gathered rows of a measurement.
const probeBytes = 512 << 20

// hybridGain is what the CPU's help must bring before Auto takes its threads.
const hybridGain = 1.1

// choose picks the mode: device memory if the table fits what it may use of
// it; else the GPU reads in place, helped by CPU threads where measuring says
// that this pays.
func (g *DeviceGatherer) choose(ctx context.Context) error {
	bytes := int64(g.t.bytes())
	if bytes == 0 || bytes <= g.opt.CacheBytes {
		g.reason = fmt.Sprintf("the table, %s, fits the device memory allowed for it", formatBytes(bytes))
		return g.prepare(ctx, Device)
	}
	if g.t.source == mappedFile {
		g.reason = "the table maps a file, which a GPU cannot read in place"
		return g.prepare(ctx, Staged)
	}
	base := ZeroCopy
	if g.opt.CacheBytes > 0 {
		base = Cached
	}
	if err := g.prepare(ctx, base); err != nil {
		return err
	}
	p, err := g.newProbe()
	if err != nil {
		return err
	}
	defer p.close()
	best, err := g.tuneBlocks(ctx, p)
	if err != nil {
		return err
	}
	g.reason = fmt.Sprintf("measured %.1f GB/s with %d blocks", best, g.blocks)
	if g.opt.Workers < 0 || base == Cached {
		return nil
	}
	blocks := g.blocks
	if err := g.prepare(ctx, Hybrid); err != nil {
		return err
	}
	g.blocks = blocks
	rate, err := p.rate(ctx, 8) // the share settles in the first gathers
	if err != nil {
		return err
	}
	workers := len(g.stager.slabs)
	if rate >= hybridGain*best {
		g.reason = fmt.Sprintf("measured %.1f GB/s with %d CPU threads beside %d blocks, %.1f without", rate, workers, blocks, best)
		return nil
	}
	g.reason += fmt.Sprintf(", %.1f with %d CPU threads beside", rate, workers)
	err = g.stager.close()
	g.stager, g.mode = nil, base
	return err
}

// tuneBlocks tries some grids and takes the smallest that is within 3 % of the
// best, unless the caller fixed it. It returns the rate in GB/s.
func (g *DeviceGatherer) tuneBlocks(ctx context.Context, p *probe) (float64, error) {
	if g.opt.Blocks != 0 {
		return p.rate(ctx, 3)
	}
	grids := []int{8, 12, 16}
	rates := make([]float64, len(grids))
	for i, b := range grids {
		var err error
		g.blocks = b
		if rates[i], err = p.rate(ctx, 3); err != nil {
			return 0, err
		}
	}
	best := slices.Max(rates)
	for i, r := range rates {
		if r >= 0.97*best {
			g.blocks = grids[i]
			return r, nil
		}
	}
	return best, nil
}

// probe is a batch like those to come: unique ids, ascending, from the whole
// table.
type probe struct {
	g   *DeviceGatherer
	b   Batch
	ids *cuda.Buffer
	dst *cuda.Buffer
}

func (g *DeviceGatherer) newProbe() (*probe, error) {
	n := usualBatch
	if g.opt.BatchRows > 0 {
		n = g.opt.BatchRows
	}
	n = max(1, min(n, g.t.rows/2, probeBytes/(4*max(1, g.t.width))))
	p := &probe{g: g}
	ids := uniformIDs(n, g.t.rows, 0)
	var err error
	if p.ids, err = cuda.Place(g.own, cuda.Indices, ids); err != nil {
		return nil, err
	}
	if p.dst, err = g.dev.Alloc(cuda.Activations, 4*int64(n)*int64(g.t.width)); err != nil {
		return nil, errors.Join(err, p.ids.Close())
	}
	p.b = Batch{N: n, IDs: p.ids.Ptr(), HostIDs: ids, Dst: p.dst.Ptr()}
	return p, nil
}

func (p *probe) close() { p.ids.Close(); p.dst.Close() }

// rate gathers once to warm up and then turns times, and returns the median in
// GB/s of stored bytes.
func (p *probe) rate(ctx context.Context, turns int) (float64, error) {
	times := make([]time.Duration, 0, turns)
	for i := range turns + 1 {
		start := time.Now()
		if err := p.g.enqueue(ctx, p.g.own, p.b); err != nil {
			return 0, err
		}
		if err := p.g.own.Synchronize(); err != nil {
			return 0, err
		}
		if i > 0 {
			times = append(times, time.Since(start))
		}
	}
	slices.Sort(times)
	t := times[len(times)/2].Seconds()
	return float64(p.b.N) * float64(p.g.t.rowBytes()) / math.Max(t, 1e-9) / 1e9, nil
}

// uniformIDs draws n of the rows, each set alike likely but for collisions, which
// move to the next free row: unique and ascending. The gaps between sorted
// uniform draws are exponential, so no sorting is needed. It matters that they
// are not regular: rows that fall on one page share its translation.
func uniformIDs(n, rows int, seed uint64) []int32 {
	s := philox.NewStream(seed, philox.Generator, 0, 0)
	gaps := make([]float64, n+1)
	total := 0.0
	for i := range gaps {
		u := (float64(s.Word(uint32(i), 0)) + 0.5) / (1 << 32)
		total -= math.Log(u)
		gaps[i] = total
	}
	ids := make([]int32, n)
	for i := range ids {
		id := int(gaps[i] / total * float64(rows))
		if i > 0 {
			id = max(id, int(ids[i-1])+1)
		}
		ids[i] = int32(min(id, rows-n+i)) // leave room for those behind
	}
	return ids
}
