package graph

import (
	"slices"

	"zerogcn/graph/internal/lanes"
	"zerogcn/internal/philox"
)

// draws is a task's scratch memory, on its stack.
type draws struct {
	positions [bufferEdges]int64 // in the CSR, target by target
	// Targets that wait until there is one for every lane.
	lanes   lanes.Draws
	waiting int
	target  [lanes.Width]int
	start   [lanes.Width]int // in positions
}

// drawRow sees to it that positions[start:start+k] gets the CSR positions of
// target i's edges, ascending, at the latest when drawWaiting is called. k is
// the number of edges that layOut gave the target.
func (s *Sampler) drawRow(m *draws, i, start, k int) {
	if k == 0 {
		return
	}
	v, lo, d := s.batch.Nodes[i], s.rowLo[i], uint32(s.rowDeg[i])
	out := m.positions[start : start+k]
	switch {
	case s.weighted(): // positions are of the whole row
		drawWeighted(s, i, out)
		for j := range out {
			out[j] += lo
		}
	case s.wholeRow(k, d):
		for j := range out {
			out[j] = lo + int64(j)
		}
		s.skipSelf(v, lo, out)
	case k > lanes.Max:
		drawLong(s, uint32(v), d, out)
		for j := range out {
			out[j] += lo
		}
		s.skipSelf(v, lo, out)
	default:
		l := m.waiting
		m.lanes.Items[l], m.lanes.Degrees[l] = uint32(v), d
		m.target[l], m.start[l] = i, start
		if m.waiting++; m.waiting == lanes.Width {
			s.drawWaiting(m)
		}
	}
}

// drawWaiting draws for the targets that wait.
func (s *Sampler) drawWaiting(m *draws) {
	if m.waiting == 0 {
		return
	}
	k := s.fanout
	for l := m.waiting; l < lanes.Width; l++ {
		m.lanes.Items[l], m.lanes.Degrees[l] = 0, uint32(k)+1
	}
	if s.opt.Replace {
		m.lanes.Replace(&s.words, k, s.net)
	} else {
		m.lanes.Floyd(&s.words, k, s.net)
	}
	for l := range m.waiting {
		i := m.target[l]
		lo, out := s.rowLo[i], m.positions[m.start[l]:][:k]
		for j := range out {
			out[j] = lo + int64(m.lanes.Positions[j%lanes.Max][l%lanes.Width])
		}
		s.skipSelf(s.batch.Nodes[i], lo, out)
		lanes.Prefetch(s.csr.Indices, out)
	}
	m.waiting = 0
}

// weighted reports whether the hop draws by edge weight.
func (s *Sampler) weighted() bool { return s.weights != nil && s.fanout > 0 }

// wholeRow reports whether k of d edges are all of them, without draws.
func (s *Sampler) wholeRow(k int, d uint32) bool {
	return s.fanout <= 0 || !s.opt.Replace && uint32(k) == d
}

// skipSelf moves ascending positions in node v's row without its self loops to
// positions in the whole row, which begins at lo, if those are to be dropped.
func (s *Sampler) skipSelf(v int32, lo int64, positions []int64) {
	if !s.hasSelf(v) {
		return
	}
	at, n := s.csr.selfRun(v)
	for j := len(positions) - 1; j >= 0 && positions[j] >= lo+int64(at); j-- {
		positions[j] += int64(n)
	}
}

// drawLong draws any number of positions into out, ascending, for fan-outs
// above lanes.Max, by the same rules and from the same words.
func drawLong[T int32 | int64](s *Sampler, v, d uint32, out []T) {
	var w lanes.Run
	k := len(out)
	for i := range k {
		if i%lanes.RunLen == 0 {
			w.Fill(&s.words, v, uint32(i/lanes.RunLen))
		}
		if s.opt.Replace {
			out[i] = T(philox.Below(w.Word(i), d))
			continue
		}
		// Floyd, with the sample so far kept in order. A draw that was taken
		// gives j, which is above all others.
		j := d - uint32(k) + uint32(i)
		t := T(philox.Below(w.Word(i), j+1))
		if at, taken := slices.BinarySearch(out[:i], t); taken {
			out[i] = T(j)
		} else {
			copy(out[at+1:i+1], out[at:i])
			out[at] = t
		}
	}
	if s.opt.Replace {
		slices.Sort(out)
	}
}

// sampleLongRow samples a target of more than bufferEdges edges.
func (s *Sampler) sampleLongRow(i int) {
	b, v, lo := s.block, s.batch.Nodes[i], s.rowLo[i]
	start, end := int(b.Indptr[i]), int(b.Indptr[i+1])
	out := b.Indices[start:end]
	at, n := len(s.csr.Indices), 0
	if s.weighted() {
		drawWeighted(s, i, out)
	} else if s.wholeRow(len(out), uint32(s.rowDeg[i])) {
		for j := range out {
			out[j] = int32(j)
		}
	} else {
		drawLong(s, uint32(v), uint32(s.rowDeg[i]), out)
	}
	if !s.weighted() && s.hasSelf(v) {
		at, n = s.csr.selfRun(v)
	}
	for j, p := range out {
		e := lo + int64(p)
		if int(p) >= at {
			e += int64(n)
		}
		if b.EdgeIDs != nil {
			b.EdgeIDs[start+j] = e
		}
		out[j] = s.csr.Indices[e]
	}
	s.mark(i, start, out)
}
