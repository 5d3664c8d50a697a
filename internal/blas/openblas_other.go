//go:build !linux || (!amd64 && !arm64)

package blas

import "fmt"

// OpenBLAS is not available on this platform; the error wraps ErrNotFound.
func OpenBLAS(string) (*Engine, error) {
	return nil, fmt.Errorf("%w: this platform is not supported", ErrNotFound)
}
