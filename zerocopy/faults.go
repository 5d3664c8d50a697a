package zerocopy

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"zerogcn/cuda"
	"zerogcn/internal/usage"
)

// faultWords carry the kernels' verdict to the host: the least position<<32|id
// of ids that are no rows, and of ids that break an ascending run. The kernels
// write device words only at a fault; a copy of 16 bytes behind each gather
// brings them to page-locked memory, where a check costs two loads.
type faultWords struct {
	device *cuda.Buffer
	host   *cuda.HostBuffer
	words  *[2]uint64 // in host
	dirty  bool       // device words must be reset before the next gather
}

func (f *faultWords) open(dev *cuda.Device, s *cuda.Stream) (err error) {
	if f.device, err = dev.Alloc(cuda.Workspace, 16); err != nil {
		return err
	}
	if f.host, err = dev.AllocHost(cuda.Staging, 16, cuda.HostOptions{}); err != nil {
		return err
	}
	f.words = (*[2]uint64)(unsafe.Pointer(&f.host.Bytes()[0]))
	f.words[0], f.words[1] = noFault, noFault
	f.dirty = true
	if err := f.prepare(s); err != nil {
		return err
	}
	return s.Synchronize()
}

func (f *faultWords) bad() cuda.DevicePtr      { return f.device.Ptr() }
func (f *faultWords) disorder() cuda.DevicePtr { return f.device.Ptr() + 8 }

// prepare queues the reset of the device words if a fault was reported.
func (f *faultWords) prepare(s *cuda.Stream) error {
	if !f.dirty {
		return nil
	}
	f.dirty = false
	return s.Set32(f.device.Ptr(), ^uint32(0), 4)
}

// fetch queues the copy to the host.
func (f *faultWords) fetch(s *cuda.Stream) error {
	return s.CopyDtoH(f.host.Bytes(), f.device.Ptr())
}

// check returns the fault that arrived last, and forgets it.
func (f *faultWords) check(t *Table) error {
	if f.words == nil {
		return fmt.Errorf("%s: gatherer %w", t.name, ErrClosed)
	}
	bad := atomic.LoadUint64(&f.words[0])
	disorder := atomic.LoadUint64(&f.words[1])
	if bad == noFault && disorder == noFault {
		return nil
	}
	atomic.StoreUint64(&f.words[0], noFault)
	atomic.StoreUint64(&f.words[1], noFault)
	f.dirty = true
	if bad != noFault {
		return t.idError(int(bad>>32), int64(int32(bad)))
	}
	return usage.Errorf("%s: id %d at position %d is smaller than the one before it, but its run was said to ascend",
		t.name, int32(disorder), disorder>>32)
}

func (f *faultWords) close() error {
	f.words = nil
	return errors.Join(f.device.Close(), f.host.Close())
}
