//go:build cu

package cuadapter

import (
	"fmt"
	"unsafe"

	"gorgonia.org/cu"

	"zerogcn/cuda"
)

// cu.CUContext and cu.Stream are structures around one C pointer that their
// package does not let others set. The arrays fail to compile if that changes.
var (
	_ [unsafe.Sizeof(uintptr(0)) - unsafe.Sizeof(cu.CUContext{})]struct{}
	_ [unsafe.Sizeof(cu.CUContext{}) - unsafe.Sizeof(uintptr(0))]struct{}
	_ [unsafe.Sizeof(uintptr(0)) - unsafe.Sizeof(cu.Stream{})]struct{}
	_ [unsafe.Sizeof(cu.Stream{}) - unsafe.Sizeof(uintptr(0))]struct{}
)

// Context returns the device's primary context. It is valid until the device is
// closed; do not destroy it.
func Context(d *cuda.Device) cu.CUContext {
	h := d.Context()
	return *(*cu.CUContext)(unsafe.Pointer(&h))
}

// Owns reports whether ctx is the context that d uses, which it must be for
// streams and pointers to be exchanged.
func Owns(d *cuda.Device, ctx cu.CUContext) bool {
	return *(*uintptr)(unsafe.Pointer(&ctx)) == d.Context()
}

// Stream returns s for calls of package cu. It is valid until s is closed; do
// not destroy it.
func Stream(s *cuda.Stream) cu.Stream {
	h := s.Handle()
	return *(*cu.Stream)(unsafe.Pointer(&h))
}

// Adopt returns a stream of package cu, made in the device's primary context,
// for calls of package cuda. Close it before the original is destroyed.
func Adopt(d *cuda.Device, s cu.Stream) (*cuda.Stream, error) {
	h := *(*uintptr)(unsafe.Pointer(&s))
	if h == 0 {
		return nil, fmt.Errorf("cuadapter: cu.NoStream, the default stream, cannot be adopted: make one with cu.MakeStream")
	}
	return d.AdoptStream(h)
}

// Pointer converts a device address for package cu.
func Pointer(p cuda.DevicePtr) cu.DevicePtr { return cu.DevicePtr(p) }

// DevicePtr converts a device address of package cu.
func DevicePtr(p cu.DevicePtr) cuda.DevicePtr { return cuda.DevicePtr(p) }
