package graph

import (
	"cmp"
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

// refSample is Sampler.Sample without Scale, EdgeScale and the transposed form.
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
			for _, e := range refRow(c, o, v, k, stream) {
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

func refRow(c *CSR, o Options, v int32, k int, stream philox.Stream) []int64 {
	edges := refEdges(c, o, v)
	d := len(edges)
	if k <= 0 || d == 0 || !o.Replace && k >= d {
		return edges
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
	return out
}
