//go:build !amd64

package cpu

func prefetchRow(*float32, int) {}
