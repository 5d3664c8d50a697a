//go:build !amd64

package cpu

func hasVector() bool { return false }

func maskVector(dst, src *float32, n int, keys *[20]uint64, ctr *[4]uint64, threshold uint32, scale float32) {
	panic("cpu: no vector instructions on this platform")
}

func blocksVector(dst *[32]uint32, items, draws *[8]uint64, keys *[20]uint64, step, site uint64) {
	panic("cpu: no vector instructions on this platform")
}
