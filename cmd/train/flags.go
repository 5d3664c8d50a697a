package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"zerogcn/datasets"
	"zerogcn/internal/backend"
	"zerogcn/internal/cli"
	"zerogcn/internal/usage"
	"zerogcn/loader"
	"zerogcn/model"
	"zerogcn/model/optim"
	"zerogcn/trainer"
	"zerogcn/trainer/rundir"
	"zerogcn/zerocopy"
)

// options is everything that the command line says.
type options struct {
	data  trainer.DataOptions
	train trainer.Config

	inputDropout float64 // -1: as the architecture does
	fanouts      cli.Fanouts
	evalFanouts  cli.Fanouts
	batch        cli.Batch
	layers       int // 0: as many as fan-outs
	gpu          backend.GPUOptions
	cache        cli.Size
	blas         string
	repeat       int
	splitGiven   bool // -split-index was given

	run, resume string
	keep        int
	quiet, json bool
	download    bool
	cpuProfile  string

	flags *cli.Flags
}

// defaultOptions are those of the main job, the demo: small enough for any
// machine. Recipes for real data are in configs/.
func defaultOptions() *options {
	return &options{
		data: trainer.DataOptions{Name: "demo", SelfLoops: "keep", Order: "auto"},
		train: trainer.Config{
			Model:  model.Config{Arch: model.SAGE, Aggregator: "mean", GCNNorm: "sym", Hidden: 64, Dropout: 0.5},
			Epochs: 10, LR: 0.003, Sampling: loader.Uniform, Optimizer: optim.Adam, WeightDecay: []float64{0}, EvalEvery: 1,
		},
		inputDropout: -1,
		fanouts:      cli.Fanouts{15, 10, 5}, batch: 1024,
		gpu:   backend.GPUOptions{Select: cli.GPUs{Auto: true}, Precision: "auto"},
		cache: cli.Size{Auto: true}, blas: "auto", repeat: 1, keep: 1,
	}
}

