package gpusample

import (
	"errors"
	"fmt"
	"slices"

	"zerogcn/cuda"
	"zerogcn/graph"
)

// EpochOptions say how an epoch is cut into batches.
type EpochOptions struct {
	Seed uint64 // of the shuffle
	// Batch is the number of seeds of a global batch, of all ranks together; 0
	// means all, unshuffled.
	Batch int
	// World is the number of ranks, of which this is number Rank; 0 means 1.
	World, Rank int
}

// Epochs holds the seeds of an epoch's batches in device memory. The permutation
// of the next epoch (graph.ShuffleEpoch) is made by a goroutine while the current
// one is in use.
//
// Global batch g is positions [g·Batch, (g+1)·Batch) of the permutation, and rank
// r takes the r-th of World nearly equal contiguous parts of it, sorted: what
// package loader does on the CPU.
type Epochs struct {
	dev   *cuda.Device
	opt   EpochOptions
	ids   []int32 // ascending
	parts []int   // first seed of each of this rank's parts, and the end

	ahead   chan prepared // of the goroutine under way; nil if none is
	slots   [2]slot
	turn    int
	current *cuda.Buffer
}

type slot struct {
	host *cuda.HostBuffer
	sent *cuda.Event
	ids  []int32
}

type prepared struct {
	epoch uint64
	err   error
}

// NewEpochs takes the ids of the training nodes, in any order and each once, of
// which it keeps a copy, and begins with the permutation of the given epoch.
func NewEpochs(dev *cuda.Device, ids []int32, first uint64, o EpochOptions) (e *Epochs, err error) {
	o.World = max(1, o.World)
	if o.Batch <= 0 || o.Batch > len(ids) {
		o.Batch = max(1, len(ids))
	}
	if o.Rank < 0 || o.Rank >= o.World {
		return nil, fmt.Errorf("gpusample: rank %d of %d", o.Rank, o.World)
	}
	e = &Epochs{dev: dev, opt: o, ids: slices.Sorted(slices.Values(ids)), parts: []int{0}}
	for i, v := range e.ids {
		if v < 0 || i > 0 && v == e.ids[i-1] {
			return nil, fmt.Errorf("gpusample: training node %d is negative or listed twice", v)
		}
	}
	for at := 0; at < len(ids); at += o.Batch {
		lo, hi := part(min(o.Batch, len(ids)-at), o.World, o.Rank)
		e.parts = append(e.parts, e.parts[len(e.parts)-1]+hi-lo)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Close())
			e = nil
		}
	}()
	n := e.parts[len(e.parts)-1]
	if e.current, err = dev.Alloc(cuda.Indices, 4*int64(n)); err != nil {
		return e, fmt.Errorf("gpusample: %d seeds of an epoch: %w", n, err)
	}
	for i := range e.slots {
		x := &e.slots[i]
		if x.sent, err = dev.NewEvent(cuda.EventOptions{Blocking: true}); err != nil {
			return e, err
		}
		if x.host, err = dev.AllocHost(cuda.Indices, 4*int64(n), cuda.HostOptions{}); err != nil {
			return e, err
		}
		if n > 0 {
			x.ids = view[int32](x.host.Bytes(), n)
		}
	}
	e.prepare(first)
	return e, nil
}

// NumBatches returns the number of batches of an epoch, also those of which this
// rank has no seed.
func (e *Epochs) NumBatches() int { return len(e.parts) - 1 }

// Start makes an epoch the current one: its seeds are copied to the device in the
// order of stream, on which the batches are sampled, and the next epoch's
// permutation is begun. If the epoch is not the one that was prepared, it is made
// now.
func (e *Epochs) Start(stream *cuda.Stream, epoch uint64) error {
	for {
		if e.ahead == nil {
			e.prepare(epoch)
		}
		p := <-e.ahead
		e.ahead = nil
		if p.err != nil {
			return p.err
		}
		if p.epoch == epoch {
			break
		}
	}
	x := &e.slots[e.turn]
	if err := stream.CopyHtoD(e.current.Ptr(), bytesOf(x.ids)); err != nil {
		return err
	}
	if err := x.sent.Record(stream); err != nil {
		return err
	}
	e.turn = 1 - e.turn
	e.prepare(epoch + 1)
	return nil
}

// Batch returns the device address of the i-th batch's seeds of the current
// epoch, int32, ascending, and their number.
func (e *Epochs) Batch(i int) (seeds cuda.DevicePtr, n int) {
	return e.current.Ptr() + cuda.DevicePtr(4*e.parts[i]), e.parts[i+1] - e.parts[i]
}

// Close waits for the goroutine and frees the memory; no queued work may read
// it any more. Closing twice does nothing.
func (e *Epochs) Close() error {
	if e.ahead != nil {
		<-e.ahead
		e.ahead = nil
	}
	err := e.current.Close()
	for i := range e.slots {
		err = errors.Join(err, e.slots[i].host.Close(), closeEvent(e.slots[i].sent))
	}
	return err
}

// prepare begins to fill the slot whose turn it is.
func (e *Epochs) prepare(epoch uint64) {
	done, x := make(chan prepared, 1), &e.slots[e.turn]
	e.ahead = done
	go func() {
		err := x.sent.Synchronize() // its last copy
		if err == nil {
			e.fill(x.ids, epoch)
		}
		done <- prepared{epoch, err}
	}()
}

// fill writes this rank's parts of an epoch.
func (e *Epochs) fill(dst []int32, epoch uint64) {
	order := e.ids
	if e.NumBatches() > 1 {
		order = graph.ShuffleEpoch(make([]int32, len(e.ids)), e.ids, e.opt.Seed, epoch)
	}
	for i := range e.NumBatches() {
		at := i * e.opt.Batch
		lo, hi := part(min(e.opt.Batch, len(order)-at), e.opt.World, e.opt.Rank)
		mine := dst[e.parts[i]:e.parts[i+1]]
		copy(mine, order[at+lo:at+hi])
		slices.Sort(mine)
	}
}

// part returns the bounds of the r-th of w nearly equal contiguous parts of n
// items; the first n mod w parts have one more.
func part(n, w, r int) (lo, hi int) {
	q, m := n/w, n%w
	lo = r*q + min(r, m)
	hi = lo + q
	if r < m {
		hi++
	}
	return lo, hi
}
