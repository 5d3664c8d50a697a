package graph

import (
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"zerogcn/internal/par"
	"zerogcn/internal/philox"
)

// drawGraph draws a graph of up to 400 nodes with some hubs, parallel edges and
// self loops.
func drawGraph(t *rapid.T, weighted bool) *CSR {
	n := rapid.IntRange(1, 400).Draw(t, "nodes")
	m := rapid.IntRange(0, 3000).Draw(t, "edges")
	seed := rapid.Uint64().Draw(t, "graph seed")
	stream := philox.NewStream(seed, philox.Generator, 0, 0)
	e := Edges{Sources: make([]int32, m), Targets: make([]int32, m)}
	if weighted {
		e.Weights = make([]float32, m)
	}
	hubs := min(n, 3)
	for i := range m {
		w := stream.Words(uint32(i), 0)
		e.Sources[i], e.Targets[i] = int32(philox.Below(w[0], uint32(n))), int32(philox.Below(w[1], uint32(n)))
		switch philox.Below(w[2], 4) {
		case 0:
			e.Targets[i] = int32(philox.Below(w[3], uint32(hubs)))
		case 1:
			if w[3]%8 == 0 {
				e.Sources[i] = e.Targets[i]
			}
		}
		if weighted {
			e.Weights[i] = float32(philox.Below(w[3], 5)) * 0.7
		}
	}
	c, err := Builder{NumNodes: n}.FromEdges(context.Background(), e.Sources, e.Targets, e.Weights)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func drawSeeds(t *rapid.T, n int) []int32 {
	seeds := rapid.SliceOfNDistinct(rapid.Int32Range(0, int32(n-1)), 0, min(n, 40), rapid.ID[int32]).Draw(t, "seeds")
	slices.Sort(seeds)
	return seeds
}

// TestSampleAgainstReference compares whole batches, for several numbers of
// workers, with the plain form of the algorithm.
func TestSampleAgainstReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weighted := rapid.Bool().Draw(t, "weighted")
		c := drawGraph(t, weighted)
		o := Options{
			Weighted:      weighted && rapid.Bool().Draw(t, "draw by weight"),
			Scale:         rapid.Bool().Draw(t, "scale"),
			Fanouts:       rapid.SliceOfN(rapid.SampledFrom([]int{-1, 0, 1, 2, 3, 5, 10, 15, 31, 32, 33, 70}), 1, 4).Draw(t, "fanouts"),
			Replace:       rapid.Bool().Draw(t, "replace"),
			DropSelfLoops: rapid.Bool().Draw(t, "drop self loops"),
			EdgeIDs:       true, Degrees: true,
		}
		seeds := drawSeeds(t, c.NumNodes())
		seed, step := rapid.Uint64().Draw(t, "seed"), rapid.Uint64().Draw(t, "step")
		want := refSample(c, o, seed, philox.Sample, step, seeds)
		for _, w := range []par.Workers{1, 2, 8} {
			o.Workers = w
			s, err := NewSampler(c, o)
			if err != nil {
				t.Fatal(err)
			}
			var got Batch
			for range 2 { // the second time in used memory
				if err := s.Sample(seed, philox.Sample, step, seeds, &got); err != nil {
					t.Fatal(err)
				}
				if d := diffBatchNear(want, &got); d != "" {
					t.Fatalf("%d workers: %s", w, d)
				}
			}
		}
	})
}

// TestSampleWideGraph reaches what small graphs do not: many spans of the rank
// sets, tiles of every stage, and rows longer than the buffer.
func TestSampleWideGraph(t *testing.T) {
	const n, m = 300_000, 400_000
	stream := philox.NewStream(5, philox.Generator, 0, 0)
	src, dst := make([]int32, m), make([]int32, m)
	for i := range m {
		w := stream.Words(uint32(i), 0)
		src[i], dst[i] = int32(philox.Below(w[0], n)), int32(philox.Below(w[1], n))
		if i < m/4 {
			dst[i] = int32(i%7) * (n / 7)
		}
	}
	c, err := Builder{NumNodes: n}.FromEdges(context.Background(), src, dst, nil)
	if err != nil {
		t.Fatal(err)
	}
	seeds := make([]int32, 0, 3000)
	for v := int32(0); v < n; v += 113 {
		seeds = append(seeds, v)
	}
	seeds = append(seeds, n/7*2, n/7*5)
	slices.Sort(seeds)
	seeds = slices.Compact(seeds)
	for _, fanouts := range [][]int{{4, 2, 3}, {1100, 1}, {-1, 1}} {
		for _, replace := range []bool{false, true} {
			o := Options{Fanouts: fanouts, EdgeIDs: true, Degrees: true, Replace: replace, Scale: true}
			want := refSample(c, o, 1, philox.Evaluation, 0, seeds)
			for _, w := range []par.Workers{1, 2, 8} {
				o.Workers = w
				s, err := NewSampler(c, o)
				if err != nil {
					t.Fatal(err)
				}
				var got Batch
				if err := s.Sample(1, philox.Evaluation, 0, seeds, &got); err != nil {
					t.Fatal(err)
				}
				if d := diffBatch(want, &got); d != "" {
					t.Fatalf("fan-outs %v, %d workers: %s", fanouts, w, d)
				}
			}
		}
	}
}
