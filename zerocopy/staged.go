package zerocopy

import (
	"context"
	"fmt"
	"unsafe"

	"zerogcn/cuda"
	"zerogcn/dtype"
)

// staged gathers the whole batch with CPU threads.
func (g *DeviceGatherer) staged(ctx context.Context, s *cuda.Stream, b Batch) error {
	ids, err := g.hostIDs(s, &b)
	if err != nil {
		return err
	}
	to, scales, err := g.landing(s, len(ids), b.Dst, 0)
	if err != nil {
		return err
	}
	if err := g.stager.enter(s); err != nil {
		return err
	}
	bad, err := g.stager.gather(ctx, ids, to, scales)
	if err := g.finish(s, err); err != nil {
		return err
	}
	if bad >= 0 {
		return g.t.idError(bad, int64(ids[bad]))
	}
	return g.unpack(s, len(ids), to, scales, b.Dst, 0)
}

// finish joins the copies to s whatever came of them: a slab that is on its way
// must not be overtaken by the caller's next use of the destination.
func (g *DeviceGatherer) finish(s *cuda.Stream, err error) error {
	if e := g.stager.leave(s); err == nil {
		err = e
	}
	return err
}

// landing is where the slabs of n rows go: float32 rows straight to the
// destination, if it is contiguous; others to scratch, from where unpack takes
// them.
func (g *DeviceGatherer) landing(s *cuda.Stream, n int, dst, dstOf cuda.DevicePtr) (rows, scales cuda.DevicePtr, err error) {
	if g.t.dt == dtype.Float32 && dstOf == 0 {
		return dst, 0, nil
	}
	if err := g.scratch.grow(s, &g.stager.rows, cuda.Staging, int64(n)*int64(g.t.rowBytes())+vectorPad); err != nil {
		return 0, 0, err
	}
	if g.t.dt == dtype.Int8 {
		if err := g.scratch.grow(s, &g.stager.scales, cuda.Staging, 4*int64(n)); err != nil {
			return 0, 0, err
		}
		scales = g.stager.scales.Ptr()
	}
	return g.stager.rows.Ptr(), scales, nil
}

// unpack widens n landed rows to where they belong.
func (g *DeviceGatherer) unpack(s *cuda.Stream, n int, rows, scales, dst, dstOf cuda.DevicePtr) error {
	if n == 0 || rows == dst && dstOf == 0 {
		return nil
	}
	r := rowGather{dst: dst, dstOf: dstOf, table: rows, scales: scales, n: n, bad: g.faults.bad(), blocks: 4 * g.blocks}
	r.shape = shape{n, g.t.width, g.t.dt}
	if dstOf != 0 {
		r.dstBits = g.merger.bits
	}
	return g.kern.launch(s, &r)
}

// hybrid gives the first part of the batch to CPU threads and the rest to the
// GPU, at the same time.
func (g *DeviceGatherer) hybrid(ctx context.Context, s *cuda.Stream, b Batch) error {
	host, err := g.hostIDs(s, &b)
	if err != nil {
		return err
	}
	device, err := g.deviceIDs(s, &b)
	if err != nil {
		return err
	}
	bad, err := g.split(ctx, s, host, device, b.Dst, 0)
	if err != nil {
		return err
	}
	if bad >= 0 {
		return g.t.idError(bad, int64(host[bad]))
	}
	return nil
}

// split gathers host[i], which is also device[i], to dst or dstOf by CPU and
// GPU. bad is the first position of an id that is no row in the CPU's part.
func (g *DeviceGatherer) split(ctx context.Context, s *cuda.Stream, host []int32, device, dst, dstOf cuda.DevicePtr) (bad int, err error) {
	n := len(host)
	m, err := g.share.next(g.dev, n, g.stager.slabRows)
	if err != nil {
		return -1, err
	}
	to, scales, err := g.landing(s, m, dst, dstOf)
	if err != nil {
		return -1, err
	}
	// The copies start beside the kernel, not behind it.
	if err := g.stager.enter(s); err != nil {
		return -1, err
	}
	r := g.launchFor()
	r.ids, r.n, r.first, r.dst, r.dstOf = device+cuda.DevicePtr(4*m), n-m, m, dst, dstOf
	if dstOf != 0 {
		r.dstBits = g.merger.bits
		r.dstOf += cuda.DevicePtr(8 * m)
	} else {
		r.dst += cuda.DevicePtr(4 * m * g.t.width)
	}
	if err := g.share.gpu(s, func() error { return g.kern.launch(s, &r) }); err != nil {
		return -1, g.finish(s, err)
	}
	bad, err = g.share.cpu(func() (int, error) { return g.stager.gather(ctx, host[:m], to, scales) })
	if err := g.finish(s, err); err != nil || bad >= 0 {
		return bad, err
	}
	return -1, g.unpack(s, m, to, scales, dst, dstOf)
}

// floats views bytes that are 4-byte aligned as n values.
func floats(b []byte, n int) []float32 {
	if n == 0 {
		return nil
	}
	if len(b) < 4*n {
		panic(fmt.Sprintf("zerocopy: %d bytes for %d floats", len(b), n))
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&b[0])), n)
}
