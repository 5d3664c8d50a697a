package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"zerogcn/datasets"
	"zerogcn/internal/cli"
	"zerogcn/internal/par"
	"zerogcn/internal/usage"
)

// source is what all verbs that read a set are told about it.
type source struct {
	name, root, format string
	workers            int
}

// define adds the flags to fs, and the check that the set is there.
func (s *source) define(fs *cli.Flags) {
	fs.Group("Dataset")
	fs.Var(cli.String(&s.name), "dataset", "a folder or file in a known format, a name under -root, demo, or synthetic:NAME")
	fs.Var(cli.String(&s.root), "root", "folder of named datasets (default $ZEROGCN_DATA, else ~/.cache/zerogcn)")
	fs.Var(cli.String(&s.format), "format", "format of the dataset, instead of recognising it")
	fs.Check(func() error { return datasets.Find(s.name, s.options()) }, "dataset", "root", "format")
}

// defineWorkers adds -workers.
func (s *source) defineWorkers(fs *cli.Flags) {
	fs.Group("Machine")
	fs.Var(cli.NonNegative(&s.workers), "workers", "CPU threads; 0: all. Results do not depend on it")
}

func (s *source) options() datasets.Options {
	return datasets.Options{Root: s.root, Format: s.format, Workers: par.Workers(s.workers)}
}

func (s *source) open(ctx context.Context) (*datasets.Dataset, error) {
	return datasets.Open(ctx, s.name, s.options())
}

// checkGenerated refuses sets that are not made on the spot.
func (s *source) checkGenerated() error {
	if datasets.IsGenerated(s.name) {
		return nil
	}
	return usage.Errorf("%s is not made on the spot: want demo or synthetic:NAME; convert writes other sets", s.name)
}

// target is the folder that a verb writes.
type target struct{ out string }

func (t *target) define(fs *cli.Flags) {
	fs.Group("Output")
	fs.Var(cli.String(&t.out), "out", "folder to write; it must not exist")
	fs.Check(func() error {
		if t.out == "" {
			return usage.Errorf("missing: name the folder to write")
		}
		if _, err := os.Lstat(t.out); err == nil {
			return usage.Errorf("%s: %w", t.out, datasets.ErrExists)
		}
		return nil
	}, "out")
}

// write writes d and says what was written, on standard error.
func (t *target) write(ctx context.Context, d *datasets.Dataset, w par.Workers) error {
	if err := datasets.Write(ctx, t.out, d, w); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%s: %d nodes, %d edges, %d features of %s\n", t.out, d.NumNodes, d.NumEdges, d.NumFeatures, d.Features.Type)
	return nil
}

func warn(d *datasets.Dataset) {
	for _, text := range d.Warnings {
		fmt.Fprintf(os.Stderr, "dataset: %s: %s\n", d.Name, text)
	}
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
