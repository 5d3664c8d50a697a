package gpusample_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"zerogcn/graph"
	"zerogcn/internal/philox"
)

// drawGraph draws a graph of up to 3,000 nodes with some hubs, parallel edges,
// self loops and isolated nodes.
func drawGraph(t *rapid.T, weighted bool) *graph.CSR {
	n := rapid.IntRange(1, 3000).Draw(t, "nodes")
	m := rapid.IntRange(0, 6000).Draw(t, "edges")
	stream := philox.NewStream(rapid.Uint64().Draw(t, "graph seed"), philox.Generator, 0, 0)
	sources, targets := make([]int32, m), make([]int32, m)
	var weights []float32
	if weighted {
		weights = make([]float32, m)
	}
	some := uint32(max(1, n/2)) // the rest is isolated
	for i := range m {
		w := stream.Words(uint32(i), 0)
		sources[i], targets[i] = int32(philox.Below(w[0], some)), int32(philox.Below(w[1], some))
		switch philox.Below(w[2], 4) {
		case 0:
			targets[i] = int32(philox.Below(w[3], uint32(min(n, 3))))
		case 1:
			if w[3]%8 == 0 {
				sources[i] = targets[i]
			}
		case 2:
			sources[i] = int32(philox.Below(w[3], uint32(min(n, 3))))
		}
		if weighted {
			weights[i] = float32(philox.Below(w[3], 5)) * 0.7
		}
	}
	return build(t, graph.Builder{NumNodes: n}, sources, targets, weights)
}

type fataler interface{ Fatal(...any) }

func build(t fataler, b graph.Builder, sources, targets []int32, weights []float32) *graph.CSR {
	c, err := b.FromEdges(context.Background(), sources, targets, weights)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func drawOptions(t *rapid.T, weighted bool) graph.Options {
	return graph.Options{
		Fanouts:       rapid.SliceOfN(rapid.SampledFrom([]int{-1, 0, 1, 2, 3, 5, 10, 15, 31, 32, 33, 70, 1000}), 1, 4).Draw(t, "fan-outs"),
		Replace:       rapid.Bool().Draw(t, "replace"),
		Weighted:      weighted && rapid.Bool().Draw(t, "draw by weight"),
		DropSelfLoops: rapid.Bool().Draw(t, "drop self loops"),
		EdgeIDs:       rapid.Bool().Draw(t, "edge ids"),
		Degrees:       rapid.Bool().Draw(t, "degrees"),
		Scale:         rapid.Bool().Draw(t, "scale"),
		Transpose:     rapid.Bool().Draw(t, "transpose"),
		TransposeAll:  rapid.Bool().Draw(t, "transpose all"),
	}
}

// drawSeeds draws no seeds, some, or all nodes.
func drawSeeds(t *rapid.T, n int) []int32 {
	var seeds []int32
	switch rapid.IntRange(0, 9).Draw(t, "kind of seeds") {
	case 0:
	case 1:
		for v := range n {
			seeds = append(seeds, int32(v))
		}
	default:
		seeds = rapid.SliceOfNDistinct(rapid.Int32Range(0, int32(n-1)), 0, min(n, 40), rapid.ID[int32]).Draw(t, "seeds")
		slices.Sort(seeds)
	}
	return seeds
}

func diffSlice[T comparable](name string, want, got []T) string {
	if slices.Equal(want, got) {
		return ""
	}
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			return fmt.Sprintf("%s[%d] = %v, want %v", name, i, got[i], want[i])
		}
	}
	return fmt.Sprintf("%s has %d elements, want %d", name, len(got), len(want))
}

// diffBatch says where two batches differ first; every float must be the same.
func diffBatch(want, got *graph.Batch) string {
	if len(want.Blocks) != len(got.Blocks) {
		return fmt.Sprintf("%d blocks, want %d", len(got.Blocks), len(want.Blocks))
	}
	for i := range want.Blocks {
		w, g := &want.Blocks[i], &got.Blocks[i]
		if w.NumDst != g.NumDst || w.NumSrc != g.NumSrc {
			return fmt.Sprintf("block %d: %d targets, %d sources, want %d, %d", i, g.NumDst, g.NumSrc, w.NumDst, w.NumSrc)
		}
		for _, d := range []string{
			diffSlice("Indptr", w.Indptr, g.Indptr),
			diffSlice("EdgeIDs", w.EdgeIDs, g.EdgeIDs),
			diffSlice("Indices", w.Indices, g.Indices),
			diffSlice("Scale", w.Scale, g.Scale),
			diffSlice("EdgeScale", w.EdgeScale, g.EdgeScale),
			diffSlice("Degree", w.Degree, g.Degree),
			diffSlice("TIndptr", w.TIndptr, g.TIndptr),
			diffSlice("TIndices", w.TIndices, g.TIndices),
			diffSlice("TEdges", w.TEdges, g.TEdges),
		} {
			if d != "" {
				return fmt.Sprintf("block %d: %s", i, d)
			}
		}
	}
	return diffSlice("Nodes", want.Nodes, got.Nodes)
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
