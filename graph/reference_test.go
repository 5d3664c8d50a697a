package graph

import (
	"cmp"
	"math/big"
	"slices"

	"zerogcn/internal/philox"
)

// The plain form of what the package promises, with maps and no thought of
// speed: the oracle of the tests.

type refEdge struct {
	s, t int32
	w    float32
}

// refBuild is Builder.Build.
func refBuild(b Builder, e Edges) *CSR {
	rows := make([][]refEdge, b.NumNodes)
	for i := range e.Sources {
		s, t, w := e.Sources[i], e.Targets[i], float32(0)
		if e.Weights != nil {
			w = e.Weights[i]
		}
		if s == t && (b.RemoveSelfLoops || b.AddSelfLoops) {
			continue
		}
		rows[t] = append(rows[t], refEdge{s, t, w})
		if b.Symmetrize && s != t {
			rows[s] = append(rows[s], refEdge{t, s, w})
		}
	}
	c := &CSR{Indptr: []int64{0}, Indices: []int32{}}
	if e.Weights != nil {
		c.Weights = []float32{}
	}
	for v, row := range rows {
		if b.AddSelfLoops {
			row = append(row, refEdge{int32(v), int32(v), 1})
		}
		slices.SortStableFunc(row, func(x, y refEdge) int { return cmp.Compare(x.s, y.s) })
		if b.Deduplicate {
			row = slices.CompactFunc(row, func(x, y refEdge) bool { return x.s == y.s })
		}
		for _, x := range row {
			c.Indices = append(c.Indices, x.s)
			if c.Weights != nil {
				c.Weights = append(c.Weights, x.w)
			}
		}
		c.Indptr = append(c.Indptr, int64(len(c.Indices)))
	}
	return c
}

// refSample is Sampler.Sample without the transposed form.
func refSample(c *CSR, o Options, seed uint64, p philox.Purpose, step uint64, seeds []int32) *Batch {
	nodes := slices.Clone(seeds)
	local := map[int32]int32{}
	for i, v := range seeds {
		local[v] = int32(i)
	}
	var blocks []Block
	for h, k := range o.Fanouts {
		stream := philox.NewStream(seed, p, uint32(h), step)
		b := Block{NumDst: len(nodes), Indptr: []int32{0}, Indices: []int32{}, EdgeIDs: []int64{}}
		fresh := map[int32]bool{}
		for _, v := range nodes {
			edges, scales := refRow(c, o, v, k, stream)
			b.EdgeScale = append(b.EdgeScale, scales...)
			scale := float32(1)
			if d := len(refEdges(c, o, v)); len(edges) > 0 {
				scale = float32(d) / float32(len(edges))
			}
			b.Scale = append(b.Scale, scale)
			for _, e := range edges {
				b.EdgeIDs = append(b.EdgeIDs, e)
				b.Indices = append(b.Indices, c.Indices[e])
				if _, ok := local[c.Indices[e]]; !ok {
					fresh[c.Indices[e]] = true
				}
			}
			b.Indptr = append(b.Indptr, int32(len(b.Indices)))
		}
		run := []int32{}
		for v := range fresh {
			run = append(run, v)
		}
		slices.Sort(run)
		for _, v := range run {
			local[v] = int32(len(nodes))
			nodes = append(nodes, v)
		}
		for i, v := range b.Indices {
			b.Indices[i] = local[v]
		}
		b.NumSrc = len(nodes)
		if !o.Scale || k <= 0 || o.Weighted {
			b.Scale = nil
		}
		if !o.Scale || k <= 0 || !o.Weighted {
			b.EdgeScale = nil
		}
		blocks = append(blocks, b)
	}
	slices.Reverse(blocks)
	for i := range blocks {
		for _, v := range nodes[:blocks[i].NumSrc] {
			blocks[i].Degree = append(blocks[i].Degree, int32(len(refEdges(c, o, v))))
		}
	}
	return &Batch{Nodes: nodes, Blocks: blocks}
}

// refEdges lists the positions of v's edges that may be sampled.
func refEdges(c *CSR, o Options, v int32) []int64 {
	edges := []int64{}
	for e := c.Indptr[v]; e < c.Indptr[v+1]; e++ {
		if !o.DropSelfLoops || c.Indices[e] != v {
			edges = append(edges, e)
		}
	}
	return edges
}

// refRow returns the positions of the edges drawn for v, ascending, and, if
// weighted, their factors.
func refRow(c *CSR, o Options, v int32, k int, stream philox.Stream) ([]int64, []float32) {
	if o.Weighted && k > 0 {
		return refWeighted(c, o, v, k, stream)
	}
	edges := refEdges(c, o, v)
	d := len(edges)
	if k <= 0 || d == 0 || !o.Replace && k >= d {
		return edges, nil
	}
	var chosen []int
	if o.Replace {
		for i := range k {
			chosen = append(chosen, int(philox.Below(stream.Word(uint32(v), uint32(i)), uint32(d))))
		}
	} else {
		for j := d - k; j < d; j++ {
			t := int(philox.Below(stream.Word(uint32(v), uint32(j-(d-k))), uint32(j+1)))
			if slices.Contains(chosen, t) {
				t = j
			}
			chosen = append(chosen, t)
		}
	}
	slices.Sort(chosen)
	var out []int64
	for _, i := range chosen {
		out = append(out, edges[i])
	}
	return out, nil
}

func refWeighted(c *CSR, o Options, v int32, k int, stream philox.Stream) ([]int64, []float32) {
	type candidate struct {
		at   int64
		q    uint64
		rank *big.Rat
	}
	var all []candidate
	sum, total := 0.0, uint64(0)
	for _, e := range refEdges(c, o, v) {
		sum += float64(c.Weights[e])
	}
	for _, e := range refEdges(c, o, v) {
		if w := float64(c.Weights[e]); w > 0 {
			q := max(1, uint64(w/sum*(1<<31)))
			word := stream.Word(uint32(v), uint32(e-c.Indptr[v]))
			all = append(all, candidate{e, q, big.NewRat(2*int64(word)+1, int64(q))})
			total += q
		}
	}
	var scales []float32
	var edges []int64
	switch {
	case o.Replace && len(all) > 0:
		var chosen []int
		for i := range k {
			x, j := uint64(philox.Below(stream.Word(uint32(v), uint32(i)), uint32(total))), 0
			for ; x >= all[j].q; j++ {
				x -= all[j].q
			}
			chosen = append(chosen, j)
		}
		slices.Sort(chosen)
		for _, j := range chosen {
			edges = append(edges, all[j].at)
			scales = append(scales, float32(float64(total)/(float64(k)*float64(all[j].q))))
		}
	case len(all) <= k:
		for _, x := range all {
			edges, scales = append(edges, x.at), append(scales, 1)
		}
	default:
		slices.SortStableFunc(all, func(x, y candidate) int { return x.rank.Cmp(y.rank) })
		next, _ := all[k].rank.Float64()
		all = all[:k]
		slices.SortFunc(all, func(x, y candidate) int { return cmp.Compare(x.at, y.at) })
		for _, x := range all {
			edges = append(edges, x.at)
			scales = append(scales, float32(max(1, (1<<33)/(next*float64(x.q)))))
		}
	}
	return edges, scales
}
