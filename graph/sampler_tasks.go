package graph

import (
	"slices"

	"zerogcn/internal/par"
)

// bufferEdges is the number of edges whose positions are drawn before any of
// their sources is read: enough for the processor to overlap the cache misses,
// few enough to stay in the first-level cache.
const bufferEdges = 2048

// degrees finds the rows of nodes known+lo to known+hi.
func (s *Sampler) degrees(_, lo, hi int) {
	for i := s.known + lo; i < s.known+hi; i++ {
		v := s.batch.Nodes[i]
		from, to, err := s.csr.bounds(int(v))
		if err != nil {
			s.fail(i, err)
			return
		}
		d := int32(to - from)
		if s.hasSelf(v) {
			_, n := s.csr.selfRun(v)
			d -= int32(n)
		}
		s.rowLo[i], s.rowDeg[i] = from, d
	}
}

// sample draws the edges of targets first to last, writes their sources'
// global ids into the block and marks them in the run.
func (s *Sampler) sample(_, first, last int) {
	var m draws
	indptr := s.block.Indptr
	for i := first; i < last; {
		begin, start, n := i, int(indptr[i]), 0
		for ; i < last; i++ {
			k := int(indptr[i+1] - indptr[i])
			if n+k > len(m.positions) {
				break
			}
			s.drawRow(&m, i, n, k)
			n += k
		}
		if n == 0 && i < last { // one row that is larger than the buffer
			s.sampleLongRow(i)
			i++
			continue
		}
		s.drawWaiting(&m)
		s.collect(begin, start, m.positions[:n])
	}
}

// collect reads the sources of the drawn positions, the first of which is edge
// start of the block and belongs to the target first.
func (s *Sampler) collect(first, start int, positions []int64) {
	out := s.block.Indices[start : start+len(positions)]
	indices := s.csr.Indices
	for i, p := range positions {
		out[i] = indices[p]
	}
	if s.block.EdgeIDs != nil {
		copy(s.block.EdgeIDs[start:], positions)
	}
	s.mark(first, start, out)
}

// mark checks ids, which begin at edge start of the block and at the given
// target or an earlier one, and marks them as members of the run.
func (s *Sampler) mark(target, start int, ids []int32) {
	mark := (*rankSet).markShared
	if s.workers == 1 {
		mark = (*rankSet).mark
	}
	if !mark(&s.runs[s.run], ids, uint32(s.n)) {
		s.failID(target, start, ids)
	}
}

// failID reports the first of ids, which start at edge start of the block,
// that is not a node.
func (s *Sampler) failID(target, start int, ids []int32) {
	for i, id := range ids {
		if uint32(id) < uint32(s.n) {
			continue
		}
		for int(s.block.Indptr[target+1]) <= start+i {
			target++
		}
		v := s.batch.Nodes[target]
		// The row's edge of that value is not recorded: find it.
		lo, hi := s.csr.Indptr[v], s.csr.Indptr[v+1]
		at := lo + int64(slices.Index(s.csr.Indices[lo:hi], id))
		s.fail(target, badID(int(v), at, id, s.n))
		return
	}
}

func (s *Sampler) subtract(tile, lo, hi int) {
	s.tiles[tile] = s.runs[s.run].subtract(s.runs[:s.run], lo, hi)
}

func (s *Sampler) number(tile, lo, hi int) {
	s.runs[s.run].number(s.batch.Nodes, s.tiles[tile], lo, hi)
}

// relabel turns the global ids of edges lo to hi into local ids. Most sources
// are in the newest runs, in no order that a branch predictor could learn: so
// among three runs conditional moves select, and only the rest is searched for.
func (s *Sampler) relabel(_, lo, hi int) {
	ids := s.block.Indices[lo:hi]
	newest := s.runs[s.run].words
	before := s.runs[s.run-1].words[:len(newest)]
	third := s.runs[max(s.run-2, 0)].words[:len(newest)]
	for i, id := range ids {
		v := uint32(id)
		at := v >> wordShift
		a, b, w := newest[at], before[at], third[at]
		if b>>(v&31)&1 != 0 {
			w = b
		}
		if a>>(v&31)&1 != 0 {
			w = a
		}
		if w>>(v&31)&1 != 0 {
			ids[i] = rank(w, v)
			continue
		}
		for r := s.run - 3; r >= 0; r-- {
			if w := s.runs[r].words[at]; w>>(v&31)&1 != 0 {
				ids[i] = rank(w, v)
				break
			}
		}
	}
}

// hasSelf reports whether v has self loops that are to be dropped.
func (s *Sampler) hasSelf(v int32) bool {
	return s.selfs != nil && s.selfs[v>>6]>>(uint(v)&63)&1 != 0
}

// selfRun returns where node v's self loops are in its row, and how many. The
// row's bounds must have been checked.
func (c *CSR) selfRun(v int32) (at, n int) {
	row := c.Row(v)
	at, _ = slices.BinarySearch(row, v)
	for at+n < len(row) && row[at+n] == v {
		n++
	}
	return at, n
}

// selfLoopNodes returns the bitmap of nodes with self loops, nil if there are
// none. Their places are found again by binary search where needed: that takes
// no memory per node, and few nodes have any.
func selfLoopNodes(c *CSR, w par.Workers) ([]uint64, error) {
	n := c.NumNodes()
	found := make([]uint64, (n+63)/64)
	tiles := par.Tiles(n, nodeTile)
	errs, anyFound := make([]error, tiles), make([]bool, tiles)
	w.Range(n, nodeTile, func(tile, first, last int) { // whole words of found
		for v := first; v < last; v++ {
			if _, _, err := c.bounds(v); err != nil {
				errs[tile] = err
				return
			}
			if _, k := c.selfRun(int32(v)); k > 0 {
				found[v>>6] |= 1 << (v & 63)
				anyFound[tile] = true
			}
		}
	})
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	if !slices.Contains(anyFound, true) {
		return nil, nil
	}
	return found, nil
}
