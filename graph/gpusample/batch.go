package gpusample

import (
	"errors"
	"fmt"
	"math/bits"
	"unsafe"

	"zerogcn/cuda"
	"zerogcn/graph"
	"zerogcn/internal/philox"
)

// Batch is a mini-batch in GPU memory. Its addresses are fixed from NewBatch on,
// unless it grows; its counts are those of the last batch that was waited for.
type Batch struct {
	// Nodes is the input frontier, int32, in the order of graph.Batch.Nodes.
	Nodes    cuda.DevicePtr
	NumNodes int
	// Blocks are as those of a graph.Batch, the outermost first, with Device set
	// and no host arrays.
	Blocks []graph.Block
	// EdgeIDs has, if the options ask for them, the address of each block's
	// edge ids, int64; nil otherwise.
	EdgeIDs []cuda.DevicePtr

	sampler *Sampler
	plan    plan
	memory  *cuda.Buffer
	host    *cuda.HostBuffer
	input   *input  // in host: what the next batch gets,
	first   *int32  // known[0] of the state that it begins with,
	staged  []int32 // its seeds,
	fault   *uint64 // and what the last one left
	known   []int32 // nodes after the seeds, after hop 0, …
	edges   []int32 // per hop
	done    *cuda.Event
	work    *cuda.Executable
	pending bool // launched and not waited for
	seeds   int
	stream  *cuda.Stream // of the last Sample
}

// input is sample.cuh's struct Input.
type input struct {
	seeds                     cuda.DevicePtr
	key0, key1, step, purpose uint32
	count, _                  int32
}

const inputBytes = int(unsafe.Sizeof(input{}))

func newInput(seed uint64, p philox.Purpose, step uint64, seeds cuda.DevicePtr, n int) input {
	return input{seeds: seeds, key0: uint32(seed), key1: uint32(seed >> 32), step: uint32(step), purpose: uint32(p), count: int32(n)}
}

