package gpusample

import (
	"zerogcn/cuda"
)

// queue queues launches on a stream; after an error it does nothing.
type queue struct {
	stream *cuda.Stream
	err    error
}

func (q *queue) launch(f *cuda.Function, c cuda.Config, args ...cuda.Arg) {
	if q.err == nil {
		q.err = f.Launch(q.stream, c, args...)
	}
}

func (q *queue) do(err error) {
	if q.err == nil {
		q.err = err
	}
}

// enqueue queues everything that makes a batch of the input, on main and, what
// later hops need not wait for, on side. All arguments are fixed, so that it is
// captured once.
func (b *Batch) enqueue(main, side *cuda.Stream) error {
	s, p := b.sampler, &b.plan
	k, hops := s.csr.kernels, s.NumLayers()
	q, beside := &queue{stream: main}, &queue{stream: side}
	a := b.args()
	host := b.host.Bytes()
	q.do(main.CopyHtoD(b.memory.Ptr(), host[:p.inputBytes]))
	q.launch(k.seeds, s.csr.spread(p.seeds), a.input, a.staged, a.graph, a.nodes, a.bitmaps, a.fault)
	for h := range hops {
		b.enqueueHop(q, a, h)
		q.do(s.fork.Record(main))
		q.do(side.Wait(s.fork))
		b.enqueueLocal(beside, a, h)
	}
	if s.opt.Degrees {
		q.launch(k.degrees, s.csr.spread(p.nodes[hops]), a.graph, a.known, cuda.I32(int32(hops)), a.nodes, a.degrees, a.fault)
	}
	q.do(beside.err)
	q.do(s.join.Record(side))
	q.do(main.Wait(s.join))
	q.launch(k.clearing, s.csr.spread(p.nodes[hops]), a.bitmaps, a.graph, a.known, cuda.I32(int32(hops)), a.nodes)
	q.do(main.CopyDtoH(host[p.inputBytes:p.inputBytes+p.stateBytes], b.memory.Ptr()+cuda.DevicePtr(inputBytes)))
	return q.err
}

// batchArgs are the arguments that many kernels take.
type batchArgs struct {
	input, staged, fault, known, edges cuda.Arg
	nodes, rowLo, degrees, sums        cuda.Arg
	graph, bitmaps                     cuda.Arg
}

func (b *Batch) args() batchArgs {
	s := b.sampler
	state := cuda.DevicePtr(inputBytes)
	base := b.memory.Ptr()
	return batchArgs{
		input:   base.Arg(),
		fault:   (base + state).Arg(),
		known:   (base + state + 8).Arg(),
		edges:   (base + state + cuda.DevicePtr(8+4*(s.NumLayers()+1))).Arg(),
		staged:  (base + state + cuda.DevicePtr(b.plan.stateBytes)).Arg(),
		nodes:   b.at(b.plan.nodesAt),
		rowLo:   b.at(b.plan.rowLo),
		degrees: b.at(b.plan.degrees),
		sums:    b.at(b.plan.sums),
		graph:   s.family.constant.Ptr().Arg(),
		bitmaps: s.bitmaps.Ptr().Arg(),
	}
}

// at returns the address of an array, 0 if the batch lacks it.
func (b *Batch) at(o offset) cuda.Arg {
	if o == absent {
		return 0
	}
	return (b.memory.Ptr() + cuda.DevicePtr(o)).Arg()
}

// enqueueHop queues what draws a hop and numbers the nodes that it adds.
func (b *Batch) enqueueHop(q *queue, a batchArgs, h int) {
	s, p := b.sampler, &b.plan
	k, x := s.csr.kernels, &p.hops[h]
	targets, edges, sources := p.nodes[h], p.edges[h], p.nodes[h+1]
	fanout, weighted := s.opt.Fanouts[h], s.opt.Weighted && s.opt.Fanouts[h] > 0
	hop, run, replace := cuda.I32(int32(h)), cuda.I32(int32(h+1)), cuda.I32(0)
	if s.opt.Replace {
		replace = 1
	}
	var positive cuda.Arg
	if weighted {
		positive = s.family.positive.Ptr().Arg()
	}
	limit := cuda.I32(int32(max(0, min(fanout, 1<<31-1))))
	chunk, outgoing := cuda.I32(int32(x.targetChunk)), b.at(x.tIndptr)
	tiles := cuda.Linear(tilesOf(targets, x.targetChunk), threads)

	q.launch(k.count, tiles, a.graph, a.known, hop, a.nodes, a.rowLo, a.degrees, positive, limit, replace, chunk, a.sums, a.fault)
	q.launch(k.layout, tiles, a.known, a.edges, hop, a.nodes, a.degrees, positive, limit, replace, chunk, a.sums,
		cuda.I32(int32(edges)), b.at(x.indptr), b.at(x.scale), outgoing, a.fault)
	b.enqueueDraw(q, a, h, limit, replace)

	perTile := s.chunkOf(s.words)
	words := cuda.Linear(tilesOf(s.words, perTile), threads)
	q.launch(k.subtract, words, a.bitmaps, a.graph, run, cuda.I32(int32(perTile)), a.sums)
	q.launch(k.number, words, a.bitmaps, a.graph, a.known, run, cuda.I32(int32(perTile)), a.sums,
		cuda.I32(int32(sources)), a.nodes, outgoing)
}

