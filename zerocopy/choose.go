package zerocopy

import (
	"context"
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
		return g.chooseMerged(ctx, p)
	}
	g.reason += fmt.Sprintf(", %.1f with %d CPU threads beside", rate, workers)
	err = g.stager.close()
	g.stager, g.mode = nil, base
	return err
}

// mergedProbe is how many batches a measurement of EnqueueMany merges.
const mergedProbe = 4

// chooseMerged decides whether the CPU also helps with merged batches. Their
// rows lie closer together, which may be all that the GPU needs.
func (g *DeviceGatherer) chooseMerged(ctx context.Context, p *probe) error {
	var rates [2]float64
	for i := range rates {
		g.mergedInPlace = i == 1
		var err error
		if rates[i], err = p.mergedRate(ctx, 4); err != nil {
			return err
		}
	}
	g.mergedInPlace = hybridGain*rates[1] >= rates[0]
	who := "with the CPU's help"
	if g.mergedInPlace {
		who = "without the CPU"
	}
	g.reason += fmt.Sprintf("; merged batches %s (%.1f GB/s, %.1f with help)", who, rates[1], rates[0])
	return nil
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

// probe is batches like those to come: unique ids, ascending, from the whole
// table. All write to one destination, as nobody reads it.
type probe struct {
	g    *DeviceGatherer
	many [mergedProbe]Batch
	ids  [mergedProbe]*cuda.Buffer
	dst  *cuda.Buffer
}

func (g *DeviceGatherer) newProbe() (_ *probe, err error) {
	n := usualBatch
	if g.opt.BatchRows > 0 {
		n = g.opt.BatchRows
	}
	n = max(1, min(n, g.t.rows/2, probeBytes/(4*max(1, g.t.width))))
	p := &probe{g: g}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	if p.dst, err = g.dev.Alloc(cuda.Activations, 4*int64(n)*int64(g.t.width)); err != nil {
		return nil, err
	}
	for i := range p.many {
		ids := uniformIDs(n, g.t.rows, uint64(i))
		if p.ids[i], err = cuda.Place(g.own, cuda.Indices, ids); err != nil {
			return nil, err
		}
		p.many[i] = Batch{N: n, IDs: p.ids[i].Ptr(), HostIDs: ids, Dst: p.dst.Ptr()}
	}
	return p, nil
}

// close frees the buffers; only a lost context makes that fail, which the next
// call reports.
func (p *probe) close() {
	for _, b := range append(p.ids[:], p.dst) {
		_ = b.Close()
	}
}

// rate measures single gathers, in GB/s of stored bytes.
func (p *probe) rate(ctx context.Context, turns int) (float64, error) {
	turn := 0
	return p.measure(turns, 1, func() error {
		turn++
		return p.g.enqueue(ctx, p.g.own, p.many[turn%mergedProbe])
	})
}

// mergedRate measures merged gathers.
func (p *probe) mergedRate(ctx context.Context, turns int) (float64, error) {
	return p.measure(turns, mergedProbe, func() error { return p.g.enqueueMany(ctx, p.g.own, p.many[:]) })
}

// measure calls gather once to warm up and then turns times, and returns the
// rate of the median.
func (p *probe) measure(turns, batches int, gather func() error) (float64, error) {
	times := make([]time.Duration, 0, turns)
	for i := range turns + 1 {
		start := time.Now()
		if err := gather(); err != nil {
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
	return float64(batches*p.many[0].N) * float64(p.g.t.rowBytes()) / math.Max(t, 1e-9) / 1e9, nil
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
