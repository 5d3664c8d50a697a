package cuda

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/unix"
)

// fakeDriver stands in for libcuda: C function pointers that lead back into Go
// (purego callbacks), so the package's own calls, argument order and memory
// layouts are what is tested. Work runs at once, on the host. Like CUDA it
// keeps the current context per OS thread and refuses calls without one.
type fakeDriver struct {
	mu      sync.Mutex
	current map[int]uintptr // by thread id
	stacks  map[int][]uintptr
	next    uintptr
	live    map[uintptr]string // handles by kind
	memory  map[uintptr][]byte // device and pinned memory
	locked  map[uintptr]uintptr
	capture map[uintptr][]func()
	graphs  map[uintptr][]func()
	names   map[uintptr]string // of functions
	calls   map[string]int
	pending map[uintptr]bool // events that have not passed

	devices  int
	retained int
	space    int64 // bytes of device memory left
	fail     map[string]failure
	sticky   Code
	texts    map[Code]uintptr
}

// failure makes the nth call from now (0 is the next) return a code.
type failure struct {
	after int
	code  Code
}

var fake = struct {
	sync.Mutex
	d     *fakeDriver
	table map[string]uintptr
}{table: make(map[string]uintptr)}

// newFake gives a test a fresh driver. Callbacks are never freed, so the table
// is made once and leads to the current fake; tests with fakes do not run in
// parallel.
func newFake(t testing.TB, devices int) (*Driver, *fakeDriver) {
	t.Helper()
	f := &fakeDriver{
		current: map[int]uintptr{}, stacks: map[int][]uintptr{}, live: map[uintptr]string{}, memory: map[uintptr][]byte{},
		locked: map[uintptr]uintptr{}, capture: map[uintptr][]func(){}, graphs: map[uintptr][]func(){}, names: map[uintptr]string{},
		calls: map[string]int{}, pending: map[uintptr]bool{}, fail: map[string]failure{}, texts: map[Code]uintptr{},
		next: 0x1000, devices: devices, space: 1 << 40,
	}
	fake.Lock()
	fake.d = f
	fake.Unlock()
	d, err := load(func(name string) uintptr { return fakeSymbol(name) })
	if err != nil {
		t.Fatal(err)
	}
	return d, f
}

func fakeSymbol(name string) uintptr {
	fake.Lock()
	defer fake.Unlock()
	if p := fake.table[name]; p != 0 {
		return p
	}
	if _, ok := fakeCalls[name]; !ok {
		return 0
	}
	fake.table[name] = purego.NewCallback(func(a, b, c, d, e, f, g, h, i, j, k uintptr) uintptr {
		fake.Lock()
		cur := fake.d
		fake.Unlock()
		return uintptr(cur.call(name, []uintptr{a, b, c, d, e, f, g, h, i, j, k}))
	})
	return fake.table[name]
}

// contextFree are the functions that need no current context.
var contextFree = []string{"cuInit", "cuDriverGetVersion", "cuGetErrorName", "cuGetErrorString", "cuDeviceGetCount", "cuDeviceGet",
	"cuDeviceGetName", "cuDeviceGetAttribute", "cuDeviceTotalMem_v2", "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2",
	"cuCtxSetCurrent", "cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2", "cuDeviceCanAccessPeer"}

func (f *fakeDriver) call(name string, a []uintptr) Code {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[name]++
	if !slices.Contains(contextFree, name) {
		if f.current[unix.Gettid()] == 0 {
			return InvalidContext
		}
		if f.sticky != 0 {
			return f.sticky
		}
	}
	if x, ok := f.fail[name]; ok {
		if x.after == 0 {
			delete(f.fail, name)
			if x.code.sticky() {
				f.sticky = x.code
			}
			return x.code
		}
		f.fail[name] = failure{x.after - 1, x.code}
	}
	return fakeCalls[name](f, a)
}