// enqueueLocal queues what makes global ids local, and the transposed form.
func (b *Batch) enqueueLocal(q *queue, a batchArgs, h int) {
	s, p := b.sampler, &b.plan
	k, x := s.csr.kernels, &p.hops[h]
	sources := p.nodes[h+1]
	hop, each, outgoing := cuda.I32(int32(h)), s.csr.spread(p.edges[h]), b.at(x.tIndptr)
	indices, arrival, placed := b.at(x.indices), b.at(x.arrival), b.at(p.placed)
	q.launch(k.relabel, each, a.bitmaps, a.graph, a.known, a.edges, hop, indices, outgoing, arrival)
	if x.tIndptr == absent {
		return
	}
	chunk, sums := cuda.I32(int32(x.transposeChunk)), b.at(p.transposeSums)
	tiles := cuda.Linear(tilesOf(sources, x.transposeChunk), threads)
	q.launch(k.transposeCount, tiles, a.known, hop, outgoing, chunk, sums)
	q.launch(k.transposeLayout, tiles, a.known, a.edges, hop, outgoing, chunk, sums)
	q.launch(k.transposePlace, each, a.edges, hop, indices, outgoing, arrival, placed)
	pieces := max(1, min((p.edges[h]+pieceEdges-1)/pieceEdges, 8*s.csr.dev.Properties().SMs))
	q.launch(k.transposeSort, cuda.Linear(pieces, threads), a.edges, hop, indices, outgoing, placed)
	q.launch(k.transposeOrder, each, a.edges, hop, indices, outgoing, placed, b.at(x.target), b.at(x.tIndices), b.at(x.tEdges))
}

// enqueueDraw queues the kernel that draws the hop's edges.
func (b *Batch) enqueueDraw(q *queue, a batchArgs, h int, limit, replace cuda.Arg) {
	s, x := b.sampler, &b.plan.hops[h]
	k, targets, edges := s.csr.kernels, b.plan.nodes[h], b.plan.edges[h]
	fanout, most := s.opt.Fanouts[h], s.csr.mostDraws(s.opt.Fanouts[h], s.opt)
	hop, sms := cuda.I32(int32(h)), s.csr.dev.Properties().SMs
	indptr, indices, edgeIDs, target := b.at(x.indptr), b.at(x.indices), b.at(x.edgeIDs), b.at(x.target)
	words := a.bitmaps + cuda.Arg(8*s.words*(h+1))
	blocks := func(n, perSM int) int { return max(1, min(n, perSM*sms)) }
	switch {
	case s.opt.Weighted && fanout > 0:
		f, config := k.drawWeighted, cuda.Linear(blocks(targets, 32), warp)
		if most > shortFanout {
			f = k.drawWeightedLong
		}
		q.launch(f, config, a.input, a.graph, a.known, a.edges, hop, a.nodes, a.rowLo, indptr, replace,
			indices, edgeIDs, b.at(x.edgeScale), target, words, a.fault)
	case most == 0:
		q.launch(k.drawFull, s.csr.spread(edges), a.graph, a.known, a.edges, hop, a.nodes, a.rowLo, indptr,
			indices, edgeIDs, target, words, a.fault)
	case fanout <= shortFanout:
		shift := ceilLog2(fanout)
		q.launch(k.draw, s.csr.spread(targets<<shift), a.input, a.graph, a.known, a.edges, hop, a.nodes, a.rowLo, a.degrees, indptr,
			limit, replace, cuda.I32(int32(shift)), indices, edgeIDs, target, words, a.fault)
	default:
		q.launch(k.drawLong, cuda.Linear(blocks(targets, 16), longThreads), a.input, a.graph, a.known, a.edges, hop, a.nodes, a.rowLo, a.degrees, indptr,
			replace, indices, edgeIDs, target, words, a.fault)
	}
}
