package zerocopy

import (
	"fmt"
	"math"

	"zerogcn/cuda"
	"zerogcn/cuda/kernels"
	"zerogcn/dtype"
)

// Kernels are the gather kernels, compiled for one device. Gatherers on the
// device may share them; see [DeviceOptions].
type Kernels struct {
	dev    *cuda.Device
	module *cuda.Module
	merge  *cuda.Function
	count  *cuda.Function
}

// LoadKernels compiles the kernels for dev; the driver caches the result on
// disk. Close them after the gatherers that use them.
func LoadKernels(dev *cuda.Device) (*Kernels, error) {
	m, err := kernels.Load(dev, "gather")
	if err != nil {
		return nil, err
	}
	k := &Kernels{dev: dev, module: m}
	for name, f := range map[string]**cuda.Function{"merge_runs": &k.merge, "count_below": &k.count} {
		if *f, err = m.Function(name); err != nil {
			m.Close()
			return nil, err
		}
	}
	return k, nil
}

// Close unloads the kernels.
func (k *Kernels) Close() error { return k.module.Close() }

// kernelShape is one instance of the gather kernel: lanes to a row, 16-byte
// vectors a lane loads at once, rows in flight for each group of lanes.
type kernelShape struct{ lanes, vectors, rows int }

// reach is the bytes that one pass covers.
func (k kernelShape) reach() int { return 16 * k.lanes * k.vectors }

// chooseShape returns the smallest instance that takes a row in one pass,
// wherever in a 128-byte line it begins, or the largest.
func chooseShape(rowBytes int, base uintptr) kernelShape {
	// A row begins at a multiple of g in its line, so at most 128-g into it.
	g := gcd(gcd(rowBytes, int(base%128)), 128)
	need := rowBytes + 128 - g
	for _, s := range []kernelShape{{8, 1, 2}, {16, 1, 2}, {32, 1, 2}, {32, 2, 1}} {
		if need <= s.reach() {
			return s
		}
	}
	return kernelShape{32, 4, 1}
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// noFault is the neutral value of the kernels' fault words.
const noFault = math.MaxUint64

// blockThreads is the size of a gather's blocks: the largest, so that few SMs
// hold all the warps that the link needs.
const blockThreads = 1024

// rowGather is one launch of the gather kernel; the fields are its arguments.
type rowGather struct {
	dst, dstOf cuda.DevicePtr
	dstBits    cuda.DevicePtr // with dstOf: all addresses in it, or-ed
	table, hot cuda.DevicePtr
	hotRows    int
	scales     cuda.DevicePtr
	ids        cuda.DevicePtr // 0: row p for position p
	n          int
	first      int
	shape      // of the table: rows, width and type
	bad        cuda.DevicePtr
	blocks     int
	kernel     kernelShape // zero: chooseShape's
}

// launch queues the gather on s. It allocates nothing.
func (k *Kernels) launch(s *cuda.Stream, r *rowGather) error {
	if r.n == 0 || r.width == 0 && r.ids == 0 {
		return nil
	}
	ks := r.kernel
	if ks == (kernelShape{}) {
		ks = chooseShape(r.rowBytes(), uintptr(r.table|r.hot))
	}
	quad := cuda.DevicePtr(4 * r.dt.Size())
	aligned := r.width%4 == 0 && (r.table|r.hot)%quad == 0 && (r.dst|r.dstBits)%16 == 0
	f, err := k.module.Function(kernelName(ks, aligned))
	if err != nil {
		return err
	}
	// A grid that is larger than the work only starts idle blocks.
	groups := blockThreads / ks.lanes * ks.rows
	blocks := max(1, min(r.blocks, (r.n+groups-1)/groups))
	return f.Launch(s, cuda.Linear(blocks, blockThreads),
		r.dst.Arg(), r.dstOf.Arg(), r.table.Arg(), r.hot.Arg(), cuda.I32(int32(r.hotRows)), r.scales.Arg(), r.ids.Arg(),
		cuda.I64(int64(r.n)), cuda.I64(int64(r.first)), cuda.I32(int32(r.rows)), cuda.I32(int32(r.width)),
		cuda.I32(int32(r.dt)), r.bad.Arg())
}

// kernelName names the instance as gather.cu does. The names are constants, so
// that a launch makes no strings.
func kernelName(k kernelShape, aligned bool) string {
	for i := range kernelTable {
		if e := &kernelTable[i]; e.shape == k {
			if aligned {
				return e.aligned
			}
			return e.any
		}
	}
	return fmt.Sprintf("gather for %d lanes × %d vectors × %d rows", k.lanes, k.vectors, k.rows)
}

var kernelTable = [...]struct {
	shape        kernelShape
	aligned, any string
}{
	{kernelShape{8, 1, 2}, "gather_a8_1_2", "gather_v8_1_2"},
	{kernelShape{16, 1, 2}, "gather_a16_1_2", "gather_v16_1_2"},
	{kernelShape{32, 1, 2}, "gather_a32_1_2", "gather_v32_1_2"},
	{kernelShape{32, 2, 1}, "gather_a32_2_1", "gather_v32_2_1"},
	{kernelShape{32, 4, 1}, "gather_a32_4_1", "gather_v32_4_1"},
}

// gather.cu numbers the storage types as package dtype does; a change there
// must not compile here.
const (
	_ = uint(dtype.Float32 - 0)
	_ = uint(dtype.Float16 - 1)
	_ = uint(dtype.BFloat16 - 2)
	_ = uint(dtype.Int8 - 3)
	_ = uint(3 - dtype.Int8)
)
