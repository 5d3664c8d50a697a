package graph

// Block is one bipartite layer of a mini-batch: NumDst targets aggregate from
// NumSrc sources, and the targets are the first NumDst sources. All ids inside
// are local; Indptr has NumDst+1 offsets into Indices, which holds local source
// ids. Sampled edges keep the order of the graph's row; ids in a row of a Block
// need not ascend, since local ids are ordered by run (see Batch).
//
// A Block made by a Sampler is read-only and lives as long as its Batch.
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
	// EdgeScale replaces Scale in weighted sampling: one factor per edge, the
	// inverse of the expected number of times that the edge is drawn. It makes
	// sums over sampled edges estimate the sum over all edges of positive
	// weight; nil means 1.
	EdgeScale []float32
	// Degree has one full in-degree per local source node (self loops dropped
	// if the sampler drops them), if the sampler was asked for it. Blocks of
	// one Batch share its memory.
	Degree []int32

	// TIndptr, TIndices are the transposed form: for each source, ascending,
	// the targets it feeds, ascending (an edge stored twice appears twice).
	// TEdges gives each transposed entry's position in Indices. They are nil
	// where no gradient flows to the block's input.
	TIndptr  []int32
	TIndices []int32
	TEdges   []int32

	// Device, if not nil, holds the arrays in GPU memory; those above may then be
	// nil. NumDst and NumSrc count in either case.
	Device *DeviceBlock

	// mem keeps the memory of parts that are nil at present.
	mem struct {
		edgeIDs                   []int64
		scale, edgeScale          []float32
		tIndptr, tIndices, tEdges []int32
	}
}

// NumEdges returns the number of edges.
func (b *Block) NumEdges() int {
	if b.Device != nil {
		return b.Device.NumEdges
	}
	return len(b.Indices)
}

// Row returns the local ids of target i's sources. It aliases the block.
func (b *Block) Row(i int) []int32 { return b.Indices[b.Indptr[i]:b.Indptr[i+1]] }
