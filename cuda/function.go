package cuda

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Function is a kernel of a module.
type Function struct {
	module *Module
	name   string
	handle uintptr
	params int // number of parameters, -1 if not known
}

// Dim is a size in up to three dimensions; 0 in Y and Z means 1.
type Dim struct{ X, Y, Z uint32 }

// Config is the shape of a launch.
type Config struct {
	Grid   Dim    // blocks; X = 0 launches nothing
	Block  Dim    // threads of a block
	Shared uint32 // bytes of dynamic shared memory
}

// Linear is a Config in one dimension without dynamic shared memory.
func Linear(blocks, threads int) Config {
	return Config{Grid: Dim{X: uint32(blocks)}, Block: Dim{X: uint32(threads)}}
}

// Arg is a kernel argument: a scalar of at most 8 bytes, or an address.
type Arg uint64

// I32 passes a 32-bit signed integer.
func I32(v int32) Arg { return Arg(uint32(v)) }

// U32 passes a 32-bit unsigned integer.
func U32(v uint32) Arg { return Arg(v) }

// I64 passes a 64-bit signed integer.
func I64(v int64) Arg { return Arg(v) }

// U64 passes a 64-bit unsigned integer.
func U64(v uint64) Arg { return Arg(v) }

// F32 passes a float.
func F32(v float32) Arg { return Arg(math.Float32bits(v)) }

// F64 passes a double.
func F64(v float64) Arg { return Arg(math.Float64bits(v)) }

// Arg passes the address.
func (p DevicePtr) Arg() Arg { return Arg(p) }

// Name returns the kernel's name.
func (f *Function) Name() string { return f.name }

// Launch queues the kernel on s. args must agree with the kernel's parameters
// in number (checked for PTX), order and type; the values are copied before
// Launch returns. It allocates nothing. A fault of the kernel shows in a later
// call.
func (f *Function) Launch(s *Stream, c Config, args ...Arg) error {
	if f.params >= 0 && len(args) != f.params {
		return fmt.Errorf("cuda: kernel %s takes %d arguments, got %d", f.name, f.params, len(args))
	}
	if len(args) > MaxArgs {
		return fmt.Errorf("cuda: kernel %s: %d arguments, at most %d", f.name, len(args), MaxArgs)
	}
	if c.Grid.X == 0 {
		return nil
	}
	m := f.module
	if m.dev != s.dev {
		return fmt.Errorf("cuda: kernel %s of %v launched on a stream of %v", f.name, m.dev, s.dev)
	}
	if err := m.life.use(); err != nil {
		return fmt.Errorf("cuda: module %s: %w", m.name, err)
	}
	defer m.life.done()
	e, err := s.begin()
	if err != nil {
		return err
	}
	defer s.end(e)
	if code := f.launch(s, c, args); code != 0 {
		err := s.dev.drv.fail(&s.dev.drv.t.launch, code)
		return s.blame(detail(err, "kernel %s, grid %v, block %v, %d bytes shared", f.name, c.Grid, c.Block, c.Shared))
	}
	return nil
}

func (f *Function) launch(s *Stream, c Config, args []Arg) Code {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, a := range args {
		s.args.values[i] = uint64(a)
	}
	s.argv = [...]uintptr{f.handle,
		uintptr(c.Grid.X), uintptr(max(1, c.Grid.Y)), uintptr(max(1, c.Grid.Z)),
		uintptr(max(1, c.Block.X)), uintptr(max(1, c.Block.Y)), uintptr(max(1, c.Block.Z)),
		uintptr(c.Shared), s.handle, s.args.address(), 0}
	s.last = f
	r, _, _ := purego.SyscallN(s.dev.drv.t.launch.addr, s.argv[:]...)
	return Code(int32(r))
}

// String returns "12x1x1".
func (d Dim) String() string { return fmt.Sprintf("%dx%dx%d", d.X, max(1, d.Y), max(1, d.Z)) }

// Attributes are what the compiler made of a kernel.
type Attributes struct {
	MaxThreads  int // of a block
	Registers   int // of a thread
	SharedBytes int // static, of a block
	LocalBytes  int // of a thread: spills and arrays
	PTX, Binary int // versions, major*10 + minor
}

// Attributes asks the driver.
func (f *Function) Attributes() (Attributes, error) {
	var a Attributes
	err := f.within(func(d *Driver) error {
		for number, to := range map[int]*int{0: &a.MaxThreads, 1: &a.SharedBytes, 3: &a.LocalBytes, 4: &a.Registers, 5: &a.PTX, 6: &a.Binary} {
			v := new(int32)
			if err := d.do(&d.t.functionAttribute, uintptr(unsafe.Pointer(v)), uintptr(number), f.handle); err != nil {
				return err
			}
			*to = int(*v)
		}
		return nil
	})
	return a, err
}

// SetDynamicShared allows launches with up to n bytes of dynamic shared memory,
// which is needed above Properties.SharedPerBlock.
func (f *Function) SetDynamicShared(n int) error {
	const maxDynamicShared = 8
	return f.within(func(d *Driver) error {
		return detail(d.do(&d.t.functionSetAttribute, f.handle, maxDynamicShared, uintptr(n)), "kernel %s, %d bytes of shared memory", f.name, n)
	})
}

// BlocksPerSM returns how many blocks of the given size run on one SM at a time.
func (f *Function) BlocksPerSM(threads, shared int) (int, error) {
	n := new(int32)
	err := f.within(func(d *Driver) error {
		return d.do(&d.t.occupancyBlocks, uintptr(unsafe.Pointer(n)), f.handle, uintptr(threads), uintptr(shared))
	})
	return int(*n), err
}

// SuggestBlock returns the block size with the highest occupancy and the least
// number of blocks that fills the device with it.
func (f *Function) SuggestBlock(shared int) (blocks, threads int, err error) {
	v := new([2]int32)
	err = f.within(func(d *Driver) error {
		return d.do(&d.t.occupancyBlockSize, uintptr(unsafe.Pointer(&v[0])), uintptr(unsafe.Pointer(&v[1])), f.handle, 0, uintptr(shared), 0)
	})
	return int(v[0]), int(v[1]), err
}

func (f *Function) within(g func(d *Driver) error) error {
	m := f.module
	if err := m.life.use(); err != nil {
		return fmt.Errorf("cuda: module %s: %w", m.name, err)
	}
	defer m.life.done()
	return m.dev.inContext(func() error { return detail(g(m.dev.drv), "kernel %s", f.name) })
}
