package gpusample

import (
	"zerogcn/cuda"
)

// KernelNames lists the kernels that the package loads.
func KernelNames() []string {
	var names []string
	for name := range (&kernelSet{}).functions() {
		names = append(names, "sample_"+name)
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
