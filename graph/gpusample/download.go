package gpusample

import (
	"errors"

	"zerogcn/cuda"
	"zerogcn/graph"
)

// Download waits for the batch and returns a copy of it in host memory, for
// tests and for looking at. The copies go through stream, which must be ordered
// before the next Sample into b.
func (b *Batch) Download(stream *cuda.Stream) (*graph.Batch, error) {
	if err := b.Wait(); err != nil {
		return nil, err
	}
	var err error
	out := &graph.Batch{Nodes: download[int32](stream, uintptr(b.Nodes), b.NumNodes, &err)}
	for i := range b.Blocks {
		x, d := &b.Blocks[i], b.Blocks[i].Device
		y := graph.Block{
			NumDst: x.NumDst, NumSrc: x.NumSrc,
			Indptr:    download[int32](stream, d.Indptr, x.NumDst+1, &err),
			Indices:   download[int32](stream, d.Indices, d.NumEdges, &err),
			Scale:     download[float32](stream, d.Scale, x.NumDst, &err),
			EdgeScale: download[float32](stream, d.EdgeScale, d.NumEdges, &err),
			Degree:    download[int32](stream, d.Degree, x.NumSrc, &err),
			TIndptr:   download[int32](stream, d.TIndptr, x.NumSrc+1, &err),
			TIndices:  download[int32](stream, d.TIndices, d.NumEdges, &err),
			TEdges:    download[int32](stream, d.TEdges, d.NumEdges, &err),
		}
		if b.EdgeIDs != nil {
			y.EdgeIDs = download[int64](stream, uintptr(b.EdgeIDs[i]), d.NumEdges, &err)
		}
		out.Blocks = append(out.Blocks, y)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// download copies n values, or returns nil for an array that the batch lacks.
func download[T any](stream *cuda.Stream, at uintptr, n int, err *error) []T {
	if at == 0 {
		return nil
	}
	out := make([]T, n)
	*err = errors.Join(*err, cuda.Download(stream, out, cuda.DevicePtr(at)))
	return out
}
