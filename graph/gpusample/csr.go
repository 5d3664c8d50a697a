package gpusample

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"zerogcn/cuda"
	"zerogcn/graph"
	"zerogcn/internal/par"
)

// Placement says where a graph's edges lie.
type Placement int

const (
	// Auto is InDevice if the edges leave a tenth of the GPU's memory free,
	// else InHost.
	Auto Placement = iota
	// InDevice is GPU memory: 4 bytes an edge.
	InDevice
	// InHost is page-locked host memory that kernels read over the link. The
	// offsets, 8 bytes a node, are in GPU memory in either case.
	InHost
)

// String returns "auto", "device" or "host".
func (p Placement) String() string {
	return [...]string{"auto", "device", "host"}[min(max(p, Auto), InHost)]
}

// CSROptions are the choices of NewCSR; the zero value is usable.
type CSROptions struct {
	Placement Placement
	// Registered, if not nil, is a registration that holds the bytes of the
	// graph's Indices: InHost then reads them in place. Otherwise InHost copies
	// them into page-locked memory of its own.
	Registered *cuda.Registration
	// Workers bounds the goroutines of NewCSR and of NewSampler.
	Workers par.Workers
}

// CSR is a graph on a device. It is read-only, and any number of samplers may
// share it.
type CSR struct {
	dev       *cuda.Device
	graph     *graph.CSR
	opt       CSROptions
	placement Placement
	degrees   degreeTable
	indptr    *cuda.Buffer
	indices   edgeArray
	kernels   *kernelSet
}

// NewCSR validates the graph (graph.CSR.Validate, whose error it returns) and
// uploads it. The graph must stay unchanged while the CSR is in use: NewSampler
// reads it, and so does the GPU if it is Registered.
func NewCSR(ctx context.Context, dev *cuda.Device, g *graph.CSR, o CSROptions) (c *CSR, err error) {
	if err := g.Validate(ctx, o.Workers); err != nil {
		return nil, err
	}
	c = &CSR{dev: dev, graph: g, opt: o, degrees: newDegreeTable(g, o.Workers)}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
			c = nil
		}
	}()
	if c.placement, err = c.place(4 * g.NumEdges()); err != nil {
		return c, err
	}
	if c.kernels, err = loadKernels(dev); err != nil {
		return c, err
	}
	indptr := g.Indptr
	if len(indptr) == 0 { // the zero value is the graph of no nodes
		indptr = []int64{0}
	}
	if c.indptr, err = dev.Alloc(cuda.Topology, 8*int64(len(indptr))); err != nil {
		return c, fmt.Errorf("gpusample: offsets of %d nodes: %w", g.NumNodes(), err)
	}
	if err = upload(ctx, dev, c.indptr.Ptr(), bytesOf(indptr)); err != nil {
		return c, err
	}
	if r := o.Registered; r != nil && c.placement == InHost {
		c.indices.ptr, err = within(r, bytesOf(g.Indices))
		return c, err
	}
	c.indices, err = c.placeEdges(ctx, "edges", bytesOf(g.Indices))
	return c, err
}

// place resolves Auto for n bytes of edges.
func (c *CSR) place(n int64) (Placement, error) {
	if c.opt.Placement != Auto {
		return c.opt.Placement, nil
	}
	free, total, err := c.dev.MemInfo()
	if err != nil {
		return Auto, err
	}
	if n+8*int64(len(c.graph.Indptr)) <= free-total/10 {
		return InDevice, nil
	}
	return InHost, nil
}

// within returns the device address of data, which must be part of r.
func within(r *cuda.Registration, data []byte) (cuda.DevicePtr, error) {
	if len(data) == 0 {
		return 0, nil
	}
	memory := r.Bytes()
	at := uintptr(unsafe.Pointer(unsafe.SliceData(data))) - uintptr(unsafe.Pointer(unsafe.SliceData(memory)))
	if at > uintptr(len(memory)) || uintptr(len(data)) > uintptr(len(memory))-at {
		return 0, fmt.Errorf("gpusample: the registration does not hold the graph's edges")
	}
	return r.Ptr() + cuda.DevicePtr(at), nil
}

// Placement returns where the edges lie, InDevice or InHost.
func (c *CSR) Placement() Placement { return c.placement }

// Graph returns the graph that was uploaded.
func (c *CSR) Graph() *graph.CSR { return c.graph }

// Device returns the device.
func (c *CSR) Device() *cuda.Device { return c.dev }

// Close frees the graph's memory. No work that samples from it may be queued
// any more. Closing twice does nothing.
func (c *CSR) Close() error {
	return errors.Join(c.indptr.Close(), c.indices.close(), c.kernels.close())
}

// degreesTile is the number of nodes that one task handles; a multiple of 32.
const degreesTile = 1 << 13

// selfLoops returns the bitmap of nodes with self loops, nil if there are none.
func (c *CSR) selfLoops() []uint32 {
	n := c.graph.NumNodes()
	found := make([]uint32, (n+31)/32)
	tiles := make([]bool, par.Tiles(n, degreesTile))
	c.opt.Workers.Range(n, degreesTile, func(tile, first, last int) {
		for v := int32(first); int(v) < last; v++ {
			if hasID(c.graph.Row(v), v) {
				found[v>>5] |= 1 << (v & 31)
				tiles[tile] = true
			}
		}
	})
	for _, any := range tiles {
		if any {
			return found
		}
	}
	return nil
}

// degreeTable answers how many edges the nodes of the highest in-degrees have,
// which bounds what any set of nodes has.
type degreeTable struct {
	degrees []int64 // distinct, descending, not 0
	nodes   []int64 // with at least that degree
}

func newDegreeTable(g *graph.CSR, w par.Workers) degreeTable {
	n := g.NumNodes()
	var mu sync.Mutex
	counts := make(map[int64]int64)
	w.Range(n, degreesTile, func(_, first, last int) {
		mine := make(map[int64]int64)
		for v := first; v < last; v++ {
			mine[int64(g.InDegree(int32(v)))]++
		}
		mu.Lock()
		for d, k := range mine {
			counts[d] += k
		}
		mu.Unlock()
	})
	delete(counts, 0)
	return degreeTableOf(counts)
}

// max returns the largest in-degree.
func (t degreeTable) max() int64 {
	if len(t.degrees) == 0 {
		return 0
	}
	return t.degrees[0]
}

// edges bounds the edges that n targets get with a fan-out, 0 or less for all.
func (t degreeTable) edges(n int64, fanout int, replace bool) int64 {
	sum, before := int64(0), int64(0)
	for i, d := range t.degrees {
		k := min(t.nodes[i], n) - before
		if k <= 0 {
			break
		}
		switch {
		case fanout <= 0:
		case replace:
			d = int64(fanout)
		default:
			d = min(d, int64(fanout))
		}
		sum += k * d // below 2^31 · 2^31
		before += k
	}
	return sum
}
