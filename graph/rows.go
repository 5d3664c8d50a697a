package graph

import (
	"context"
	"math"
	"math/bits"
	"slices"
	"sync"

	"zerogcn/internal/par"
)

// sortRows sorts every row by source, stably.
func (c *CSR) sortRows(ctx context.Context, w par.Workers) error {
	sorters := sync.Pool{New: func() any { return &rowSorter{width: bits.Len(uint(c.NumNodes()))} }}
	return eachRowTile(ctx, c, w, func(_, first, last int) error {
		s := sorters.Get().(*rowSorter)
		defer sorters.Put(s)
		for v := first; v < last; v++ {
			lo, hi := c.Indptr[v], c.Indptr[v+1]
			switch row := c.Indices[lo:hi]; {
			case slices.IsSorted(row):
			case c.Weights == nil:
				s.sort(row)
			default:
				s.sortWeighted(row, c.Weights[lo:hi])
			}
		}
		return nil
	})
}

// rowSorter sorts rows of ids below 2^width.
type rowSorter struct {
	width int
	plain radixSorter[int32]
	pairs radixSorter[uint64]
	keys  []uint64
}

func (s *rowSorter) sort(row []int32) {
	if len(row) < radixMin {
		slices.Sort(row)
		return
	}
	s.plain.sort(row, 0, s.width)
}

// sortWeighted sorts a row together with its weights, stably.
func (s *rowSorter) sortWeighted(row []int32, weights []float32) {
	s.keys = resize(s.keys, len(row))
	for i, v := range row {
		s.keys[i] = uint64(v)<<32 | uint64(math.Float32bits(weights[i]))
	}
	if len(row) < radixMin {
		insertionSort(s.keys)
	} else {
		s.pairs.sort(s.keys, 32, s.width)
	}
	for i, k := range s.keys {
		row[i], weights[i] = int32(k>>32), math.Float32frombits(uint32(k))
	}
}

// insertionSort sorts keys by their upper halves, stably.
func insertionSort(keys []uint64) {
	for i := 1; i < len(keys); i++ {
		k, j := keys[i], i
		for ; j > 0 && keys[j-1]>>32 > k>>32; j-- {
			keys[j] = keys[j-1]
		}
		keys[j] = k
	}
}

// deduplicate keeps the first of equal sources in each sorted row, in place.
// The arrays keep their capacity.
func (c *CSR) deduplicate(ctx context.Context, w par.Workers) error {
	n := c.NumNodes()
	tiles := par.Tiles(n, nodeTile)
	starts, kept := make([]int64, tiles), make([]int64, tiles)
	for t := range tiles {
		starts[t] = c.Indptr[t*nodeTile]
	}
	// Each tile moves its rows to its own start and leaves row lengths in
	// Indptr; Indptr[first], which the tile before overwrites, is in starts.
	if err := eachRowTile(ctx, c, w, func(tile, first, last int) error {
		lo, out := starts[tile], starts[tile]
		for v := first; v < last; v++ {
			hi, from := c.Indptr[v+1], out
			for e := lo; e < hi; e++ {
				if e > lo && c.Indices[e] == c.Indices[e-1] {
					continue
				}
				c.Indices[out] = c.Indices[e]
				if c.Weights != nil {
					c.Weights[out] = c.Weights[e]
				}
				out++
			}
			lo, c.Indptr[v+1] = hi, out-from
		}
		kept[tile] = out - starts[tile]
		return nil
	}); err != nil {
		return err
	}
	out := int64(0)
	for t := range tiles {
		copy(c.Indices[out:], c.Indices[starts[t]:starts[t]+kept[t]])
		if c.Weights != nil {
			copy(c.Weights[out:], c.Weights[starts[t]:starts[t]+kept[t]])
		}
		out += kept[t]
	}
	for v := range n {
		c.Indptr[v+1] += c.Indptr[v]
	}
	c.Indices = c.Indices[:out]
	if c.Weights != nil {
		c.Weights = c.Weights[:out]
	}
	return nil
}
