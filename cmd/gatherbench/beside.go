package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"zerogcn/cuda"
	"zerogcn/cuda/cublas"
	"zerogcn/dtype"
	"zerogcn/zerocopy"
)

// besideResult says what a gather and a stream of matrix products cost each
// other when they run at the same time.
type besideResult struct {
	Mode          string  `json:"mode"`   // zerocopy, or dma for page-locked copies of as many bytes
	Blocks        int     `json:"blocks"` // of 1,024 threads, 0 for dma
	RowBytes      int     `json:"row_bytes"`
	AloneGBps     float64 `json:"alone_gbps"`
	BesideGBps    float64 `json:"beside_gbps"`
	ProductsAlone float64 `json:"products_alone_ms"`
	ProductsSlow  float64 `json:"products_slower_percent"`
}

// besideGathers is how many gathers are measured at a time.
const besideGathers = 20

// beside measures zero-copy gathers on several grids, and page-locked copies,
// beside TF32 products of a training step's size that take about as long.
func (b *bench) beside(ctx context.Context, size int64, width int, rep *report) (err error) {
	lib, err := cublas.Load(cublas.Options{Driver: b.dev.Driver().Version()})
	if err != nil {
		return err
	}
	p, err := newProducts(b.dev, lib)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	rows := int(size / int64(4*width))
	tab, err := zerocopy.FromBytes(b.region.Bytes()[:rows*width*4], rows, width, dtype.Float32, zerocopy.Options{Owner: b.region})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tab.Close()) }()
	ids := make([][]int32, b.batches)
	for i := range ids {
		ids[i] = draw(ascending, b.count, rows, b.seed, i)
	}
	fmt.Fprintf(rep.table, "\nbeside a stream of TF32 products (%d×%d by %d×%d, %s)\n%-9s %6s %12s %12s %14s %16s\n",
		productM, productK, productK, productN, lib.Path(), "mode", "blocks", "alone GB/s", "beside GB/s", "products ms", "products slower")
	sms := b.dev.Properties().SMs
	for _, blocks := range []int{4, 8, 12, 16, 32, 2 * sms} {
		g, err := zerocopy.NewDeviceGatherer(ctx, tab, b.dev, zerocopy.DeviceOptions{Mode: zerocopy.ZeroCopy, Blocks: blocks, Kernels: b.kern})
		if err != nil {
			return err
		}
		q, err := newPass(b.dev, g, ids, 1, width)
		if err != nil {
			return errors.Join(err, g.Close())
		}
		turn := 0
		r, err := p.compare(q.s, len(ids[0])*width*4, func() error {
			turn++
			return g.Enqueue(ctx, q.s, q.batches[turn%len(q.batches)])
		})
		if err := errors.Join(err, q.close(), g.Check(), g.Close()); err != nil {
			return err
		}
		r.Mode, r.Blocks, r.RowBytes = "zerocopy", blocks, 4*width
		rep.addBeside(r)
	}
	r, err := b.besideDMA(p, len(ids[0])*width*4)
	if err != nil {
		return err
	}
	r.RowBytes = 4 * width
	rep.addBeside(r)
	return nil
}

