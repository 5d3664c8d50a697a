package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"zerogcn/cuda"
	"zerogcn/dtype"
	"zerogcn/internal/usage"
	"zerogcn/zerocopy"
)

// bench holds what outlives one measurement: the memory that all tables are
// cut from, and the GPU.
type bench struct {
	*options
	region *zerocopy.Table
	dev    *cuda.Device // nil without a GPU
	kern   *zerocopy.Kernels
	lock   *cuda.Registration
	dma    float64 // GB/s of page-locked copies, 0 without a GPU
	log    func(format string, args ...any)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parse(args)
	if err != nil {
		return err
	}
	b := &bench{options: o, log: func(format string, args ...any) { fmt.Fprintf(stderr, format+"\n", args...) }}
	if o.quiet {
		b.log = func(string, ...any) {}
	}
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.open(ctx); err != nil {
		return err
	}
	table := stdout
	if o.json {
		table = stderr
	}
	rep := &report{table: table, json: o.json, jsonTo: stdout}
	rep.head(b)
	for _, size := range o.tables {
		for _, dt := range o.dtypes {
			for _, width := range o.widths {
				for _, ord := range o.orders {
					if err := b.measure(ctx, size.Bytes, width, dt, ord, rep); err != nil {
						return err
					}
				}
			}
		}
	}
	if o.beside {
		if err := b.beside(ctx, o.tables[0].Bytes, o.widths[0], rep); err != nil {
			return err
		}
	}
	if o.plot != "" {
		return plotByWidth(o.plot, rep.results)
	}
	return nil
}

// open maps and fills the memory and, if there is a GPU, registers it and
// measures page-locked DMA.
func (b *bench) open(ctx context.Context) error {
	if err := b.openDevice(); err != nil {
		return err
	}
	if len(b.modes) == 0 {
		b.modes = []zerocopy.Mode{zerocopy.Host}
		if b.dev != nil {
			b.modes = []zerocopy.Mode{zerocopy.Host, zerocopy.Staged, zerocopy.ZeroCopy, zerocopy.Hybrid, zerocopy.Cached, zerocopy.Device, zerocopy.Auto}
		}
	}
	for _, m := range b.modes {
		if m != zerocopy.Host && m != zerocopy.Auto && b.dev == nil {
			return usage.Errorf("-modes %v needs a GPU, and there is none: use host", m)
		}
	}
	if b.options.beside && b.dev == nil {
		return usage.Errorf("-beside needs a GPU, and there is none")
	}
	most := int64(0)
	for _, s := range b.tables {
		most = max(most, s.Bytes)
	}
	const width = 1024
	start := time.Now()
	region, err := zerocopy.NewTable(int(most/(4*width))+1, width, dtype.Float32, zerocopy.Options{Name: "table", SkipMemoryCheck: b.skipMemoryCheck})
	if err != nil {
		return err
	}
	b.region = region
	err = region.Fill(ctx, func(lo, hi int, dst []byte) error {
		for i := 0; i+8 <= len(dst); i += 8 {
			binary.LittleEndian.PutUint64(dst[i:], (uint64(lo)*4*width+uint64(i))*0x9E3779B97F4A7C15)
		}
		return nil
	})
	if err != nil {
		return err
	}
	b.log("filled %.3g GB in %.1f s", float64(len(region.Bytes()))/1e9, time.Since(start).Seconds())
	if b.dev == nil {
		return nil
	}
	start = time.Now()
	if b.lock, err = b.dev.Register(ctx, region.Bytes(), cuda.RegisterOptions{Purpose: cuda.Features}); err != nil {
		return err
	}
	b.log("registered it in %.2f s", time.Since(start).Seconds())
	if b.dma, err = measureDMA(b.dev); err != nil {
		return err
	}
	b.log("page-locked DMA: %.1f GB/s", b.dma)
	return nil
}

func (b *bench) openDevice() error {
	drv, err := cuda.Load()
	if cuda.Absent(err) {
		b.log("no GPU: %v", err)
		return nil
	}
	if err != nil {
		return err
	}
	if b.dev, err = drv.Open(b.device, cuda.DeviceOptions{}); err != nil {
		return usage.Wrap(err)
	}
	b.log("%v", b.dev.Properties())
	b.kern, err = zerocopy.LoadKernels(b.dev)
	return err
}

func (b *bench) close() error {
	var errs []error
	if b.kern != nil {
		errs = append(errs, b.kern.Close())
	}
	errs = append(errs, b.lock.Close())
	if b.dev != nil {
		errs = append(errs, b.dev.Close())
	}
	if b.region != nil {
		errs = append(errs, b.region.Close())
	}
	return errors.Join(errs...)
}

