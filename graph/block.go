package graph

// Block is one bipartite layer of a mini-batch: NumDst targets aggregate from
// NumSrc sources, and the targets are the first NumDst sources. All ids inside
// are local; Indptr has NumDst+1 offsets into Indices, which holds local source
// ids.
type Block struct {
	NumDst, NumSrc int
	Indptr         []int32
	Indices        []int32

	// EdgeIDs gives the CSR position of each edge, if the sampler was asked
	// for it.
	EdgeIDs []int64
	// Scale has one factor per target, in-degree over sampled count, that makes
	// sums over sampled neighbours estimate the full sum; nil means 1.
	Scale []float32
	// Degree has one full in-degree per local source node (self loops dropped
	// if the sampler drops them), if the sampler was asked for it.
	Degree []int32

	// TIndptr, TIndices are the transposed form: for each source, ascending,
	// the targets it feeds, ascending (an edge stored twice appears twice).
	// TEdges gives each transposed entry's position in Indices. They are nil
	// where no gradient flows to the block's input.
	TIndptr  []int32
	TIndices []int32
	TEdges   []int32
}