func (o *options) define() *cli.Flags {
	t, m, d := &o.train, &o.train.Model, &o.data
	fs := cli.NewFlags("train", "Train a graph neural network on a dataset, by default on a built-in one.")
	fs.Group("Dataset")
	fs.Var(cli.String(&d.Name), "dataset", "a folder or file in a known format, a name under -root, or demo")
	fs.Var(cli.String(&d.Root), "root", "folder of named datasets (default $ZEROGCN_DATA, else ~/.cache/zerogcn)")
	fs.Var(cli.String(&d.Format), "format", "format of the dataset, instead of recognising it")
	fs.Var(cli.Bool(&o.download), "download", "agree to the download of a published dataset that is not under -root yet")
	fs.Var(cli.String(&d.MakeSplit), "make-split", "make a split such as random:0.6,0.2,0.2, instead of using a given one")
	fs.Var(cli.Seed(&d.SplitSeed), "split-seed", "seed of the split that -make-split makes")
	fs.Var(cli.NonNegative(&d.SplitIndex), "split-index", "which of several given splits; with -repeat, run i uses split i unless this is given")
	fs.Var(cli.Bool(&d.Symmetrize), "symmetrize", "add the reverse of every edge")
	fs.Var(cli.Choice(&d.SelfLoops, trainer.SelfLoopModes()...), "self-loops", "what to do with edges from a node to itself")
	fs.Var(cli.Choice(&d.Order, "auto", "none", "degree"), "order", "renumber the nodes by hotness, so that a cache of the first rows holds the hottest; auto: if -features is cached")
	fs.Var(cli.Bool(&d.RowNormalize), "row-normalize", "divide each node's features by their sum")

	fs.Group("Model")
	fs.Var(cli.Choice(&m.Arch, choices[model.Arch](model.Archs())...), "model", "the network")
	fs.Var(cli.Choice(&m.Aggregator, model.Aggregators()...), "aggregator", "how sage combines neighbours")
	fs.Var(cli.Choice(&m.GCNNorm, model.GCNNorms()...), "gcn-norm", "how gcn weights edges")
	fs.Var(cli.NonNegative(&o.layers), "layers", "number of layers; 0: one per fan-out, 2 with -fanouts full")
	fs.Var(cli.Positive(&m.Hidden), "hidden", "width of the hidden layers")
	fs.Var(cli.Float(&m.Dropout, cli.BelowOne), "dropout", "drop probability between layers")
	fs.Var(inputDropout(&o.inputDropout), "input-dropout", "drop probability on the features; auto: -dropout for gcn, 0 for others")

	fs.Group("Training")
	fs.Var(cli.FanoutList(&o.fanouts), "fanouts", "neighbours to sample per layer, from the seeds outwards (DGL lists the reverse), or full")
	fs.Var(cli.Choice(&t.Sampling, loader.Samplings()...), "sampling", "how neighbours are drawn: uniform (none twice), replace (with replacement) or weighted (by edge weight, none twice)")
	fs.Var(cli.BatchSize(&o.batch), "batch", "seeds of a mini-batch, or full for all training nodes at once")
	fs.Var(cli.Positive(&t.Epochs), "epochs", "passes over the training nodes")
	fs.Var(cli.Float(&t.LR, cli.AboveZero), "lr", "learning rate")
	fs.Var(cli.Parsed(&t.Schedule, "SCHEDULE", optim.ParseSchedule, optim.Schedule.String), "schedule", "learning rate by epoch: none, step:EPOCHS,FACTOR, cosine or cosine:LAST-RATE")
	fs.Var(cli.Choice(&t.Optimizer, choices[optim.Kind](optim.Kinds())...), "optimizer", "the optimiser")
	fs.Var(cli.Float(&t.Momentum, cli.BelowOne), "momentum", "momentum of sgd")
	fs.Var(cli.Floats(&t.WeightDecay, cli.ZeroOrMore), "weight-decay", "one value, or one per layer from the input: 5e-4,0")
	fs.Var(cli.Seed(&t.Seed), "seed", "key of all randomness but the split")
	fs.Var(cli.Positive(&t.EvalEvery), "eval-every", "epochs between evaluations")
	fs.Var(cli.FanoutList(&o.evalFanouts), "eval-fanouts", "evaluate on sampled neighbourhoods, such as 20,20,20, or full: exactly")
	fs.Var(cli.NonNegative(&t.Patience), "patience", "stop after that many evaluations without a better one; 0: never")
	fs.Var(cli.Positive(&o.repeat), "repeat", "number of runs, with seeds from -seed on; metrics are then mean and deviation")

	fs.Group("Machine")
	fs.Var(cli.GPUSelection(&o.gpu.Select), "gpus", "auto (one GPU if there is any), 0 for the CPU, a count, or a list with a comma")
	fs.Var(cli.Parsed(&o.gpu.Features, "MODE", zerocopy.ParseMode, zerocopy.Mode.String), "features", "how features reach the GPU: auto, zerocopy, staged, device, cached or hybrid")
	fs.Var(cli.MemorySize(&o.cache), "cache", "GPU memory for features: a share of the table (20%), bytes (4GiB), or auto")
	fs.Var(cli.NonNegative(&o.gpu.Blocks), "gather-blocks", "thread blocks of a gather, so multiprocessors it takes; 0: what saturates the link")
	fs.Var(cli.Bool(&o.gpu.HostGraph), "host-graph", "keep the graph's edges in host memory even if they fit the GPU")
	fs.Var(cli.Choice(&o.gpu.Precision, "auto", "fp32", "tf32", "bf16"), "precision", "factors of matrix products on the GPU; auto: tf32 where the chip has it")
	fs.Var(cli.String(&o.gpu.BLAS), "cublas", "path of cuBLAS or of its folder, or none for our own kernels (default: where it is usually found)")
	fs.Var(cli.NonNegative(&t.Workers), "workers", "CPU threads of each stage; 0: all. Results do not depend on it")
	fs.Var(cli.String(&o.blas), "blas", "matrix products on the CPU: auto (OpenBLAS if found, else gonum), gonum, or the path of a library")

	fs.Group("Run")
	fs.Var(cli.String(&o.run), "run", "folder for what the run writes (default runs/<time>-<dataset>-<model>)")
	fs.Var(cli.String(&o.resume), "resume", "continue the run in this folder, bit for bit")
	fs.Var(cli.NonNegative(&t.CheckpointEvery), "checkpoint-every", "steps between checkpoints; 0: at the end of an epoch, at least 30 s apart")
	fs.Var(cli.Positive(&o.keep), "keep", "number of most recent checkpoints to keep")
	fs.Var(cli.Bool(&o.quiet), "quiet", "print nothing but errors and, with -json, the summary")
	fs.Var(cli.Bool(&o.json), "json", "print the summary as one line of JSON on standard output, all else on standard error")
	fs.Var(cli.String(&o.cpuProfile), "cpuprofile", "write a CPU profile to this file")
	fs.Config("config")
	fs.Invocation("download", "run", "resume", "checkpoint-every", "keep", "quiet", "json", "cpuprofile", "workers")

	fs.ConfigFrom(o.resumedConfig)
	fs.Check(o.checkDataset, "dataset", "root", "format", "download")
	fs.Check(o.checkLayers, "layers", "fanouts", "eval-fanouts", "weight-decay", "model")
	fs.Check(o.checkDevice, "gpus")
	fs.Check(o.checkFolder, "run", "resume", "repeat")
	return fs
}

func choices[T ~string](names []string) []T {
	out := make([]T, len(names))
	for i, n := range names {
		out[i] = T(n)
	}
	return out
}

