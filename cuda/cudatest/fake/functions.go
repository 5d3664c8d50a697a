package fake

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"
)

// functions are the driver's, by name; a holds as many arguments as the longest
// of them has.
var functions = map[string]func(d *Driver, a []uintptr) int32{
	"cuInit":               func(*Driver, []uintptr) int32 { return 0 },
	"cuDriverGetVersion":   func(_ *Driver, a []uintptr) int32 { *at[int32](a[0]) = 12040; return 0 },
	"cuGetErrorName":       func(d *Driver, a []uintptr) int32 { *at[uintptr](a[1]) = d.text(-int32(a[0])); return 0 },
	"cuGetErrorString":     func(d *Driver, a []uintptr) int32 { *at[uintptr](a[1]) = d.text(int32(a[0])); return 0 },
	"cuDeviceGetCount":     func(d *Driver, a []uintptr) int32 { *at[int32](a[0]) = int32(d.devices); return 0 },
	"cuDeviceGet":          func(_ *Driver, a []uintptr) int32 { *at[int32](a[0]) = int32(a[1]) + 40; return 0 },
	"cuDeviceGetName":      func(_ *Driver, a []uintptr) int32 { copy(unsafe.Slice(at[byte](a[0]), a[1]), "Fake GPU"); return 0 },
	"cuDeviceTotalMem_v2":  func(_ *Driver, a []uintptr) int32 { *at[int64](a[0]) = memoryBytes; return 0 },
	"cuDeviceGetAttribute": attribute,
	"cuDeviceCanAccessPeer": func(_ *Driver, a []uintptr) int32 {
		*at[int32](a[0]) = 1
		return 0
	},
	"cuCtxEnablePeerAccess":        func(*Driver, []uintptr) int32 { return peerAlreadyEnabled },
	"cuDevicePrimaryCtxRetain":     func(d *Driver, a []uintptr) int32 { d.retained++; *at[uintptr](a[0]) = 0xC000 + a[1]; return 0 },
	"cuDevicePrimaryCtxRelease_v2": func(d *Driver, _ []uintptr) int32 { d.retained--; return 0 },
	"cuCtxSetCurrent":              func(d *Driver, a []uintptr) int32 { d.current[unix.Gettid()] = a[0]; return 0 },
	"cuCtxGetCurrent": func(d *Driver, a []uintptr) int32 {
		*at[uintptr](a[0]) = d.current[unix.Gettid()]
		return 0
	},
	"cuCtxPushCurrent_v2": func(d *Driver, a []uintptr) int32 {
		t := unix.Gettid()
		d.stacks[t] = append(d.stacks[t], d.current[t])
		d.current[t] = a[0]
		return 0
	},
	"cuCtxPopCurrent_v2": func(d *Driver, _ []uintptr) int32 {
		t := unix.Gettid()
		s := d.stacks[t]
		if len(s) == 0 {
			return invalidContext
		}
		d.current[t], d.stacks[t] = s[len(s)-1], s[:len(s)-1]
		return 0
	},
	"cuCtxSynchronize":            func(*Driver, []uintptr) int32 { return 0 },
	"cuCtxGetStreamPriorityRange": func(_ *Driver, a []uintptr) int32 { *at[int32](a[0]), *at[int32](a[1]) = 0, -5; return 0 },
	"cuMemAlloc_v2": func(d *Driver, a []uintptr) int32 {
		if int64(a[1]) > d.free {
			return outOfMemory
		}
		d.free -= int64(a[1])
		*at[uintptr](a[0]) = d.allocate(deviceMemory, a[1])
		return 0
	},
	"cuMemFree_v2":    func(d *Driver, a []uintptr) int32 { return d.release(a[0], deviceMemory) },
	"cuMemGetInfo_v2": func(d *Driver, a []uintptr) int32 { *at[int64](a[0]), *at[int64](a[1]) = d.free, memoryBytes; return 0 },
	"cuMemHostAlloc": func(d *Driver, a []uintptr) int32 {
		*at[uintptr](a[0]) = d.allocate(pinnedMemory, a[1])
		return 0
	},
	"cuMemFreeHost": func(d *Driver, a []uintptr) int32 { return d.release(a[0], pinnedMemory) },
	"cuMemHostRegister_v2": func(d *Driver, a []uintptr) int32 {
		for p, n := range d.locked {
			if a[0] < p+n && p < a[0]+a[1] {
				return alreadyRegistered
			}
		}
		d.locked[a[0]] = a[1]
		return 0
	},
	"cuMemHostUnregister": func(d *Driver, a []uintptr) int32 {
		if _, ok := d.locked[a[0]]; !ok {
			return notRegistered
		}
		delete(d.locked, a[0])
		return 0
	},
	"cuMemHostGetDevicePointer_v2": func(_ *Driver, a []uintptr) int32 { *at[uintptr](a[0]) = a[1]; return 0 },
	"cuMemcpyHtoDAsync_v2":         copyMemory, "cuMemcpyDtoHAsync_v2": copyMemory, "cuMemcpyDtoDAsync_v2": copyMemory,
	"cuMemsetD8Async": func(d *Driver, a []uintptr) int32 {
		return d.queue(a[3], func() {
			for i := range unsafe.Slice(at[byte](a[0]), a[2]) {
				*at[byte](a[0] + uintptr(i)) = byte(a[1])
			}
		})
	},
	"cuMemsetD32Async": func(d *Driver, a []uintptr) int32 {
		return d.queue(a[3], func() {
			for i := range unsafe.Slice(at[uint32](a[0]), a[2]) {
				binary.LittleEndian.PutUint32(unsafe.Slice(at[byte](a[0]+4*uintptr(i)), 4), uint32(a[1]))
			}
		})
	},
	"cuStreamCreateWithPriority": func(d *Driver, a []uintptr) int32 {
		if a[1] != 1 {
			return invalidValue
		}
		*at[uintptr](a[0]) = d.make("stream")
		return 0
	},
	"cuStreamDestroy_v2": func(d *Driver, a []uintptr) int32 { return d.drop(a[0], "stream") },
	"cuStreamSynchronize": func(d *Driver, a []uintptr) int32 {
		if _, ok := d.capture[a[0]]; ok {
			return captureUnsupported
		}
		return d.queue(a[0], func() {})
	},
	"cuStreamQuery": func(d *Driver, a []uintptr) int32 { return d.queue(a[0], func() {}) },
	"cuStreamWaitEvent": func(d *Driver, a []uintptr) int32 {
		// Waiting for an event of a capture takes the stream into it.
		if c := d.marks[a[1]]; c != nil && d.capture[a[0]] == nil {
			d.capture[a[0]] = c
		}
		return d.queue(a[0], func() {})
	},
	"cuEventCreate":     func(d *Driver, a []uintptr) int32 { *at[uintptr](a[0]) = d.make("event"); return 0 },
	"cuEventDestroy_v2": func(d *Driver, a []uintptr) int32 { return d.drop(a[0], "event") },
	"cuEventRecord": func(d *Driver, a []uintptr) int32 {
		d.marks[a[0]] = d.capture[a[1]]
		return d.queue(a[1], func() {})
	},
	"cuEventSynchronize": func(d *Driver, a []uintptr) int32 {
		delete(d.pending, a[0])
		return 0
	},
	"cuEventQuery": func(d *Driver, a []uintptr) int32 {
		if d.pending[a[0]] {
			return notReady
		}
		return 0
	},
	"cuEventElapsedTime": func(_ *Driver, a []uintptr) int32 { *at[float32](a[0]) = 1.25; return 0 },
	"cuModuleLoadDataEx": loadModule,
	"cuModuleUnload":     func(d *Driver, a []uintptr) int32 { return d.drop(a[0], "module") },
	"cuModuleGetFunction": func(d *Driver, a []uintptr) int32 {
		name := cString(a[2])
		if d.kernels[name] == nil {
			return notFound
		}
		d.next += 0x10
		d.names[d.next] = name
		*at[uintptr](a[0]) = d.next
		return 0
	},
	"cuFuncGetAttribute": func(_ *Driver, a []uintptr) int32 { *at[int32](a[0]) = int32(a[1]) + 100; return 0 },
	"cuFuncSetAttribute": func(*Driver, []uintptr) int32 { return 0 },
	"cuOccupancyMaxActiveBlocksPerMultiprocessor": func(_ *Driver, a []uintptr) int32 {
		*at[int32](a[0]) = int32(2048 / a[2])
		return 0
	},
	"cuOccupancyMaxPotentialBlockSize": func(_ *Driver, a []uintptr) int32 {
		*at[int32](a[0]), *at[int32](a[1]) = 264, 256
		return 0
	},
	"cuLaunchKernel": launch,
	"cuStreamBeginCapture_v2": func(d *Driver, a []uintptr) int32 {
		d.capture[a[0]] = &[]func(){}
		return 0
	},
	"cuStreamEndCapture": func(d *Driver, a []uintptr) int32 {
		g, c := d.make("graph"), d.capture[a[0]]
		d.graphs[g] = *c
		for s, other := range d.capture {
			if other == c {
				delete(d.capture, s)
			}
		}
		for e, other := range d.marks {
			if other == c {
				delete(d.marks, e)
			}
		}
		*at[uintptr](a[1]) = g
		return 0
	},
	"cuGraphInstantiateWithFlags": func(d *Driver, a []uintptr) int32 {
		x := d.make("executable")
		d.graphs[x] = d.graphs[a[1]]
		*at[uintptr](a[0]) = x
		return 0
	},
	"cuGraphLaunch": func(d *Driver, a []uintptr) int32 {
		for _, w := range d.graphs[a[0]] {
			w()
		}
		return 0
	},
	"cuGraphExecUpdate_v2": func(d *Driver, a []uintptr) int32 {
		if len(d.graphs[a[0]]) != len(d.graphs[a[1]]) {
			return graphExecUpdateFailure
		}
		d.graphs[a[0]] = d.graphs[a[1]]
		return 0
	},
	"cuGraphGetNodes":    func(d *Driver, a []uintptr) int32 { *at[uint64](a[2]) = uint64(len(d.graphs[a[0]])); return 0 },
	"cuGraphDestroy":     func(d *Driver, a []uintptr) int32 { return d.drop(a[0], "graph") },
	"cuGraphExecDestroy": func(d *Driver, a []uintptr) int32 { return d.drop(a[0], "executable") },
}
