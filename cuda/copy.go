package cuda

import (
	"fmt"
	"runtime"
	"unsafe"
)

// CopyHtoD queues a copy of src to device memory at dst. src should be
// page-locked (HostBuffer, Registration) and stay unchanged until the stream
// has passed the copy; other memory goes through a slab of the driver's, four
// times slower or worse, and must stay as well. A source that spans chunks of a
// Registration becomes several copies, as CUDA refuses one. No bytes is no work.
func (s *Stream) CopyHtoD(dst DevicePtr, src []byte) error {
	for len(src) > 0 {
		n := int(s.dev.drv.registry.span(uintptr(unsafe.Pointer(&src[0])), uintptr(len(src))))
		if err := s.copy(&s.dev.drv.t.copyHtoD, uintptr(dst), uintptr(unsafe.Pointer(&src[0])), uintptr(n)); err != nil {
			return detail(err, "%s to %#x", byteCount(int64(n)), dst)
		}
		src, dst = src[n:], dst+DevicePtr(n)
	}
	return nil
}

// CopyDtoH queues a copy of device memory at src to dst; dst holds it once the
// stream has passed the copy. What CopyHtoD says of host memory holds here.
func (s *Stream) CopyDtoH(dst []byte, src DevicePtr) error {
	for len(dst) > 0 {
		n := int(s.dev.drv.registry.span(uintptr(unsafe.Pointer(&dst[0])), uintptr(len(dst))))
		if err := s.copy(&s.dev.drv.t.copyDtoH, uintptr(unsafe.Pointer(&dst[0])), uintptr(src), uintptr(n)); err != nil {
			return detail(err, "%s from %#x", byteCount(int64(n)), src)
		}
		dst, src = dst[n:], src+DevicePtr(n)
	}
	return nil
}

// CopyDtoD queues a copy of n bytes between device addresses, of peers too. The
// ranges must not overlap.
func (s *Stream) CopyDtoD(dst, src DevicePtr, n int64) error {
	if n == 0 {
		return nil
	}
	err := s.copy(&s.dev.drv.t.copyDtoD, uintptr(dst), uintptr(src), uintptr(n))
	if err != nil {
		return detail(err, "%s from %#x to %#x", byteCount(n), src, dst)
	}
	return nil
}

// Set8 queues the filling of n bytes at dst with value.
func (s *Stream) Set8(dst DevicePtr, value byte, n int64) error {
	if n == 0 {
		return nil
	}
	return s.copy(&s.dev.drv.t.set8, uintptr(dst), uintptr(value), uintptr(n))
}

// Set32 queues the filling of n 32-bit words at dst, aligned to 4 bytes, with
// value.
func (s *Stream) Set32(dst DevicePtr, value uint32, n int64) error {
	if n == 0 {
		return nil
	}
	return s.copy(&s.dev.drv.t.set32, uintptr(dst), uintptr(value), uintptr(n))
}

//go:uintptrescapes
func (s *Stream) copy(f *symbol, dst, src, n uintptr) error {
	e, err := s.begin()
	if err != nil {
		return err
	}
	defer s.end(e)
	return s.queue(f, 4, dst, src, n, s.handle)
}

// Upload copies src, of any memory, to the device and returns when it is there
// and all work queued on s before is done. T must hold no Go pointers.
func Upload[T any](s *Stream, dst DevicePtr, src []T) error {
	if err := s.CopyHtoD(dst, bytesOf(src)); err != nil {
		return err
	}
	err := s.Synchronize()
	runtime.KeepAlive(src)
	return err
}

// Download copies from the device into dst, of any memory, and returns when it
// is there and all work queued on s before is done. T must hold no Go pointers.
func Download[T any](s *Stream, dst []T, src DevicePtr) error {
	if err := s.CopyDtoH(bytesOf(dst), src); err != nil {
		return err
	}
	err := s.Synchronize()
	runtime.KeepAlive(dst)
	return err
}

// Place allocates device memory for src and uploads it.
func Place[T any](s *Stream, p Purpose, src []T) (*Buffer, error) {
	b, err := s.dev.Alloc(p, int64(len(bytesOf(src))))
	if err != nil {
		return nil, err
	}
	if err := Upload(s, b.Ptr(), src); err != nil {
		if e := b.Close(); e != nil {
			err = fmt.Errorf("%w (and %v)", err, e)
		}
		return nil, err
	}
	return b, nil
}

// bytesOf views a slice as bytes.
func bytesOf[T any](v []T) []byte {
	if len(v) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), uintptr(len(v))*unsafe.Sizeof(v[0]))
}
