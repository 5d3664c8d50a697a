package zerocopy

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"zerogcn/dtype"
	"zerogcn/internal/usage"
)

// OpenFile maps rows × width values that begin at a byte offset of a file, such
// as the data of an .npy file behind its header, and serves them in place. The
// mapping is read-only and for CPU gathers; a GPU gatherer refuses it.
//
// A file that is too short for the sizes asked is an error here. One that
// shrinks later makes gathers fail with ErrTruncated.
func OpenFile(path string, offset int64, rows, width int, dt dtype.Type, opt Options) (*Table, error) {
	if opt.Name == "" {
		opt.Name = path
	}
	s, err := newShape(rows, width, dt)
	if err != nil {
		return nil, err
	}
	if err := opt.checkScales(s); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, usage.Wrap(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	switch {
	case !info.Mode().IsRegular():
		return nil, usage.Errorf("%s: not a regular file", path)
	case offset < 0 || info.Size() < offset || info.Size()-offset < int64(s.bytes()):
		return nil, usage.Errorf("%s: %v from byte %d need a file of %d bytes, but it has %d: it is truncated or its header is wrong",
			path, s, offset, uint64(offset)+uint64(s.bytes()), info.Size())
	}
	mem, err := mapFile(f, offset, s.bytes())
	if err != nil {
		return nil, err
	}
	t := &Table{shape: s, name: opt.Name, workers: opt.Workers, source: mappedFile, mem: mem, data: []byte{}, scales: opt.Scales}
	if mem.data != nil {
		t.data = mem.data
	}
	return t, nil
}

// guard runs f, which reads the table. If a mapped file can no longer back a
// page, the kernel's SIGBUS becomes ErrTruncated instead of a crash. The
// setting is per goroutine: each worker guards its own part.
func (t *Table) guard(f func() error) (err error) {
	if t.source == anonymous {
		return f()
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch r := recover().(type) {
		case nil:
		case interface {
			runtime.Error
			Addr() uintptr
		}:
			err = fmt.Errorf("%s: %w", t.name, ErrTruncated)
		default:
			panic(r)
		}
	}()
	return f()
}
