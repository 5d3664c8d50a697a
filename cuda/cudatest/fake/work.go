package fake

import (
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// queue runs work now, or records it while the stream captures.
func (d *Driver) queue(stream uintptr, work func()) int32 {
	if d.live[stream] != "stream" {
		return invalidHandle
	}
	if c := d.capture[stream]; c != nil {
		*c = append(*c, work)
		return 0
	}
	work()
	return 0
}

// text returns the C string of a code's name (negative) or description.
func (d *Driver) text(key int32) uintptr {
	if d.texts[key] == nil {
		s := map[int32]string{outOfMemory: "out of memory", -outOfMemory: "CUDA_ERROR_OUT_OF_MEMORY"}[key]
		switch {
		case s != "":
		case key < 0:
			s = "CUDA_ERROR_" + digits(-key)
		default:
			s = "text of " + digits(key)
		}
		d.texts[key] = append([]byte(s), 0)
	}
	return uintptr(unsafe.Pointer(&d.texts[key][0]))
}

func digits(n int32) string {
	var b []byte
	for ; n > 0; n /= 10 {
		b = append(b, byte('0'+n%10))
	}
	slices.Reverse(b)
	return string(b)
}

func (d *Driver) allocate(kind string, n uintptr) uintptr {
	b, err := unix.Mmap(-1, 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return 0
	}
	p := uintptr(unsafe.Pointer(&b[0]))
	d.memory[p], d.live[p] = b, kind
	return p
}

func (d *Driver) release(p uintptr, kind string) int32 {
	c := d.drop(p, kind)
	if c == 0 {
		if kind == deviceMemory {
			d.free += int64(len(d.memory[p]))
		}
		unix.Munmap(d.memory[p])
		delete(d.memory, p)
	}
	return c
}

const (
	deviceMemory = "device memory"
	pinnedMemory = "pinned memory"
)

func attribute(_ *Driver, a []uintptr) int32 {
	v, ok := map[uintptr]int32{
		1: 1024, 8: 48 << 10, 10: 32, 16: 132, 18: 0, 19: 1, 33: 0x1a, 34: 0, 38: 50 << 20, 39: 2048, 40: 3,
		41: 1, 50: 0, 75: 9, 76: 0, 91: 1, 97: 227 << 10, 99: 1, 113: 1,
	}[a[1]]
	if !ok {
		return invalidValue
	}
	*at[int32](a[0]) = v
	return 0
}

func copyMemory(d *Driver, a []uintptr) int32 {
	// CUDA refuses a copy whose host side crosses two registrations.
	for _, p := range a[:2] {
		for q, n := range d.locked {
			if q <= p && p < q+n && p+a[2] > q+n {
				return invalidValue
			}
		}
	}
	return d.queue(a[3], func() { copy(unsafe.Slice(at[byte](a[0]), a[2]), unsafe.Slice(at[byte](a[1]), a[2])) })
}

func launch(d *Driver, a []uintptr) int32 {
	run := d.kernels[d.names[a[0]]]
	if run == nil || slices.Contains(a[1:7], 0) || a[10] != 0 {
		return invalidValue
	}
	l := Launch{
		Grid:   [3]uint32{uint32(a[1]), uint32(a[2]), uint32(a[3])},
		Block:  [3]uint32{uint32(a[4]), uint32(a[5]), uint32(a[6])},
		Shared: uint32(a[7]), Args: make([]uint64, maxArgs),
	}
	// The values are read now, as CUDA does, not when a graph runs.
	for i := range l.Args {
		l.Args[i] = *at[uint64](*at[uintptr](a[9] + uintptr(8*i)))
	}
	return d.queue(a[8], func() { run(l) })
}

func loadModule(d *Driver, a []uintptr) int32 {
	// Text that says so does not compile; the log goes where the options say:
	// CU_JIT_ERROR_LOG_BUFFER (5) and its size first.
	if a[2] == 2 && *at[int32](a[3]) == 5 && cString(a[1]) == ".version bad" {
		copy(unsafe.Slice(at[byte](*at[uintptr](a[4])), *at[uintptr](a[4] + 8)), "ptxas error: line 1\nmore\x00")
		return invalidPTX
	}
	*at[uintptr](a[0]) = d.make("module")
	return 0
}
