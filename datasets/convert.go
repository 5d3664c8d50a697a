package datasets

import (
	"context"
	"math"

	"zerogcn/dtype"
	"zerogcn/internal/par"
)

// ConvertFeatures returns d with features of another storage type. Values are
// rounded to nearest, ties to even; int8 rows get a scale each, which takes one
// pass over the table now. Otherwise rows are converted when they are read. A
// value too large for float16 is an error that names row and column.
//
// As with TransformGraph the result takes over d's files and keeps its
// Fingerprint.
func ConvertFeatures(ctx context.Context, d *Dataset, t dtype.Type, w par.Workers) (*Dataset, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	from := d.Features
	if from.Type == t {
		return d.derive(), nil
	}
	to := &Features{Rows: from.Rows, Dim: from.Dim, Type: t, name: from.name, file: narrowedRows{from, t}}
	if t == dtype.Int8 && from.Dim > 0 {
		to.scales = make([]float32, from.Rows)
		tile := max(1, chunkBytes/(4*from.Dim))
		if err := eachTile(ctx, w, from.Rows, tile, func(lo, hi int) error {
			x := make([]float32, (hi-lo)*from.Dim)
			if err := from.Float32Rows(ctx, lo, hi, x); err != nil {
				return err
			}
			q := make([]byte, from.Dim)
			for r := range hi - lo {
				to.scales[lo+r] = t.Narrow(q, x[r*from.Dim:(r+1)*from.Dim])
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	c := d.derive()
	c.Features, c.FeatureType = to, t.String()
	return c, nil
}

// narrowedRows converts rows to another storage type as they are read.
type narrowedRows struct {
	f *Features
	t dtype.Type
}

func (r narrowedRows) readRows(lo, hi int, dst []byte) error {
	_, err := r.narrow(context.Background(), lo, hi, dst)
	return err
}

// narrow reads rows and returns what they were before.
func (r narrowedRows) narrow(ctx context.Context, lo, hi int, dst []byte) ([]float32, error) {
	dim, size := r.f.Dim, r.t.Size()
	x := make([]float32, (hi-lo)*dim)
	if err := r.f.Float32Rows(ctx, lo, hi, x); err != nil {
		return nil, err
	}
	for i := range hi - lo {
		row := x[i*dim : (i+1)*dim]
		r.t.Narrow(dst[i*dim*size:], row)
		if r.t != dtype.Float16 {
			continue
		}
		for c, v := range row {
			if math.Abs(float64(v)) >= 65520 { // rounds to infinity
				return nil, usageErrorf("%s: row %d, column %d is %v, too large for float16 (65504 at most): use bf16", r.f.name, lo+i, c, v)
			}
		}
	}
	return x, nil
}
