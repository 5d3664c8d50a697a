package loader

import (
	"context"
	"errors"
	"fmt"

	"zerogcn/datasets"
	"zerogcn/sparse"
	"zerogcn/zerocopy"
)

// Rows is a gathered part of a feature table, N rows of Width columns: dense and
// row-major, or sparse.
type Rows struct {
	N, Width int
	Dense    []float32
	Sparse   *sparse.Matrix
}

// Features is a feature table made ready for gathering. It may be used by
// several goroutines.
type Features struct {
	width  int
	sparse *sparse.Matrix
	table  *zerocopy.Table
	gather *zerocopy.HostGatherer
}

// FeatureOptions says how a table is prepared. The zero value changes nothing
// and chooses by content.
type FeatureOptions struct {
	// Dense keeps tables dense that are mostly zero. Otherwise a table of at
	// most 2^28 values of which fewer than one in ten is not zero becomes sparse.
	Dense bool
	// Workers bounds the goroutines of a gather; 0 means GOMAXPROCS.
	Workers int
}

const (
	sparseLimit   = 1 << 28 // values that are worth looking through
	sparseDensity = 0.1
)

// OpenFeatures prepares the features of a dataset, which must stay open until
// the Features are closed. Tables on disk are mapped, not read, unless they turn
// out to be mostly zero; values are checked for NaN and infinity wherever they
// are read here.
func OpenFeatures(ctx context.Context, ds *datasets.Dataset, o FeatureOptions) (*Features, error) {
	src := ds.Features
	if src == nil || src.Dim == 0 {
		return nil, fmt.Errorf("%s has no node features", ds.Name)
	}
	f := &Features{width: src.Dim}
	var m *sparse.Matrix
	if !o.Dense {
		m = src.Sparse()
	}
	if m == nil && !o.Dense {
		var err error
		if m, err = sparsify(ctx, src); err != nil {
			return nil, err
		}
	}
	if m != nil {
		f.sparse = m
		return f, nil
	}
	if err := f.openTable(ctx, ds.Name, src, o); err != nil {
		return nil, err
	}
	g, err := zerocopy.NewHostGatherer(f.table, zerocopy.GatherOptions{Workers: o.Workers})
	if err != nil {
		return nil, errors.Join(err, f.table.Close())
	}
	f.gather = g
	return f, nil
}

// openTable maps the table, shares its memory, or fills one of its own.
func (f *Features) openTable(ctx context.Context, name string, src *datasets.Features, o FeatureOptions) (err error) {
	opt := zerocopy.Options{Name: name, Workers: o.Workers, Scales: src.Scales(), Owner: src}
	switch path, offset, ok := src.File(); {
	case ok:
		f.table, err = zerocopy.OpenFile(path, offset, src.Rows, src.Dim, src.Type, opt)
		return err
	case src.Bytes() != nil:
		if err := src.CheckFinite(ctx, 0); err != nil {
			return err
		}
		f.table, err = zerocopy.FromBytes(src.Bytes(), src.Rows, src.Dim, src.Type, opt)
		return err
	}
	f.table, err = zerocopy.NewTable(src.Rows, src.Dim, src.Type, opt)
	if err != nil {
		return err
	}
	err = f.table.Fill(ctx, func(lo, hi int, dst []byte) error { return src.ReadRows(ctx, lo, hi, dst) })
	if err != nil {
		return errors.Join(err, f.table.Close())
	}
	return nil
}

// sparsify returns the table as a sparse matrix if that is small, else nil. A
// sample of the rows settles most cases without reading the whole.
func sparsify(ctx context.Context, src *datasets.Features) (*sparse.Matrix, error) {
	total := int64(src.Rows) * int64(src.Dim)
	if total == 0 || total > sparseLimit {
		return nil, nil
	}
	limit := int(sparseDensity * float64(total))
	chunk := min(src.Rows, max(1, 1<<18/src.Dim))
	x := make([]float32, chunk*src.Dim)
	const samples = 64
	stride := max(1, src.Rows/samples)
	nonZero, seen := 0, 0
	for r := 0; r < src.Rows; r += stride {
		row := x[:src.Dim]
		if err := src.Float32Rows(ctx, r, r+1, row); err != nil {
			return nil, err
		}
		for _, v := range row {
			if v != 0 {
				nonZero++
			}
		}
		seen += src.Dim
	}
	if float64(nonZero) > 2*sparseDensity*float64(seen) {
		return nil, nil
	}
	m := &sparse.Matrix{NumCols: src.Dim}
	for lo := 0; lo < src.Rows; lo += chunk {
		hi := min(src.Rows, lo+chunk)
		if err := src.Float32Rows(ctx, lo, hi, x[:(hi-lo)*src.Dim]); err != nil {
			return nil, err
		}
		for r := range hi - lo {
			m.AppendDense(x[r*src.Dim : (r+1)*src.Dim])
		}
		if m.NNZ() > limit {
			return nil, nil
		}
	}
	return m, nil
}

// Width returns the number of features of a node.
func (f *Features) Width() int { return f.width }

// IsSparse reports whether Gather delivers sparse rows.
func (f *Features) IsSparse() bool { return f.sparse != nil }

// Gather fetches the rows of the given nodes into dst, whose memory is reused.
func (f *Features) Gather(ctx context.Context, ids []int32, dst *Rows) error {
	dst.N, dst.Width = len(ids), f.width
	if f.sparse != nil {
		for i, id := range ids {
			if int(id) >= f.sparse.NumRows || id < 0 {
				return fmt.Errorf("node %d at position %d: the feature table has %d rows", id, i, f.sparse.NumRows)
			}
		}
		if dst.Sparse == nil {
			dst.Sparse = &sparse.Matrix{}
		}
		f.sparse.Gather(dst.Sparse, ids)
		return nil
	}
	n := len(ids) * f.width
	if cap(dst.Dense) < n {
		dst.Dense = make([]float32, n, n+n/8)
	}
	dst.Dense = dst.Dense[:n]
	return f.gather.Gather(ctx, ids, dst.Dense)
}

// RowBytes returns the mean size of a row as stored.
func (f *Features) RowBytes() float64 {
	if f.sparse != nil {
		return 8 * float64(f.sparse.NNZ()) / float64(max(1, f.sparse.NumRows))
	}
	return float64(f.width * f.table.Type().Size())
}

// Close releases the table. It may be called twice.
func (f *Features) Close() error {
	if f.table == nil {
		return nil
	}
	return errors.Join(f.gather.Close(), f.table.Close())
}
