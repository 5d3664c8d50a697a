package gpusample

import (
	"errors"

	"zerogcn/cuda"
)

// KernelNames lists the kernels that the package loads.
func KernelNames() []string {
	var names []string
	for _, functions := range (&kernelSet{}).functions() {
		for name := range functions {
			names = append(names, name)
		}
	}
	return names
}

// Overwrite changes the source of an edge on the device.
func Overwrite(s *cuda.Stream, c *CSR, edge int, source int32) error {
	if c.placement == InHost {
		view[int32](c.indices.memory, int(c.graph.NumEdges()))[edge] = source
		return nil
	}
	return cuda.Upload(s, c.indices.ptr+cuda.DevicePtr(4*edge), []int32{source})
}

// EnqueuePlain queues a batch's kernels one by one, as a profiler wants them, for
// the input of the last Sample into b, which must have been waited for.
func EnqueuePlain(s *cuda.Stream, b *Batch) error {
	return errors.Join(b.enqueue(s, s), b.done.Record(s))
}

// Shrink lets the batch believe that its hop h has room for fewer edges.
func Shrink(b *Batch, h, edges int) error {
	b.plan.edges[h] = edges
	return errors.Join(b.work.Close(), b.capture())
}

// FewTiles makes scans of batches made from now on use fewer and larger tiles, as
// huge graphs do.
func FewTiles(s *Sampler, most int) { s.maxTiles = most }
