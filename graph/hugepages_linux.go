package graph

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

const hugePage = 2 << 20

// makeHuge makes a zeroed slice and, if it is large, asks the kernel to back it
// by huge pages. Sampling reads an array of edges in no order, and without huge
// pages most reads wait for address translation first: batches of the benchmark
// took a quarter longer. It is a hint, which changes nothing else.
func makeHuge[T int32 | int64 | uint32 | uint64 | float32](n int) []T {
	s := make([]T, n)
	if size := n * int(unsafe.Sizeof(T(0))); size >= 2*hugePage {
		bytes := unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), size)
		begin := uintptr(unsafe.Pointer(&s[0]))
		lo := int(-begin % hugePage)
		hi := size - int((begin+uintptr(size))%hugePage)
		_ = unix.Madvise(bytes[lo:hi], unix.MADV_HUGEPAGE) // refused: ordinary pages
	}
	return s
}
