package cuda

import (
	"errors"
	"fmt"

	"zerogcn/cuda"
	"zerogcn/graph"
	"zerogcn/model/op"
)

// onDevice reports an operand, counted from 0, that is not in device memory.
func onDevice(matrices ...*op.Value) error {
	for i, v := range matrices {
		if v.Dev == 0 && v.Len() > 0 {
			return fmt.Errorf("operand %d (%d×%d) is not in device memory: upload it first", i, v.Rows, v.Cols)
		}
	}
	return nil
}

var errHostKey = errors.New("the rows of the dropout key are not in device memory")

func ptr(v *op.Value) cuda.Arg { return cuda.DevicePtr(v.Dev).Arg() }

// aligned reports whether all values start at a multiple of n elements.
func aligned(n uintptr, vs ...*op.Value) bool {
	for _, v := range vs {
		if v.Dev%(4*n) != 0 {
			return false
		}
	}
	return true
}

// flag passes a condition as an integer.
func flag(c bool) cuda.Arg {
	if c {
		return cuda.I32(1)
	}
	return cuda.I32(0)
}

// blockOf returns a block's arrays on the device.
func blockOf(v *op.Value) (*graph.Block, *graph.DeviceBlock, error) {
	if v.Block == nil {
		return nil, nil, errors.New("no block")
	}
	if v.Block.Device == nil {
		return nil, nil, fmt.Errorf("block of %d targets is not in device memory", v.Block.NumDst)
	}
	return v.Block, v.Block.Device, nil
}

// labelsOf returns the address and count of labels on the device.
func labelsOf(v *op.Value) (cuda.DevicePtr, float64, error) {
	l := v.Labels
	switch {
	case l == nil:
		return 0, 0, errors.New("no labels")
	case l.DevClass == 0 && l.Len() > 0:
		return 0, 0, fmt.Errorf("%d labels are not in device memory", l.Len())
	case !(l.Norm > 0) && l.Len() > 0:
		// Counting them here would wait for the device.
		return 0, 0, fmt.Errorf("%d labels on the device need Norm, the number that the loss is divided by", l.Len())
	}
	return cuda.DevicePtr(l.DevClass), l.Norm, nil
}

// threads is the size of a block of most kernels here.
const threads = 256

// blocks is a launch of a kernel that takes any grid: as many blocks as wanted, at
// most those that the device runs at a time.
func (b *Backend) blocks(wanted int64) cuda.Config {
	perSM := int64(b.dev.Properties().SMs) * 8 // 2,048 threads an SM
	return cuda.Linear(int(min(wanted, perSM)), threads)
}

// flat is the launch for n elements, four of which a thread takes at a time.
func (b *Backend) flat(n int64) cuda.Config {
	return b.blocks((n + 4*threads - 1) / (4 * threads))
}

// byRows is the launch for kernels that cut a matrix as model_elementwise.cu's
// cut does.
func (b *Backend) byRows(rows, units int) cuda.Config {
	if units == 0 {
		return cuda.Config{}
	}
	per := threads / min(units, threads)
	return b.blocks((int64(rows) + int64(per) - 1) / int64(per))
}

// byWarps is the launch for kernels that give a row to a warp.
func (b *Backend) byWarps(rows int) cuda.Config {
	return b.blocks((int64(rows) + threads/32 - 1) / (threads / 32))
}
