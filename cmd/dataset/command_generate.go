package main

import (
	"context"

	"zerogcn/internal/cli"
	"zerogcn/internal/par"
)

func generate(ctx context.Context, args []string) error {
	s := source{name: "demo"}
	var t target
	fs := cli.NewFlags("dataset generate", "Make a synthetic set and write it as a native folder.")
	s.define(fs)
	t.define(fs)
	s.defineWorkers(fs)
	fs.Check(s.checkGenerated, "dataset")
	if err := fs.Parse(args); err != nil {
		return err
	}
	d, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer d.Close()
	return t.write(ctx, d, par.Workers(s.workers))
}
