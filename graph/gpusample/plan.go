package gpusample

import "zerogcn/graph"

// offset is the place of an array in a batch's memory.
type offset int64

const absent offset = -1

// plan is the layout of a batch's memory, for upper bounds of all counts.
type plan struct {
	seeds int
	nodes []int // most nodes after the seeds, after hop 0, …
	edges []int // most edges per hop

	stateBytes int64 // fault, known, edges
	inputBytes int64 // input, state and seeds
	bytes      int64

	nodesAt, rowLo, degrees, sums offset
	// Scratch of the transposed forms, used by one hop at a time.
	placed, transposeSums offset
	hops                  []hopPlan
}

// hopPlan is the layout of one hop's block.
type hopPlan struct {
	indptr, indices, edgeIDs    offset
	scale, edgeScale            offset
	target, arrival             offset // scratch, per edge
	tIndptr, tIndices, tEdges   offset
	targetChunk, transposeChunk int
}

// newPlan bounds the counts of batches of up to the given number of seeds: n
// targets have no more edges than the n of the highest in-degrees.
func (s *Sampler) newPlan(seeds int) plan {
	n, o := s.csr.graph.NumNodes(), s.opt
	hops := len(o.Fanouts)
	p := plan{seeds: max(1, min(seeds, n)), hops: make([]hopPlan, hops)}
	align := func(n, to int64) int64 { return (n + to - 1) / to * to }
	p.stateBytes = align(8+4*int64(2*hops+1), 64)
	p.inputBytes = align(int64(inputBytes)+p.stateBytes+4*int64(p.seeds), 64)
	p.bytes = align(p.inputBytes, 256)
	array := func(n int, size int64, wanted bool) offset {
		if !wanted {
			return absent
		}
		at := p.bytes
		p.bytes = align(at+size*int64(n), 256)
		return offset(at)
	}
	p.nodes = append(p.nodes, min(p.seeds, n))
	for _, k := range o.Fanouts {
		t := p.nodes[len(p.nodes)-1]
		e := int(min(s.csr.degrees.edges(int64(t), k, o.Replace), graph.MaxNodes))
		p.edges = append(p.edges, e)
		p.nodes = append(p.nodes, min(n, t+e))
	}
	transposed, transposeTiles := 0, 0
	p.nodesAt = array(p.nodes[hops], 4, true)
	p.rowLo = array(p.nodes[hops-1], 8, true)
	p.degrees = array(p.nodes[hops], 4, true)
	tiles := tilesOf(s.words, s.chunkOf(s.words))
	for h := range p.hops {
		x := &p.hops[h]
		t, e, src := p.nodes[h], p.edges[h], p.nodes[h+1]
		weighted := o.Weighted && o.Fanouts[h] > 0
		scaled := o.Scale && o.Fanouts[h] > 0
		turn := o.TransposeAll || o.Transpose && h < hops-1
		x.indptr = array(t+1, 4, true)
		x.indices = array(e, 4, true)
		x.edgeIDs = array(e, 8, o.EdgeIDs)
		x.scale = array(t, 4, scaled && !weighted)
		x.edgeScale = array(e, 4, scaled && weighted)
		x.target = array(e, 4, turn)
		x.arrival = array(e, 4, turn)
		x.tIndptr = array(src+1, 4, turn)
		x.tIndices = array(e, 4, turn)
		x.tEdges = array(e, 4, turn)
		x.targetChunk = s.chunkOf(t)
		tiles = max(tiles, tilesOf(t, x.targetChunk))
		if turn {
			x.transposeChunk = s.chunkOf(src)
			transposeTiles = max(transposeTiles, tilesOf(src, x.transposeChunk))
			transposed = max(transposed, e)
		}
	}
	p.placed = array(transposed, 4, transposeTiles > 0)
	p.sums = array(tiles, 8, true)
	p.transposeSums = array(transposeTiles, 8, transposeTiles > 0)
	return p
}
