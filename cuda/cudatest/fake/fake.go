// Package fake stands in for libcuda on machines without a GPU, so that code
// above package cuda, and package cuda itself, is tested there: New makes a
// driver, and its Symbol method is what cuda.LoadFrom takes.
//
// Its functions are C function pointers that lead back into Go, so the calls
// that reach it have gone through the real argument passing and memory layouts.
// Device memory is host memory, streams run their work at once, and kernels are
// Go functions that the test names with Kernel. As the real one does, it keeps
// the current context per OS thread and refuses calls without one, page-locks no
// page twice, and refuses copies that cross two registrations. It counts what
// is made and not destroyed, and fails on demand.
//
// Callbacks from C are never freed, so one set of them serves the process and
// leads to the driver that was made last: tests with a fake must not run in
// parallel.
package fake

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/unix"
)

// The codes of the driver API that the fake returns by itself.
const (
	invalidValue           = 1
	outOfMemory            = 2
	invalidContext         = 201
	invalidPTX             = 218
	invalidHandle          = 400
	notFound               = 500
	notReady               = 600
	peerAlreadyEnabled     = 704
	alreadyRegistered      = 712
	notRegistered          = 713
	captureUnsupported     = 900
	graphExecUpdateFailure = 910
)

// sticky tells the codes after which a context answers nothing else.
func sticky(code int32) bool {
	return code == 214 || code == 700 || code == 702 || 714 <= code && code <= 719
}

// maxArgs is the length of a kernelParams array that the fake reads.
const maxArgs = 48

// Launch is a kernel launch. Args has 48 values, as the fake cannot know how
// many the kernel has; an address is that of host memory (see Slice).
type Launch struct {
	Grid, Block [3]uint32
	Shared      uint32
	Args        []uint64
}

// Slice views n values of fake device memory.
func Slice[T any](address uint64, n int) []T { return unsafe.Slice(at[T](uintptr(address)), n) }

// Driver is a fake libcuda. Its methods may be called at any time.
type Driver struct {
	mu      sync.Mutex
	current map[int]uintptr   // context by thread id
	stacks  map[int][]uintptr // pushed contexts by thread id
	next    uintptr
	live    map[uintptr]string // kind by handle
	memory  map[uintptr][]byte // device and pinned memory
	locked  map[uintptr]uintptr
	capture map[uintptr]*[]func() // by stream; a capture may span several
	marks   map[uintptr]*[]func() // captures that an event was last recorded in
	graphs  map[uintptr][]func()
	names   map[uintptr]string // of functions
	kernels map[string]func(Launch)
	calls   map[string]int
	pending map[uintptr]bool // events that have not passed
	texts   map[int32][]byte

	devices  int
	retained int
	free     int64 // bytes of device memory
	fail     map[string]failure
	lost     int32 // the sticky code
}

type failure struct {
	after int
	code  int32
}

// latest leads the callbacks to the driver that was made last.
var latest struct {
	sync.Mutex
	d     *Driver
	table map[string]uintptr
}

// New makes a driver with the given number of GPUs: sm_90, 132 SMs, 64 GiB.
func New(devices int) *Driver {
	d := &Driver{
		current: map[int]uintptr{}, stacks: map[int][]uintptr{}, live: map[uintptr]string{}, memory: map[uintptr][]byte{},
		locked: map[uintptr]uintptr{}, capture: map[uintptr]*[]func(){}, marks: map[uintptr]*[]func(){}, graphs: map[uintptr][]func(){}, names: map[uintptr]string{},
		kernels: map[string]func(Launch){}, calls: map[string]int{}, pending: map[uintptr]bool{}, fail: map[string]failure{},
		texts: map[int32][]byte{}, next: 0x1000, devices: devices, free: memoryBytes,
	}
	latest.Lock()
	latest.d = d
	latest.Unlock()
	return d
}

const memoryBytes = 64 << 30

