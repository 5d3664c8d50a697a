package op

import (
	"fmt"

	"zerogcn/graph"
	"zerogcn/internal/philox"
	"zerogcn/sparse"
)

// Value is an operand at run time: a row-major matrix of Rows × Cols float32 (a
// vector or a scalar has one row), in host memory (Data) or device memory (Dev),
// or an opaque payload. Whoever fills a Value owns its memory; programs own the
// memory of the Values they compute until the next Run.
type Value struct {
	Rows, Cols int
	Data       []float32
	Dev        uintptr // address on the device of the program's back end

	Block  *graph.Block
	Labels *Labels
	Key    *Key
	Sparse *sparse.Matrix
}

// Matrix returns a Value over host memory; data holds rows*cols elements.
func Matrix(rows, cols int, data []float32) Value {
	return Value{Rows: rows, Cols: cols, Data: data}
}

// Len returns Rows × Cols.
func (v *Value) Len() int { return v.Rows * v.Cols }

// Row returns row r of a host matrix.
func (v *Value) Row(r int) []float32 { return v.Data[r*v.Cols : (r+1)*v.Cols : (r+1)*v.Cols] }

// Labels are the targets of a batch of Rows items.
type Labels struct {
	// Class has one class per row, -1 for an unlabelled row, which takes no
	// part in the loss.
	Class []int32
	// Multi, if not nil, replaces Class: Width labels per row, row-major, 0 or 1,
	// or 255 for one that is not known and takes no part in the loss.
	Multi []uint8
	Width int
	// DevClass, if not 0, is the device address of NumRows int32 classes, in
	// place of Class. Norm must then be given.
	DevClass uintptr
	NumRows  int
	// DevMulti, if not 0, is the device address of NumRows rows of labels, Stride
	// bytes each, in place of Multi. Norm must then be given.
	DevMulti uintptr
	Stride   int
	// Norm divides the summed loss: the number of labelled items (of known labels,
	// with Multi) in the global batch, which may span several ranks. 0 means those
	// of this batch.
	Norm float64
}

// Len returns the number of rows.
func (l *Labels) Len() int {
	if l.DevClass != 0 || l.DevMulti != 0 {
		return l.NumRows
	}
	if l.Multi != nil {
		return len(l.Multi) / max(1, l.Width)
	}
	return len(l.Class)
}

// Unknown marks a label of Labels.Multi that is not known.
const Unknown = 255

// Count returns Norm, or the number of labelled rows (of known labels, with
// Multi) if it is 0.
func (l *Labels) Count() float64 {
	if l.Norm > 0 {
		return l.Norm
	}
	n := 0
	for _, c := range l.Class {
		if c >= 0 {
			n++
		}
	}
	for _, m := range l.Multi {
		if m != Unknown {
			n++
		}
	}
	return float64(n)
}

// Key keys the random masks of one step. Rows gives the node id of each row, so
// that a node has the same mask wherever it lies in the batch; since the targets
// of a block are its first sources, the batch's frontier serves every layer. Nil
// Rows means that row r is node r.
type Key struct {
	Seed, Step uint64
	Rows       []int32
	// DevRows, if not 0, is the device address of NumRows node ids, in place of
	// Rows.
	DevRows uintptr
	NumRows int
}

// Stream returns the mask's random stream for a dropout site.
func (k *Key) Stream(site uint32) philox.Stream {
	return philox.NewStream(k.Seed, philox.Dropout, site, k.Step)
}

// Item returns the node id that keys row r.
func (k *Key) Item(r int) uint32 {
	if k.Rows == nil {
		return uint32(r)
	}
	return uint32(k.Rows[r])
}

// checkRows reports a key that has fewer rows than the matrix it masks.
func (k *Key) checkRows(rows int) error {
	have := len(k.Rows)
	if k.DevRows != 0 {
		have = k.NumRows
	} else if k.Rows == nil {
		return nil
	}
	if have < rows {
		return fmt.Errorf("key has %d rows for a matrix of %d", have, rows)
	}
	return nil
}
