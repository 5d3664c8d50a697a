package cpu

// prefetchRow asks for the cache lines of n floats from x on, n at least 1. It
// waits for nothing and changes nothing.
//
//go:noescape
func prefetchRow(x *float32, n int)
