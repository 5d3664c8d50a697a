package graph

import (
	"context"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"zerogcn/internal/par"
	"zerogcn/internal/philox"
)

func TestBlockValidate(t *testing.T) {
	valid := func() *Block {
		b := &Block{NumDst: 2, NumSrc: 3, Indptr: []int32{0, 2, 3}, Indices: []int32{2, 1, 2}}
		b.BuildTranspose()
		b.Scale, b.EdgeScale = []float32{1, 2}, []float32{1, 1, 1}
		b.EdgeIDs, b.Degree = []int64{0, 1, 2}, []int32{4, 5, 6}
		return b
	}
	if err := valid().Validate(); err != nil {
		t.Fatal(err)
	}
	if err := (&Block{Indptr: []int32{0}}).Validate(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		harm func(*Block)
		want string
	}{
		"sizes":             {func(b *Block) { b.NumDst = 4 }, "4 targets and 3 sources"},
		"offsets":           {func(b *Block) { b.Indptr = b.Indptr[:2] }, "2 offsets"},
		"last offset":       {func(b *Block) { b.Indptr[2] = 2 }, "3 offsets"},
		"descending":        {func(b *Block) { b.Indptr[1] = 4 }, "target 1: offsets 4, 3"},
		"source":            {func(b *Block) { b.Indices[1] = 3 }, "edge 1: source 3"},
		"negative":          {func(b *Block) { b.Indices[0] = -1 }, "edge 0: source -1"},
		"edge ids":          {func(b *Block) { b.EdgeIDs = b.EdgeIDs[:1] }, "1 edge ids, want 3"},
		"scales":            {func(b *Block) { b.Scale = b.Scale[:1] }, "1 scales, want 2"},
		"scale":             {func(b *Block) { b.Scale[1] = 0 }, "target 1: scale 0"},
		"edge scale":        {func(b *Block) { b.EdgeScale[2] = -1 }, "edge 2: scale -1"},
		"degrees":           {func(b *Block) { b.Degree = b.Degree[:2] }, "2 degrees, want 3"},
		"half":              {func(b *Block) { b.TIndptr = nil }, "half a transposed form"},
		"transposed sizes":  {func(b *Block) { b.TEdges = b.TEdges[:2] }, "has 3 and 2 in its transposed form"},
		"transposed source": {func(b *Block) { b.TIndptr[1] = 1 }, "source 0: transposed entry 0"},
		"transposed target": {func(b *Block) { b.TIndices[2] = 0 }, "source 2: transposed entry 2: edge 2"},
		"transposed twice":  {func(b *Block) { b.TIndices[2], b.TEdges[2] = b.TIndices[1], b.TEdges[1] }, "is edge 0 after 0"},
		"transposed range":  {func(b *Block) { b.TEdges[0] = 9 }, "is edge 9"},
	} {
		b := valid()
		c.harm(b)
		if err := b.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

// TestFullBlock compares the whole graph as a block with a full-fan-out sample
// whose seeds are all nodes.
func TestFullBlock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawGraph(t, false)
		o := Options{
			Fanouts:       []int{0},
			DropSelfLoops: rapid.Bool().Draw(t, "drop self loops"),
			EdgeIDs:       rapid.Bool().Draw(t, "edge ids"),
			Degrees:       rapid.Bool().Draw(t, "degrees"),
			TransposeAll:  rapid.Bool().Draw(t, "transpose"),
			Scale:         true,
			Workers:       par.Workers(rapid.IntRange(1, 3).Draw(t, "workers")),
		}
		s, err := NewSampler(c, o)
		if err != nil {
			t.Fatal(err)
		}
		all := make([]int32, c.NumNodes())
		for v := range all {
			all[v] = int32(v)
		}
		var want Batch
		if err := s.Sample(1, philox.Sample, 0, all, &want); err != nil {
			t.Fatal(err)
		}
		got, err := FullBlock(context.Background(), c, o)
		if err != nil {
			t.Fatal(err)
		}
		if err := got.Validate(); err != nil {
			t.Fatal(err)
		}
		if d := diffBlock(&want.Blocks[0], got); d != "" {
			t.Fatal(d)
		}
	})
}
