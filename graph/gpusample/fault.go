package gpusample

import (
	"fmt"

	"zerogcn/graph"
)

// noFault is the fault word of a batch without one.
const noFault = ^uint64(0)

// Kinds of faults, as sample.cuh numbers them.
const (
	badSeed      = 1
	badRow       = 2
	tooManyEdges = 3
	badID        = 4
)

// faultError turns a fault word, hop<<56 | kind<<48 | place, into an error.
func faultError(word uint64, known []int32, nodes int) error {
	if word == noFault {
		return nil
	}
	hop, kind, place := word>>56, word>>48&0xFF, word&(1<<48-1)
	switch kind {
	case badSeed:
		return fmt.Errorf("gpusample: seed %d: it is not in [0, %d) or not above the seed before, seeds must be unique and ascending", place, nodes)
	case badRow:
		return fmt.Errorf("gpusample: hop %d: row %d: its offsets are wrong, though they were right when the graph was uploaded: %w", hop, place, graph.ErrCorrupt)
	case tooManyEdges:
		return fmt.Errorf("gpusample: hop %d has %d edges for %d targets, a block can have %d; use a smaller batch or fan-out",
			hop, place, known[min(hop, uint64(len(known)-1))], graph.MaxNodes)
	case badID:
		return fmt.Errorf("gpusample: hop %d: edge %d of the graph: its source is not in [0, %d), though it was when the graph was uploaded: %w", hop, place, nodes, graph.ErrCorrupt)
	}
	return fmt.Errorf("gpusample: unknown fault %#x", word)
}
