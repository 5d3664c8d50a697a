package graph

import (
	"context"
	"fmt"
	"sync/atomic"

	"zerogcn/graph/internal/lanes"
	"zerogcn/internal/par"
	"zerogcn/internal/philox"
)

// Options says how a Sampler samples and what it records in a block. The zero
// value of each field but Fanouts is its default.
type Options struct {
	// Fanouts has one fan-out per layer, from the seeds outwards: 15, 10, 5
	// draws 15 neighbours for each seed, then 10 for each of those nodes. (DGL
	// lists the reverse, PyG the same.) Zero or less takes the full row.
	Fanouts []int
	// Replace draws with replacement: a fan-out k gives exactly k edges,
	// possibly repeated, to each target that has any. Otherwise a target gets
	// min(k, in-degree) edges, none of them twice.
	Replace bool
	// Weighted draws edges with probabilities given by the graph's weights, in
	// hops that sample: see WeightTable for the probabilities and Sample for
	// the draws. Edges of weight 0 are then never in the sample, also where
	// the fan-out covers the row.
	Weighted bool
	// DropSelfLoops leaves edges from a node to itself out of the row before
	// anything is drawn or counted. Layers that add exactly one self loop
	// themselves (GCN, GAT) want this.
	DropSelfLoops bool

	// EdgeIDs records each edge's position in the CSR.
	EdgeIDs bool
	// Degrees records the full in-degree of every source.
	Degrees bool
	// Scale records the factors that make sums over the sample estimate the
	// sum over the full row, in hops that sample (Block.Scale, or
	// Block.EdgeScale if Weighted).
	Scale bool
	// Transpose builds the transposed form of every block but the outermost,
	// as training needs when no gradient flows to the input features.
	Transpose bool
	// TransposeAll builds it for the outermost block too.
	TransposeAll bool

	// Workers bounds the goroutines. Results do not depend on it.
	Workers par.Workers
}

// Task sizes: targets, nodes, edges and spans of a rank set (16,384 nodes).
const (
	targetTile = 128
	degreeTile = 4096
	edgeTile   = 1 << 14
	spanTile   = 4
)

// Sampler draws mini-batches from one graph: Hamilton, Ying and Leskovec,
// "Inductive Representation Learning on Large Graphs" (NeurIPS 2017), with the
// bipartite blocks of DGL. Every hop samples for all nodes found so far, the
// seeds included.
//
// It holds about 2 bits per node and hop, scratch of the size of a batch and, if
// weighted, 4 bytes per edge that clones share.
// A Sampler belongs to one goroutine at a time; Clone gives others their own.
type Sampler struct {
	csr     *CSR
	opt     Options
	n       int
	workers par.Workers          // fixed, so that sharing between tasks is known
	nets    [][]lanes.Comparator // per hop
	selfs   []uint64             // bitmap of nodes with self loops to drop; nil if none
	weights *WeightTable         // nil unless weighted
	heaps   chan *rankHeap       // idle ones, for weighted draws without replacement

	runs   []rankSet // per run: seeds, then each hop's new nodes
	rowLo  []int64   // per local id, of targets
	rowDeg []int32   // per local id; excludes dropped self loops
	tiles  []int     // new nodes per tile of spans

	// What the tiles of the stage under way share.
	batch  *Batch
	block  *Block
	hop    int
	fanout int
	net    []lanes.Comparator
	run    int // the run being marked or numbered
	known  int // nodes whose degrees are known
	words  lanes.Stream
	fault  atomic.Pointer[fault]

	// Tasks as values, made once: closures would be allocated on every call.
	degreesTask, sampleTask, subtractTask, numberTask, relabelTask func(tile, lo, hi int)
}

// fault is an error met by a task; the one of the lowest place is reported.
type fault struct {
	place int
	err   error
}