// measureDMA times copies of 256 MiB from page-locked memory, the rate that
// everything else is compared with.
func measureDMA(dev *cuda.Device) (_ float64, err error) {
	const n = 256 << 20
	host, err := dev.AllocHost(cuda.Staging, n, cuda.HostOptions{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	to, err := dev.Alloc(cuda.Other, n)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	s, err := dev.NewStream(cuda.StreamOptions{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	clear(host.Bytes())
	t, err := median(10, func() error {
		if err := s.CopyHtoD(to.Ptr(), host.Bytes()); err != nil {
			return err
		}
		return s.Synchronize()
	})
	return n / t.Seconds() / 1e9, err
}

// median calls f once to warm up and then n times, and returns the median time.
func median(n int, f func() error) (time.Duration, error) {
	times := make([]time.Duration, 0, n)
	for i := range n + 1 {
		start := time.Now()
		if err := f(); err != nil {
			return 0, err
		}
		if i > 0 {
			times = append(times, time.Since(start))
		}
	}
	slices.Sort(times)
	return times[len(times)/2], nil
}

// measure runs all modes on one table.
func (b *bench) measure(ctx context.Context, size int64, width int, dt dtype.Type, ord order, rep *report) (err error) {
	rowBytes := width * dt.Size()
	rows := int(min(size/int64(rowBytes), math.MaxInt32))
	if rows < 2 {
		return usage.Errorf("-table: %d bytes hold fewer than two rows of %d", size, rowBytes)
	}
	opt := zerocopy.Options{Name: "table", Owner: b.region}
	if dt == dtype.Int8 {
		opt.Scales = make([]float32, rows)
		for i := range opt.Scales {
			opt.Scales[i] = 1
		}
	}
	tab, err := zerocopy.FromBytes(b.region.Bytes()[:rows*rowBytes], rows, width, dt, opt)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tab.Close()) }()
	ids := make([][]int32, b.batches)
	for i := range ids {
		ids[i] = draw(ord, b.count, rows, b.seed, i)
	}
	for _, mode := range b.modes {
		r := result{Table: size, Rows: rows, Width: width, RowBytes: rowBytes, DType: dt.String(), Order: string(ord), IDs: len(ids[0]), DMA: b.dma}
		var err error
		if mode == zerocopy.Host || b.dev == nil {
			err = b.onHost(ctx, tab, ids, &r)
		} else {
			err = b.onDevice(ctx, tab, mode, ids, &r)
		}
		if errors.Is(err, cuda.OutOfMemory) {
			b.log("%v at %d bytes: %v", mode, size, err)
			continue
		}
		if err != nil {
			return err
		}
		rep.add(r)
	}
	return nil
}

// onHost measures the CPU's gather into host memory.
func (b *bench) onHost(ctx context.Context, tab *zerocopy.Table, ids [][]int32, r *result) (err error) {
	g, err := zerocopy.NewHostGatherer(tab, zerocopy.GatherOptions{Workers: b.stagedWorkers})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	most := 0
	for _, list := range ids {
		most = max(most, len(list))
	}
	dst := make([]float32, most*tab.Width())
	turn := 0
	r.Mode, r.Merged = g.Mode().String(), 1
	return r.time(b.repeat, func() (int, error) {
		list := ids[turn%len(ids)]
		turn++
		return len(list), g.Gather(ctx, list, dst[:len(list)*tab.Width()])
	})
}

// onDevice measures one mode of the GPU's.
func (b *bench) onDevice(ctx context.Context, tab *zerocopy.Table, mode zerocopy.Mode, ids [][]int32, r *result) (err error) {
	opt := zerocopy.DeviceOptions{Mode: mode, Workers: b.workers, Blocks: b.blocks, BatchRows: b.count, Kernels: b.kern}
	switch mode {
	case zerocopy.Staged:
		opt.Workers = b.stagedWorkers
	case zerocopy.Cached:
		opt.CacheBytes = b.cache.Of(int64(r.Rows)*int64(r.RowBytes), int64(r.Rows)*int64(r.RowBytes)/5)
	}
	g, err := zerocopy.NewDeviceGatherer(ctx, tab, b.dev, opt)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	r.Mode, r.Blocks, r.Merged = mode.String(), g.Blocks(), 1
	if mode == zerocopy.Auto {
		r.Chosen = g.Mode().String()
		b.log("auto: %v: %s", g.Mode(), g.Reason())
	}
	if m := g.Mode(); m != zerocopy.Staged && m != zerocopy.Device {
		r.Merged = min(b.merge, len(ids))
	}
	p, err := newPass(b.dev, g, ids, r.Merged, tab.Width())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	if err := r.time(b.repeat, func() (int, error) { return p.run(ctx) }); err != nil {
		return err
	}
	return p.verify(tab)
}

// time runs the gather often enough that a share of rows between CPU and GPU
// has settled, then n times, and fills in the rates.
func (r *result) time(n int, gather func() (rows int, err error)) error {
	for range 6 {
		if _, err := gather(); err != nil {
			return err
		}
	}
	type sample struct {
		seconds float64
		rows    int
	}
	var samples []sample
	cpu, start := cpuTime(), time.Now()
	for range n {
		t := time.Now()
		rows, err := gather()
		if err != nil {
			return err
		}
		samples = append(samples, sample{time.Since(t).Seconds(), rows})
	}
	r.Cores = (cpuTime() - cpu).Seconds() / time.Since(start).Seconds()
	slices.SortFunc(samples, func(a, b sample) int {
		return int(math.Copysign(1, a.seconds/float64(a.rows)-b.seconds/float64(b.rows)))
	})
	m := samples[len(samples)/2]
	r.Seconds = m.seconds
	r.RowsPerSecond = float64(m.rows) / m.seconds
	r.GBps = r.RowsPerSecond * float64(r.RowBytes) / 1e9
	if r.DMA > 0 {
		r.PercentDMA = 100 * r.GBps / r.DMA
	}
	return nil
}

// cpuTime is what all threads of the process have used.
func cpuTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
