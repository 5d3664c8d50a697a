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

// Evaluator computes a network's outputs exactly, with whole neighbourhoods, by
// layer-wise inference: each layer is computed for all nodes that the next one
// needs before that begins, so no node is computed twice (Ying et al., "Graph
// Convolutional Neural Networks for Web-Scale Recommender Systems", KDD 2018,
// section 3.4, do the same by MapReduce). It works through chunks of targets, so
// that its memory is the hidden matrices and one chunk.
//
// Results are a function of the network, the dataset and the set of nodes asked
// for, not of the number of workers.
type Evaluator struct {
	data    *Data
	nodes   []int32 // asked for, ascending
	workers par.Workers
	sampler *graph.Sampler // one whole-neighbourhood hop; nil without a graph
	layers  []evalLayer    // by layer, with the targets of each
	rows    []int32        // row of each node in the hidden matrix being read
	chunk   graph.Batch
	x       loader.Rows
	h       [2][]float32 // hidden matrices: the one read and the one written
}

// evalLayer is the part of the graph that one layer computes.
type evalLayer struct {
	targets []int32
	// A layer that is a single chunk keeps its block, and the first layer its
	// input, for the next evaluation.
	kept  bool
	batch graph.Batch
	x     loader.Rows
}

// evalChunk is the number of targets of a chunk.
const evalChunk = 8192

// NewEvaluator prepares the evaluation of the given nodes, ascending, by networks
// of the given configuration.
func NewEvaluator(ctx context.Context, d *Data, nodes []int32, c *model.Config, workers int) (*Evaluator, error) {
	e := &Evaluator{data: d, nodes: nodes, workers: par.Workers(workers), layers: make([]evalLayer, c.Layers)}
	e.layers[c.Layers-1].targets = nodes
	needs := c.Needs()
	if needs.Blocks == 0 {
		for l := range e.layers {
			e.layers[l].targets = nodes
		}
		return e, nil
	}
	s, err := graph.NewSampler(d.Graph, graph.Options{Fanouts: []int{0}, DropSelfLoops: needs.DropSelfLoops,
		Degrees: needs.Degree, Workers: e.workers})
	if err != nil {
		return nil, err
	}
	e.sampler = s
	for l := c.Layers - 1; l > 0; l-- {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		e.layers[l-1].targets = neighbourhood(d.Graph, e.layers[l].targets)
	}
	e.rows = make([]int32, d.NumNodes)
	return e, nil
}

// neighbourhood returns the targets and all their sources, ascending.
func neighbourhood(g *graph.CSR, targets []int32) []int32 {
	if len(targets) == g.NumNodes() {
		return targets
	}
	in := make([]bool, g.NumNodes())
	n := 0
	mark := func(v int32) {
		if !in[v] {
			in[v] = true
			n++
		}
	}
	for _, v := range targets {
		mark(v)
		for _, u := range g.Row(v) {
			mark(u)
		}
	}
	nodes := make([]int32, 0, n)
	for v, yes := range in {
		if yes {
			nodes = append(nodes, int32(v))
		}
	}
	return nodes
}

// Nodes returns the nodes that Run computes, ascending.
func (e *Evaluator) Nodes() []int32 { return e.nodes }

// Run computes the outputs of all nodes: a matrix with one row per node of Nodes,
// valid until the next Run.
func (e *Evaluator) Run(ctx context.Context, n *model.Network) (op.Value, error) {
	var in []int32 // the nodes whose rows the hidden matrix holds
	var width int
	for l := range e.layers {
		layer := &e.layers[l]
		_, out := n.LayerWidths(l)
		src, dst := e.h[l%2], grow(&e.h[(l+1)%2], len(layer.targets)*out)
		if l > 0 && e.sampler != nil {
			for r, v := range in {
				e.rows[v] = int32(r)
			}
		}
		for lo := 0; lo < len(layer.targets); lo += evalChunk {
			if err := ctx.Err(); err != nil {
				return op.Value{}, err
			}
			hi := min(lo+evalChunk, len(layer.targets))
			v, err := e.runChunk(ctx, n, l, lo, hi, src, width)
			if err != nil {
				return op.Value{}, fmt.Errorf("evaluate: layer %d, nodes %d to %d of %d: %w", l, lo, hi, len(layer.targets), err)
			}
			copy(dst[lo*out:hi*out], v.Data)
		}
		in, width = layer.targets, out
	}
	return op.Matrix(len(e.nodes), width, e.h[len(e.layers)%2][:len(e.nodes)*width]), nil
}

// Hidden returns the input of the last layer for the nodes of Nodes, after a Run:
// their embeddings. It is an error for networks of one layer. The matrix is the
// caller's.
func (e *Evaluator) Hidden() (op.Value, error) {
	l := len(e.layers) - 1
	if l == 0 {
		return op.Value{}, fmt.Errorf("a network of one layer has no hidden layer")
	}
	in, h := e.layers[l-1].targets, e.h[l%2]
	width := len(h) / len(in)
	out := op.Matrix(len(e.nodes), width, make([]float32, len(e.nodes)*width))
	for i, r := 0, 0; i < len(e.nodes); r++ {
		if in[r] == e.nodes[i] { // both ascend, and in has all nodes
			copy(out.Row(i), h[r*width:(r+1)*width])
			i++
		}
	}
	return out, nil
}

// runChunk computes one layer for some of its targets. src is the previous
// layer's matrix with rows of the given width.
func (e *Evaluator) runChunk(ctx context.Context, n *model.Network, l, lo, hi int, src []float32, width int) (*op.Value, error) {
	layer := &e.layers[l]
	whole := lo == 0 && hi == len(layer.targets)
	batch, x := &e.chunk, &e.x
	if whole {
		batch, x = &layer.batch, &layer.x
	}
	targets := layer.targets[lo:hi]
	in := &model.Input{}
	if e.sampler != nil {
		if !layer.kept {
			if err := e.sampler.Sample(0, philox.Evaluation, 0, targets, batch); err != nil {
				return nil, err
			}
		}
		in.Blocks = []*graph.Block{&batch.Blocks[0]}
		targets = batch.Nodes
	}
	switch {
	case l == 0 && !layer.kept:
		if err := e.data.Features.Gather(ctx, targets, x); err != nil {
			return nil, err
		}
	case l > 0 && e.sampler == nil:
		in.X = op.Matrix(hi-lo, width, src[lo*width:hi*width])
	case l > 0:
		x.Dense = grow(&x.Dense, len(targets)*width)
		e.workers.Range(len(targets), 1024, func(_, lo, hi int) {
			for i := lo; i < hi; i++ {
				r := int(e.rows[targets[i]])
				copy(x.Dense[i*width:(i+1)*width], src[r*width:(r+1)*width])
			}
		})
		in.X = op.Matrix(len(targets), width, x.Dense)
	}
	if l == 0 {
		in.X = features(x)
	}
	layer.kept = whole
	return n.Layer(l, in)
}

// features returns gathered rows as a network's input.
func features(x *loader.Rows) op.Value {
	if x.Sparse != nil {
		return op.Value{Sparse: x.Sparse}
	}
	return op.Matrix(x.N, x.Width, x.Dense)
}

// grow returns a slice of n elements, replacing *s if it is too small.
func grow(s *[]float32, n int) []float32 {
	if cap(*s) < n {
		*s = make([]float32, n)
	}
	*s = (*s)[:n]
	return *s
}
