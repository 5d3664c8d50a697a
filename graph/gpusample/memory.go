package gpusample

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"zerogcn/cuda"
)

// edgeArray is an array with one element per edge, in GPU memory or in mapped
// host memory.
type edgeArray struct {
	ptr      cuda.DevicePtr
	buffer   *cuda.Buffer
	memory   []byte // our own mapping
	register *cuda.Registration
}

func (a *edgeArray) close() error {
	err := errors.Join(a.buffer.Close(), a.register.Close())
	if a.memory != nil {
		err = errors.Join(err, unix.Munmap(a.memory))
	}
	*a = edgeArray{}
	return err
}

// placeEdges copies an array to where the graph's edges are.
func (c *CSR) placeEdges(ctx context.Context, what string, data []byte) (a edgeArray, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("gpusample: %s (%d MiB) in %v memory: %w", what, len(data)>>20, c.placement, err), a.close())
		}
	}()
	if c.placement == InDevice {
		if a.buffer, err = c.dev.Alloc(cuda.Topology, int64(len(data))); err != nil {
			return a, err
		}
		a.ptr = a.buffer.Ptr()
		return a, upload(ctx, c.dev, a.ptr, data)
	}
	if len(data) == 0 {
		return a, nil
	}
	a.memory, err = unix.Mmap(-1, 0, len(data), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return a, err
	}
	_ = unix.Madvise(a.memory, unix.MADV_HUGEPAGE) // a hint
	c.opt.Workers.Range(len(data), slabBytes, func(_, lo, hi int) { copy(a.memory[lo:hi], data[lo:hi]) })
	if a.register, err = c.dev.Register(ctx, a.memory, cuda.RegisterOptions{Purpose: cuda.Topology}); err != nil {
		return a, err
	}
	a.ptr = a.register.Ptr()
	return a, nil
}

// slabBytes is the size of the page-locked slabs that uploads go through.
const slabBytes = 16 << 20

// upload copies data of any memory to the device through two page-locked slabs:
// the driver's own way for other memory is many times slower.
func upload(ctx context.Context, dev *cuda.Device, dst cuda.DevicePtr, data []byte) (err error) {
	s, err := dev.NewStream(cuda.StreamOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if len(data) <= 1<<20 {
		return cuda.Upload(s, dst, data)
	}
	type slab struct {
		host *cuda.HostBuffer
		sent *cuda.Event
	}
	var slabs [2]slab
	defer func() {
		err = errors.Join(err, s.Synchronize())
		for _, b := range slabs {
			err = errors.Join(err, b.host.Close(), closeEvent(b.sent))
		}
	}()
	for i := range slabs {
		if slabs[i].host, err = dev.AllocHost(cuda.Staging, slabBytes, cuda.HostOptions{}); err != nil {
			return err
		}
		if slabs[i].sent, err = dev.NewEvent(cuda.EventOptions{}); err != nil {
			return err
		}
	}
	for i := 0; len(data) > 0; i++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		b := slabs[i%2]
		if err := b.sent.Synchronize(); err != nil {
			return err
		}
		n := copy(b.host.Bytes(), data)
		if err := s.CopyHtoD(dst, b.host.Bytes()[:n]); err != nil {
			return err
		}
		if err := b.sent.Record(s); err != nil {
			return err
		}
		data, dst = data[n:], dst+cuda.DevicePtr(n)
	}
	return nil
}

// place puts a slice into GPU memory.
func place[T any](ctx context.Context, dev *cuda.Device, data []T) (*cuda.Buffer, error) {
	b, err := dev.Alloc(cuda.Topology, int64(len(bytesOf(data))))
	if err != nil {
		return nil, err
	}
	err = upload(ctx, dev, b.Ptr(), bytesOf(data))
	runtime.KeepAlive(data)
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// bytesOf views a slice as bytes.
func bytesOf[T any](v []T) []byte {
	if len(v) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), uintptr(len(v))*unsafe.Sizeof(v[0]))
}

// view views bytes, aligned for T, as n values.
func view[T any](b []byte, n int) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

func hasID(row []int32, v int32) bool {
	_, found := slices.BinarySearch(row, v)
	return found
}

func degreeTableOf(counts map[int64]int64) degreeTable {
	t := degreeTable{degrees: slices.Sorted(maps.Keys(counts))}
	slices.Reverse(t.degrees)
	sum := int64(0)
	for _, d := range t.degrees {
		sum += counts[d]
		t.nodes = append(t.nodes, sum)
	}
	return t
}

func closeEvent(e *cuda.Event) error {
	if e == nil {
		return nil
	}
	return e.Close()
}