func at[T any](p uintptr) *T { return (*T)(*(*unsafe.Pointer)(unsafe.Pointer(&p))) }

func (f *fakeDriver) make(kind string) uintptr {
	f.next += 0x10
	f.live[f.next] = kind
	return f.next
}

func (f *fakeDriver) drop(h uintptr, kind string) Code {
	if f.live[h] != kind {
		return InvalidHandle
	}
	delete(f.live, h)
	return 0
}

// leaks lists what is alive, contexts aside.
func (f *fakeDriver) leaks() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := map[string]int{}
	for _, k := range f.live {
		n[k]++
	}
	if len(f.locked) > 0 {
		n["locked range"] = len(f.locked)
	}
	if f.retained > 0 {
		n["context"] = f.retained
	}
	return countList(n)
}

func (f *fakeDriver) count(name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[name]
}

// queue runs work now, or records it while the stream captures.
func (f *fakeDriver) queue(stream uintptr, work func()) Code {
	if f.live[stream] != "stream" {
		return InvalidHandle
	}
	if _, ok := f.capture[stream]; ok {
		f.capture[stream] = append(f.capture[stream], work)
		return 0
	}
	work()
	return 0
}

func (f *fakeDriver) text(c Code, name bool) uintptr {
	key := c
	if name {
		key = -c
	}
	if f.texts[key] == 0 {
		s := map[Code]string{OutOfMemory: "out of memory", -OutOfMemory: "CUDA_ERROR_OUT_OF_MEMORY"}[key]
		if s == "" {
			s = fmt.Sprintf("text %d", key)
		}
		b := append([]byte(s), 0)
		f.memory[uintptr(unsafe.Pointer(&b[0]))] = b
		f.texts[key] = uintptr(unsafe.Pointer(&b[0]))
	}
	return f.texts[key]
}

func (f *fakeDriver) alloc(kind string, n uintptr) uintptr {
	b, err := unix.Mmap(-1, 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return 0
	}
	p := uintptr(unsafe.Pointer(&b[0]))
	f.memory[p], f.live[p] = b, kind
	return p
}

func (f *fakeDriver) free(p uintptr, kind string) Code {
	c := f.drop(p, kind)
	if c == 0 {
		if kind == "device memory" {
			f.space += int64(len(f.memory[p]))
		}
		unix.Munmap(f.memory[p])
		delete(f.memory, p)
	}
	return c
}

func move(dst, src, n uintptr) { copy(unsafe.Slice(at[byte](dst), n), unsafe.Slice(at[byte](src), n)) }

// fakeKernels run a launch; params is the kernelParams array.
var fakeKernels = map[string]func(params []uintptr){
	"saxpy": func(p []uintptr) {
		n := int(*at[int64](p[2]))
		y, x := unsafe.Slice(at[float32](*at[uintptr](p[0])), n), unsafe.Slice(at[float32](*at[uintptr](p[1])), n)
		a := *at[float32](p[3])
		for i := range y {
			y[i] = float32(math.FMA(float64(a), float64(x[i]), float64(y[i])))
		}
	},
	"empty": func([]uintptr) {},
}

