package loader_test

import (
	"context"
	"fmt"
	"log"

	"zerogcn/datasets"
	"zerogcn/loader"
)

// Mini-batches of the built-in dataset, for a training loop of your own.
func Example() {
	ctx := context.Background()
	ds, err := datasets.Open(ctx, "demo", datasets.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer ds.Close()
	split, err := ds.Split(0)
	if err != nil {
		log.Fatal(err)
	}
	features, err := loader.OpenFeatures(ctx, ds, loader.FeatureOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer features.Close()

	l, err := loader.New(ds, features, split.Train, loader.Options{Fanouts: []int{10, 5}, BatchSize: 4096, Seed: 1})
	if err != nil {
		log.Fatal(err)
	}
	for b, err := range l.Epoch(ctx, 0) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("batch %d: %d seeds, %d input nodes of %d features, %d blocks\n",
			b.Index, len(b.Seeds), len(b.Nodes), b.X.Width, len(b.Blocks))
	}
	// Output:
	// batch 0: 4096 seeds, 11991 input nodes of 64 features, 2 blocks
	// batch 1: 3104 seeds, 11984 input nodes of 64 features, 2 blocks
}
