//go:build !linux

package graph

// makeHuge makes a zeroed slice. On Linux it asks for huge pages.
func makeHuge[T int32 | int64 | uint32 | uint64 | float32](n int) []T { return make([]T, n) }
