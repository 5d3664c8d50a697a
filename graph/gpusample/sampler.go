package gpusample

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"zerogcn/cuda"
	"zerogcn/graph"
	"zerogcn/internal/philox"
)

// maxHops is the most fan-outs that a fault word can name.
const maxHops = 250

// deviceGraph is sample.cuh's struct Graph.
type deviceGraph struct {
	indptr, indices, cumulative, positive, selfs cuda.DevicePtr
	edges                                        int64
	nodes, words                                 int32
}

// Sampler draws mini-batches from one graph on its device.
type Sampler struct {
	csr   *CSR
	opt   graph.Options
	words int // of one run's bitmap

	maxTiles int // of a scan

	// Shared with clones.
	family *family
	clone  bool

	bitmaps *cuda.Buffer // per run: seeds, then each hop's new nodes
	setup   *cuda.Stream // for what is not a batch's work, and for capturing that,
	side    *cuda.Stream // its branch
	fork    *cuda.Event  // and where the two part
	join    *cuda.Event  // and meet
	last    *cuda.Event  // the end of the last batch's work
	stream  *cuda.Stream // that work's stream
}

// family is what is read-only in a sampler and its clones.
type family struct {
	constant        *cuda.Buffer // a deviceGraph
	cumulative      edgeArray
	positive, selfs *cuda.Buffer
}

// NewSampler returns a sampler of c. The options are those of a graph.Sampler,
// with the same batches; Workers does not count.
//
// Fan-outs above 1,024 are taken only where they cover every row (not Replace
// and at least the largest in-degree); others are an error. With DropSelfLoops
// or Weighted the graph is read once on the host, and Weighted takes 4 bytes more
// per edge, where the edges are.
func NewSampler(ctx context.Context, c *CSR, o graph.Options) (s *Sampler, err error) {
	if len(o.Fanouts) == 0 {
		return nil, errors.New("gpusample: a sampler needs at least one fan-out")
	}
	if len(o.Fanouts) > maxHops {
		return nil, fmt.Errorf("gpusample: %d fan-outs, at most %d are possible", len(o.Fanouts), maxHops)
	}
	for _, k := range o.Fanouts {
		if most := c.mostDraws(k, o); k > graph.MaxNodes || most > maxDraws {
			return nil, fmt.Errorf("gpusample: fan-out %d draws up to %d edges for one target, at most %d are possible on the GPU: use a smaller one or 0 for whole rows", k, most, maxDraws)
		}
	}
	s = &Sampler{csr: c, opt: o, words: (c.graph.NumNodes() + 31) / 32, maxTiles: maxTiles, family: &family{}}
	s.opt.Fanouts = slices.Clone(o.Fanouts)
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
			s = nil
		}
	}()
	g := deviceGraph{indptr: c.indptr.Ptr(), indices: c.indices.ptr, edges: c.graph.NumEdges(), nodes: int32(c.graph.NumNodes()), words: int32(s.words)}
	f := s.family
	if o.DropSelfLoops {
		if loops := c.selfLoops(); loops != nil {
			if f.selfs, err = place(ctx, c.dev, loops); err != nil {
				return s, err
			}
			g.selfs = f.selfs.Ptr()
		}
	}
	if o.Weighted {
		t, err := graph.NewWeightTable(ctx, c.graph, o.DropSelfLoops, c.opt.Workers)
		if err != nil {
			return s, err
		}
		if f.cumulative, err = c.placeEdges(ctx, "edge weights", bytesOf(t.Cumulative)); err != nil {
			return s, err
		}
		g.cumulative = f.cumulative.ptr
		if t.Positive != nil {
			if f.positive, err = place(ctx, c.dev, t.Positive); err != nil {
				return s, err
			}
			g.positive = f.positive.Ptr()
		}
	}
	if f.constant, err = place(ctx, c.dev, []deviceGraph{g}); err != nil {
		return s, err
	}
	return s, s.init()
}

// init makes what clones do not share.
func (s *Sampler) init() (err error) {
	n := 8 * int64(s.words) * int64(len(s.opt.Fanouts)+1)
	if s.bitmaps, err = s.csr.dev.Alloc(cuda.Workspace, n); err != nil {
		return fmt.Errorf("gpusample: bitmaps of %d nodes and %d hops: %w", s.csr.graph.NumNodes(), len(s.opt.Fanouts), err)
	}
	if s.setup, err = s.csr.dev.NewStream(cuda.StreamOptions{}); err != nil {
		return err
	}
	if s.side, err = s.csr.dev.NewStream(cuda.StreamOptions{}); err != nil {
		return err
	}
	if s.fork, err = s.csr.dev.NewEvent(cuda.EventOptions{}); err != nil {
		return err
	}
	if s.join, err = s.csr.dev.NewEvent(cuda.EventOptions{}); err != nil {
		return err
	}
	if err := s.setup.Set8(s.bitmaps.Ptr(), 0, n); err != nil {
		return err
	}
	return s.setup.Synchronize()
}

