package cuda

import (
	"errors"
	"slices"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Replay runs a step of many small launches as one graph launch, though its
// sizes differ from step to step: it captures the step, updates an executable of
// an earlier step and launches that, which costs less than launching the
// kernels one by one from about ten kernels on. The zero value is ready; a
// Replay serves one goroutine at a time.
//
// Only an executable that was made of the same kernels, in the same order and of
// the same cluster sizes, is updated; a few are kept. CUDA promises to refuse an
// update that it cannot make, but an update from one tensor-core kernel of
// cuBLAS 13.1 to another, as another row count brings, was accepted by driver
// 580 and then ended in an illegal instruction.
type Replay struct {
	executables []replayed // the one used last comes first
	nodes       nodeReader

	// Updates and Instantiations count how steps were prepared: the second is
	// the slow way, taken when a step has a sequence of kernels that is not kept.
	Updates, Instantiations int64
}

// replayed is an executable with the signature of its graph.
type replayed struct {
	x         *Executable
	signature uint64
}

// maxReplayed is how many executables a Replay keeps: libraries choose among a
// few kernels for the row counts of one model's batches.
const maxReplayed = 16

// Run captures what f queues on s (see Stream.Capture) and launches it.
func (r *Replay) Run(s *Stream, f func() error) error {
	g, err := s.Capture(f)
	if err != nil {
		return err
	}
	defer g.Close()
	sig, err := r.nodes.signature(g)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(r.executables, func(e replayed) bool { return e.signature == sig }); i >= 0 {
		e := r.executables[i]
		ok, err := e.x.Update(g)
		if err != nil {
			return err
		}
		r.executables = slices.Delete(r.executables, i, i+1)
		if ok {
			r.executables = slices.Insert(r.executables, 0, e)
			r.Updates++
			return e.x.Launch(s)
		}
		if err := e.x.Close(); err != nil {
			return err
		}
	}
	if n := len(r.executables); n == maxReplayed {
		if err := r.executables[n-1].x.Close(); err != nil {
			return err
		}
		r.executables = r.executables[:n-1]
	}
	x, err := g.Executable()
	if err != nil {
		return err
	}
	r.executables = slices.Insert(r.executables, 0, replayed{x, sig})
	r.Instantiations++
	return x.Launch(s)
}

// Close destroys the executables.
func (r *Replay) Close() error {
	var errs []error
	for _, e := range r.executables {
		errs = append(errs, e.x.Close())
	}
	r.executables = nil
	return errors.Join(errs...)
}

// nodeReader reads what kernels a graph has. It keeps the memory that the driver
// reads and writes, so that a step allocates none.
type nodeReader struct {
	list  []uintptr
	calls *nodeCalls
}

// nodeCalls lies on the heap, which does not move: its addresses are arguments.
type nodeCalls struct {
	args   [3]uintptr
	count  uint64
	params [12]uint64 // CUDA_KERNEL_NODE_PARAMS, 72 bytes
	value  [8]uint64  // CUlaunchAttributeValue, 64 bytes
}

func (c *nodeCalls) call(f *symbol, args ...uintptr) Code {
	n := copy(c.args[:], args)
	r, _, _ := purego.SyscallN(f.addr, c.args[:n]...)
	return Code(int32(r))
}

// signature hashes, in the order of a graph's nodes, which are kernels and their
// functions and cluster sizes. A driver that does not tell gives all graphs the
// same signature.
func (r *nodeReader) signature(g *Graph) (uint64, error) {
	const seed = 14695981039346656037
	if r.calls == nil {
		r.calls = new(nodeCalls)
	}
	h := uint64(seed)
	err := g.within(func(d *Driver) (err error) {
		if d.t.kernelNodeParams.addr != 0 && d.t.graphNodes.addr != 0 {
			h, err = r.read(d, g.handle, h)
		}
		return err
	})
	return h, err
}

func (r *nodeReader) read(d *Driver, graph uintptr, h uint64) (uint64, error) {
	const (
		clusterDimension = 4 // CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
		prime            = 1099511628211
	)
	t, c := &d.t, r.calls
	mix := func(x uint64) { h = (h ^ x ^ x>>29) * prime }
	if code := c.call(&t.graphNodes, graph, 0, uintptr(unsafe.Pointer(&c.count))); code != 0 {
		return 0, d.fail(&t.graphNodes, code)
	}
	if c.count == 0 {
		return h, nil
	}
	r.list = slices.Grow(r.list[:0], int(c.count))[:c.count]
	if code := c.call(&t.graphNodes, graph, uintptr(unsafe.Pointer(&r.list[0])), uintptr(unsafe.Pointer(&c.count))); code != 0 {
		return 0, d.fail(&t.graphNodes, code)
	}
	for _, node := range r.list {
		c.params, c.value = [12]uint64{}, [8]uint64{}
		if c.call(&t.kernelNodeParams, node, uintptr(unsafe.Pointer(&c.params[0]))) != 0 {
			mix(1) // no kernel: a copy, say
			continue
		}
		mix(c.params[0]) // CUfunction
		mix(c.params[7]) // CUkernel, where the node has no CUfunction
		// Drivers without clusters refuse the question: then there are none.
		if t.kernelNodeAttribute.addr != 0 &&
			c.call(&t.kernelNodeAttribute, node, clusterDimension, uintptr(unsafe.Pointer(&c.value[0]))) == 0 {
			mix(c.value[0])
			mix(c.value[1])
		}
	}
	return h, nil
}
