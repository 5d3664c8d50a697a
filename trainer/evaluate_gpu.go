package trainer

import (
	"context"
	"errors"
	"fmt"

	"zerogcn/cuda"
	"zerogcn/graph"
	"zerogcn/graph/gpusample"
	"zerogcn/internal/philox"
	"zerogcn/loader"
	"zerogcn/loader/gpuloader"
	"zerogcn/model"
	cudaexec "zerogcn/model/exec/cuda"
	"zerogcn/model/op"
	"zerogcn/zerocopy"
)

// gpuEvaluator is inference on a GPU, exact or sampled. Exactly, each layer is
// computed, chunk by chunk, for all nodes that the next one needs, into a matrix
// that the next layer's chunks read. The matrices are in GPU memory, or in
// page-locked host memory where they do not fit.
type gpuEvaluator struct {
	data     *Data
	parts    evalParts
	config   *Config
	dev      *cuda.Device
	stream   *cuda.Stream
	backend  *cudaexec.Backend
	features *gpuloader.Features
	sampler  *gpusample.Sampler
	batch    *gpusample.Batch
	exact    bool
	chunk    int

	// Of exact inference: the targets of each layer, and, for each hidden layer
	// that is not computed for all nodes, the row of each node in its matrix.
	targets [][]int32
	rowOf   []*cuda.Buffer

	x      *cuda.Buffer // gathered rows of a chunk
	ids    *cuda.Buffer // their rows in the matrix that is read
	hidden [2]hiddenMatrix
	class  *cuda.Buffer // int32 per node asked for; nil where nodes have several labels
	multi  multiLabels  // of the nodes asked for, in those sets
	part   *cuda.Buffer // int32 likewise
	counts *cuda.Buffer // int64 [3][2]
}

// hiddenMatrix is one row per target of a layer.
type hiddenMatrix struct {
	device *cuda.Buffer
	host   *cuda.HostBuffer
	at     cuda.DevicePtr
	bytes  int64
}

// Chunks of exact inference are large, so that few rows are gathered twice; those
// of sampled inference are like batches.
const (
	gpuExactChunk   = 1 << 16
	gpuSampledChunk = 4096
)

func newGPUEvaluator(ctx context.Context, e *gpuSetup, d *Data, parts evalParts) (v *gpuEvaluator, err error) {
	c := e.config
	v = &gpuEvaluator{data: d, parts: parts, config: c, dev: e.gpu.Device, stream: e.stream, backend: e.backend,
		features: e.features, exact: len(c.EvalFanouts) == 0, chunk: gpuSampledChunk}
	defer func() {
		if err != nil {
			err = errors.Join(err, v.close())
			v = nil
		}
	}()
	needs := c.Model.Needs()
	fanouts := c.EvalFanouts
	if v.exact {
		fanouts, v.chunk = []int{0}, gpuExactChunk
	}
	v.chunk = min(v.chunk, max(1, d.NumNodes))
	v.sampler, err = gpusample.NewSampler(ctx, e.csr, graph.Options{Fanouts: fanouts, Replace: !v.exact && c.Sampling == loader.Replace,
		Weighted: !v.exact && c.Sampling == loader.Weighted, DropSelfLoops: needs.DropSelfLoops, Degrees: needs.Degree, Scale: needs.Scale})
	if err != nil {
		return v, err
	}
	if v.exact {
		if err = v.findTargets(ctx, c.Model.Layers); err != nil {
			return v, err
		}
	}
	if v.batch, err = v.sampler.NewBatch(v.chunk); err != nil {
		return v, fmt.Errorf("evaluate: %w", err)
	}
	part := make([]int32, len(parts.nodes))
	for i := range part {
		part[i] = -1
	}
	for p, rows := range parts.parts {
		for _, r := range rows {
			part[r] = int32(p)
		}
	}
	if parts.multi != nil {
		v.multi, err = newMultiLabels(e.stream, d.Labels, parts.nodes)
	} else {
		v.class, err = cuda.Place(e.stream, cuda.Topology, parts.classes)
	}
	if err != nil {
		return v, err
	}
	if v.part, err = cuda.Place(e.stream, cuda.Topology, part); err != nil {
		return v, err
	}
	v.counts, err = v.dev.Alloc(cuda.Workspace, 8*3*2)
	return v, err
}

// findTargets lists the nodes that each layer is computed for. A hidden layer that
// nearly all nodes need is computed for all, which saves looking up rows.
func (v *gpuEvaluator) findTargets(ctx context.Context, layers int) (err error) {
	n := v.data.NumNodes
	v.targets, v.rowOf = make([][]int32, layers), make([]*cuda.Buffer, layers)
	v.targets[layers-1] = v.parts.nodes
	for l := layers - 2; l >= 0; l-- {
		if err := ctx.Err(); err != nil {
			return err
		}
		need := neighbourhood(v.data.Graph, v.targets[l+1])
		if len(need) > n-n/10 {
			need = make([]int32, n)
			for i := range need {
				need[i] = int32(i)
			}
		}
		v.targets[l] = need
		if len(need) == n {
			continue
		}
		rows := make([]int32, n)
		for i := range rows {
			rows[i] = -1
		}
		for r, node := range need {
			rows[node] = int32(r)
		}
		if v.rowOf[l], err = cuda.Place(v.stream, cuda.Topology, rows); err != nil {
			return err
		}
	}
	return nil
}

