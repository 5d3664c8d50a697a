// Command train trains a graph neural network on a dataset.
//
//	train                                       a demonstration on built-in data
//	train -config configs/cora-gcn.yaml -dataset DIR
//	train -resume runs/…                        continue an interrupted run
//
// See train -help for all flags, and docs/architecture.md for the files that a
// run writes.
package main

import (
	"context"
	"os"

	"zerogcn/internal/cli"
)

func main() {
	cli.Main("train", func(ctx context.Context) error { return run(ctx, os.Args[1:]) })
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	stop, err := startProfile(o.cpuProfile)
	if err != nil {
		return err
	}
	defer stop()
	if o.repeat > 1 {
		return repeat(ctx, o)
	}
	return single(ctx, o)
}
