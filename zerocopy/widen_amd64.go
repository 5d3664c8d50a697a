package zerocopy

import (
	"golang.org/x/sys/cpu"

	"zerogcn/dtype"
)

// widenVector widens a leading part of the row with vector instructions and
// returns its length, 0 where the processor has none.
func widenVector(dt dtype.Type, dst []float32, src []byte, scale float32) int {
	n := len(dst) &^ 7
	if n == 0 || !cpu.X86.HasAVX2 || len(src) < n*dt.Size() {
		return 0
	}
	switch dt {
	case dtype.BFloat16:
		widenBF16(&dst[0], &src[0], n)
	case dtype.Float16:
		widenF16(&dst[0], &src[0], n)
	case dtype.Int8:
		widenI8(&dst[0], &src[0], n, scale)
	default:
		return 0
	}
	return n
}

//go:noescape
func widenBF16(dst *float32, src *byte, n int)

//go:noescape
func widenF16(dst *float32, src *byte, n int)

//go:noescape
func widenI8(dst *float32, src *byte, n int, scale float32)
