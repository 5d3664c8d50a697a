// Package nccl adds vectors across GPUs with NVIDIA's NCCL, opened at run time:
// the functions that data-parallel training needs, no more.
//
//   - [Library]: the loaded library. [Load] looks for the user's path, what
//     ldconfig knows, the toolkit, Python's nvidia packages.
//   - [ID]: 128 bytes that the ranks of one group share; rank 0 makes one and
//     sends it to the others by whatever means it has.
//   - [Comm]: a rank's membership, bound to one device, used by one goroutine
//     at a time.
//
// A collective queues work on a stream; buffers belong to the caller and must
// stay until the stream has passed it. Every rank must call the same
// collectives in the same order, or all of them hang: Abort ends that.
package nccl

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"

	"zerogcn/cuda"
	"zerogcn/cuda/internal/dynlib"
)

// Library is a loaded NCCL.
type Library struct {
	path    string
	version int
	t       table
	// initRank takes the id by value, for which purego has its own machinery.
	initRank func(comm *uintptr, ranks int32, id idWords, rank int32) int32
}

type table struct {
	version, uniqueID, initRank, destroy, abort, allReduce, broadcast, errorText, lastError uintptr
}

// idWords is ncclUniqueId, 128 bytes that are passed by value.
type idWords struct{ w [16]uint64 }

// ID names a group of ranks.
type ID [128]byte

// Load opens libnccl.so.2. path is a file or a folder to use and no other; ""
// searches. Where there is none the error says what was tried.
func Load(path string) (*Library, error) {
	lib, err := dynlib.Search{Names: []string{"libnccl.so.2"}, Path: path}.Open()
	if err != nil {
		return nil, fmt.Errorf("nccl: %w: install NCCL or `pip install nvidia-nccl-cu13`, or name the file", err)
	}
	return load(lib.Path, lib.Symbol)
}

func load(path string, symbol func(names ...string) (uintptr, error)) (*Library, error) {
	l := &Library{path: path}
	for _, s := range []struct {
		to   *uintptr
		name string
	}{
		{&l.t.version, "ncclGetVersion"}, {&l.t.uniqueID, "ncclGetUniqueId"}, {&l.t.initRank, "ncclCommInitRank"},
		{&l.t.destroy, "ncclCommDestroy"}, {&l.t.abort, "ncclCommAbort"}, {&l.t.allReduce, "ncclAllReduce"},
		{&l.t.broadcast, "ncclBroadcast"}, {&l.t.errorText, "ncclGetErrorString"},
	} {
		p, err := symbol(s.name)
		if err != nil {
			return nil, fmt.Errorf("nccl: %w", err)
		}
		*s.to = p
	}
	l.t.lastError, _ = symbol("ncclGetLastError") // since 2.13
	purego.RegisterFunc(&l.initRank, l.t.initRank)
	v := new(int32)
	if err := l.check("ncclGetVersion", dynlib.Call(l.t.version, uintptr(unsafe.Pointer(v)))); err != nil {
		return nil, err
	}
	l.version = int(*v)
	return l, nil
}

// Path returns the file that was opened.
func (l *Library) Path() string { return l.path }

// Version returns NCCL's version: 22703 is 2.27.3.
func (l *Library) Version() int { return l.version }

// Error is a failed call of NCCL.
type Error struct {
	Call string
	Code int    // ncclResult_t
	Text string // NCCL's own words, with the last error of the library
}

// Error is one line.
func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %s (NCCL error %d)", e.Call, e.Text, e.Code)
	switch e.Code {
	case 2, 6: // system error, remote error
		s += "; NCCL_DEBUG=INFO tells more: often /dev/shm is too small or the ranks cannot reach each other"
	case 5:
		s += "; NCCL_DEBUG=WARN tells more: two ranks must not share a GPU"
	}
	return s
}

func (l *Library) check(call string, code int32) error {
	if code == 0 {
		return nil
	}
	text := cString(l.t.errorText, uintptr(code))
	if l.t.lastError != 0 {
		if last := cString(l.t.lastError, 0); last != "" {
			text += ": " + last
		}
	}
	return &Error{call, int(code), text}
}

// cString calls a function that returns a C string and copies its first line.
func cString(f, arg uintptr) string {
	p, _, _ := purego.SyscallN(f, arg)
	if p == 0 {
		return ""
	}
	base := *(*unsafe.Pointer)(unsafe.Pointer(&p))
	var b []byte
	for i := range 500 {
		c := *(*byte)(unsafe.Add(base, i))
		if c == 0 || c == '\n' {
			break
		}
		b = append(b, c)
	}
	return string(b)
}