// NewSampler returns a sampler of c. It searches every row once if self loops
// are to be dropped and reads all weights if it is to be weighted; else its cost
// does not depend on the number of edges.
func NewSampler(c *CSR, o Options) (*Sampler, error) {
	if err := c.checkShape(); err != nil {
		return nil, err
	}
	if len(o.Fanouts) == 0 {
		return nil, fmt.Errorf("graph: a sampler needs at least one fan-out")
	}
	s := &Sampler{csr: c, opt: o, n: c.NumNodes()}
	s.opt.Fanouts = append([]int(nil), o.Fanouts...)
	for _, k := range s.opt.Fanouts {
		if k > MaxNodes {
			return nil, fmt.Errorf("graph: fan-out %d is above %d", k, MaxNodes)
		}
		var net []lanes.Comparator
		if k > 1 && k <= lanes.Max {
			net = lanes.Network(k)
		}
		s.nets = append(s.nets, net)
	}
	if o.DropSelfLoops {
		var err error
		if s.selfs, err = selfLoopNodes(c, o.Workers); err != nil {
			return nil, err
		}
	}
	if o.Weighted {
		var err error
		if s.weights, err = NewWeightTable(context.Background(), c, o.DropSelfLoops, o.Workers); err != nil {
			return nil, err
		}
	}
	s.init()
	return s, nil
}

// Clone returns a sampler of the same graph with the same options, which draws
// the same batches. The two share what is read-only and may be used at the
// same time.
func (s *Sampler) Clone() *Sampler {
	c := &Sampler{csr: s.csr, opt: s.opt, n: s.n, nets: s.nets, selfs: s.selfs, weights: s.weights}
	c.init()
	return c
}

func (s *Sampler) init() {
	for range len(s.opt.Fanouts) + 1 {
		s.runs = append(s.runs, newRankSet(s.n))
	}
	s.tiles = make([]int, par.Tiles(len(s.runs[0].lines), spanTile))
	s.workers = par.Workers(s.opt.Workers.Count())
	s.heaps = make(chan *rankHeap, s.workers)
	for range s.workers {
		s.heaps <- new(rankHeap)
	}
	s.degreesTask, s.sampleTask = s.degrees, s.sample
	s.subtractTask, s.numberTask, s.relabelTask = s.subtract, s.number, s.relabel
}

// NumLayers returns the number of blocks of a batch.
func (s *Sampler) NumLayers() int { return len(s.opt.Fanouts) }

// Sample draws the batch of the given seeds into dst, whose memory it reuses.
//
// Seeds must be nodes, unique and ascending. The batch is a function of the
// graph, the options and the arguments. With h = 0 for the seeds' hop, the
// draws for target v are the words of philox.NewStream(seed, purpose, h, step)
// for item v. Without replacement the i-th draw of Floyd's algorithm takes word
// i, with replacement the i-th draw does. A weighted draw with replacement takes
// word i likewise; without replacement word p ranks the edge at position p of
// the row (priority sampling).
//
// An error leaves dst without a meaning but reusable. Errors of a graph that
// contradicts itself wrap ErrCorrupt; a block of more than 2^31-1 edges is an
// error too.
func (s *Sampler) Sample(seed uint64, purpose philox.Purpose, step uint64, seeds []int32, dst *Batch) error {
	if err := s.checkSeeds(seeds); err != nil {
		return err
	}
	s.batch = dst
	s.fault.Store(nil)
	defer s.reset()
	layers := len(s.opt.Fanouts)
	dst.Blocks = resize(dst.Blocks, layers)
	s.runs[0].mark(seeds, uint32(s.n))
	dst.Nodes = dst.Nodes[:0]
	s.run = 0
	s.numberRun()
	for h, k := range s.opt.Fanouts {
		s.hop, s.fanout, s.net = h, k, s.nets[h]
		s.block = &dst.Blocks[layers-1-h]
		s.words = lanes.NewStream(seed, purpose, h, step)
		if err := s.sampleHop(); err != nil {
			return err
		}
	}
	if s.opt.Degrees {
		if err := s.findDegrees(); err != nil {
			return err
		}
		dst.degree = resize(dst.degree, len(dst.Nodes))
		copy(dst.degree, s.rowDeg)
	}
	for i := range dst.Blocks {
		b := &dst.Blocks[i]
		b.Degree = nil
		if s.opt.Degrees {
			b.Degree = dst.degree[:b.NumSrc:b.NumSrc]
		}
		b.TIndptr, b.TIndices, b.TEdges = nil, nil, nil
		if s.opt.TransposeAll || s.opt.Transpose && i > 0 {
			b.BuildTranspose()
		}
	}
	return nil
}

func (s *Sampler) checkSeeds(seeds []int32) error {
	last := int32(-1)
	for i, v := range seeds {
		if uint32(v) >= uint32(s.n) {
			return fmt.Errorf("graph: seed %d: node %d is not in [0, %d)", i, v, s.n)
		}
		if v <= last {
			return fmt.Errorf("graph: seed %d: node %d after %d, seeds must be unique and ascending", i, v, last)
		}
		last = v
	}
	return nil
}

