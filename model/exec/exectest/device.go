package exectest

import (
	"slices"
	"testing"

	"zerogcn/model/exec"
	"zerogcn/model/op"
)

// Device is a back end whose memory the suite can reach.
type Device interface {
	exec.Backend
	// Upload returns v in memory that the back end's kernels read and write:
	// a copy of the matrix, or the opaque payload in the form they expect. The
	// memory lives until the test ends.
	Upload(t testing.TB, v op.Value) op.Value
	// Download waits for the kernels and returns the elements of a matrix,
	// which may be part of an uploaded one.
	Download(t testing.TB, v op.Value) []float32
}

// Host makes a Device of a back end on host memory.
type Host struct{ exec.Backend }

// Upload copies a matrix and passes payloads on.
func (Host) Upload(_ testing.TB, v op.Value) op.Value {
	v.Data = slices.Clone(v.Data)
	return v
}

// Download copies the matrix.
func (Host) Download(_ testing.TB, v op.Value) []float32 { return slices.Clone(v.Data[:v.Len()]) }

// part returns n elements of the matrix v, from element at, as rows × cols.
func part(v op.Value, at, rows, cols int) op.Value {
	p := op.Value{Rows: rows, Cols: cols}
	n := rows * cols
	if v.Data != nil {
		p.Data = v.Data[at : at+n : at+n]
	}
	if v.Dev != 0 {
		p.Dev = v.Dev + 4*uintptr(at)
	}
	return p
}
