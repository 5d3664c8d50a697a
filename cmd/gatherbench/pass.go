package main

import (
	"context"
	"errors"
	"fmt"
	"math"

	"zerogcn/cuda"
	"zerogcn/zerocopy"
)

// pass gathers one batch after another on the GPU, or several merged.
type pass struct {
	g       *zerocopy.DeviceGatherer
	s       *cuda.Stream
	ids     [][]int32
	batches []zerocopy.Batch
	buffers []*cuda.Buffer
	merged  int
	width   int
	turn    int
	last    int // index of the batch whose rows the first destination holds
}

func newPass(dev *cuda.Device, g *zerocopy.DeviceGatherer, ids [][]int32, merged, width int) (_ *pass, err error) {
	p := &pass{g: g, ids: ids, merged: merged, width: width}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	if p.s, err = dev.NewStream(cuda.StreamOptions{}); err != nil {
		return nil, err
	}
	most := 0
	for _, list := range ids {
		most = max(most, len(list))
	}
	// As many destinations as are filled at the same time.
	dst := make([]cuda.DevicePtr, merged)
	for i := range dst {
		b, err := dev.Alloc(cuda.Activations, 4*int64(most)*int64(width))
		if err != nil {
			return nil, err
		}
		p.buffers = append(p.buffers, b)
		dst[i] = b.Ptr()
	}
	for i, list := range ids {
		b, err := cuda.Place(p.s, cuda.Indices, list)
		if err != nil {
			return nil, err
		}
		p.buffers = append(p.buffers, b)
		p.batches = append(p.batches, zerocopy.Batch{N: len(list), IDs: b.Ptr(), Dst: dst[i%merged]})
		if merged == 1 {
			// The sampler of a conventional pipeline has the ids on the host.
			p.batches[i].HostIDs = list
		}
	}
	return p, nil
}

// run gathers the next batches and waits for them.
func (p *pass) run(ctx context.Context) (rows int, err error) {
	if p.merged == 1 {
		p.last = p.turn % len(p.batches)
		p.turn++
		b := p.batches[p.last]
		err = p.g.Enqueue(ctx, p.s, b)
		rows = b.N
	} else {
		// Whole rounds: batch i writes to destination i mod merged.
		groups := len(p.batches) / p.merged
		p.last = p.turn % groups * p.merged
		p.turn++
		group := p.batches[p.last : p.last+p.merged]
		err = p.g.EnqueueMany(ctx, p.s, group)
		for _, b := range group {
			rows += b.N
		}
	}
	if err != nil {
		return 0, err
	}
	if err := p.s.Synchronize(); err != nil {
		return 0, err
	}
	return rows, p.g.Check()
}

// verify compares rows of the last pass with the table, so that no figure is
// printed for a gather that fetched something else.
func (p *pass) verify(tab *zerocopy.Table) error {
	b, ids := p.batches[p.last], p.ids[p.last]
	got, want := make([]float32, p.width), make([]float32, p.width)
	for k := range 64 {
		i := k * (len(ids) - 1) / 63
		if err := cuda.Download(p.s, got, b.Dst+cuda.DevicePtr(4*i*p.width)); err != nil {
			return err
		}
		if err := tab.ReadRow(want, int(ids[i])); err != nil {
			return err
		}
		for c := range want {
			if math.Float32bits(got[c]) != math.Float32bits(want[c]) && (got[c] == got[c] || want[c] == want[c]) {
				return fmt.Errorf("gather is wrong: id %d at position %d, value %d: got %v, want %v", ids[i], i, c, got[c], want[c])
			}
		}
	}
	return nil
}

func (p *pass) close() error {
	var errs []error
	if p.s != nil {
		errs = append(errs, p.s.Synchronize())
	}
	for _, b := range p.buffers {
		errs = append(errs, b.Close())
	}
	if p.s != nil {
		errs = append(errs, p.s.Close())
	}
	return errors.Join(errs...)
}