// sampleHop fills the hop's block and appends the nodes it adds.
func (s *Sampler) sampleHop() error {
	if err := s.findDegrees(); err != nil {
		return err
	}
	targets := len(s.batch.Nodes)
	if err := s.layOut(targets); err != nil {
		return err
	}
	s.run = s.hop + 1
	w := s.workers
	w.Range(targets, targetTile, s.sampleTask)
	if f := s.fault.Load(); f != nil {
		return f.err
	}
	s.numberRun()
	w.Range(len(s.block.Indices), edgeTile, s.relabelTask)
	s.block.NumDst, s.block.NumSrc = targets, len(s.batch.Nodes)
	return nil
}

// layOut sizes the block: offsets and factors from the in-degrees.
func (s *Sampler) layOut(targets int) error {
	b := s.block
	b.Indptr = resize(b.Indptr, targets+1)
	b.Indptr[0] = 0
	total := int64(0)
	for i := range targets {
		total += int64(s.drawn(i))
		b.Indptr[i+1] = int32(total)
	}
	if total > MaxNodes {
		return fmt.Errorf("graph: hop %d has %d edges for %d targets, a block can have %d; use a smaller batch or fan-out",
			s.hop, total, targets, MaxNodes)
	}
	b.Indices = resize(b.Indices, int(total))
	b.EdgeIDs, b.Scale, b.EdgeScale = nil, nil, nil
	if s.opt.EdgeIDs {
		b.mem.edgeIDs = resize(b.mem.edgeIDs, int(total))
		b.EdgeIDs = b.mem.edgeIDs
	}
	switch {
	case !s.opt.Scale || s.fanout <= 0:
	case s.weighted(): // filled while drawing
		b.mem.edgeScale = resize(b.mem.edgeScale, int(total))
		b.EdgeScale = b.mem.edgeScale
	default:
		b.mem.scale = resize(b.mem.scale, targets)
		b.Scale = b.mem.scale
		for i, d := range s.rowDeg[:targets] {
			b.Scale[i] = 1
			if k := s.drawn(i); k != 0 {
				b.Scale[i] = float32(d) / float32(k)
			}
		}
	}
	return nil
}

// drawn returns how many edges target i gets in this hop.
func (s *Sampler) drawn(i int) int32 {
	d := s.rowDeg[i]
	if s.weighted() {
		d = s.weights.positive(s.batch.Nodes[i], d)
	}
	switch k := int32(min(s.fanout, MaxNodes)); {
	case k <= 0 || d == 0:
		return d
	case s.opt.Replace:
		return k
	default:
		return min(d, k)
	}
}

// findDegrees extends rowLo and rowDeg to all nodes found so far.
func (s *Sampler) findDegrees() error {
	n := len(s.batch.Nodes)
	s.known = len(s.rowDeg)
	s.rowLo, s.rowDeg = resizeKeep(s.rowLo, n), resizeKeep(s.rowDeg, n)
	s.workers.Range(n-s.known, degreeTile, s.degreesTask)
	if f := s.fault.Load(); f != nil {
		return f.err
	}
	return nil
}

// numberRun turns the marks of the run into new nodes with local ids.
func (s *Sampler) numberRun() {
	w, spans := s.workers, len(s.runs[s.run].lines)
	w.Range(spans, spanTile, s.subtractTask)
	next := len(s.batch.Nodes)
	for t, n := range s.tiles {
		s.tiles[t] = next
		next += n
	}
	s.batch.Nodes = resizeKeep(s.batch.Nodes, next)
	w.Range(spans, spanTile, s.numberTask)
}

// reset forgets the batch: it makes all marks go, at the cost of what was
// touched.
func (s *Sampler) reset() {
	for i := range s.runs {
		s.runs[i].clear()
	}
	s.rowLo, s.rowDeg = s.rowLo[:0], s.rowDeg[:0]
	s.batch, s.block = nil, nil
}

// fail records an error met at the given place of the stage under way.
func (s *Sampler) fail(place int, err error) {
	f := &fault{place, err}
	for {
		old := s.fault.Load()
		if old != nil && old.place <= place || s.fault.CompareAndSwap(old, f) {
			return
		}
	}
}

// resizeKeep is resize that keeps the first len(s) elements.
func resizeKeep[T any](s []T, n int) []T {
	if n <= cap(s) {
		return s[:n]
	}
	t := make([]T, n, n+n/8)
	copy(t, s)
	return t
}
