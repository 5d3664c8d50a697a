package graph

// Batch is a sampled mini-batch. Sample fills it and reuses all its memory, so
// its slices are valid until the next Sample into the same Batch. The zero
// value is ready for use.
type Batch struct {
	// Nodes is the input frontier: global ids, each node once. It is a
	// sequence of runs: the seeds, then the nodes that the seeds' hop added,
	// then those of the next hop, each run ascending. The position in Nodes is
	// a node's local id in every block, and the targets and the sources of
	// each block are prefixes of Nodes.
	Nodes []int32
	// Blocks has one block per fan-out, the outermost (which reads the input
	// features) first, so the last block's targets are the seeds.
	Blocks []Block

	degree []int32 // shared by the blocks' Degree
}

// Seeds returns the seeds, the targets of the last block. It aliases Nodes.
func (b *Batch) Seeds() []int32 {
	if len(b.Blocks) == 0 {
		return nil
	}
	return b.Nodes[:b.Blocks[len(b.Blocks)-1].NumDst]
}

// NumEdges returns the number of edges of all blocks.
func (b *Batch) NumEdges() int {
	n := 0
	for i := range b.Blocks {
		n += b.Blocks[i].NumEdges()
	}
	return n
}