var fakeCalls = map[string]func(f *fakeDriver, a []uintptr) Code{
	"cuInit":               func(*fakeDriver, []uintptr) Code { return 0 },
	"cuDriverGetVersion":   func(_ *fakeDriver, a []uintptr) Code { *at[int32](a[0]) = 12040; return 0 },
	"cuGetErrorName":       func(f *fakeDriver, a []uintptr) Code { *at[uintptr](a[1]) = f.text(Code(a[0]), true); return 0 },
	"cuGetErrorString":     func(f *fakeDriver, a []uintptr) Code { *at[uintptr](a[1]) = f.text(Code(a[0]), false); return 0 },
	"cuDeviceGetCount":     func(f *fakeDriver, a []uintptr) Code { *at[int32](a[0]) = int32(f.devices); return 0 },
	"cuDeviceGet":          func(_ *fakeDriver, a []uintptr) Code { *at[int32](a[0]) = int32(a[1]) + 40; return 0 },
	"cuDeviceGetName":      func(_ *fakeDriver, a []uintptr) Code { copy(unsafe.Slice(at[byte](a[0]), a[1]), "Fake GPU"); return 0 },
	"cuDeviceTotalMem_v2":  func(_ *fakeDriver, a []uintptr) Code { *at[int64](a[0]) = 1 << 36; return 0 },
	"cuDeviceGetAttribute": fakeAttribute,
	"cuDeviceCanAccessPeer": func(_ *fakeDriver, a []uintptr) Code {
		*at[int32](a[0]) = 1
		return 0
	},
	"cuCtxEnablePeerAccess":        func(*fakeDriver, []uintptr) Code { return 704 },
	"cuDevicePrimaryCtxRetain":     func(f *fakeDriver, a []uintptr) Code { f.retained++; *at[uintptr](a[0]) = 0xC000 + a[1]; return 0 },
	"cuDevicePrimaryCtxRelease_v2": func(f *fakeDriver, _ []uintptr) Code { f.retained--; return 0 },
	"cuCtxSetCurrent":              func(f *fakeDriver, a []uintptr) Code { f.current[unix.Gettid()] = a[0]; return 0 },
	"cuCtxPushCurrent_v2": func(f *fakeDriver, a []uintptr) Code {
		t := unix.Gettid()
		f.stacks[t] = append(f.stacks[t], f.current[t])
		f.current[t] = a[0]
		return 0
	},
	"cuCtxPopCurrent_v2": func(f *fakeDriver, _ []uintptr) Code {
		t := unix.Gettid()
		s := f.stacks[t]
		if len(s) == 0 {
			return InvalidContext
		}
		f.current[t], f.stacks[t] = s[len(s)-1], s[:len(s)-1]
		return 0
	},
	"cuCtxSynchronize":            func(*fakeDriver, []uintptr) Code { return 0 },
	"cuCtxGetStreamPriorityRange": func(_ *fakeDriver, a []uintptr) Code { *at[int32](a[0]), *at[int32](a[1]) = 0, -5; return 0 },
	"cuMemAlloc_v2": func(f *fakeDriver, a []uintptr) Code {
		if int64(a[1]) > f.space {
			return OutOfMemory
		}
		f.space -= int64(a[1])
		*at[uintptr](a[0]) = f.alloc("device memory", a[1])
		return 0
	},
	"cuMemFree_v2":    func(f *fakeDriver, a []uintptr) Code { return f.free(a[0], "device memory") },
	"cuMemGetInfo_v2": func(f *fakeDriver, a []uintptr) Code { *at[int64](a[0]), *at[int64](a[1]) = f.space, 1<<36; return 0 },
	"cuMemHostAlloc": func(f *fakeDriver, a []uintptr) Code {
		*at[uintptr](a[0]) = f.alloc("pinned memory", a[1])
		return 0
	},
	"cuMemFreeHost": func(f *fakeDriver, a []uintptr) Code { return f.free(a[0], "pinned memory") },
	"cuMemHostRegister_v2": func(f *fakeDriver, a []uintptr) Code {
		for p, n := range f.locked {
			if a[0] < p+n && p < a[0]+a[1] {
				return AlreadyRegistered
			}
		}
		f.locked[a[0]] = a[1]
		return 0
	},
	"cuMemHostUnregister": func(f *fakeDriver, a []uintptr) Code {
		if _, ok := f.locked[a[0]]; !ok {
			return NotRegistered
		}
		delete(f.locked, a[0])
		return 0
	},
	"cuMemHostGetDevicePointer_v2": func(_ *fakeDriver, a []uintptr) Code { *at[uintptr](a[0]) = a[1]; return 0 },
	"cuMemcpyHtoDAsync_v2":         fakeCopy, "cuMemcpyDtoHAsync_v2": fakeCopy, "cuMemcpyDtoDAsync_v2": fakeCopy,
	"cuMemsetD8Async": func(f *fakeDriver, a []uintptr) Code {
		return f.queue(a[3], func() {
			for i := range unsafe.Slice(at[byte](a[0]), a[2]) {
				*at[byte](a[0] + uintptr(i)) = byte(a[1])
			}
		})
	},
	"cuMemsetD32Async": func(f *fakeDriver, a []uintptr) Code {
		return f.queue(a[3], func() {
			for i := range unsafe.Slice(at[uint32](a[0]), a[2]) {
				binary.LittleEndian.PutUint32(unsafe.Slice(at[byte](a[0]+4*uintptr(i)), 4), uint32(a[1]))
			}
		})
	},
	"cuStreamCreateWithPriority": func(f *fakeDriver, a []uintptr) Code {
		if a[1] != 1 {
			return InvalidValue
		}
		*at[uintptr](a[0]) = f.make("stream")
		return 0
	},
	"cuStreamDestroy_v2": func(f *fakeDriver, a []uintptr) Code { return f.drop(a[0], "stream") },
	"cuStreamSynchronize": func(f *fakeDriver, a []uintptr) Code {
		if _, ok := f.capture[a[0]]; ok {
			return CaptureUnsupported
		}
		return f.queue(a[0], func() {})
	},
	"cuStreamQuery":     func(f *fakeDriver, a []uintptr) Code { return f.queue(a[0], func() {}) },
	"cuStreamWaitEvent": func(f *fakeDriver, a []uintptr) Code { return f.queue(a[0], func() {}) },
	"cuEventCreate":     func(f *fakeDriver, a []uintptr) Code { *at[uintptr](a[0]) = f.make("event"); return 0 },
	"cuEventDestroy_v2": func(f *fakeDriver, a []uintptr) Code { return f.drop(a[0], "event") },
	"cuEventRecord":     func(f *fakeDriver, a []uintptr) Code { return f.queue(a[1], func() {}) },
	"cuEventSynchronize": func(f *fakeDriver, a []uintptr) Code {
		delete(f.pending, a[0])
		return 0
	},
	"cuEventQuery": func(f *fakeDriver, a []uintptr) Code {
		if f.pending[a[0]] {
			return NotReady
		}
		return 0
	},
	"cuEventElapsedTime": func(_ *fakeDriver, a []uintptr) Code { *at[float32](a[0]) = 1.25; return 0 },
	"cuModuleLoadDataEx": func(f *fakeDriver, a []uintptr) Code {
		if ptx := cString(a[1], 1<<20); a[2] == 2 && *at[int32](a[3]) == 5 && ptx == ".version bad" {
			copy(unsafe.Slice(at[byte](*at[uintptr](a[4])), *at[uintptr](a[4] + 8)), "ptxas error: line 1\nmore\x00")
			return InvalidPTX
		}
		*at[uintptr](a[0]) = f.make("module")
		return 0
	},
	"cuModuleUnload": func(f *fakeDriver, a []uintptr) Code { return f.drop(a[0], "module") },
	"cuModuleGetFunction": func(f *fakeDriver, a []uintptr) Code {
		name := cString(a[2], 256)
		if _, ok := fakeKernels[name]; !ok {
			return NotFound
		}
		f.next += 0x10
		f.names[f.next] = name
		*at[uintptr](a[0]) = f.next
		return 0
	},
	"cuFuncGetAttribute": func(_ *fakeDriver, a []uintptr) Code { *at[int32](a[0]) = int32(a[1]) + 100; return 0 },
	"cuFuncSetAttribute": func(*fakeDriver, []uintptr) Code { return 0 },
	"cuOccupancyMaxActiveBlocksPerMultiprocessor": func(_ *fakeDriver, a []uintptr) Code {
		*at[int32](a[0]) = int32(2048 / a[2])
		return 0
	},
	"cuOccupancyMaxPotentialBlockSize": func(_ *fakeDriver, a []uintptr) Code {
		*at[int32](a[0]), *at[int32](a[1]) = 264, 256
		return 0
	},
	"cuLaunchKernel": fakeLaunch,
	"cuStreamBeginCapture_v2": func(f *fakeDriver, a []uintptr) Code {
		f.capture[a[0]] = []func(){}
		return 0
	},
	"cuStreamEndCapture": func(f *fakeDriver, a []uintptr) Code {
		g := f.make("graph")
		f.graphs[g] = f.capture[a[0]]
		delete(f.capture, a[0])
		*at[uintptr](a[1]) = g
		return 0
	},
	"cuGraphInstantiateWithFlags": func(f *fakeDriver, a []uintptr) Code {
		x := f.make("executable")
		f.graphs[x] = f.graphs[a[1]]
		*at[uintptr](a[0]) = x
		return 0
	},
	"cuGraphLaunch": func(f *fakeDriver, a []uintptr) Code {
		for _, w := range f.graphs[a[0]] {
			w()
		}
		return 0
	},
	"cuGraphExecUpdate_v2": func(f *fakeDriver, a []uintptr) Code {
		if len(f.graphs[a[0]]) != len(f.graphs[a[1]]) {
			return GraphExecUpdateFailure
		}
		f.graphs[a[0]] = f.graphs[a[1]]
		return 0
	},
	"cuGraphGetNodes":    func(f *fakeDriver, a []uintptr) Code { *at[uint64](a[2]) = uint64(len(f.graphs[a[0]])); return 0 },
	"cuGraphDestroy":     func(f *fakeDriver, a []uintptr) Code { return f.drop(a[0], "graph") },
	"cuGraphExecDestroy": func(f *fakeDriver, a []uintptr) Code { return f.drop(a[0], "executable") },
}