func (b *bench) besideDMA(p *products, n int) (_ besideResult, err error) {
	host, err := b.dev.AllocHost(cuda.Staging, int64(n), cuda.HostOptions{})
	if err != nil {
		return besideResult{}, err
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	to, err := b.dev.Alloc(cuda.Other, int64(n))
	if err != nil {
		return besideResult{}, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	s, err := b.dev.NewStream(cuda.StreamOptions{})
	if err != nil {
		return besideResult{}, err
	}
	defer func() { err = errors.Join(err, s.Synchronize(), s.Close()) }()
	clear(host.Bytes())
	r, err := p.compare(s, n, func() error { return s.CopyHtoD(to.Ptr(), host.Bytes()) })
	r.Mode = "dma"
	return r, err
}

// The shape of one product: a hidden layer's on a large block.
const productM, productN, productK = 97_000, 256, 512

// products is a stream that multiplies matrices.
type products struct {
	s       *cuda.Stream
	h       *cublas.Handle
	buffers [3]*cuda.Buffer
	events  [4]*cuda.Event // start and stop of products, of gathers
}

func newProducts(dev *cuda.Device, lib *cublas.Library) (_ *products, err error) {
	p := &products{}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	if p.s, err = dev.NewStream(cuda.StreamOptions{}); err != nil {
		return nil, err
	}
	for i, n := range []int{productM * productK, productK * productN, productM * productN} {
		if p.buffers[i], err = dev.Alloc(cuda.Other, 4*int64(n)); err != nil {
			return nil, err
		}
		// Ordinary values: zeros would run faster than data do.
		v := make([]float32, n)
		for k := range v {
			v[k] = float32(k%251)/251 - 0.5
		}
		if err = cuda.Upload(p.s, p.buffers[i].Ptr(), v); err != nil {
			return nil, err
		}
	}
	for i := range p.events {
		if p.events[i], err = dev.NewEvent(cuda.EventOptions{Timing: true}); err != nil {
			return nil, err
		}
	}
	p.h, err = lib.NewHandle(p.s, cublas.HandleOptions{})
	return p, err
}

func (p *products) close() error {
	var errs []error
	if p.s != nil {
		errs = append(errs, p.s.Synchronize())
	}
	if p.h != nil {
		errs = append(errs, p.h.Close())
	}
	for _, b := range p.buffers {
		errs = append(errs, b.Close())
	}
	for _, e := range p.events {
		if e != nil {
			errs = append(errs, e.Close())
		}
	}
	if p.s != nil {
		errs = append(errs, p.s.Close())
	}
	return errors.Join(errs...)
}

// queue starts n products, bracketed by events.
func (p *products) queue(n int) error {
	if err := p.events[0].Record(p.s); err != nil {
		return err
	}
	shape := cublas.Product{M: productM, N: productN, K: productK, Alpha: 1, Precision: cublas.TF32}
	for range n {
		err := p.h.Gemm(shape, cublas.Matrix{Ptr: p.buffers[0].Ptr(), Stride: productK},
			cublas.Matrix{Ptr: p.buffers[1].Ptr(), Stride: productN}, cublas.Matrix{Ptr: p.buffers[2].Ptr(), Stride: productN})
		if err != nil {
			return err
		}
	}
	return p.events[1].Record(p.s)
}

// compare times gathers alone, products alone, and both at the same time. The
// number of products is such that both take about as long.
func (p *products) compare(s *cuda.Stream, bytes int, gather func() error) (r besideResult, err error) {
	gathers := func() error {
		if err := p.events[2].Record(s); err != nil {
			return err
		}
		for range besideGathers {
			if err := gather(); err != nil {
				return err
			}
		}
		return p.events[3].Record(s)
	}
	wait := func() (products, gathers time.Duration, err error) {
		if err := errors.Join(s.Synchronize(), p.s.Synchronize()); err != nil {
			return 0, 0, err
		}
		products, err1 := p.events[1].Since(p.events[0])
		gathers, err2 := p.events[3].Since(p.events[2])
		return products, gathers, errors.Join(err1, err2)
	}
	var alone, each time.Duration
	for range 2 { // the first time warms up
		if err := errors.Join(gathers(), s.Synchronize(), p.queue(50)); err != nil {
			return r, err
		}
		if each, alone, err = wait(); err != nil {
			return r, err
		}
	}
	n := max(1, int(alone/(each/50)))
	if err := p.queue(n); err != nil {
		return r, err
	}
	productsAlone, _, err := wait()
	if err != nil {
		return r, err
	}
	// Gathers first: they hold their few SMs while products come and go.
	if err := errors.Join(gathers(), p.queue(n)); err != nil {
		return r, err
	}
	productsBeside, gathersBeside, err := wait()
	if err != nil {
		return r, err
	}
	total := float64(bytes) * besideGathers / 1e9
	return besideResult{
		AloneGBps:     total / alone.Seconds(),
		BesideGBps:    total / gathersBeside.Seconds(),
		ProductsAlone: float64(productsAlone.Microseconds()) / 1e3,
		ProductsSlow:  100 * (productsBeside.Seconds()/productsAlone.Seconds() - 1),
	}, nil
}

func (p *report) addBeside(r besideResult) {
	blocks := "-"
	if r.Blocks > 0 {
		blocks = fmt.Sprint(r.Blocks)
	}
	fmt.Fprintf(p.table, "%-9s %6s %12.1f %12.1f %14.1f %15.0f%%\n", r.Mode, blocks, r.AloneGBps, r.BesideGBps, r.ProductsAlone, r.ProductsSlow)
	if p.json {
		if line, err := json.Marshal(r); err == nil {
			fmt.Fprintf(p.jsonTo, "%s\n", line)
		}
	}
}