// Clone returns a sampler with the same options and batches that works at the
// same time. It is closed before the original.
func (s *Sampler) Clone() (*Sampler, error) {
	c := &Sampler{csr: s.csr, opt: s.opt, words: s.words, maxTiles: s.maxTiles, family: s.family, clone: true}
	if err := c.init(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// NumLayers returns the number of blocks of a batch.
func (s *Sampler) NumLayers() int { return len(s.opt.Fanouts) }

// Close frees the sampler's memory once its queued work is done. Its batches
// must have been closed before. Closing twice does nothing.
func (s *Sampler) Close() error {
	err := errors.Join(s.bitmaps.Close(), closeEvent(s.fork), closeEvent(s.join))
	for _, stream := range []*cuda.Stream{s.setup, s.side} {
		if stream != nil {
			err = errors.Join(err, stream.Close())
		}
	}
	if f := s.family; !s.clone {
		err = errors.Join(err, f.constant.Close(), f.cumulative.close(), f.positive.Close(), f.selfs.Close())
	}
	return err
}

// mostDraws bounds the edges that are drawn by lot for one target.
func (c *CSR) mostDraws(fanout int, o graph.Options) int {
	switch most := c.degrees.max(); {
	case fanout <= 0:
		return 0
	case o.Replace:
		return fanout
	case o.Weighted:
		return int(min(int64(fanout), most))
	case int64(fanout) >= most:
		return 0
	}
	return fanout
}

// Sample queues the drawing of a batch on stream. Seeds must be nodes, unique and
// ascending; they are copied before Sample returns. The batch is what
// graph.Sampler.Sample draws from the same arguments.
//
// Sample does not wait for the device, unless b still has a batch that nobody
// waited for or must grow because it never had as many seeds. Then its arrays
// move. What reads b's arrays must be done or ordered before stream, which must
// not be capturing: seeds and counts pass through page-locked memory that a replay
// would not fill.
func (s *Sampler) Sample(stream *cuda.Stream, seed uint64, purpose philox.Purpose, step uint64, seeds []int32, b *Batch) error {
	last := int32(-1)
	for i, v := range seeds {
		if int64(uint32(v)) >= int64(s.csr.graph.NumNodes()) {
			return fmt.Errorf("gpusample: seed %d: node %d is not in [0, %d)", i, v, s.csr.graph.NumNodes())
		}
		if v <= last {
			return fmt.Errorf("gpusample: seed %d: node %d after %d, seeds must be unique and ascending", i, v, last)
		}
		last = v
	}
	if err := b.ready(s, len(seeds)); err != nil {
		return err
	}
	copy(b.staged, seeds)
	return s.launch(stream, newInput(seed, purpose, step, 0, len(seeds)), b)
}

// SampleDevice is Sample for n seeds that lie in device memory. They must stay
// until the batch is drawn. Their faults show in Batch.Wait.
func (s *Sampler) SampleDevice(stream *cuda.Stream, seed uint64, purpose philox.Purpose, step uint64, seeds cuda.DevicePtr, n int, b *Batch) error {
	if n < 0 || n > s.csr.graph.NumNodes() {
		return fmt.Errorf("gpusample: %d seeds of %d nodes, seeds must be unique", n, s.csr.graph.NumNodes())
	}
	if n > 0 && seeds == 0 {
		return fmt.Errorf("gpusample: %d seeds at address 0", n)
	}
	if err := b.ready(s, n); err != nil {
		return err
	}
	return s.launch(stream, newInput(seed, purpose, step, seeds, n), b)
}

func (s *Sampler) launch(stream *cuda.Stream, in input, b *Batch) error {
	// Batches share the bitmaps, so they are drawn one after another.
	if s.last != nil && s.stream != stream {
		if err := stream.Wait(s.last); err != nil {
			return err
		}
	}
	*b.input, *b.first = in, in.count
	if err := b.work.Launch(stream); err != nil {
		return err
	}
	b.pending, b.seeds, b.stream = true, int(in.count), stream
	s.last, s.stream = b.done, stream
	return b.done.Record(stream)
}

// Labels queues dst[i] = labels[seed i], for the seeds of the last Sample into
// b: both are int32 arrays in device memory, labels with one element a node.
func (s *Sampler) Labels(stream *cuda.Stream, labels, dst cuda.DevicePtr, b *Batch) error {
	if b.seeds == 0 {
		return nil
	}
	if b.stream != stream {
		if err := stream.Wait(b.done); err != nil {
			return err
		}
	}
	return s.csr.kernels.labels.Launch(stream, s.csr.spread(b.seeds),
		labels.Arg(), cuda.I32(int32(s.csr.graph.NumNodes())), b.Nodes.Arg(), cuda.I32(int32(b.seeds)), dst.Arg())
}

// ceilLog2 returns the least b with 1<<b >= k.
func ceilLog2(k int) int { return bits.Len(uint(k - 1)) }
