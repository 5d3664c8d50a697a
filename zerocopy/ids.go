package zerocopy

import (
	"errors"
	"unsafe"

	"zerogcn/cuda"
)

// idStage brings ids to where they are needed: through page-locked memory to
// the device, or back. Its buffers are scratch of one gather at a time.
type idStage struct {
	host   *cuda.HostBuffer
	device *cuda.Buffer
	sent   *cuda.Event // the copy from host to device is done
}

// pinned returns n page-locked ids that no queued copy reads.
func (g *idStage) pinned(dev *cuda.Device, n int) (_ []int32, err error) {
	if g.sent == nil {
		if g.sent, err = dev.NewEvent(cuda.EventOptions{}); err != nil {
			return nil, err
		}
	}
	if err := g.sent.Synchronize(); err != nil {
		return nil, err
	}
	if g.host == nil || len(g.host.Bytes()) < 4*n {
		if g.host != nil {
			if err := g.host.Close(); err != nil {
				return nil, err
			}
			g.host = nil
		}
		if g.host, err = dev.AllocHost(cuda.Staging, 4*int64(n+n/4), cuda.HostOptions{}); err != nil {
			return nil, err
		}
	}
	return unsafe.Slice((*int32)(unsafe.Pointer(&g.host.Bytes()[0])), n), nil
}

func (g *idStage) close() error {
	var errs []error
	if g.sent != nil {
		errs = append(errs, g.sent.Close())
	}
	if g.host != nil {
		errs = append(errs, g.host.Close())
	}
	return errors.Join(append(errs, g.device.Close())...)
}

// deviceIDs returns the device address of the batch's ids, and copies them
// there if the caller has them on the host only.
func (g *DeviceGatherer) deviceIDs(s *cuda.Stream, b *Batch) (cuda.DevicePtr, error) {
	if b.IDs != 0 {
		return b.IDs, nil
	}
	ids, err := g.ids.pinned(g.dev, b.N)
	if err != nil {
		return 0, err
	}
	copy(ids, b.HostIDs)
	if err := g.scratch.grow(s, &g.ids.device, cuda.Indices, 4*int64(b.N)); err != nil {
		return 0, err
	}
	if err := s.CopyHtoD(g.ids.device.Ptr(), g.ids.host.Bytes()[:4*b.N]); err != nil {
		return 0, err
	}
	return g.ids.device.Ptr(), g.ids.sent.Record(s)
}

// hostIDs returns the batch's ids in host memory, and waits for s to copy them
// if the caller has them on the device only. They are valid until the next
// gather.
func (g *DeviceGatherer) hostIDs(s *cuda.Stream, b *Batch) ([]int32, error) {
	if b.HostIDs != nil {
		return b.HostIDs, nil
	}
	ids, err := g.ids.pinned(g.dev, b.N)
	if err != nil {
		return nil, err
	}
	if err := s.CopyDtoH(g.ids.host.Bytes()[:4*b.N], b.IDs); err != nil {
		return nil, err
	}
	return ids, s.Synchronize()
}
