package zerocopy

import (
	"fmt"
	"unsafe"

	"zerogcn/cuda"
	"zerogcn/dtype"
	"zerogcn/internal/usage"
)

// The grids of gathers over PCIe, in blocks of 1,024 threads. With two rows in
// flight for each group of lanes, 8 blocks saturate a PCIe 5 link with float32
// rows of any width from 128 bytes; more gain nothing and take SMs from the
// kernels that run beside the gather. Narrow types, whose rows are widened, and
// merged batches, whose destinations are looked up, wait longer for each row;
// cached gathers also have rows in flight that do not load the link
// (docs/gather.md).
const (
	plainBlocks = 8
	moreBlocks  = 12
)

// defaultBlocks is the grid where the caller leaves it open.
func defaultBlocks(mode Mode, dt dtype.Type, sms int) int {
	switch {
	case mode == Device:
		return 2 * sms // nothing comes over the link
	case mode == Cached || dt != dtype.Float32:
		return moreBlocks
	}
	return plainBlocks
}

// DeviceOptions adjusts a DeviceGatherer. The zero value is ready for use and
// means Auto.
type DeviceOptions struct {
	// Mode is how rows travel; Host is refused.
	Mode Mode
	// Workers is the number of CPU threads that gather in the modes Staged and
	// Hybrid, and that fill device memory at start; 0 means GOMAXPROCS. Auto
	// considers those modes only if it is not negative.
	Workers int
	// Blocks is the grid of 1,024-thread blocks, so the SMs taken; 0 means 8
	// or 12 by mode and type, or what Auto finds best up to 16, and the whole GPU
	// in mode Device.
	Blocks int
	// CacheBytes is the device memory for rows: the prefix that Cached holds;
	// for Auto the most that it may use, so that 0 excludes Device and Cached.
	CacheBytes int64
	// BatchRows is the usual number of rows in a gather, which Auto measures
	// with; 0 means 500,000.
	BatchRows int
	// Kernels are shared by gatherers on a device; nil loads them anew.
	Kernels *Kernels
	// Progress is called while the table is registered, with bytes done and in
	// all; nil for no calls.
	Progress func(done, total int64)

	slab int // bytes of a slab; 0 means slabBytes. Tests take small ones.
}

// Batch is one gather on a GPU: row IDs[i] goes to Dst + i × width × 4.
type Batch struct {
	// N is the number of ids.
	N int
	// IDs is the device address of N int32; 0 if only HostIDs has them.
	IDs cuda.DevicePtr
	// HostIDs holds the same ids in host memory, if the caller has them there.
	// Staged and Hybrid need them and otherwise copy IDs back, which waits for
	// the stream. They may be reused when the call returns.
	HostIDs []int32
	// Dst is the device address of N × width float32, 4-byte aligned; 16-byte
	// alignment is fastest.
	Dst cuda.DevicePtr
	// Runs, for EnqueueMany, are the positions at which ascending runs of ids
	// begin, the first 0; nil means that all N ids ascend.
	Runs []int
}

// check validates the options for a table.
func (o *DeviceOptions) check(t *Table) error {
	switch {
	case o.Mode == Host || o.Mode > Hybrid:
		return usage.Errorf("%s: gather mode %v does not run on a GPU", t.name, o.Mode)
	case o.Blocks < 0 || o.CacheBytes < 0 || o.BatchRows < 0:
		return usage.Errorf("%s: negative gather option (blocks %d, cache %d bytes, batch %d rows)", t.name, o.Blocks, o.CacheBytes, o.BatchRows)
	case o.Workers < 0 && (o.Mode == Staged || o.Mode == Hybrid):
		return usage.Errorf("%s: gather mode %v needs CPU threads, but Workers is %d", t.name, o.Mode, o.Workers)
	}
	if size := uintptr(t.dt.Size()); len(t.data) > 0 && uintptr(unsafe.Pointer(&t.data[0]))%size != 0 {
		return fmt.Errorf("%s: %v rows in memory that is not aligned to %d bytes: a GPU cannot read them", t.name, t.dt, size)
	}
	return nil
}
