package cuda

import (
	"fmt"

	"github.com/ebitengine/purego"
)

// symbol is one function of libcuda; addr is 0 where the driver lacks it.
type symbol struct {
	name string
	addr uintptr
}

// table holds the driver's functions that this package calls.
type table struct {
	initialize, driverVersion, errorName, errorText symbol

	deviceCount, deviceGet, deviceName, deviceAttribute, deviceTotalMem, deviceUUID symbol
	deviceCanAccessPeer                                                             symbol

	ctxRetain, ctxRelease, ctxSetFlags, ctxSetCurrent, ctxGetCurrent, ctxPush, ctxPop, ctxSynchronize symbol
	ctxPriorityRange, ctxEnablePeer                                                                   symbol

	memAlloc, memFree, memInfo, memHostAlloc, memFreeHost symbol
	hostRegister, hostUnregister, hostDevicePointer       symbol
	copyHtoD, copyDtoH, copyDtoD, set8, set32             symbol

	streamCreate, streamDestroy, streamSynchronize, streamQuery, streamWait symbol
	eventCreate, eventDestroy, eventRecord, eventSynchronize, eventQuery    symbol
	eventElapsed                                                            symbol

	moduleLoad, moduleUnload, moduleFunction, functionAttribute, functionSetAttribute symbol
	occupancyBlocks, occupancyBlockSize, launch                                       symbol

	captureBegin, captureEnd                           symbol
	graphInstantiate, graphInstantiateOld, graphLaunch symbol
	graphUpdate, graphUpdateOld, graphNodes            symbol
	graphDestroy, graphExecDestroy                     symbol
	kernelNodeParams, kernelNodeAttribute              symbol
}

