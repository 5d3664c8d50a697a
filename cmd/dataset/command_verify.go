package main

import (
	"context"
	"fmt"
	"os"

	"zerogcn/datasets"
	"zerogcn/internal/cli"
	"zerogcn/internal/par"
)

func verify(ctx context.Context, args []string) error {
	var s source
	fs := cli.NewFlags("dataset verify", "Read a set through and check its contents; every fault is a line.")
	s.define(fs)
	s.defineWorkers(fs)
	if err := fs.Parse(args); err != nil {
		return err
	}
	d, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := datasets.Verify(ctx, d, par.Workers(s.workers)); err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "%s: sound: %d nodes, %d edges, %d features, fingerprint %s\n", d.Name, d.NumNodes, d.NumEdges, d.NumFeatures, d.Fingerprint)
	return nil
}