// Symbol returns the C address of a function of the driver API, 0 for those
// that the fake lacks.
func (d *Driver) Symbol(name string) uintptr {
	latest.Lock()
	defer latest.Unlock()
	if p := latest.table[name]; p != 0 {
		return p
	}
	if functions[name] == nil {
		return 0
	}
	if latest.table == nil {
		latest.table = make(map[string]uintptr)
	}
	latest.table[name] = purego.NewCallback(func(a, b, c, d, e, f, g, h, i, j, k uintptr) uintptr {
		latest.Lock()
		cur := latest.d
		latest.Unlock()
		return uintptr(uint32(cur.call(name, []uintptr{a, b, c, d, e, f, g, h, i, j, k})))
	})
	return latest.table[name]
}

// Kernel names a Go function that stands in for a kernel; modules of any image
// have it.
func (d *Driver) Kernel(name string, run func(Launch)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.kernels[name] = run
}

// Fail lets a call return a code: the next one (after = 0) or a later one, once.
// A code that loses the context makes all later calls return it.
func (d *Driver) Fail(call string, after int, code int32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail[call] = failure{after, code}
}

// Calls returns how often a function was called.
func (d *Driver) Calls(name string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls[name]
}

// Leaks lists what is alive, "" if nothing is: "1 context, 2 stream".
func (d *Driver) Leaks() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := map[string]int{}
	for _, k := range d.live {
		n[k]++
	}
	if len(d.locked) > 0 {
		n["locked range"] = len(d.locked)
	}
	if d.retained > 0 {
		n["context"] = d.retained
	}
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(n)) {
		parts = append(parts, fmt.Sprintf("%d %s", n[k], k))
	}
	return strings.Join(parts, ", ")
}

// SetFree sets the bytes of device memory that are left.
func (d *Driver) SetFree(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.free = n
}

// Locked returns the number of page-locked ranges.
func (d *Driver) Locked() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.locked)
}

// Hold keeps an event from passing until Pass or a synchronisation with it.
func (d *Driver) Hold(event uintptr) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pending[event] = true
}

// Pass ends Hold.
func (d *Driver) Pass(event uintptr) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.pending, event)
}

// Current returns the context of the calling thread, which the caller has
// locked.
func (d *Driver) Current() uintptr {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.current[unix.Gettid()]
}

// SetCurrent sets it behind the package's back.
func (d *Driver) SetCurrent(ctx uintptr) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.current[unix.Gettid()] = ctx
}

// EndCaptures forgets captures under way.
func (d *Driver) EndCaptures() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.capture)
}

// contextFree are the functions that need no current context.
var contextFree = map[string]bool{
	"cuInit": true, "cuDriverGetVersion": true, "cuGetErrorName": true, "cuGetErrorString": true, "cuDeviceGetCount": true,
	"cuDeviceGet": true, "cuDeviceGetName": true, "cuDeviceGetAttribute": true, "cuDeviceTotalMem_v2": true,
	"cuDevicePrimaryCtxRetain": true, "cuDevicePrimaryCtxRelease_v2": true, "cuCtxSetCurrent": true, "cuCtxGetCurrent": true,
	"cuCtxPushCurrent_v2": true, "cuCtxPopCurrent_v2": true, "cuDeviceCanAccessPeer": true,
}

func (d *Driver) call(name string, a []uintptr) int32 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls[name]++
	if !contextFree[name] {
		if d.current[unix.Gettid()] == 0 {
			return invalidContext
		}
		if d.lost != 0 {
			return d.lost
		}
	}
	if x, ok := d.fail[name]; ok {
		if x.after == 0 {
			delete(d.fail, name)
			if sticky(x.code) {
				d.lost = x.code
			}
			return x.code
		}
		d.fail[name] = failure{x.after - 1, x.code}
	}
	return functions[name](d, a)
}

// at views memory that C passed.
func at[T any](p uintptr) *T { return (*T)(*(*unsafe.Pointer)(unsafe.Pointer(&p))) }

// cString copies a C string.
func cString(p uintptr) string {
	n := uintptr(0)
	for *at[byte](p + n) != 0 {
		n++
	}
	return string(unsafe.Slice(at[byte](p), n))
}

func (d *Driver) make(kind string) uintptr {
	d.next += 0x10
	d.live[d.next] = kind
	return d.next
}

func (d *Driver) drop(h uintptr, kind string) int32 {
	if d.live[h] != kind {
		return invalidHandle
	}
	delete(d.live, h)
	return 0
}
