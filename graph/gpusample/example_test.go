package gpusample_test

import (
	"context"
	"fmt"
	"log"

	"zerogcn/cuda"
	"zerogcn/graph"
	"zerogcn/graph/gpusample"
	"zerogcn/internal/philox"
)

// An epoch, sampled one batch ahead of its use.
func Example() {
	var g *graph.CSR  // the graph
	var train []int32 // its training nodes
	if err := epoch(context.Background(), g, train); err != nil {
		log.Fatal(err)
	}
}

func epoch(ctx context.Context, g *graph.CSR, train []int32) error {
	drv, err := cuda.Load()
	if err != nil {
		return err
	}
	dev, err := drv.Open(0, cuda.DeviceOptions{})
	if err != nil {
		return err
	}
	defer dev.Close() // also of what is made below; a program closes each itself
	csr, err := gpusample.NewCSR(ctx, dev, g, gpusample.CSROptions{})
	if err != nil {
		return err
	}
	s, err := gpusample.NewSampler(ctx, csr, graph.Options{Fanouts: []int{15, 10, 5}, Transpose: true})
	if err != nil {
		return err
	}
	seeds, err := gpusample.NewEpochs(dev, train, 0, gpusample.EpochOptions{Seed: 1, Batch: 1024})
	if err != nil {
		return err
	}
	stream, err := dev.NewStream(cuda.StreamOptions{})
	if err != nil {
		return err
	}
	if err := seeds.Start(stream, 0); err != nil {
		return err
	}
	var batches [2]*gpusample.Batch
	for i := range batches {
		if batches[i], err = s.NewBatch(1024); err != nil {
			return err
		}
	}
	for i := range seeds.NumBatches() + 1 {
		if i < seeds.NumBatches() {
			at, n := seeds.Batch(i)
			if err := s.SampleDevice(stream, 1, philox.Sample, uint64(i), at, n, batches[i%2]); err != nil {
				return err
			}
		}
		if i > 0 {
			b := batches[(i-1)%2]
			if err := b.Wait(); err != nil {
				return err
			}
			fmt.Println(b.NumNodes, "rows to gather by the ids at", b.Nodes)
		}
	}
	return nil
}
