package datasets

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync/atomic"

	"zerogcn/graph"
	"zerogcn/internal/par"
)

// CheckGraph reads the whole graph once and checks what a walk over it relies
// on: offsets that start at 0, never fall and end at the number of edges; every
// source id in range; rows ascending; weights, where there are any, finite.
// Whoever walks Graph calls it first; once it has passed, further calls cost
// nothing. Its error names the first fault.
func (d *Dataset) CheckGraph(ctx context.Context, w par.Workers) error {
	d.graphMu.Lock()
	defer d.graphMu.Unlock()
	if d.graphKnown {
		return nil
	}
	if err := checkCSR(ctx, d.Graph, d.NumNodes, w); err != nil {
		if ctx.Err() != nil {
			return err
		}
		return usageErrorf("dataset %s: graph: %w", d.Name, err)
	}
	d.graphKnown = true
	return nil
}

// graphTile is the number of rows (and of edges) that one check covers.
const graphTile = 1 << 16

func checkCSR(ctx context.Context, g *graph.CSR, n int, w par.Workers) error {
	if g == nil {
		return fmt.Errorf("none")
	}
	e := int64(len(g.Indices))
	if len(g.Indptr) != n+1 {
		return fmt.Errorf("%d offsets for %d nodes", len(g.Indptr), n)
	}
	if g.Weights != nil && int64(len(g.Weights)) != e {
		return fmt.Errorf("%d weights for %d edges", len(g.Weights), e)
	}
	if err := guardFaults(func() error {
		if g.Indptr[0] != 0 || g.Indptr[n] != e {
			return fmt.Errorf("offsets run from %d to %d: want 0 to %d", g.Indptr[0], g.Indptr[n], e)
		}
		return nil
	}); err != nil {
		return err
	}
	// Offsets first: the rows below may be cut only once they are known good.
	if err := eachTile(ctx, w, n, graphTile, func(lo, hi int) error {
		for v := lo; v < hi; v++ {
			if a, b := g.Indptr[v], g.Indptr[v+1]; a > b || b > e {
				return fmt.Errorf("offsets of node %d are %d and %d: want them to rise, up to %d", v, a, b, e)
			}
		}
		return nil
	}); err != nil {
		return err
	}
	return eachTile(ctx, w, n, graphTile, func(lo, hi int) error {
		for v := lo; v < hi; v++ {
			row := g.Indices[g.Indptr[v]:g.Indptr[v+1]]
			last := int32(0)
			for i, u := range row {
				if u < last || int(u) >= n {
					if u < 0 || int(u) >= n {
						return fmt.Errorf("edge %d into node %d comes from node %d: there are %d nodes", g.Indptr[v]+int64(i), v, u, n)
					}
					return fmt.Errorf("edge %d into node %d: source %d follows %d: want ascending sources", g.Indptr[v]+int64(i), v, u, last)
				}
				last = u
			}
			if g.Weights == nil {
				continue
			}
			for i, x := range g.Weights[g.Indptr[v]:g.Indptr[v+1]] {
				if x-x != 0 {
					return fmt.Errorf("edge %d into node %d has the weight %v: want a finite number", g.Indptr[v]+int64(i), v, x)
				}
			}
		}
		return nil
	})
}

// eachTile runs f over the tiles of [0, n) and returns the error of the first
// tile that has one, whatever the number of workers. A memory fault in f is
// returned as an error.
func eachTile(ctx context.Context, w par.Workers, n, size int, f func(lo, hi int) error) error {
	errs := make([]error, par.Tiles(n, size))
	var first atomic.Int64 // tiles beyond the first faulty one are skipped
	first.Store(int64(len(errs)))
	w.Range(n, size, func(t, lo, hi int) {
		if int64(t) > first.Load() {
			return
		}
		err := ctx.Err()
		if err == nil {
			err = guardFaults(func() error { return f(lo, hi) })
		}
		if err == nil {
			return
		}
		errs[t] = err
		for {
			at := first.Load()
			if int64(t) >= at || first.CompareAndSwap(at, int64(t)) {
				return
			}
		}
	})
	if err := ctx.Err(); err != nil {
		return err
	}
	i := slices.IndexFunc(errs, func(e error) bool { return e != nil })
	if i < 0 {
		return nil
	}
	return errs[i]
}

// guardFaults runs f and turns a memory fault, as a mapped file raises that was
// cut short after it was mapped, into an error.
func guardFaults(f func() error) (err error) {
	old := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(old)
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		if e, ok := r.(interface {
			error
			Addr() uintptr
		}); ok {
			err = fmt.Errorf("a mapped file became shorter while it was read (%w)", e)
			return
		}
		panic(r)
	}()
	return f()
}
