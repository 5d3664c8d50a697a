package cuda

import (
	"fmt"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// MaxArgs is the largest number of arguments of a kernel that Launch takes.
const MaxArgs = 48

// slot is a piece of memory outside Go's heap for what the driver reads and
// writes through pointers. pointers[i] always points to values[i]: it is the
// kernelParams array of cuLaunchKernel, made once.
type slot struct {
	pointers [MaxArgs]uintptr
	values   [MaxArgs]uint64
	out      [4]uint64 // results of calls that must not allocate
}

// address returns the C address of the kernelParams array.
func (s *slot) address() uintptr { return uintptr(unsafe.Pointer(s)) }

// arena hands out slots, cut from pages that stay mapped as long as the
// process: slots are few (one per stream) and are reused.
type arena struct {
	mu   sync.Mutex
	free []*slot
}

const arenaBytes = 64 << 10

func (a *arena) get() (*slot, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.free) == 0 {
		b, err := unix.Mmap(-1, 0, arenaBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			return nil, fmt.Errorf("cuda: map %d bytes for kernel arguments: %w", arenaBytes, err)
		}
		for i := range arenaBytes / int(unsafe.Sizeof(slot{})) {
			s := (*slot)(unsafe.Pointer(&b[i*int(unsafe.Sizeof(slot{}))]))
			for j := range s.pointers {
				s.pointers[j] = uintptr(unsafe.Pointer(&s.values[j]))
			}
			a.free = append(a.free, s)
		}
	}
	s := a.free[len(a.free)-1]
	a.free = a.free[:len(a.free)-1]
	return s, nil
}

func (a *arena) put(s *slot) {
	a.mu.Lock()
	a.free = append(a.free, s)
	a.mu.Unlock()
}
