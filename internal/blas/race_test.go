//go:build race

package blas

// raceEnabled is set where the race detector makes sync.Pool, and so purego,
// drop what it should keep.
const raceEnabled = true