// NewBatch makes a batch for up to the given number of seeds: its memory and the
// graph of launches that fills it.
func (s *Sampler) NewBatch(seeds int) (*Batch, error) {
	b := &Batch{sampler: s}
	var err error
	if b.done, err = s.csr.dev.NewEvent(cuda.EventOptions{Blocking: true}); err != nil {
		return nil, err
	}
	if err := b.resize(seeds); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// Close frees the batch's memory once its drawing is done. What reads the batch
// must be done. Closing twice does nothing.
func (b *Batch) Close() error {
	err := b.free()
	if b.done == nil {
		return err
	}
	if b.sampler.last == b.done { // the next batch waits for nothing then, and need not
		b.sampler.last = nil
	}
	err = errors.Join(err, b.done.Close())
	b.done = nil
	return err
}

// free gives memory and launches back when the drawing is done.
func (b *Batch) free() error {
	var err error
	if b.pending {
		err = b.done.Synchronize()
		b.pending = false
	}
	return errors.Join(err, b.work.Close(), b.memory.Close(), b.host.Close())
}

// ready makes sure that the batch belongs to s, is idle and takes n seeds.
func (b *Batch) ready(s *Sampler, n int) error {
	if b.sampler != s {
		return errors.New("gpusample: the batch belongs to another sampler")
	}
	if b.done == nil {
		return fmt.Errorf("gpusample: batch: %w", cuda.ErrClosed)
	}
	if b.pending { // its page-locked memory is still read and written
		if err := b.done.Synchronize(); err != nil {
			return err
		}
		b.pending = false
	}
	if n <= b.plan.seeds && b.work != nil {
		return nil
	}
	// A batch that grows is used by nobody: what is queued so far may be left.
	if err := b.free(); err != nil {
		return err
	}
	return b.resize(max(n, min(b.plan.seeds*2, 1<<bits.Len(uint(n)))))
}

// resize makes memory and launches for batches of up to the given seeds.
func (b *Batch) resize(seeds int) (err error) {
	s := b.sampler
	b.memory, b.host, b.work = nil, nil, nil
	b.plan = s.newPlan(seeds)
	if b.memory, err = s.csr.dev.Alloc(cuda.Indices, b.plan.bytes); err != nil {
		return fmt.Errorf("gpusample: a batch of %d seeds (up to %d nodes, %d edges in the outermost block): %w",
			b.plan.seeds, b.plan.nodes[s.NumLayers()], b.plan.edges[s.NumLayers()-1], err)
	}
	if err := b.mapHost(); err != nil {
		return err
	}
	b.mapDevice()
	return b.capture()
}

// capture makes the graph of the batch's launches.
func (b *Batch) capture() error {
	s := b.sampler
	g, err := s.setup.Capture(func() error { return b.enqueue(s.setup, s.side) })
	if err != nil {
		return err
	}
	b.work, err = g.Executable()
	return errors.Join(err, g.Close())
}

// mapHost makes the page-locked memory: the input with the state that each batch
// begins with and the seeds, in one piece, and the state that it ends with.
func (b *Batch) mapHost() (err error) {
	hops := b.sampler.NumLayers()
	state := b.plan.stateBytes
	if b.host, err = b.sampler.csr.dev.AllocHost(cuda.Indices, b.plan.inputBytes+state, cuda.HostOptions{}); err != nil {
		return err
	}
	mem := b.host.Bytes()
	clear(mem)
	b.input = &view[input](mem, 1)[0]
	*b.input = input{}
	view[uint64](mem[inputBytes:], 1)[0] = noFault
	b.first = &view[int32](mem[inputBytes+8:], 1)[0]
	b.staged = view[int32](mem[int64(inputBytes)+state:], b.plan.seeds)
	out := mem[b.plan.inputBytes:]
	b.fault = &view[uint64](out, 1)[0]
	b.known = view[int32](out[8:], hops+1)
	b.edges = view[int32](out[8+4*(hops+1):], hops)
	return nil
}

// mapDevice makes the blocks of the arrays' addresses.
func (b *Batch) mapDevice() {
	s, p := b.sampler, &b.plan
	hops := s.NumLayers()
	base := b.memory.Ptr()
	at := func(o offset) uintptr {
		if o == absent {
			return 0
		}
		return uintptr(base) + uintptr(o)
	}
	b.Nodes = cuda.DevicePtr(at(p.nodesAt))
	b.NumNodes = 0
	b.Blocks = make([]graph.Block, hops)
	b.EdgeIDs = nil
	if s.opt.EdgeIDs {
		b.EdgeIDs = make([]cuda.DevicePtr, hops)
	}
	for h := range p.hops {
		x, i := &p.hops[h], hops-1-h
		d := &graph.DeviceBlock{
			Indptr: at(x.indptr), Indices: at(x.indices),
			Scale: at(x.scale), EdgeScale: at(x.edgeScale),
			TIndptr: at(x.tIndptr), TIndices: at(x.tIndices), TEdges: at(x.tEdges),
		}
		if s.opt.Degrees {
			d.Degree = at(p.degrees)
		}
		b.Blocks[i].Device = d
		if s.opt.EdgeIDs {
			b.EdgeIDs[i] = cuda.DevicePtr(at(x.edgeIDs))
		}
	}
}

// Done returns the event that follows the batch's drawing, for other streams to
// wait for. It belongs to the batch.
func (b *Batch) Done() *cuda.Event { return b.done }

// Ready reports whether Wait would return at once.
func (b *Batch) Ready() (bool, error) {
	if !b.pending {
		return true, nil
	}
	return b.done.Done()
}

// Wait waits until the last Sample into b is done and fills in the counts. Its
// error tells of seeds on the device that were wrong, of a block of too many
// edges, or of a graph that changed (graph.ErrCorrupt); the batch is then without
// a meaning, but its ids and offsets stay within its arrays.
func (b *Batch) Wait() error {
	if b.done == nil {
		return fmt.Errorf("gpusample: batch: %w", cuda.ErrClosed)
	}
	if b.pending {
		if err := b.done.Synchronize(); err != nil {
			return err
		}
		b.pending = false
	}
	hops := len(b.edges)
	b.NumNodes = int(b.known[hops])
	for h, e := range b.edges {
		x := &b.Blocks[hops-1-h]
		x.NumDst, x.NumSrc = int(b.known[h]), int(b.known[h+1])
		x.Device.NumEdges = int(e)
	}
	return faultError(*b.fault, b.known, b.sampler.csr.graph.NumNodes())
}

// NumEdges returns the number of edges of all blocks.
func (b *Batch) NumEdges() int {
	n := 0
	for i := range b.Blocks {
		n += b.Blocks[i].NumEdges()
	}
	return n
}
