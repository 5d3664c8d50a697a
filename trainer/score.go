package trainer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"zerogcn/checkpoints"
	"zerogcn/internal/usage"
	"zerogcn/model"
	"zerogcn/model/op"
)

// Scorer evaluates the network of a checkpoint on a dataset, as training does.
type Scorer struct {
	Stored *Stored
	data   *Data
	net    *model.Network
	gpu    *gpuSetup // nil on the host
	nodes  []int32
	parts  [3][]int32 // positions of the split's parts in nodes
	eval   inference
}

// Scores are the metrics of a split's parts.
type Scores struct {
	Metric             string
	Train, Valid, Test float64
	Counts             [3]int // labelled nodes of each part
}

// ScoreOptions says how to evaluate a checkpoint. The zero value does what its
// training did.
type ScoreOptions struct {
	All     bool  // compute outputs for every node rather than for those of the split
	Exact   bool  // whole neighbourhoods, whatever training evaluated with
	Fanouts []int // sampled neighbourhoods of these fan-outs
	Workers int
}

// NewScorer builds the network that a checkpoint describes on a dataset.
// The split is the checkpoint's if the dataset is the one it was trained on,
// else the one that the data's options name.
func NewScorer(ctx context.Context, c *checkpoints.Checkpoint, d *Data, rt Runtime, o ScoreOptions) (*Scorer, []Note, error) {
	stored, err := ReadStored(c)
	if err != nil {
		return nil, nil, err
	}
	s := &Scorer{Stored: stored, data: d}
	split, notes := stored.Split, []Note(nil)
	if stored.Fingerprint == d.Fingerprint {
		err = stored.CheckSplit(d)
	} else {
		split, notes, err = d.ChooseSplit()
		notes = append(notes, Note{Warning: true, Text: fmt.Sprintf("dataset %s is not the one that the checkpoint was trained on: its split is not used", d.Name)})
	}
	if err != nil {
		return nil, nil, err
	}
	cfg := stored.Train.Model
	if d.NumFeatures != cfg.In || d.NumClasses != cfg.Classes {
		return nil, nil, usage.Errorf("dataset %s has %d features and %d classes, the checkpoint's model takes %d and %d",
			d.Name, d.NumFeatures, d.NumClasses, cfg.In, cfg.Classes)
	}
	s.nodes, s.parts = evaluationNodes(split)
	if o.All {
		for i := range s.parts {
			for k, p := range s.parts[i] {
				s.parts[i][k] = s.nodes[p]
			}
		}
		s.nodes = make([]int32, d.NumNodes)
		for v := range s.nodes {
			s.nodes[v] = int32(v)
		}
	}
	run := stored.Train
	run.Model, run.Workers = cfg, o.Workers
	if o.Exact {
		run.EvalFanouts = nil
	}
	if len(o.Fanouts) > 0 {
		run.EvalFanouts = o.Fanouts
	}
	if err := run.Validate(); err != nil {
		return nil, nil, usage.Wrap(err)
	}
	if err := s.build(ctx, &run, rt); err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	if err := LoadParams(s.net.Params, c.Model); err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return s, notes, s.net.Params.Upload()
}

// build makes the network and its evaluator.
func (s *Scorer) build(ctx context.Context, c *Config, rt Runtime) error {
	if rt.GPU != nil {
		g, err := newGPUSetup(ctx, s.data, c, rt.GPU)
		if err != nil {
			return err
		}
		s.gpu, s.net = g, g.net
		parts := evalParts{nodes: s.nodes, parts: s.parts}
		if err := parts.label(s.data); err != nil {
			return usage.Wrap(err)
		}
		s.eval, err = newGPUEvaluator(ctx, g, s.data, parts)
		return err
	}
	c.Model.SparseInput = s.data.Features.IsSparse()
	n, err := model.New(c.Model, rt.Backend, 0)
	if err != nil {
		return usage.Wrap(err)
	}
	s.net, c.Model = n, n.Config
	s.eval, err = newInference(ctx, s.data, s.nodes, c)
	return err
}

// Run computes the outputs and the metrics of all parts. The outputs have one row
// per node of Nodes and are valid until the next Run.
func (s *Scorer) Run(ctx context.Context) (Scores, op.Value, error) {
	out, err := s.eval.Run(ctx, s.net)
	if err != nil {
		return Scores{}, out, err
	}
	parts := evalParts{nodes: s.nodes, parts: s.parts}
	if err := parts.label(s.data); err != nil {
		return Scores{}, out, usage.Wrap(err)
	}
	m := parts.score(out)
	r := Scores{Metric: s.data.Metric(), Train: m[0], Valid: m[1], Test: m[2]}
	for i, part := range s.parts {
		for _, p := range part {
			if s.data.Labels.Labelled(int(s.nodes[p])) {
				r.Counts[i]++
			}
		}
	}
	return r, out, nil
}

// Hidden returns the embeddings of Nodes after a Run; see Evaluator.Hidden.
func (s *Scorer) Hidden() (op.Value, error) {
	e, ok := s.eval.(*Evaluator)
	if !ok {
		return op.Value{}, fmt.Errorf("embeddings come from whole neighbourhoods on the CPU: evaluate with -gpus 0 -eval-fanouts full")
	}
	return e.Hidden()
}

// Nodes returns the nodes that outputs are computed for, ascending.
func (s *Scorer) Nodes() []int32 { return s.nodes }

// Part returns the positions in Nodes of part "train", "valid" or "test".
func (s *Scorer) Part(name string) []int32 {
	i := slices.Index([]string{"train", "valid", "test"}, name)
	if i < 0 {
		return nil
	}
	return s.parts[i]
}

// Close releases the network.
func (s *Scorer) Close() error {
	if s.gpu != nil {
		var err error
		if v, ok := s.eval.(*gpuEvaluator); ok && v != nil {
			err = v.close()
		}
		return errors.Join(err, s.gpu.close())
	}
	if s.net != nil {
		s.net.Close()
	}
	return nil
}
