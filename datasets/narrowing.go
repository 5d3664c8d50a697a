package datasets

import (
	"context"
	"fmt"
	"math"
)

// Narrowing says what features lost when Write converted them to another storage
// type.
type Narrowing struct {
	Values int64
	// Largest is the largest difference of a value, at Row and Column (the first
	// of equal ones).
	Largest     float64
	Row, Column int
	// Relative is the root of the mean square difference over the root of the mean
	// square value; 0 for a table of zeros.
	Relative float64
}

func (n Narrowing) String() string {
	return fmt.Sprintf("largest error %.3g (row %d, column %d), relative error %.3g", n.Largest, n.Row, n.Column, n.Relative)
}

// Narrowing returns what was lost, once Write has written the table. ok is false
// where nothing was converted.
func (f *Features) Narrowing() (n Narrowing, ok bool) {
	if p := f.narrowing.Load(); p != nil {
		return *p, true
	}
	return Narrowing{}, false
}

// loss is what one tile of rows lost.
type loss struct {
	values          int64
	largest         float64
	row, column     int
	errors, values2 float64 // sums of squares
}

// add adds a later tile; in tile order the sums do not depend on who computed what.
func (l *loss) add(o loss) {
	if o.largest > l.largest {
		l.largest, l.row, l.column = o.largest, o.row, o.column
	}
	l.values += o.values
	l.errors += o.errors
	l.values2 += o.values2
}

func (l *loss) narrowing() *Narrowing {
	n := &Narrowing{Values: l.values, Largest: l.largest, Row: l.row, Column: l.column}
	if l.values2 > 0 {
		n.Relative = math.Sqrt(l.errors / l.values2)
	}
	return n
}

// readMeasured is ReadRows, and measures what the rows lose if f is converted as it
// is read.
func (f *Features) readMeasured(ctx context.Context, lo, hi int, dst []byte) (l loss, err error) {
	r, ok := f.file.(narrowedRows)
	if !ok {
		return l, f.ReadRows(ctx, lo, hi, dst)
	}
	if err := ctx.Err(); err != nil {
		return l, err
	}
	x, err := r.narrow(ctx, lo, hi, dst)
	if err != nil {
		return l, err
	}
	if err := f.checkRows(lo, hi-lo, dst[:(hi-lo)*f.RowBytes()]); err != nil {
		return l, err
	}
	back := make([]float32, f.Dim)
	for i := range hi - lo {
		s := float32(1)
		if f.scales != nil {
			s = f.scales[lo+i]
		}
		f.Type.Widen(back, dst[i*f.RowBytes():], s)
		for c, v := range x[i*f.Dim : (i+1)*f.Dim] {
			d := math.Abs(float64(v) - float64(back[c]))
			if d > l.largest {
				l.largest, l.row, l.column = d, lo+i, c
			}
			l.errors += d * d
			l.values2 += float64(v) * float64(v)
		}
	}
	l.values = int64(len(x))
	return l, nil
}