func fakeAttribute(_ *fakeDriver, a []uintptr) Code {
	v, ok := map[uintptr]int32{attrMaxThreadsPerBlock: 1024, attrSharedPerBlock: 48 << 10, attrWarpSize: 32, attrSMs: 132, attrMapsHostMemory: 1,
		attrL2: 50 << 20, attrMaxThreadsPerSM: 2048, attrCopyEngines: 3, attrUnifiedAddressing: 1, attrMajor: 9, attrMinor: 0,
		attrSameHostAddress: 1, attrSharedPerBlockMax: 227 << 10, attrRegistersHost: 1, attrRegistersReadOnly: 1,
		attrIntegrated: 0, attrPCIDomain: 0, attrPCIBus: 0x1a, attrPCIDevice: 0}[a[1]]
	if !ok {
		return InvalidValue
	}
	*at[int32](a[0]) = v
	return 0
}

func fakeCopy(f *fakeDriver, a []uintptr) Code {
	// CUDA refuses a copy whose host side crosses two registrations.
	for _, p := range a[:2] {
		for q, n := range f.locked {
			if q <= p && p < q+n && p+a[2] > q+n {
				return InvalidValue
			}
		}
	}
	return f.queue(a[3], func() { move(a[0], a[1], a[2]) })
}

func fakeLaunch(f *fakeDriver, a []uintptr) Code {
	run, ok := fakeKernels[f.names[a[0]]]
	if !ok || a[1] == 0 || a[2] == 0 || a[3] == 0 || a[4] == 0 || a[5] == 0 || a[6] == 0 || a[10] != 0 {
		return InvalidValue
	}
	// The values are read now, as CUDA does, not when a graph runs.
	params, values := make([]uintptr, MaxArgs), make([]uint64, MaxArgs)
	for i := range params {
		values[i] = *at[uint64](*at[uintptr](a[9] + uintptr(8*i)))
	}
	return f.queue(a[8], func() {
		for i := range params {
			params[i] = uintptr(unsafe.Pointer(&values[i]))
		}
		run(params)
	})
}
