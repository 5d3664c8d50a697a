package zerocopy

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugePage is the size of a transparent huge page on the platforms in use.
const hugePage = 2 << 20

// memory is a range of host memory with a release that runs once.
type memory struct {
	data    []byte
	once    sync.Once
	release func() error
	err     error
}

// free releases the range. Later calls return the first one's error.
func (m *memory) free() error {
	m.once.Do(func() {
		m.data = nil
		if m.release != nil {
			m.err = m.release()
		}
	})
	return m.err
}

// mapAnonymous maps n zeroed bytes at a huge-page boundary, asks for huge pages
// and spreads the pages over the NUMA nodes if there are several. Both requests
// are hints: a kernel that refuses them gives ordinary pages on one node.
func mapAnonymous(n int) (*memory, error) {
	if n == 0 {
		return &memory{}, nil
	}
	size := roundUp(n, hugePage)
	if n < hugePage {
		size = roundUp(n, os.Getpagesize())
	}
	raw, err := unix.Mmap(-1, 0, size+hugePage, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("mapping %s of memory: %w", formatBytes(int64(n)), err)
	}
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(raw))) & (hugePage - 1))
	data := raw[skip : skip+size : skip+size]
	_ = unix.Madvise(data, unix.MADV_HUGEPAGE)
	interleave(data)
	return &memory{data: data[:n], release: func() error { return unix.Munmap(raw) }}, nil
}

// mapFile maps n bytes at an offset of a file read-only. The file may be
// closed afterwards.
func mapFile(f *os.File, offset int64, n int) (*memory, error) {
	if n == 0 {
		return &memory{}, nil
	}
	lead := int(offset % int64(os.Getpagesize()))
	raw, err := unix.Mmap(int(f.Fd()), offset-int64(lead), n+lead, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mapping %s of %s: %w", formatBytes(int64(n)), f.Name(), err)
	}
	// Rows are read in the order of ids, not of the file.
	_ = unix.Madvise(raw, unix.MADV_RANDOM)
	return &memory{data: raw[lead : lead+n : lead+n], release: func() error { return unix.Munmap(raw) }}, nil
}

// interleave spreads the pages of a mapping over all NUMA nodes that this
// process may use, so that no node's memory controller serves every gather.
func interleave(data []byte) {
	nodes := memoryNodes()
	if len(nodes) < 2 {
		return
	}
	var mask [16]uint64 // 1,024 nodes, the kernel's own limit
	for _, n := range nodes {
		if n < 64*len(mask) {
			mask[n/64] |= 1 << (n % 64)
		}
	}
	const mpolInterleave = 3
	// Refused where mems_allowed excludes a node or in some sandboxes: the
	// table then lies where its pages are first touched.
	_, _, _ = unix.Syscall6(unix.SYS_MBIND, uintptr(unsafe.Pointer(unsafe.SliceData(data))), uintptr(len(data)),
		mpolInterleave, uintptr(unsafe.Pointer(&mask)), uintptr(64*len(mask)+1), 0)
	runtime.KeepAlive(data)
}

// memoryNodes lists the NUMA nodes that have memory.
func memoryNodes() []int {
	b, err := os.ReadFile("/sys/devices/system/node/has_memory")
	if err != nil {
		return nil
	}
	return parseList(strings.TrimSpace(string(b)))
}

// parseList reads the kernel's list format, 0-3,8. A malformed list is empty.
func parseList(s string) []int {
	var out []int
	for _, part := range strings.Split(s, ",") {
		lo, hi, ranged := strings.Cut(part, "-")
		a, err := strconv.Atoi(lo)
		if err != nil {
			return nil
		}
		b := a
		if ranged {
			if b, err = strconv.Atoi(hi); err != nil || b-a > 4096 {
				return nil
			}
		}
		for n := a; n <= b; n++ {
			out = append(out, n)
		}
	}
	return out
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }
