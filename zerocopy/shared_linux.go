package zerocopy

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"

	"zerogcn/dtype"
	"zerogcn/internal/usage"
)

// partSuffix marks a shared table that has not been published.
const partSuffix = ".part"

// NewShared makes a table in a memory file system (/dev/shm), so that several
// processes use one copy of the rows. Fill it, then Publish it: only then does
// path exist. Whoever published it removes the file when no process will open
// it any more; the memory goes when the last one has closed its table.
//
// The space is reserved at once: a file system that is too small is an error of
// usage here and not a fault while the table is filled.
func NewShared(path string, rows, width int, dt dtype.Type, opt Options) (_ *Table, err error) {
	if opt.Name == "" {
		opt.Name = path
	}
	s, err := newShape(rows, width, dt)
	if err != nil {
		return nil, err
	}
	if opt.Scales != nil {
		if err := opt.checkScales(s); err != nil {
			return nil, err
		}
	}
	if err := checkMemoryFS(filepath.Dir(path)); err != nil {
		return nil, err
	}
	part := path + partSuffix
	f, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		if errors.Is(err, os.ErrExist) {
			return nil, usage.Errorf("%s: another process is filling the table, or one ended while it did: remove the file in that case", part)
		}
		return nil, usage.Wrap(err)
	}
	defer f.Close()
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(part))
		}
	}()
	n := roundUp(s.bytes(), pageSize) + s.scaleBytes()
	if n > 0 {
		if err := unix.Fallocate(int(f.Fd()), 0, 0, int64(n)); err != nil {
			return nil, reserveError(part, int64(n), err)
		}
	}
	t, err := mapShared(f, s, opt)
	if err != nil {
		return nil, err
	}
	copy(t.scales, opt.Scales)
	t.part, t.path = part, path
	return t, nil
}

// OpenShared opens a published table. The sizes must be those that it was made
// with.
func OpenShared(path string, rows, width int, dt dtype.Type, opt Options) (*Table, error) {
	if opt.Name == "" {
		opt.Name = path
	}
	s, err := newShape(rows, width, dt)
	if err != nil {
		return nil, err
	}
	if err := checkMemoryFS(filepath.Dir(path)); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, usage.Wrap(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if n := int64(roundUp(s.bytes(), pageSize) + s.scaleBytes()); info.Size() != n {
		return nil, usage.Errorf("%s: a shared table of %v has %d bytes, but this file has %d: it was made for another table", path, s, n, info.Size())
	}
	return mapShared(f, s, opt)
}

// Publish gives a table of NewShared its name, at once and whole. A file of
// that name is replaced; processes that have it open keep the old rows.
func (t *Table) Publish() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return t.closedError()
	case t.part == "":
		return fmt.Errorf("%s: only a table of NewShared can be published, and only once", t.name)
	}
	if err := os.Rename(t.part, t.path); err != nil {
		return err
	}
	t.part = ""
	return nil
}

// mapShared maps rows and scales as NewTable lays them out.
func mapShared(f *os.File, s shape, opt Options) (*Table, error) {
	t := &Table{shape: s, name: opt.Name, workers: opt.Workers, source: sharedMemory, mem: &memory{}, data: []byte{}}
	rowsEnd := roundUp(s.bytes(), pageSize)
	n := rowsEnd + s.scaleBytes()
	if n == 0 {
		return t, nil
	}
	raw, err := unix.Mmap(int(f.Fd()), 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("%s: mapping %s: %w", opt.Name, formatBytes(int64(n)), err)
	}
	_ = unix.Madvise(raw, unix.MADV_HUGEPAGE) // granted if shmem huge pages are enabled
	interleave(raw)
	t.mem = &memory{data: raw, release: func() error { return unix.Munmap(raw) }}
	t.data = raw[:s.bytes():s.bytes()]
	if s.scaleBytes() > 0 {
		t.scales = unsafe.Slice((*float32)(unsafe.Pointer(&raw[rowsEnd])), s.rows)
	}
	return t, nil
}

// checkMemoryFS refuses folders on a disk: a registered mapping of a disk file
// can hang the process in the driver.
func checkMemoryFS(dir string) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return usage.Wrap(&os.PathError{Op: "statfs", Path: dir, Err: err})
	}
	switch uint32(fs.Type) {
	case unix.TMPFS_MAGIC, unix.RAMFS_MAGIC, unix.HUGETLBFS_MAGIC:
		return nil
	}
	return usage.Errorf("%s: shared tables need a memory file system such as /dev/shm", dir)
}

func reserveError(part string, n int64, err error) error {
	if !errors.Is(err, unix.ENOSPC) {
		return fmt.Errorf("%s: reserving %s: %w", part, formatBytes(n), err)
	}
	free := "less"
	var fs unix.Statfs_t
	if unix.Statfs(filepath.Dir(part), &fs) == nil {
		free = formatBytes(int64(fs.Bavail) * fs.Bsize)
	}
	return usage.Errorf("%s: the table needs %s, but %s are free in %s: enlarge it (mount -o remount,size=…) or use dataset convert -dtype bf16",
		part, formatBytes(n), free, filepath.Dir(part))
}
