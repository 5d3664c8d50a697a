package graph

import (
	"slices"

	"zerogcn/graph/internal/lanes"
	"zerogcn/internal/philox"
)

// drawWeighted writes the positions of target i's edges in its whole row into
// out, ascending, and their factors into the block.
//
// With replacement, draw j takes the edge whose interval of the cumulative
// weights holds Below(word j, total). An edge's factor is total/(k·q).
//
// Without replacement it is priority sampling (Duffield, Lund and Thorup,
// "Priority sampling for estimation of arbitrary subset sums", JACM 54(6),
// 2007): the edge at position p of the row has the rank (2·word p + 1)/q, the k
// lowest ranks are drawn (the lower position if equal), and with the next rank
// τ an edge's factor is max(1, 2^33/(τ·q)). That makes sums over the sample
// unbiased, which draws one after another with rejection do not allow; unlike
// those it takes a word for every edge of the row.
func drawWeighted[T int32 | int64](s *Sampler, i int, out []T) {
	k, v, lo := len(out), s.batch.Nodes[i], s.rowLo[i]
	row := weightedRow(s.weights.Cumulative[lo:s.csr.Indptr[v+1]])
	var scale []float32
	if s.block.EdgeScale != nil {
		scale = s.block.EdgeScale[s.block.Indptr[i]:s.block.Indptr[i+1]]
	}
	switch {
	case s.opt.Replace:
		var w lanes.Run
		for j := range out {
			if j%lanes.RunLen == 0 {
				w.Fill(&s.words, uint32(v), uint32(j/lanes.RunLen))
			}
			out[j] = T(row.at(philox.Below(w.Word(j), row.total())))
		}
		slices.Sort(out)
		for j := range scale {
			scale[j] = float32(float64(row.total()) / (float64(k) * float64(row.weight(int(out[j])))))
		}
	case k == int(s.weights.positive(v, int32(len(row)))):
		j := 0
		for p := range row {
			if row.weight(p) > 0 {
				out[j] = T(p)
				j++
			}
		}
		for j := range scale {
			scale[j] = 1
		}
	default:
		top := <-s.heaps // there is one for every worker
		next := top.lowest(row, &s.words, uint32(v), k)
		for j, x := range top.items[1:] {
			out[j] = T(x.position)
		}
		s.heaps <- top
		slices.Sort(out)
		for j := range scale {
			inverse := (1 << 33) * float64(next.weight) / (float64(next.word) * float64(row.weight(int(out[j]))))
			scale[j] = float32(max(1, inverse))
		}
	}
}

// weightedRow is a row's part of WeightTable.Cumulative.
type weightedRow []uint32

func (r weightedRow) total() uint32 { return r[len(r)-1] }

// weight returns the integer weight at position p.
func (r weightedRow) weight(p int) uint32 {
	if p == 0 {
		return r[0]
	}
	return r[p] - r[p-1]
}

// at returns the position whose interval holds x, which is below the total: the
// first whose sum is above x. The search has the same number of steps for any
// x, with a conditional move in each.
func (r weightedRow) at(x uint32) int {
	base := 0
	for n := len(r); n > 1; {
		half := n / 2
		next := base
		if r[base+half-1] <= x {
			next = base + half
		}
		base = next
		n -= half
	}
	return base
}

// ranked is an edge with its rank, word/weight.
type ranked struct {
	word     uint64 // 2·word + 1, so 33 bits
	weight   uint32 // at most 2^31, so that products of the two fit 64 bits
	position int32
}

func (a ranked) before(b ranked) bool {
	x, y := a.word*uint64(b.weight), b.word*uint64(a.weight)
	return x < y || x == y && a.position < b.position
}

// rankHeap keeps the lowest ranks of a row in a heap whose root is the highest
// of them. Its memory is reused.
type rankHeap struct{ items []ranked }

// lowest leaves the k+1 lowest ranks of a row in items and returns the highest
// of those, items[0]. The row must have more than k edges of positive weight.
func (h *rankHeap) lowest(row weightedRow, s *lanes.Stream, item uint32, k int) ranked {
	h.items = h.items[:0]
	var w lanes.Run
	sum := uint32(0)
	for p, upTo := range row {
		if p%lanes.RunLen == 0 {
			w.Fill(s, item, uint32(p/lanes.RunLen))
		}
		x := ranked{2*uint64(w.Word(p)) + 1, upTo - sum, int32(p)}
		if sum = upTo; x.weight == 0 {
			continue
		}
		if len(h.items) <= k {
			h.items = append(h.items, x)
			if len(h.items) == k+1 {
				for i := k / 2; i >= 0; i-- {
					h.sink(i)
				}
			}
		} else if x.before(h.items[0]) {
			h.items[0] = x
			h.sink(0)
		}
	}
	return h.items[0]
}

// sink restores the heap's order below item i.
func (h *rankHeap) sink(i int) {
	x := h.items[i]
	for {
		child := 2*i + 1
		if child >= len(h.items) {
			break
		}
		if next := child + 1; next < len(h.items) && h.items[child].before(h.items[next]) {
			child = next
		}
		if !x.before(h.items[child]) {
			break
		}
		h.items[i] = h.items[child]
		i = child
	}
	h.items[i] = x
}
