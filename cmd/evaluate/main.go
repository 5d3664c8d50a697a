// Command evaluate computes the metrics of a checkpoint as its training did, by
// default exactly, with whole neighbourhoods; it writes predictions and embeddings.
//
//	evaluate -checkpoint RUN/checkpoints/best
//	evaluate -checkpoint RUN -split all -predictions logits.npy
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"zerogcn/checkpoints"
	"zerogcn/datasets"
	"zerogcn/internal/atomicfile"
	"zerogcn/internal/backend"
	"zerogcn/internal/cli"
	"zerogcn/internal/npy"
	"zerogcn/internal/usage"
	"zerogcn/model/op"
	"zerogcn/trainer"
	"zerogcn/trainer/rundir"
	"zerogcn/zerocopy"
)

func main() {
	cli.Main("evaluate", func(ctx context.Context) error { return run(ctx, os.Args[1:]) })
}

// options is everything that the command line says.
type options struct {
	checkpoint, dataset, root, format string
	split                             string
	predictions, embeddings           string
	fanouts                           cli.Fanouts
	sampling                          cli.Origin // of fanouts
	workers                           int
	gpu                               backend.GPUOptions
	blas                              string
	json                              bool
}

func parse(args []string) (*options, error) {
	o := &options{split: "test", gpu: backend.GPUOptions{Select: cli.GPUs{Auto: true}, Precision: "auto"}, blas: "auto"}
	fs := cli.NewFlags("evaluate", "Compute the metrics of a checkpoint, and its predictions and embeddings.")
	fs.Group("What")
	fs.Var(cli.String(&o.checkpoint), "checkpoint", "a checkpoint's folder, or a run's for its best one")
	fs.Var(cli.String(&o.dataset), "dataset", "evaluate on this dataset (default: the checkpoint's)")
	fs.Var(cli.String(&o.root), "root", "folder of named datasets (default: the checkpoint's, else $ZEROGCN_DATA, else ~/.cache/zerogcn)")
	fs.Var(cli.String(&o.format), "format", "format of the dataset, instead of recognising it")
	fs.Var(cli.Choice(&o.split, "train", "valid", "test", "all"), "split", "the part to report; all: every part, and outputs for every node")
	fs.Var(cli.FanoutList(&o.fanouts), "eval-fanouts", "neighbours to sample per layer, from the seeds outwards, or full (default: as in training)")
	fs.Group("Output")
	fs.Var(cli.String(&o.predictions), "predictions", "write the outputs before the softmax to this .npy: float32, a row per node of -split in ascending order")
	fs.Var(cli.String(&o.embeddings), "embeddings", "write the last hidden layer to this .npy, likewise")
	fs.Var(cli.Bool(&o.json), "json", "print one line of JSON on standard output, all else on standard error")
	fs.Group("Machine")
	fs.Var(cli.GPUSelection(&o.gpu.Select), "gpus", "auto (where it was trained, if that is possible), 0 for the CPU, or a GPU: 1, or a list with a comma")
	fs.Var(cli.Parsed(&o.gpu.Features, "MODE", zerocopy.ParseMode, zerocopy.Mode.String), "features", "how features reach the GPU: auto, zerocopy, staged, device, cached or hybrid")
	fs.Var(cli.Choice(&o.gpu.Precision, "auto", "fp32", "tf32", "bf16"), "precision", "factors of matrix products on the GPU; auto: tf32 where the chip has it")
	fs.Var(cli.String(&o.gpu.BLAS), "cublas", "path of cuBLAS or of its folder, or none for our own kernels")
	fs.Var(cli.NonNegative(&o.workers), "workers", "CPU threads; 0: all")
	fs.Var(cli.String(&o.blas), "blas", "matrix products on the CPU: auto (OpenBLAS if found, else gonum), gonum, or the path of a library")
	fs.Check(func() error {
		if o.checkpoint == "" {
			return usage.Errorf("missing: name a checkpoint's folder, such as runs/NAME/checkpoints/best")
		}
		return nil
	}, "checkpoint")
	fs.Check(func() error { return backend.CheckGPUs(o.gpu.Select) }, "gpus")
	fs.Check(func() error {
		if o.dataset == "" {
			return nil
		}
		return datasets.Find(o.dataset, datasets.Options{Root: o.root, Format: o.format})
	}, "dataset")
	err := fs.Parse(args)
	o.sampling = fs.Origin("eval-fanouts")
	return o, err
}

// scoring says how to evaluate: as training did, unless a flag says otherwise.
func (o *options) scoring() trainer.ScoreOptions {
	given := o.sampling != cli.Default
	return trainer.ScoreOptions{All: o.split == "all", Exact: given && o.fanouts.Full(), Fanouts: o.fanouts, Workers: o.workers}
}

