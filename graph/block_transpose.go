package graph

// BuildTranspose builds the transposed form by a stable counting sort, in the
// memory that the block had for it before: sources ascending and, within a
// source, targets ascending, since edges are read in the order of targets.
// Indices must be valid.
func (b *Block) BuildTranspose() {
	e := len(b.Indices)
	// next[s+1] is the place of source s's next edge; it ends as TIndptr[s+1].
	next := resize(b.mem.tIndptr, b.NumSrc+2)
	clear(next)
	b.mem.tIndptr = next
	b.mem.tIndices, b.mem.tEdges = resize(b.mem.tIndices, e), resize(b.mem.tEdges, e)
	for _, s := range b.Indices {
		next[s+2]++
	}
	for i := 2; i < len(next); i++ {
		next[i] += next[i-1]
	}
	for t := range b.NumDst {
		for j := b.Indptr[t]; j < b.Indptr[t+1]; j++ {
			at := &next[b.Indices[j]+1]
			b.mem.tIndices[*at], b.mem.tEdges[*at] = int32(t), j
			*at++
		}
	}
	b.TIndptr, b.TIndices, b.TEdges = next[:b.NumSrc+1], b.mem.tIndices, b.mem.tEdges
}
