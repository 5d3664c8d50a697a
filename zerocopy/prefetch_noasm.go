//go:build !amd64 && !arm64

package zerocopy

import "unsafe"

// prefetchLines requests the cache lines of the n > 0 bytes at p; here it
// cannot.
func prefetchLines(unsafe.Pointer, uintptr) {}
