package graph

import (
	"math/bits"
	"slices"

	"zerogcn/internal/philox"
)

// draws is a task's scratch memory, on its stack.
type draws struct {
	words     [maxNetwork + wordsSlack]uint32
	chosen    [maxNetwork]uint32 // positions in the row, ascending
	positions [bufferEdges]int64 // positions in the CSR
}

// drawRow writes the CSR positions of target i's edges into out, ascending.
// len(out) is the number of edges that layOut gave the target.
func (s *Sampler) drawRow(i int, out []int64, m *draws) {
	k, d := len(out), uint32(s.rowDeg[i])
	if k == 0 {
		return
	}
	v, lo := s.batch.Nodes[i], s.rowLo[i]
	if s.weighted() { // positions are of the whole row
		drawWeighted(s, i, out)
		for j := range out {
			out[j] += lo
		}
		return
	}
	switch {
	case s.wholeRow(k, d):
		for j := range out {
			out[j] = lo + int64(j)
		}
	case k > maxNetwork:
		drawLong(s, uint32(v), d, out)
		for j := range out {
			out[j] += lo
		}
	default:
		s.words.fill(&m.words, uint32(v), k)
		if s.opt.Replace {
			for j := range k {
				m.chosen[j%maxNetwork] = philox.Below(m.words[j%maxNetwork], d)
			}
			runNetwork(s.net, &m.chosen)
		} else {
			m.floyd(k, d, s.net)
		}
		for j, p := range m.chosen[:k] {
			out[j] = lo + int64(p)
		}
	}
	if s.hasSelf(v) {
		s.skipSelf(v, lo, out)
	}
}

// weighted reports whether the hop draws by edge weight.
func (s *Sampler) weighted() bool { return s.weights != nil && s.fanout > 0 }

// wholeRow reports whether k of d edges are all of them, without draws.
func (s *Sampler) wholeRow(k int, d uint32) bool {
	return s.fanout <= 0 || !s.opt.Replace && uint32(k) == d
}

// skipSelf moves ascending positions in a row without its self loops to
// positions in the whole row, which begins at lo.
func (s *Sampler) skipSelf(v int32, lo int64, positions []int64) {
	at, n := s.csr.selfRun(v)
	for j := len(positions) - 1; j >= 0 && positions[j] >= lo+int64(at); j-- {
		positions[j] += int64(n)
	}
}

// floyd chooses k of d positions, 0 < k < d, uniformly without replacement:
// Floyd's algorithm (Bentley and Floyd, "A sample of brilliance", CACM 30(9),
// 1987).
func (m *draws) floyd(k int, d uint32, net []comparator) {
	var seen uint64 // the draws so far, by their lowest six bits
	j := d - uint32(k)
	for i := range k {
		t := philox.Below(m.words[i%maxNetwork], j+1)
		if seen>>(t&63)&1 != 0 && (d <= 64 || slices.Contains(m.chosen[:i], t)) {
			t = j
		}
		seen |= 1 << (t & 63)
		m.chosen[i%maxNetwork] = t
		j++
	}
	if d <= 64 { // seen is the sample: read it in order
		for i := range k {
			m.chosen[i%maxNetwork] = uint32(bits.TrailingZeros64(seen))
			seen &= seen - 1
		}
		return
	}
	runNetwork(net, &m.chosen)
}

// drawLong draws any number of positions into out, ascending, for fan-outs
// above maxNetwork, by the same rules and from the same words.
func drawLong[T int32 | int64](s *Sampler, v, d uint32, out []T) {
	var w [8]uint32
	k := len(out)
	for i := range k {
		if i%8 == 0 {
			s.words.pair(&w, v, uint32(i>>2))
		}
		if s.opt.Replace {
			out[i] = T(philox.Below(w[i%8], d))
			continue
		}
		// Floyd, with the sample so far kept in order. A draw that was taken
		// gives j, which is above all others.
		j := d - uint32(k) + uint32(i)
		t := T(philox.Below(w[i%8], j+1))
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