// bind fills the table from resolve, which returns 0 for unknown names. A
// function that the package cannot do without and that is missing is an error;
// the others fail when they are called.
func (t *table) bind(resolve func(name string) uintptr) error {
	required := []struct {
		at   *symbol
		name string
	}{
		{&t.initialize, "cuInit"},
		{&t.driverVersion, "cuDriverGetVersion"},
		{&t.errorName, "cuGetErrorName"},
		{&t.errorText, "cuGetErrorString"},
		{&t.deviceCount, "cuDeviceGetCount"},
		{&t.deviceGet, "cuDeviceGet"},
		{&t.deviceName, "cuDeviceGetName"},
		{&t.deviceAttribute, "cuDeviceGetAttribute"},
		{&t.deviceTotalMem, "cuDeviceTotalMem_v2"},
		{&t.ctxRetain, "cuDevicePrimaryCtxRetain"},
		{&t.ctxSetCurrent, "cuCtxSetCurrent"},
		{&t.ctxGetCurrent, "cuCtxGetCurrent"},
		{&t.ctxPush, "cuCtxPushCurrent_v2"},
		{&t.ctxPop, "cuCtxPopCurrent_v2"},
		{&t.ctxSynchronize, "cuCtxSynchronize"},
		{&t.memAlloc, "cuMemAlloc_v2"},
		{&t.memFree, "cuMemFree_v2"},
		{&t.memInfo, "cuMemGetInfo_v2"},
		{&t.memHostAlloc, "cuMemHostAlloc"},
		{&t.memFreeHost, "cuMemFreeHost"},
		{&t.hostRegister, "cuMemHostRegister_v2"},
		{&t.hostUnregister, "cuMemHostUnregister"},
		{&t.hostDevicePointer, "cuMemHostGetDevicePointer_v2"},
		{&t.copyHtoD, "cuMemcpyHtoDAsync_v2"},
		{&t.copyDtoH, "cuMemcpyDtoHAsync_v2"},
		{&t.copyDtoD, "cuMemcpyDtoDAsync_v2"},
		{&t.set8, "cuMemsetD8Async"},
		{&t.set32, "cuMemsetD32Async"},
		{&t.streamCreate, "cuStreamCreateWithPriority"},
		{&t.streamDestroy, "cuStreamDestroy_v2"},
		{&t.streamSynchronize, "cuStreamSynchronize"},
		{&t.streamQuery, "cuStreamQuery"},
		{&t.streamWait, "cuStreamWaitEvent"},
		{&t.eventCreate, "cuEventCreate"},
		{&t.eventDestroy, "cuEventDestroy_v2"},
		{&t.eventRecord, "cuEventRecord"},
		{&t.eventSynchronize, "cuEventSynchronize"},
		{&t.eventQuery, "cuEventQuery"},
		{&t.eventElapsed, "cuEventElapsedTime"},
		{&t.moduleLoad, "cuModuleLoadDataEx"},
		{&t.moduleUnload, "cuModuleUnload"},
		{&t.moduleFunction, "cuModuleGetFunction"},
		{&t.functionAttribute, "cuFuncGetAttribute"},
		{&t.functionSetAttribute, "cuFuncSetAttribute"},
		{&t.occupancyBlocks, "cuOccupancyMaxActiveBlocksPerMultiprocessor"},
		{&t.occupancyBlockSize, "cuOccupancyMaxPotentialBlockSize"},
		{&t.launch, "cuLaunchKernel"},
	}
	for _, r := range required {
		*r.at = symbol{r.name, resolve(r.name)}
		if r.at.addr == 0 {
			return fmt.Errorf("cuda: the driver library has no %s: it is too old or damaged; install an NVIDIA driver for CUDA 9.0 or newer", r.name)
		}
	}
	optional := []struct {
		at    *symbol
		names []string // the newest first
	}{
		{&t.deviceUUID, []string{"cuDeviceGetUuid_v2", "cuDeviceGetUuid"}},
		{&t.deviceCanAccessPeer, []string{"cuDeviceCanAccessPeer"}},
		{&t.ctxRelease, []string{"cuDevicePrimaryCtxRelease_v2", "cuDevicePrimaryCtxRelease"}},
		{&t.ctxSetFlags, []string{"cuDevicePrimaryCtxSetFlags_v2", "cuDevicePrimaryCtxSetFlags"}},
		{&t.ctxPriorityRange, []string{"cuCtxGetStreamPriorityRange"}},
		{&t.ctxEnablePeer, []string{"cuCtxEnablePeerAccess"}},
		{&t.captureBegin, []string{"cuStreamBeginCapture_v2"}},
		{&t.captureEnd, []string{"cuStreamEndCapture"}},
		{&t.graphInstantiate, []string{"cuGraphInstantiateWithFlags"}},
		{&t.graphInstantiateOld, []string{"cuGraphInstantiate_v2"}},
		{&t.graphLaunch, []string{"cuGraphLaunch"}},
		{&t.graphUpdate, []string{"cuGraphExecUpdate_v2"}},
		{&t.graphUpdateOld, []string{"cuGraphExecUpdate"}},
		{&t.graphNodes, []string{"cuGraphGetNodes"}},
		{&t.kernelNodeParams, []string{"cuGraphKernelNodeGetParams_v2", "cuGraphKernelNodeGetParams"}},
		{&t.kernelNodeAttribute, []string{"cuGraphKernelNodeGetAttribute"}},
		{&t.graphDestroy, []string{"cuGraphDestroy"}},
		{&t.graphExecDestroy, []string{"cuGraphExecDestroy"}},
	}
	for _, o := range optional {
		o.at.name = o.names[len(o.names)-1]
		for _, n := range o.names {
			if p := resolve(n); p != 0 {
				*o.at = symbol{n, p}
				break
			}
		}
	}
	return nil
}

// do calls a function of the driver. The pragma keeps what the arguments point
// to on the heap, unmoved and alive, until the call has returned.
//
//go:uintptrescapes
func (d *Driver) do(f *symbol, a ...uintptr) error {
	if f.addr == 0 {
		return d.missing(f)
	}
	if r, _, _ := purego.SyscallN(f.addr, a...); int32(r) != 0 {
		return d.fail(f, Code(int32(r)))
	}
	return nil
}

// code is do for calls whose code is an answer rather than a failure.
//
//go:uintptrescapes
func (d *Driver) code(f *symbol, a ...uintptr) Code {
	if f.addr == 0 {
		return NotSupported
	}
	r, _, _ := purego.SyscallN(f.addr, a...)
	return Code(int32(r))
}

// doKeeping is do for a call that reaches memory through a pointer stored in
// its arguments' memory: keep is that pointer, and gets the same protection.
//
//go:uintptrescapes
func (d *Driver) doKeeping(f *symbol, keep uintptr, a ...uintptr) error {
	return d.do(f, a...)
}