func run(ctx context.Context, args []string) (err error) {
	o, err := parse(args)
	if err != nil {
		return err
	}
	path := o.checkpoint
	if rundir.HasConfig(path) {
		path = filepath.Join(path, rundir.CheckpointsName, "best")
	}
	c, err := checkpoints.Load(ctx, path)
	if err != nil {
		return err
	}
	stored, err := trainer.ReadStored(c)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	d := stored.Data
	d.Workers = o.workers
	if o.dataset != "" {
		d.Name, d.Format = o.dataset, o.format
	}
	if o.root != "" {
		d.Root = o.root
	}
	rt, gpu, notes, err := o.runtime(stored)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, gpu.Close()) }()
	d.OnDevice = gpu != nil
	data, more, err := trainer.OpenData(ctx, d)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	notes = append(notes, more...)
	s, more, err := trainer.NewScorer(ctx, c, data, rt, o.scoring())
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for _, n := range append(notes, more...) {
		warning := ""
		if n.Warning {
			warning = "warning: "
		}
		fmt.Fprintf(os.Stderr, "%s%s\n", warning, n.Text)
	}
	scores, out, err := s.Run(ctx)
	if err != nil {
		return err
	}
	if err := o.write(s, out); err != nil {
		return err
	}
	return o.print(data.Name, path, &scores)
}

// runtime opens what to compute with: by default the kind of device that the
// checkpoint was trained on, since its figures are then repeated exactly.
func (o *options) runtime(stored *trainer.Stored) (trainer.Runtime, *backend.GPU, []trainer.Note, error) {
	sel := o.gpu
	if sel.Select.Auto && !strings.HasPrefix(stored.Device, "cuda") {
		sel.Select = cli.GPUs{}
	}
	gpu, notes, err := backend.OpenGPU(sel)
	if err != nil {
		return trainer.Runtime{}, nil, nil, err
	}
	if gpu != nil {
		return trainer.Runtime{GPU: &gpu.GPU}, gpu, notes, nil
	}
	b, blas, more, err := backend.CPU(o.workers, o.blas)
	if err != nil {
		return trainer.Runtime{}, nil, nil, usage.Wrap(err)
	}
	notes = append(notes, more...)
	if blas != stored.BLAS {
		notes = append(notes, trainer.Note{Warning: true, Text: fmt.Sprintf("trained on %s with %s: results may differ in the last bits", stored.Device, stored.BLAS)})
	}
	return trainer.Runtime{Backend: b}, nil, notes, nil
}

// write writes the files that were asked for.
func (o *options) write(s *trainer.Scorer, out op.Value) error {
	if err := o.writeRows(o.predictions, s, out); err != nil || o.embeddings == "" {
		return err
	}
	h, err := s.Hidden()
	if err != nil {
		return usage.Errorf("-embeddings: %w", err)
	}
	return o.writeRows(o.embeddings, s, h)
}

// writeRows writes the rows of the chosen part as .npy.
func (o *options) writeRows(path string, s *trainer.Scorer, m op.Value) error {
	if path == "" {
		return nil
	}
	rows := m.Data[:m.Len()]
	n := m.Rows
	if o.split != "all" {
		part := s.Part(o.split)
		n, rows = len(part), make([]float32, 0, len(part)*m.Cols)
		for _, p := range part {
			rows = append(rows, m.Row(int(p))...)
		}
	}
	err := atomicfile.Write(path, 0o666, func(w io.Writer) error {
		return npy.Write(w, rows, int64(n), int64(m.Cols))
	})
	if err != nil {
		return errors.Join(fmt.Errorf("%s: cannot be written", path), err)
	}
	return nil
}

// print reports the metrics of the chosen part.
func (o *options) print(dataset, path string, s *trainer.Scores) error {
	parts := map[string]float64{"train": s.Train, "valid": s.Valid, "test": s.Test}
	counts := map[string]int{"train": s.Counts[0], "valid": s.Counts[1], "test": s.Counts[2]}
	names := []string{o.split}
	if o.split == "all" {
		names = []string{"train", "valid", "test"}
	}
	if o.json {
		v := map[string]any{"dataset": dataset, "checkpoint": path, "metric": s.Metric, "split": o.split}
		for _, n := range names {
			v[n+"_metric"], v[n+"_nodes"] = parts[n], counts[n]
		}
		b, err := json.Marshal(v)
		if err != nil {
			return err
		}
		_, err = fmt.Printf("%s\n", b)
		return err
	}
	for _, n := range names {
		if _, err := fmt.Printf("%s %s %.4f on %d nodes of %s\n", n, s.Metric, parts[n], counts[n], dataset); err != nil {
			return err
		}
	}
	return nil
}
