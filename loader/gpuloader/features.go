package gpuloader

import (
	"context"
	"errors"
	"fmt"

	"zerogcn/cuda"
	"zerogcn/datasets"
	"zerogcn/dtype"
	"zerogcn/zerocopy"
)

// FeatureOptions says how features reach the GPU. The zero value lets the
// gatherer measure and choose.
type FeatureOptions struct {
	Mode zerocopy.Mode
	// CacheBytes is the GPU memory that may hold rows, see
	// zerocopy.DeviceOptions.
	CacheBytes int64
	// Blocks is the grid of gathers, 0 for the default.
	Blocks int
	// BatchRows is the usual number of rows of a batch, for Auto.
	BatchRows int
	Workers   int
	// Progress is called while the table is registered.
	Progress func(done, total int64)
}

// Features is a feature table in page-locked host memory with its gatherer.
type Features struct {
	Gatherer *zerocopy.DeviceGatherer
	table    *zerocopy.Table
	width    int
	rowBytes int
}

// OpenFeatures reads the dataset's features into memory of their own, checking
// each value, and prepares to gather from them. The dataset is not needed
// afterwards.
func OpenFeatures(ctx context.Context, dev *cuda.Device, ds *datasets.Dataset, o FeatureOptions) (f *Features, err error) {
	src := ds.Features
	if src == nil || src.Dim == 0 {
		return nil, fmt.Errorf("%s has no node features", ds.Name)
	}
	f = &Features{width: src.Dim, rowBytes: src.RowBytes()}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
			f = nil
		}
	}()
	if f.table, err = zerocopy.NewTable(src.Rows, src.Dim, src.Type, zerocopy.Options{Name: ds.Name, Workers: o.Workers}); err != nil {
		return f, err
	}
	if src.Type == dtype.Int8 {
		copy(f.table.Scales(), src.Scales())
	}
	if err = f.table.Fill(ctx, func(lo, hi int, dst []byte) error { return src.ReadRows(ctx, lo, hi, dst) }); err != nil {
		return f, err
	}
	f.Gatherer, err = zerocopy.NewDeviceGatherer(ctx, f.table, dev, zerocopy.DeviceOptions{
		Mode: o.Mode, CacheBytes: o.CacheBytes, Blocks: o.Blocks, BatchRows: o.BatchRows, Workers: o.Workers, Progress: o.Progress})
	return f, err
}

// Width returns the number of features of a node.
func (f *Features) Width() int { return f.width }

// RowBytes returns the size of a row as stored.
func (f *Features) RowBytes() int { return f.rowBytes }

// Close releases the gatherer and the table. It may be called twice.
func (f *Features) Close() error {
	var err error
	if f.Gatherer != nil {
		err = f.Gatherer.Close()
	}
	if f.table != nil {
		err = errors.Join(err, f.table.Close())
	}
	return err
}
