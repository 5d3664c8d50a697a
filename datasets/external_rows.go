package datasets

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"zerogcn/internal/par"
)

// maxRowFiles bounds the files that rows are dealt to.
const maxRowFiles = 1 << bucketBits

// reorder returns rows in another order: row k of the result is row order[k] of
// f, which is row to[order[k]] = k. A table in a file that would not fit the bound with ease
// is moved now, to a temporary file that d takes over, and read from front to back
// for that; others are read row by row when they are asked for.
func (s spill) reorder(ctx context.Context, d *Dataset, f *Features, order, to []int32, w par.Workers) (*Features, error) {
	n := reorderedFeatures(f, order)
	if s.memory <= 0 || f.file == nil || int64(f.Rows)*int64(f.RowBytes()) <= s.memory/4 {
		return n, nil
	}
	m := &rowMover{f: f, order: order, to: to, s: s, w: w}
	file, err := m.move(ctx)
	if err != nil {
		return nil, err
	}
	d.closers = append(d.closers, file.Close)
	n.file = scratchRows{file, f.RowBytes()}
	return n, nil
}

// scratchRows reads rows of a temporary file.
type scratchRows struct {
	file *os.File
	size int // bytes of a row
}

func (r scratchRows) readRows(lo, hi int, dst []byte) error {
	if _, err := r.file.ReadAt(dst[:(hi-lo)*r.size], int64(lo)*int64(r.size)); err != nil {
		return fmt.Errorf("temporary file: %w", err)
	}
	return nil
}

// rowMover permutes a table out of core: rows are read in their order and dealt to
// files by the part of the result that they belong in, which fits the memory; then
// each part is put in order. Every row is written and read twice, none by itself.
type rowMover struct {
	f         *Features
	order, to []int32
	s         spill
	w         par.Workers
	per       int // rows of a part
	parts     []*os.File
}

func (m *rowMover) move(ctx context.Context) (table *os.File, err error) {
	rows, rb := m.f.Rows, m.f.RowBytes()
	m.per = max(1, int(m.s.memory/4)/rb, par.Tiles(rows, maxRowFiles))
	if need := 3 * int64(m.per) * int64(rb); need > m.s.memory {
		return nil, usageErrorf("%s: %s of memory are too little to renumber a table of %s in: give %s or more",
			m.f.name, SizeText(m.s.memory), SizeText(int64(rows)*int64(rb)), SizeText(need))
	}
	defer func() {
		for _, p := range m.parts {
			err = errors.Join(err, p.Close())
		}
		if err != nil && table != nil {
			err = errors.Join(err, table.Close())
			table = nil
		}
	}()
	for range par.Tiles(rows, m.per) {
		p, err := scratchFile(m.s.dir)
		if err != nil {
			return nil, err
		}
		m.parts = append(m.parts, p)
	}
	if err := m.deal(ctx); err != nil {
		return nil, err
	}
	if table, err = scratchFile(m.s.dir); err != nil {
		return nil, err
	}
	return table, m.place(ctx, table)
}

// deal appends every row to the file of its part, in the order of f.
func (m *rowMover) deal(ctx context.Context) error {
	rows, rb := m.f.Rows, m.f.RowBytes()
	slab := min(rows, max(1, int(m.s.memory/8)/rb))
	tile := max(1, (1<<20)/rb)
	in, out := make([]byte, slab*rb), make([]byte, slab*rb)
	next := make([]int, len(m.parts)+1)
	for first := 0; first < rows; first += slab {
		n := min(slab, rows-first)
		if err := eachTile(ctx, m.w, n, tile, func(lo, hi int) error {
			return m.f.ReadRows(ctx, first+lo, first+hi, in[lo*rb:hi*rb])
		}); err != nil {
			return err
		}
		clear(next)
		for _, k := range m.to[first : first+n] {
			next[int(k)/m.per+1]++
		}
		for i := range m.parts {
			next[i+1] += next[i]
		}
		for j, k := range m.to[first : first+n] {
			at := &next[int(k)/m.per]
			copy(out[*at*rb:(*at+1)*rb], in[j*rb:])
			*at++
		}
		lo := 0
		for i, p := range m.parts { // next[i] is now where part i ends
			if _, err := p.Write(out[lo*rb : next[i]*rb]); err != nil {
				return err
			}
			lo = next[i]
		}
	}
	return nil
}

// place writes the parts to the table, each in order.
func (m *rowMover) place(ctx context.Context, table *os.File) error {
	rows, rb := m.f.Rows, m.f.RowBytes()
	in, out := make([]byte, min(rows, m.per)*rb), make([]byte, min(rows, m.per)*rb)
	places := make([]int32, 0, min(rows, m.per))
	for i, p := range m.parts {
		lo := i * m.per
		n := min(m.per, rows-lo)
		if _, err := p.ReadAt(in[:n*rb], 0); err != nil {
			return fmt.Errorf("temporary file: %w", err)
		}
		// The file's rows ascend in f: its j-th is the place that takes the j-th
		// smallest of them.
		places = places[:0]
		for k := range n {
			places = append(places, int32(k))
		}
		from := m.order[lo : lo+n]
		slices.SortFunc(places, func(a, b int32) int { return cmp.Compare(from[a], from[b]) })
		if err := eachTile(ctx, m.w, n, max(1, (1<<20)/rb), func(a, b int) error {
			for j := a; j < b; j++ {
				k := int(places[j])
				copy(out[k*rb:(k+1)*rb], in[j*rb:])
			}
			return nil
		}); err != nil {
			return err
		}
		if _, err := table.Write(out[:n*rb]); err != nil {
			return err
		}
	}
	return nil
}
