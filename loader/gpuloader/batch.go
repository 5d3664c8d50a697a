package gpuloader

import (
	"errors"
	"time"

	"zerogcn/cuda"
	"zerogcn/graph"
	"zerogcn/graph/gpusample"
)

// Batch is one mini-batch in GPU memory. See the package comment for how long it
// lives.
type Batch struct {
	Epoch, Index int    // Index counts batches within the epoch
	Step         uint64 // batches since the start of training: keys all draws

	NumSeeds, NumNodes int
	Nodes              cuda.DevicePtr // int32 [NumNodes], the input frontier; seeds first
	Blocks             []*graph.Block // outermost first, with Device set
	X                  cuda.DevicePtr // float32 [NumNodes × Width], features of Nodes
	Width              int
	Class              cuda.DevicePtr // int32 [NumSeeds], -1 for none; 0 in sets with several labels a node
	// GlobalLabelled is the number of labelled seeds, or of known labels, of the
	// global batch.
	GlobalLabelled int

	Timing *Timing
	slot   *slot
}

// NumEdges returns the number of edges of all blocks.
func (b *Batch) NumEdges() int {
	n := 0
	for _, k := range b.Blocks {
		n += k.NumEdges()
	}
	return n
}

// Acquire makes work queued on the stream from now on wait for the batch.
func (b *Batch) Acquire(s *cuda.Stream) error { return s.Wait(b.slot.gathered) }

// Release says that the work queued on the stream so far is the last to read the
// batch.
func (b *Batch) Release(s *cuda.Stream) error { return b.slot.released.Record(s) }

// Timing measures the stages of a batch on the device.
type Timing struct{ sampleStart, sampleEnd, gatherStart, gatherEnd *cuda.Event }

// Stages returns the device time of sampling and of gathering, once the batch's
// rows have arrived: after a wait for any work that acquired it. For a batch that
// was kept from an earlier epoch both are 0.
func (t *Timing) Stages() (sample, gather time.Duration, err error) {
	if t == nil {
		return 0, 0, nil
	}
	sample, err = t.sampleEnd.Since(t.sampleStart)
	if err != nil {
		return 0, 0, err
	}
	gather, err = t.gatherEnd.Since(t.gatherStart)
	return sample, gather, err
}

func newTiming(dev *cuda.Device) (*Timing, error) {
	t := &Timing{}
	var errs []error
	for _, e := range t.events() {
		var err error
		*e, err = dev.NewEvent(cuda.EventOptions{Timing: true})
		errs = append(errs, err)
	}
	return t, errors.Join(errs...)
}

func (t *Timing) events() []**cuda.Event {
	return []**cuda.Event{&t.sampleStart, &t.sampleEnd, &t.gatherStart, &t.gatherEnd}
}

func (t *Timing) close() error {
	var errs []error
	for _, e := range t.events() {
		if *e != nil {
			errs = append(errs, (*e).Close())
		}
	}
	return errors.Join(errs...)
}

// slot is a Batch with the memory behind it.
type slot struct {
	Batch
	sampled  *gpusample.Batch
	x        *cuda.Buffer
	class    *cuda.Buffer
	gathered *cuda.Event
	released *cuda.Event
	ptrs     []*graph.Block
	filled   bool // of a fixed batch: sampled and gathered already
}

func newSlot(dev *cuda.Device, s *gpusample.Sampler, seeds int) (*slot, error) {
	x := &slot{}
	x.slot = x
	var err error
	if x.gathered, err = dev.NewEvent(cuda.EventOptions{}); err != nil {
		return x, err
	}
	if x.released, err = dev.NewEvent(cuda.EventOptions{}); err != nil {
		return x, err
	}
	if x.class, err = dev.Alloc(cuda.Indices, 4*int64(seeds)); err != nil {
		return x, err
	}
	if x.sampled, err = s.NewBatch(seeds); err != nil {
		return x, err
	}
	for i := range x.sampled.Blocks {
		x.ptrs = append(x.ptrs, &x.sampled.Blocks[i])
	}
	return x, nil
}

func (x *slot) close() error {
	var errs []error
	if x.sampled != nil {
		errs = append(errs, x.sampled.Close())
	}
	for _, b := range []*cuda.Buffer{x.x, x.class} {
		if b != nil {
			errs = append(errs, b.Close())
		}
	}
	for _, e := range []*cuda.Event{x.gathered, x.released} {
		if e != nil {
			errs = append(errs, e.Close())
		}
	}
	return errors.Join(errs...)
}
