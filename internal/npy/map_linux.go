package npy

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps the first n bytes of f read-only.
func mapFile(f *os.File, n int64) ([]byte, error) {
	b, err := unix.Mmap(int(f.Fd()), 0, int(n), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("%s: mapping %d bytes: %w", f.Name(), n, err)
	}
	return b, nil
}

func unmap(b []byte) error { return unix.Munmap(b) }