// metrics returns the metric of each part.
func (v *gpuEvaluator) metrics(ctx context.Context, n *model.Network) (m [3]float64, err error) {
	if err := v.stream.Set8(v.counts.Ptr(), 0, 8*3*2); err != nil {
		return m, err
	}
	err = v.run(ctx, n, func(lo, hi int, out *op.Value) error {
		at := func(b *cuda.Buffer) cuda.DevicePtr { return b.Ptr() + cuda.DevicePtr(4*lo) }
		if v.class == nil {
			return v.backend.CountLabels(out, cudaexec.LabelCounts{Labels: v.multi.table.Ptr() + cuda.DevicePtr(lo*v.multi.stride),
				Stride: v.multi.stride, Part: at(v.part), Num: 3, Counts: v.counts.Ptr()})
		}
		return v.backend.CountCorrect(out, cudaexec.Parts{Class: at(v.class), Part: at(v.part), Num: 3, Counts: v.counts.Ptr()})
	})
	if err != nil {
		return m, err
	}
	var counts [6]int64
	if err := cuda.Download(v.stream, counts[:], v.counts.Ptr()); err != nil {
		return m, err
	}
	for i := range m {
		right, other := counts[2*i], counts[2*i+1]
		switch {
		case right == 0:
		case v.class == nil: // F1, from right and wrong labels
			m[i] = 2 * float64(right) / float64(2*right+other)
		default: // accuracy, from right and all nodes
			m[i] = float64(right) / float64(other)
		}
	}
	return m, nil
}

// Nodes returns the nodes that Run computes, ascending.
func (v *gpuEvaluator) Nodes() []int32 { return v.parts.nodes }

// Run returns the network's outputs for the nodes asked for, on the host.
func (v *gpuEvaluator) Run(ctx context.Context, n *model.Network) (op.Value, error) {
	out := op.Matrix(len(v.parts.nodes), n.Config.Classes, make([]float32, len(v.parts.nodes)*n.Config.Classes))
	err := v.run(ctx, n, func(lo, hi int, y *op.Value) error {
		return cuda.Download(v.stream, out.Data[lo*out.Cols:hi*out.Cols], cuda.DevicePtr(y.Dev))
	})
	return out, err
}

// run computes the outputs of all nodes asked for and passes them on chunk by
// chunk; they are valid on the stream until use returns.
func (v *gpuEvaluator) run(ctx context.Context, n *model.Network, use func(lo, hi int, out *op.Value) error) error {
	bind, err := v.dev.Bind(v.stream)
	if err != nil {
		return err
	}
	defer bind.Release()
	if !v.exact {
		return v.chunks(ctx, v.parts.nodes, func(lo, hi int) error {
			in, err := v.input(ctx, n, -1, v.parts.nodes[lo:hi])
			if err != nil {
				return err
			}
			out, err := n.Infer(in)
			if err != nil {
				return err
			}
			return use(lo, hi, out)
		})
	}
	last := n.Config.Layers - 1
	for l := range last + 1 {
		targets := v.targets[l]
		if l < last {
			if err := v.makeHidden(n, l); err != nil {
				return err
			}
		}
		err := v.chunks(ctx, targets, func(lo, hi int) error {
			in, err := v.input(ctx, n, l, targets[lo:hi])
			if err != nil {
				return err
			}
			out, err := n.Layer(l, in)
			if err != nil {
				return err
			}
			if l == last {
				return use(lo, hi, out)
			}
			row := 4 * int64(out.Cols)
			return v.stream.CopyDtoD(v.hidden[l%2].at+cuda.DevicePtr(int64(lo)*row), cuda.DevicePtr(out.Dev), int64(hi-lo)*row)
		})
		if err != nil {
			return fmt.Errorf("evaluate: layer %d: %w", l, err)
		}
	}
	if err := v.stream.Synchronize(); err != nil {
		return err
	}
	return v.features.Gatherer.Check()
}

func (v *gpuEvaluator) chunks(ctx context.Context, targets []int32, f func(lo, hi int) error) error {
	for lo := 0; lo < len(targets); lo += v.chunk {
		if err := ctx.Err(); err != nil {
			return err
		}
		hi := min(lo+v.chunk, len(targets))
		if err := f(lo, hi); err != nil {
			return fmt.Errorf("nodes %d to %d of %d: %w", lo, hi, len(targets), err)
		}
	}
	return nil
}

