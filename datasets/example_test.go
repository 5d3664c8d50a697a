package datasets_test

import (
	"context"
	"fmt"
	"log"

	"zerogcn/datasets"
)

// Open a set, look at a node, and take what a training loop needs.
func Example() {
	ctx := context.Background()
	ds, err := datasets.Open(ctx, "demo", datasets.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer ds.Close()
	if err := ds.CheckGraph(ctx, 0); err != nil {
		log.Fatal(err)
	}
	split, err := ds.Split(0)
	if err != nil {
		log.Fatal(err)
	}
	classes := make([]int32, len(split.Train))
	if err := ds.Labels.Classes(classes, split.Train); err != nil {
		log.Fatal(err)
	}
	row := make([]float32, ds.NumFeatures)
	if err := ds.Features.Float32Rows(ctx, 7, 8, row); err != nil {
		log.Fatal(err)
	}
	fmt.Println(ds.NumNodes, "nodes,", ds.NumEdges, "edges,", ds.NumClasses, "classes")
	fmt.Println("training nodes:", len(split.Train), "the first has class", classes[0])
	fmt.Println("node 7 has", ds.Graph.InDegree(7), "neighbours and", len(row), "features")
	// Output:
	// 12000 nodes, 179548 edges, 8 classes
	// training nodes: 7200 the first has class 0
	// node 7 has 15 neighbours and 64 features
}
