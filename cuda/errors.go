package cuda

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"
)

// Errors that are not a code of the driver.
var (
	// ErrNoDriver: libcuda.so.1 is not on this machine. Go on without a GPU.
	ErrNoDriver = errors.New("no NVIDIA driver")
	// ErrClosed: a method of an object that is closed, or whose device is.
	ErrClosed = errors.New("closed")
	// ErrContextLost: a kernel faulted earlier and took the device's context
	// with it. What was on the device is gone, and the process cannot get a new
	// context (seen with driver 580): it must end and start again.
	ErrContextLost = errors.New("CUDA context lost")
	// ErrOverlap: memory to register covers part of another registration.
	ErrOverlap = errors.New("overlaps registered memory")
	// ErrFileMapping: memory to register is the mapping of a file on disk.
	ErrFileMapping = errors.New("mapping of a file")
	// ErrUnsupported: the driver lacks the function.
	ErrUnsupported = errors.New("not supported by this driver")
)

// Code is a result code of the driver API (CUresult). It is an error so that
// errors.Is(err, cuda.OutOfMemory) tells failures apart.
type Code int32

// The codes that this package gives advice for or that callers may ask about.
const (
	InvalidValue           Code = 1
	OutOfMemory            Code = 2
	NotInitialized         Code = 3
	Deinitialized          Code = 4
	StubLibrary            Code = 34
	NoDevice               Code = 100
	InvalidDevice          Code = 101
	InvalidImage           Code = 200
	InvalidContext         Code = 201
	NoBinaryForGPU         Code = 209
	ECCUncorrectable       Code = 214
	InvalidPTX             Code = 218
	JITCompilerNotFound    Code = 221
	UnsupportedPTXVersion  Code = 222
	OperatingSystem        Code = 304
	InvalidHandle          Code = 400
	NotFound               Code = 500
	NotReady               Code = 600
	IllegalAddress         Code = 700
	LaunchOutOfResources   Code = 701
	LaunchTimeout          Code = 702
	AlreadyRegistered      Code = 712
	NotRegistered          Code = 713
	HardwareStackError     Code = 714
	IllegalInstruction     Code = 715
	MisalignedAddress      Code = 716
	InvalidAddressSpace    Code = 717
	InvalidPC              Code = 718
	LaunchFailed           Code = 719
	NotPermitted           Code = 800
	NotSupported           Code = 801
	SystemNotReady         Code = 802
	DriverMismatch         Code = 803
	CaptureUnsupported     Code = 900
	CaptureInvalidated     Code = 901
	CaptureWrongThread     Code = 908
	GraphExecUpdateFailure Code = 910
	Unknown                Code = 999
)

// Error gives the number; an *Error gives the driver's words.
func (c Code) Error() string { return fmt.Sprintf("CUDA error %d", int32(c)) }

// sticky tells codes after which the context answers nothing else.
func (c Code) sticky() bool {
	switch c {
	case IllegalAddress, LaunchTimeout, HardwareStackError, IllegalInstruction, MisalignedAddress,
		InvalidAddressSpace, InvalidPC, LaunchFailed, ECCUncorrectable:
		return true
	}
	return false
}

// Error is a failed call of the driver.
type Error struct {
	Call   string // the function: "cuMemAlloc_v2"
	Code   Code
	Name   string // CUDA's name of the code: "CUDA_ERROR_OUT_OF_MEMORY"
	Text   string // CUDA's description: "out of memory"
	Detail string // what was asked, with the figures at hand; may be empty
	Advice string // what the user can do; may be empty
}

// Error is one line: call, name, text, detail, advice.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s (%s)", e.Call, e.Name, e.Text)
	if e.Detail != "" {
		b.WriteString(": " + e.Detail)
	}
	if e.Advice != "" {
		b.WriteString("; " + e.Advice)
	}
	return b.String()
}

// Is compares with a Code, and sticky codes with ErrContextLost.
func (e *Error) Is(target error) bool {
	if target == ErrContextLost {
		return e.Code.sticky()
	}
	c, ok := target.(Code)
	return ok && c == e.Code
}

// fail makes the error of a call that returned c.
func (d *Driver) fail(f *symbol, c Code) *Error {
	name, text := d.describe(c)
	return &Error{Call: f.name, Code: c, Name: name, Text: text, Advice: advice(c)}
}

func (d *Driver) missing(f *symbol) error {
	return fmt.Errorf("%s: %w (CUDA %s): update the NVIDIA driver", f.name, ErrUnsupported, d.version)
}

// describe asks the driver for its name and text of a code.
func (d *Driver) describe(c Code) (name, text string) {
	get := func(f *symbol) string {
		p := new(uintptr)
		if d.code(f, uintptr(c), uintptr(unsafe.Pointer(p))) != 0 {
			return ""
		}
		return cString(*p, 512)
	}
	if name = get(&d.t.errorName); name == "" {
		name = fmt.Sprintf("CUDA error %d", int32(c))
	}
	if text = get(&d.t.errorText); text == "" {
		text = "the driver has no text for this code"
	}
	return name, text
}

// advice says what can be done about a code, where that does not depend on the
// call.
func advice(c Code) string {
	switch c {
	case NoDevice:
		return "the driver sees no GPU: check nvidia-smi and CUDA_VISIBLE_DEVICES"
	case StubLibrary:
		return "the libcuda.so.1 that was found is the toolkit's stub: put the driver's own first in LD_LIBRARY_PATH"
	case DriverMismatch, SystemNotReady:
		return "the kernel module and libcuda.so.1 differ or are not ready: reboot, or reload the NVIDIA modules"
	case UnsupportedPTXVersion:
		return "the driver is older than this PTX: update the NVIDIA driver"
	case JITCompilerNotFound:
		return "libnvidia-ptxjitcompiler.so.1 of the driver is missing: reinstall the driver (containers: the 'compute' capability)"
	case NoBinaryForGPU, InvalidImage:
		return "the module was not built for this GPU"
	case InvalidContext:
		return "no context of this device is current on the thread: a stream bound to a goroutine (Device.Bind) was used by another"
	case LaunchOutOfResources:
		return "the block is too large for the kernel's registers or shared memory: use fewer threads"
	case CaptureUnsupported, CaptureInvalidated, CaptureWrongThread:
		return "while a stream captures, only launches, copies, memsets and events on it are allowed"
	case OutOfMemory:
		return "use a smaller batch or cache, or close other programs on the GPU"
	case OperatingSystem, NotPermitted:
		return "the system refused: check the memory and memlock limits (ulimit -l) and the container's permissions"
	}
	if c.sticky() {
		return "the device's context is lost until the process ends: run again; CUDA_LAUNCH_BLOCKING=1 names the kernel, compute-sanitizer the access"
	}
	return ""
}

// detail adds figures to a driver error that has none yet and passes others
// through.
func detail(err error, format string, args ...any) error {
	var e *Error
	if errors.As(err, &e) && e.Detail == "" {
		e.Detail = fmt.Sprintf(format, args...)
	}
	return err
}

// cString copies the C string at p, at most limit bytes of it.
func cString(p uintptr, limit int) string {
	if p == 0 {
		return ""
	}
	base := *(*unsafe.Pointer)(unsafe.Pointer(&p))
	n := 0
	for n < limit && *(*byte)(unsafe.Add(base, n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(base), n))
}

// byteCount prints a size for messages.
func byteCount(n int64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 10<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 10<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}