// input samples around the targets and gathers the rows that layer l reads, or
// those of the features for l = -1, which stands for all layers at once.
func (v *gpuEvaluator) input(ctx context.Context, n *model.Network, l int, targets []int32) (*model.Input, error) {
	if err := v.sampler.Sample(v.stream, v.config.Seed, philox.Evaluation, 0, targets, v.batch); err != nil {
		return nil, err
	}
	if err := v.batch.Wait(); err != nil {
		return nil, err
	}
	in := &model.Input{}
	for i := range v.batch.Blocks {
		in.Blocks = append(in.Blocks, &v.batch.Blocks[i])
	}
	width, _ := n.LayerWidths(max(0, l))
	rows := v.batch.NumNodes
	if err := v.makeRoom(&v.x, cuda.Activations, 4*int64(rows)*int64(width)); err != nil {
		return nil, fmt.Errorf("%d rows of %d values: %w", rows, width, err)
	}
	in.X = op.Value{Rows: rows, Cols: width, Dev: uintptr(v.x.Ptr())}
	if l <= 0 {
		return in, v.features.Gatherer.Enqueue(ctx, v.stream, zerocopy.Batch{N: rows, IDs: v.batch.Nodes, Dst: v.x.Ptr()})
	}
	h := op.Value{Rows: len(v.targets[l-1]), Cols: width, Dev: uintptr(v.hidden[(l-1)%2].at)}
	ids, err := v.hiddenRows(l-1, rows)
	if err != nil {
		return nil, err
	}
	return in, v.backend.GatherRows(&in.X, &h, ids)
}

// hiddenRows returns where the batch's nodes are in the matrix of hidden layer l.
func (v *gpuEvaluator) hiddenRows(l, n int) (cuda.DevicePtr, error) {
	if v.rowOf[l] == nil {
		return v.batch.Nodes, nil
	}
	if err := v.makeRoom(&v.ids, cuda.Indices, 4*int64(n)); err != nil {
		return 0, err
	}
	// Gathering moves four bytes a value, whatever they mean.
	rows := op.Value{Rows: v.data.NumNodes, Cols: 1, Dev: uintptr(v.rowOf[l].Ptr())}
	out := op.Value{Rows: n, Cols: 1, Dev: uintptr(v.ids.Ptr())}
	return v.ids.Ptr(), v.backend.GatherRows(&out, &rows, v.batch.Nodes)
}

// makeRoom replaces a buffer that is too small by a larger one, with some to
// spare since chunks vary in size.
func (v *gpuEvaluator) makeRoom(b **cuda.Buffer, p cuda.Purpose, need int64) error {
	if *b != nil && (*b).Len() >= need {
		return nil
	}
	if *b != nil {
		if err := (*b).CloseAfter(v.stream); err != nil {
			return err
		}
	}
	var err error
	*b, err = v.dev.Alloc(p, need+need/8)
	return err
}

// makeHidden finds room for the output of a hidden layer.
func (v *gpuEvaluator) makeHidden(n *model.Network, l int) error {
	_, width := n.LayerWidths(l)
	h := &v.hidden[l%2]
	need := 4 * int64(width) * int64(len(v.targets[l]))
	if h.bytes >= need {
		return nil
	}
	if err := h.close(); err != nil {
		return err
	}
	b, err := v.dev.Alloc(cuda.Activations, need)
	if err == nil {
		*h = hiddenMatrix{device: b, at: b.Ptr(), bytes: need}
		return nil
	}
	if !errors.Is(err, cuda.OutOfMemory) {
		return err
	}
	p, herr := v.dev.AllocHost(cuda.Activations, need, cuda.HostOptions{})
	if herr != nil {
		return fmt.Errorf("the outputs of hidden layer %d for %d nodes take %.1f GB, which fit neither the GPU nor host memory: evaluate with -eval-fanouts: %w",
			l, len(v.targets[l]), float64(need)/1e9, errors.Join(err, herr))
	}
	*h = hiddenMatrix{host: p, at: p.Ptr(), bytes: need}
	return nil
}

func (h *hiddenMatrix) close() error {
	var err error
	if h.device != nil {
		err = h.device.Close()
	}
	if h.host != nil {
		err = errors.Join(err, h.host.Close())
	}
	*h = hiddenMatrix{}
	return err
}

// close frees the evaluator's memory; its work must be done.
func (v *gpuEvaluator) close() error {
	var errs []error
	if v.batch != nil {
		errs = append(errs, v.batch.Close())
	}
	if v.sampler != nil {
		errs = append(errs, v.sampler.Close())
	}
	for _, b := range append(v.rowOf, v.x, v.ids, v.class, v.multi.table, v.part, v.counts) {
		if b != nil {
			errs = append(errs, b.Close())
		}
	}
	for i := range v.hidden {
		errs = append(errs, v.hidden[i].close())
	}
	return errors.Join(errs...)
}
