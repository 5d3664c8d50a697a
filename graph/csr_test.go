package graph

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"zerogcn/internal/par"
)

func TestValidateNamesTheFirstFault(t *testing.T) {
	nan := float32(math.NaN())
	for name, c := range map[string]struct {
		g    CSR
		want string // "" if valid
	}{
		"empty":        {CSR{}, ""},
		"no nodes":     {CSR{Indptr: []int64{0}}, ""},
		"valid":        {CSR{[]int64{0, 2, 3}, []int32{0, 1, 0}, []float32{1, 2, 3}}, ""},
		"parallel":     {CSR{[]int64{0, 2, 2}, []int32{1, 1}, nil}, ""},
		"no offsets":   {CSR{nil, []int32{0}, nil}, "1 edges but no offsets"},
		"first offset": {CSR{[]int64{1, 1}, []int32{0}, nil}, "from 1 to 1 over 1"},
		"last offset":  {CSR{[]int64{0, 2}, []int32{0}, nil}, "from 0 to 2 over 1"},
		"descending":   {CSR{[]int64{0, 2, 1, 2}, []int32{0, 0}, nil}, "row 1: offsets 2, 1"},
		"beyond":       {CSR{[]int64{0, 9, 1}, []int32{0}, nil}, "row 0: offsets 0, 9"},
		"below":        {CSR{[]int64{0, -1, 1}, []int32{0}, nil}, "row 0: offsets 0, -1"},
		"id":           {CSR{[]int64{0, 1, 2}, []int32{0, 2}, nil}, "row 1, edge 1: source 2 is not in [0, 2)"},
		"negative id":  {CSR{[]int64{0, 1, 2}, []int32{-1, 7}, nil}, "row 0, edge 0: source -1"},
		"order":        {CSR{[]int64{0, 2, 2}, []int32{1, 0}, nil}, "row 0, edge 1: source 0 after 1"},
		"weights":      {CSR{[]int64{0, 1}, []int32{0}, []float32{}}, "0 weights for 1 edges"},
		"weight":       {CSR{[]int64{0, 1, 2}, []int32{0, 0}, []float32{1, nan}}, "row 1, edge 1: weight NaN"},
	} {
		for _, w := range []par.Workers{1, 4} {
			err := c.g.Validate(context.Background(), w)
			switch {
			case c.want == "" && err != nil:
				t.Errorf("%s: error %v", name, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, ErrCorrupt)):
				t.Errorf("%s: error %v, want %q", name, err, c.want)
			}
		}
	}
}

// TestValidateFirstOfMany puts faults into several tiles: the lowest is named.
func TestValidateFirstOfMany(t *testing.T) {
	n := 5 * nodeTile
	c := CSR{Indptr: make([]int64, n+1), Indices: make([]int32, n)}
	for v := range n {
		c.Indptr[v+1] = int64(v + 1)
	}
	c.Indices[nodeTile+7], c.Indices[4*nodeTile] = -1, -1
	for range 20 {
		if err := c.Validate(context.Background(), 8); err == nil || !strings.Contains(err.Error(), "row 8199,") {
			t.Fatalf("error %v, want row 8199", err)
		}
	}
}

func TestTranspose(t *testing.T) {
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		c := drawGraph(t, rapid.Bool().Draw(t, "weighted"))
		w := par.Workers(rapid.IntRange(1, 4).Draw(t, "workers"))
		tr, err := c.Transpose(ctx, w)
		if err != nil {
			t.Fatal(err)
		}
		if err := tr.Validate(ctx, w); err != nil {
			t.Fatal(err)
		}
		// Against the definition: the builder on exchanged edges.
		var e Edges
		for v := range c.NumNodes() {
			for i, s := range c.Row(int32(v)) {
				e.Sources, e.Targets = append(e.Sources, int32(v)), append(e.Targets, s)
				if c.Weights != nil {
					e.Weights = append(e.Weights, c.RowWeights(int32(v))[i])
				}
			}
		}
		if d := diffCSR(refBuild(Builder{NumNodes: c.NumNodes()}, e), tr); d != "" {
			t.Fatal(d)
		}
		out, err := c.OutDegrees(ctx, w)
		if err != nil {
			t.Fatal(err)
		}
		for v := range out {
			if out[v] != int64(tr.InDegree(int32(v))) {
				t.Fatalf("node %d: out-degree %d, transposed row has %d", v, out[v], tr.InDegree(int32(v)))
			}
		}
		back, err := tr.Transpose(ctx, w)
		if err != nil {
			t.Fatal(err)
		}
		if d := diffCSR(c, back); d != "" {
			t.Fatalf("transposed twice: %s", d)
		}
	})
}

