package trainer

import (
	"context"
	"fmt"

	"zerogcn/graph"
	"zerogcn/internal/par"
	"zerogcn/internal/philox"
	"zerogcn/loader"
	"zerogcn/model"
	"zerogcn/model/op"
)

// inference computes a network's outputs for a fixed set of nodes.
type inference interface {
	// Run returns a row per node of Nodes, valid until the next Run.
	Run(ctx context.Context, n *model.Network) (op.Value, error)
	Nodes() []int32
}

// SampledEvaluator computes a network's outputs from sampled neighbourhoods: an
// estimate, for graphs on which whole neighbourhoods cost too much. Draws are
// keyed by node, at step 0 of a purpose of their own, so every Run with one seed
// sees the same neighbourhoods, whatever the chunks.
type SampledEvaluator struct {
	data    *Data
	nodes   []int32
	seed    uint64
	sampler *graph.Sampler
	batch   graph.Batch
	x       loader.Rows
	out     []float32
}

// sampledChunk is the number of nodes whose neighbourhoods are sampled at once.
const sampledChunk = 2048

// NewSampledEvaluator prepares the sampled evaluation of the given nodes,
// ascending, with a configuration's EvalFanouts and Sampling.
func NewSampledEvaluator(d *Data, nodes []int32, c *Config) (*SampledEvaluator, error) {
	needs, fanouts := c.Model.Needs(), c.EvalFanouts
	if len(fanouts) != needs.Blocks {
		return nil, fmt.Errorf("%d evaluation fan-outs for %d layers that sample", len(fanouts), needs.Blocks)
	}
	s, err := graph.NewSampler(d.Graph, graph.Options{Fanouts: fanouts,
		Replace: c.Sampling == loader.Replace, Weighted: c.Sampling == loader.Weighted, DropSelfLoops: needs.DropSelfLoops,
		Degrees: needs.Degree, Scale: needs.Scale, Workers: par.Workers(c.Workers)})
	if err != nil {
		return nil, err
	}
	return &SampledEvaluator{data: d, nodes: nodes, seed: c.Seed, sampler: s}, nil
}

// Nodes returns the nodes that Run computes, ascending.
func (e *SampledEvaluator) Nodes() []int32 { return e.nodes }

// Run computes the outputs of all nodes: a matrix with one row per node of Nodes,
// valid until the next Run.
func (e *SampledEvaluator) Run(ctx context.Context, n *model.Network) (op.Value, error) {
	out := n.Config.Classes
	dst := grow(&e.out, len(e.nodes)*out)
	in := &model.Input{}
	for lo := 0; lo < len(e.nodes); lo += sampledChunk {
		if err := ctx.Err(); err != nil {
			return op.Value{}, err
		}
		hi := min(lo+sampledChunk, len(e.nodes))
		if err := e.sampler.Sample(e.seed, philox.Evaluation, 0, e.nodes[lo:hi], &e.batch); err != nil {
			return op.Value{}, err
		}
		if err := e.data.Features.Gather(ctx, e.batch.Nodes, &e.x); err != nil {
			return op.Value{}, err
		}
		in.X, in.Blocks = features(&e.x), in.Blocks[:0]
		for i := range e.batch.Blocks {
			in.Blocks = append(in.Blocks, &e.batch.Blocks[i])
		}
		v, err := n.Infer(in)
		if err != nil {
			return op.Value{}, fmt.Errorf("evaluate: nodes %d to %d of %d: %w", lo, hi, len(e.nodes), err)
		}
		copy(dst[lo*out:hi*out], v.Data)
	}
	return op.Matrix(len(e.nodes), out, dst), nil
}

// newInference returns the evaluator that a configuration asks for.
func newInference(ctx context.Context, d *Data, nodes []int32, c *Config) (inference, error) {
	if len(c.EvalFanouts) > 0 && c.Model.Needs().Blocks > 0 {
		return NewSampledEvaluator(d, nodes, c)
	}
	return NewEvaluator(ctx, d, nodes, &c.Model, c.Workers)
}
