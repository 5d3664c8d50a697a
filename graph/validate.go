package graph

import (
	"context"
	"fmt"

	"zerogcn/internal/par"
)

// nodeTile is the number of rows that one task of a whole-graph pass handles.
const nodeTile = 1 << 13

// Validate checks every invariant of the type: sizes, ascending offsets, ids
// in range, rows ascending, weights finite. Its error names the first fault in
// row order, whatever the number of workers, and wraps ErrCorrupt.
func (c *CSR) Validate(ctx context.Context, w par.Workers) error {
	if err := c.checkShape(); err != nil {
		return err
	}
	return eachRow(ctx, c, w, func(v int, lo, hi int64) error {
		n, last := c.NumNodes(), int32(0)
		for e := lo; e < hi; e++ {
			s := c.Indices[e]
			if uint32(s) >= uint32(n) {
				return badID(v, e, s, n)
			}
			if s < last {
				return fmt.Errorf("graph: row %d, edge %d: source %d after %d, rows must ascend: %w", v, e, s, last, ErrCorrupt)
			}
			last = s
		}
		if c.Weights == nil {
			return nil
		}
		for e := lo; e < hi; e++ {
			if !finite(c.Weights[e]) {
				return fmt.Errorf("graph: row %d, edge %d: weight %v is not finite: %w", v, e, c.Weights[e], ErrCorrupt)
			}
		}
		return nil
	})
}

// eachRow calls f for every row with checked offsets, tiles of rows in
// parallel, and returns the error of the lowest row that had one.
func eachRow(ctx context.Context, c *CSR, w par.Workers, f func(v int, lo, hi int64) error) error {
	return eachRowTile(ctx, c, w, func(_, first, last int) error {
		for v := first; v < last; v++ {
			lo, hi, err := c.bounds(v)
			if err != nil {
				return err
			}
			if err := f(v, lo, hi); err != nil {
				return err
			}
		}
		return nil
	})
}

// eachRowTile calls f for tiles of nodeTile rows and returns the error of the
// lowest tile that had one. The context is looked at once a tile.
func eachRowTile(ctx context.Context, c *CSR, w par.Workers, f func(tile, first, last int) error) error {
	n := c.NumNodes()
	errs := make([]error, par.Tiles(n, nodeTile))
	w.Range(n, nodeTile, func(tile, first, last int) {
		if errs[tile] = ctx.Err(); errs[tile] == nil {
			errs[tile] = f(tile, first, last)
		}
	})
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