// NewID makes the id of a new group, on one of its ranks. The rank must stay
// reachable to the others until all have joined.
func (l *Library) NewID() (ID, error) {
	id := new(ID)
	err := l.check("ncclGetUniqueId", dynlib.Call(l.t.uniqueID, uintptr(unsafe.Pointer(id))))
	return *id, err
}

// Comm is a rank's membership in a group.
type Comm struct {
	lib         *Library
	dev         *cuda.Device
	rank, ranks int

	mu     sync.Mutex
	handle uintptr // 0 once closed
}

// Join makes the device's rank a member of the group and returns when all ranks
// have joined. Each rank needs a GPU of its own.
func (l *Library) Join(dev *cuda.Device, id ID, rank, ranks int) (*Comm, error) {
	if rank < 0 || rank >= ranks {
		return nil, fmt.Errorf("nccl: rank %d of %d", rank, ranks)
	}
	b, err := dev.Bind()
	if err != nil {
		return nil, err
	}
	defer b.Release()
	h := new(uintptr)
	code := l.initRank(h, int32(ranks), *(*idWords)(unsafe.Pointer(&id)), int32(rank))
	if err := l.check("ncclCommInitRank", code); err != nil {
		return nil, fmt.Errorf("rank %d of %d on %v: %w", rank, ranks, dev, err)
	}
	return &Comm{lib: l, dev: dev, rank: rank, ranks: ranks, handle: *h}, nil
}

// Rank returns the member's number and how many there are.
func (c *Comm) Rank() (rank, ranks int) { return c.rank, c.ranks }

// Type is the type of a vector's elements.
type Type uint8

// The element types; the values are ncclDataType_t.
const (
	Int32    Type = 2
	Int64    Type = 4
	Float32  Type = 7
	Float64  Type = 8
	BFloat16 Type = 9
)

// Op is how the ranks' elements are combined.
type Op uint8

// The operations; the values are ncclRedOp_t.
const (
	Sum Op = 0
	Max Op = 2
	Min Op = 3
)

// AllReduce queues dst[i] = op over ranks of src[i], for n elements; dst may be
// src. The order of a sum is NCCL's: the same for the same ranks, GPUs and n.
func (c *Comm) AllReduce(s *cuda.Stream, dst, src cuda.DevicePtr, n int, t Type, op Op) error {
	return c.queue(s, "ncclAllReduce", func(h, stream uintptr) int32 {
		return dynlib.Call(c.lib.t.allReduce, uintptr(src), uintptr(dst), uintptr(n), uintptr(t), uintptr(op), h, stream)
	})
}

// Broadcast queues the copy of the root rank's n elements at p to all ranks.
func (c *Comm) Broadcast(s *cuda.Stream, p cuda.DevicePtr, n int, t Type, root int) error {
	if root < 0 || root >= c.ranks {
		return fmt.Errorf("nccl: broadcast from rank %d of %d", root, c.ranks)
	}
	return c.queue(s, "ncclBroadcast", func(h, stream uintptr) int32 {
		return dynlib.Call(c.lib.t.broadcast, uintptr(p), uintptr(p), uintptr(n), uintptr(t), uintptr(root), h, stream)
	})
}

func (c *Comm) queue(s *cuda.Stream, name string, call func(comm, stream uintptr) int32) error {
	if s.Device() != c.dev {
		return fmt.Errorf("nccl: stream of %v for a rank on %v", s.Device(), c.dev)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.handle == 0 {
		return fmt.Errorf("nccl: communicator: %w", cuda.ErrClosed)
	}
	b, err := s.Begin()
	if err != nil {
		return err
	}
	defer b.End()
	return c.lib.check(name, call(c.handle, s.Handle()))
}

// Close leaves the group once the rank's queued collectives are done. Closing
// twice does nothing.
func (c *Comm) Close() error { return c.leave("ncclCommDestroy", c.lib.t.destroy) }

// Abort leaves the group at once and ends collectives that wait for other
// ranks, which gives up their results. Then Close does nothing.
func (c *Comm) Abort() error { return c.leave("ncclCommAbort", c.lib.t.abort) }

func (c *Comm) leave(name string, f uintptr) error {
	c.mu.Lock()
	h := c.handle
	c.handle = 0
	c.mu.Unlock()
	if h == 0 {
		return nil
	}
	b, err := c.dev.Bind()
	if err != nil {
		return err
	}
	defer b.Release()
	return c.lib.check(name, dynlib.Call(f, h))
}
