// Package invariants tells whether costly self-checks are compiled in: under
// the build tag invariants, memory that is given back is poisoned, so that a
// use after release shows up as NaN losses or ids out of range.
package invariants

import "math"

// PoisonFloats overwrites x with NaN.
func PoisonFloats(x []float32) {
	for i := range x {
		x[i] = float32(math.NaN())
	}
}

// PoisonIDs overwrites x with -1.
func PoisonIDs(x []int32) {
	for i := range x {
		x[i] = -1
	}
}
