package graph_test

import (
	"context"
	"fmt"
	"log"

	"zerogcn/graph"
)

// A mini-batch of two layers for one seed.
func Example() {
	sources := []int32{0, 1, 2, 3, 4}
	targets := []int32{1, 2, 3, 4, 0}
	ring, err := graph.Builder{NumNodes: 5, Symmetrize: true}.FromEdges(context.Background(), sources, targets, nil)
	if err != nil {
		log.Fatal(err)
	}
	sampler, err := graph.NewSampler(ring, graph.Options{Fanouts: []int{2, 1}})
	if err != nil {
		log.Fatal(err)
	}
	var batch graph.Batch
	if err := sampler.Sample(42, graph.Training, 0, []int32{2}, &batch); err != nil {
		log.Fatal(err)
	}
	fmt.Println("gather the features of", batch.Nodes)
	for i := range batch.Blocks {
		b := &batch.Blocks[i]
		fmt.Printf("block %d: %d sources -> %d targets over %d edges\n", i, b.NumSrc, b.NumDst, b.NumEdges())
	}
	// Output:
	// gather the features of [2 1 3 0 4]
	// block 0: 5 sources -> 3 targets over 3 edges
	// block 1: 3 sources -> 1 targets over 2 edges
}
