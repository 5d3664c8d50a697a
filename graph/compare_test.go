package graph

import (
	"fmt"
	"math"
	"slices"
)

// go-cmp takes minutes over slices of a million elements; these say where two
// results differ first.

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

func diffCSR(want, got *CSR) string {
	for _, d := range []string{
		diffSlice("Indptr", want.Indptr, got.Indptr),
		diffSlice("Indices", want.Indices, got.Indices),
		diffSlice("Weights", want.Weights, got.Weights),
	} {
		if d != "" {
			return d
		}
	}
	return ""
}

func diffBlock(want, got *Block) string {
	if want.NumDst != got.NumDst || want.NumSrc != got.NumSrc {
		return fmt.Sprintf("%d targets, %d sources, want %d, %d", got.NumDst, got.NumSrc, want.NumDst, want.NumSrc)
	}
	for _, d := range []string{
		diffSlice("Indptr", want.Indptr, got.Indptr),
		diffSlice("EdgeIDs", want.EdgeIDs, got.EdgeIDs),
		diffSlice("Indices", want.Indices, got.Indices),
		diffSlice("Scale", want.Scale, got.Scale),
		diffSlice("EdgeScale", want.EdgeScale, got.EdgeScale),
		diffSlice("Degree", want.Degree, got.Degree),
		diffSlice("TIndptr", want.TIndptr, got.TIndptr),
		diffSlice("TIndices", want.TIndices, got.TIndices),
		diffSlice("TEdges", want.TEdges, got.TEdges),
	} {
		if d != "" {
			return d
		}
	}
	return ""
}

func diffBatch(want, got *Batch) string {
	if len(want.Blocks) != len(got.Blocks) {
		return fmt.Sprintf("%d blocks, want %d", len(got.Blocks), len(want.Blocks))
	}
	for i := range want.Blocks {
		if d := diffBlock(&want.Blocks[i], &got.Blocks[i]); d != "" {
			return fmt.Sprintf("block %d: %s", i, d)
		}
	}
	return diffSlice("Nodes", want.Nodes, got.Nodes)
}

// diffBatchNear is diffBatch up to the rounding of edge factors, which the
// reference computes in another way.
func diffBatchNear(want, got *Batch) string {
	rounded := *want
	rounded.Blocks = slices.Clone(want.Blocks)
	for i := range min(len(want.Blocks), len(got.Blocks)) {
		w, g := want.Blocks[i].EdgeScale, got.Blocks[i].EdgeScale
		if len(w) != len(g) || !slices.EqualFunc(w, g, func(a, b float32) bool { return math.Abs(float64(a-b)) <= 1e-6*float64(a) }) {
			return fmt.Sprintf("block %d: edge factors %v, want %v", i, g, w)
		}
		rounded.Blocks[i].EdgeScale = g
	}
	return diffBatch(&rounded, got)
}