// inputDropout is a probability or auto.
func inputDropout(p *float64) interface {
	String() string
	Set(string) error
} {
	return cli.Parsed(p, "P", func(s string) (float64, error) {
		if s == "auto" {
			return -1, nil
		}
		v, err := strconv.ParseFloat(s, 64)
		if err != nil || !(v >= 0 && v < 1) {
			return 0, fmt.Errorf("want auto or a number from 0 up to, not including, 1")
		}
		return v, nil
	}, func(v float64) string {
		if v < 0 {
			return "auto"
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	})
}

// parse reads the command line and settles what depends on several flags.
func parse(args []string) (*options, error) {
	o := defaultOptions()
	o.flags = o.define()
	if err := o.flags.Parse(args); err != nil {
		return nil, err
	}
	if o.resume != "" && rundir.HasConfig(o.resume) {
		if err := o.refuseOverrides(); err != nil {
			return nil, err
		}
	}
	t := &o.train
	t.EvalFanouts = o.evalFanouts
	t.Fanouts, t.Batch, t.Model.Layers = o.fanouts, int(o.batch), o.numLayers()
	t.Model.InputDropout = o.inputDropout
	if o.inputDropout < 0 {
		t.Model.InputDropout = 0
		if t.Model.Arch == model.GCN {
			t.Model.InputDropout = t.Model.Dropout
		}
	}
	o.data.Workers = t.Workers
	switch {
	case o.data.Order != "auto":
	case o.gpu.Features == zerocopy.Cached && !o.gpu.Select.CPU():
		o.data.Order = "degree"
	default:
		o.data.Order = "none"
	}
	o.data.Dense = t.Model.Arch == model.SAGE && t.Model.Aggregator == "max"
	o.splitGiven = o.flags.Origin("split-index") != cli.Default
	t.EnsureDefaults()
	return o, usage.Wrap(t.Validate())
}

// numLayers returns -layers, or what the fan-outs imply.
func (o *options) numLayers() int {
	switch {
	case o.layers > 0:
		return o.layers
	case len(o.fanouts) > 0:
		return len(o.fanouts)
	default:
		return 2
	}
}

func (o *options) checkLayers() error {
	n := o.numLayers()
	if k := len(o.fanouts); k > 0 && k != n && o.train.Model.Arch != model.MLP {
		return usage.Errorf("%d layers, but -fanouts %s has %d: give one fan-out per layer, or full", n, o.fanouts, k)
	}
	if k := len(o.evalFanouts); k > 0 && k != n && o.train.Model.Arch != model.MLP {
		return usage.Errorf("%d layers, but -eval-fanouts %s has %d: give one fan-out per layer, or full", n, o.evalFanouts, k)
	}
	if k := len(o.train.WeightDecay); k > 1 && k != n {
		return usage.Errorf("%d layers, but -weight-decay has %d values: give one, or one per layer", n, k)
	}
	return nil
}

func (o *options) findDataset() error {
	return datasets.Find(o.data.Name, datasets.Options{Root: o.data.Root, Format: o.data.Format})
}

// checkDataset lets a published set pass that -download will bring.
func (o *options) checkDataset() error {
	err := o.findDataset()
	if o.download && errors.Is(err, datasets.ErrNotDownloaded) {
		return nil
	}
	return err
}

func (o *options) checkDevice() error { return backend.CheckGPUs(o.gpu.Select) }

func (o *options) checkFolder() error {
	switch {
	case o.resume != "" && o.run != "":
		return usage.Errorf("-run and -resume exclude each other: a resumed run stays in its folder")
	case o.resume != "" && o.repeat > 1:
		return usage.Errorf("-resume continues one run: name its seed-… folder, without -repeat")
	case o.run != "":
		return rundir.CheckNew(o.run)
	}
	return nil
}

// resumedConfig is the configuration of the run that -resume names, if it got as
// far as writing one.
func (o *options) resumedConfig(given func(string) (string, bool)) (string, error) {
	dir, ok := given("resume")
	if !ok || dir == "" {
		return "", nil
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", usage.Errorf("run folder %s: there is none", dir)
	}
	if !rundir.HasConfig(dir) {
		return "", nil
	}
	return filepath.Join(dir, rundir.ConfigName), nil
}

// refuseOverrides reports flags beside -resume that would change the result.
func (o *options) refuseOverrides() error {
	var lines []string
	for _, v := range o.flags.Overrides() {
		lines = append(lines, fmt.Sprintf("-%s %s: the run in %s has %s, and a resumed run keeps it", v.Name, v.Flag, o.resume, v.Config))
	}
	if len(lines) > 0 {
		return usage.Errorf("%s", strings.Join(lines, "\n"))
	}
	return nil
}