func TestStats(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "nodes")
		e := drawEdges(t, n)
		b := Builder{NumNodes: n, Symmetrize: rapid.Bool().Draw(t, "symmetrize")}
		c, err := b.FromEdges(context.Background(), e.Sources, e.Targets, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.Stats(context.Background(), 2)
		if err != nil {
			t.Fatal(err)
		}
		want := Stats{NumNodes: n, NumEdges: c.NumEdges()}
		type pair struct{ s, t int32 }
		pairs := map[pair]int64{}
		in, out, joined := make([]int64, n), make([]int64, n), make([]bool, n)
		for v := range n {
			for _, s := range c.Row(int32(v)) {
				pairs[pair{s, int32(v)}]++
				in[v]++
				out[s]++
				if int(s) != v {
					joined[s], joined[v] = true, true
				} else {
					want.SelfLoops++
				}
			}
		}
		for p, k := range pairs {
			want.Duplicates += k - 1
			if p.s != p.t && pairs[pair{p.t, p.s}] == 0 {
				want.Unpaired++
			}
		}
		for v := range n {
			want.MaxInDegree, want.MaxOutDegree = max(want.MaxInDegree, in[v]), max(want.MaxOutDegree, out[v])
			if !joined[v] {
				want.Isolated++
			}
		}
		if got != want {
			t.Fatalf("%+v, want %+v", got, want)
		}
		if b.Symmetrize && !got.Symmetric() {
			t.Fatal("a symmetrised graph is not symmetric")
		}
	})
}

// TestCorruptGraphs runs everything that takes a CSR on graphs that break the
// type's promises: an error, or a result, but never a panic.
func TestCorruptGraphs(t *testing.T) {
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "nodes")
		offset := rapid.Int64Range(-2, 50)
		c := &CSR{Indices: rapid.SliceOfN(rapid.Int32Range(-2, int32(n)+1), 0, 40).Draw(t, "indices")}
		c.Indptr = rapid.SliceOfN(offset, n+1, n+1).Draw(t, "indptr")
		if rapid.Bool().Draw(t, "plausible ends") {
			c.Indptr[0], c.Indptr[n] = 0, int64(len(c.Indices))
		}
		if rapid.Bool().Draw(t, "weighted") {
			c.Weights = rapid.SliceOfN(rapid.Float32(), len(c.Indices), len(c.Indices)).Draw(t, "weights")
		}
		_, _ = c.Transpose(ctx, 2)
		_, _ = c.OutDegrees(ctx, 2)
		_, _ = c.Stats(ctx, 2)
		o := Options{
			Fanouts:       rapid.SliceOfN(rapid.IntRange(-1, 5), 1, 3).Draw(t, "fanouts"),
			DropSelfLoops: rapid.Bool().Draw(t, "drop"),
			Replace:       rapid.Bool().Draw(t, "replace"),
			Weighted:      rapid.Bool().Draw(t, "by weight"),
			EdgeIDs:       true, Degrees: true, Scale: true, TransposeAll: true,
			Workers: par.Workers(rapid.IntRange(1, 3).Draw(t, "workers")),
		}
		_, _ = FullBlock(ctx, c, o)
		s, err := NewSampler(c, o)
		if err != nil {
			return
		}
		var b Batch
		if err := s.Sample(1, 3, 0, drawSeeds(t, n), &b); err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("error %v does not wrap ErrCorrupt", err)
			}
			return
		}
		for i := range b.Blocks {
			if err := b.Blocks[i].Validate(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
