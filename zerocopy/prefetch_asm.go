//go:build amd64 || arm64

package zerocopy

import "unsafe"

// prefetchLines requests the cache lines of the n > 0 bytes at p.
//
//go:noescape
func prefetchLines(p unsafe.Pointer, n uintptr)
