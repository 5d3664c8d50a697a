package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	"zerogcn/datasets"
	"zerogcn/dtype"
	"zerogcn/internal/cli"
	"zerogcn/internal/par"
	"zerogcn/internal/usage"
)

// conversion is what convert may change on the way.
type conversion struct {
	source
	target
	dtype        string
	order        string
	selfLoops    string
	symmetrize   bool
	rowNormalize bool
	makeSplit    string
	splitSeed    uint64
	fanouts      cli.Fanouts
	memory       cli.Size // 0: no bound
}

const (
	asIs    = "as-is"
	noOrder = "none"
)

func convert(ctx context.Context, args []string) error {
	c := conversion{dtype: asIs, order: noOrder, selfLoops: "keep", fanouts: cli.Fanouts{15, 10, 5}}
	fs := cli.NewFlags("dataset convert", "Write a set of any format as a native folder, changed on the way if asked.")
	c.source.define(fs)
	c.target.define(fs)
	fs.Group("Changes")
	fs.Var(cli.Choice(&c.dtype, asIs, "float32", "float16", "bf16", "int8"), "dtype", "storage type of the features")
	fs.Var(cli.Choice(&c.order, noOrder, "degree", "access"), "order", "number the nodes by out-degree, or by accesses of a sampled epoch: hot rows first")
	fs.Var(cli.FanoutList(&c.fanouts), "fanouts", "fan-outs of the epoch that -order access samples")
	fs.Var(cli.Bool(&c.symmetrize), "symmetrize", "add the reverse of every edge, and keep each once")
	fs.Var(cli.Choice(&c.selfLoops, "keep", "remove", "add"), "self-loops", "what to do with edges from a node to itself")
	fs.Var(cli.Bool(&c.rowNormalize), "row-normalize", "divide each node's features by their sum")
	fs.Var(cli.String(&c.makeSplit), "make-split", "make a split such as random:0.6,0.2,0.2, in place of given ones")
	fs.Var(cli.Seed(&c.splitSeed), "split-seed", "seed of the split that -make-split makes")
	c.defineWorkers(fs)
	fs.Var(cli.MemorySize(&c.memory), "memory", "bound on edges and rows held in memory, such as 4GiB; the rest goes to temporary files beside -out. 0: no bound. The result does not depend on it")
	fs.Check(c.checkMemory, "memory")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if c.memory.Bytes > 0 {
		// Garbage counts too.
		debug.SetMemoryLimit(c.memory.Bytes + c.memory.Bytes/4)
	}
	d, err := datasets.Open(ctx, c.name, c.options())
	if err != nil {
		return err
	}
	// Each change takes over the files of the set before.
	defer func() { d.Close() }()
	warn(d)
	for _, change := range []func(context.Context, *datasets.Dataset) (*datasets.Dataset, error){c.split, c.graph, c.number, c.features} {
		next, err := change(ctx, d)
		if err != nil {
			return err
		}
		d = next
	}
	if err := c.write(ctx, d, c.pool()); err != nil {
		return err
	}
	if n, ok := d.Features.Narrowing(); ok {
		fmt.Fprintf(os.Stderr, "%s: features as %s: %v\n", c.out, d.FeatureType, n)
	}
	return nil
}

// options are those of source, with the bound on memory.
func (c *conversion) options() datasets.Options {
	o := c.source.options()
	o.Memory, o.Scratch = c.memory.Bytes, filepath.Dir(c.out)
	return o
}

func (c *conversion) checkMemory() error {
	if c.memory.Auto || c.memory.Percent > 0 {
		return usage.Errorf("%s: want a size such as 4GiB", c.memory)
	}
	if b := c.memory.Bytes; b != 0 && b < datasets.MinMemory {
		return usage.Errorf("%s is too little to work in: want %s or more", c.memory, cli.Size{Bytes: datasets.MinMemory})
	}
	return nil
}

func (c *conversion) pool() par.Workers { return par.Workers(c.workers) }

func (c *conversion) split(_ context.Context, d *datasets.Dataset) (*datasets.Dataset, error) {
	if c.makeSplit == "" {
		return d, nil
	}
	s, err := datasets.MakeSplit(d, c.makeSplit, c.splitSeed)
	if err != nil {
		return nil, err
	}
	return datasets.WithSplit(d, s)
}

func (c *conversion) graph(ctx context.Context, d *datasets.Dataset) (*datasets.Dataset, error) {
	o := datasets.GraphOptions{Symmetrize: c.symmetrize, Workers: c.pool()}
	switch c.selfLoops {
	case "remove":
		o.SelfLoops = datasets.RemoveSelfLoops
	case "add":
		o.SelfLoops = datasets.AddSelfLoops
	}
	if !o.Symmetrize && o.SelfLoops == datasets.KeepSelfLoops {
		return d, nil
	}
	return datasets.TransformGraph(ctx, d, o)
}

func (c *conversion) features(ctx context.Context, d *datasets.Dataset) (*datasets.Dataset, error) {
	if c.rowNormalize {
		n, err := datasets.RowNormalize(ctx, d)
		if err != nil {
			return nil, err
		}
		d = n
	}
	if c.dtype == asIs {
		return d, nil
	}
	t, err := dtype.Parse(c.dtype)
	if err != nil {
		return nil, err
	}
	return datasets.ConvertFeatures(ctx, d, t, c.pool())
}

// warmUpBatch is the batch size of the epoch that -order access samples.
const warmUpBatch = 1024

func (c *conversion) number(ctx context.Context, d *datasets.Dataset) (*datasets.Dataset, error) {
	switch c.order {
	case "degree":
		order, err := datasets.DegreeOrder(ctx, d, c.pool())
		if err != nil {
			return nil, err
		}
		return datasets.Reorder(ctx, d, order, datasets.ByDegree, c.pool())
	case "access":
		s, err := d.Split(0)
		if err != nil {
			return nil, usage.Errorf("-order access samples from training nodes: %w", err)
		}
		order, err := datasets.AccessOrder(ctx, d, datasets.AccessOptions{Seeds: s.Train, Fanouts: c.fanouts, Batch: warmUpBatch, Epochs: 1, Workers: c.pool()})
		if err != nil {
			return nil, err
		}
		return datasets.Reorder(ctx, d, order, datasets.ByAccess, c.pool())
	}
	return d, nil
}
