package atomicfile

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// tempMark stands in temporary names between the target's name and 8
// hexadecimal digits.
const tempMark = ".tmp-"

// tempPrefix is what the temporary names of a target begin with.
func tempPrefix(path string) string { return "." + filepath.Base(path) + tempMark }

// lockedTemp makes a file or folder under a fresh temporary name for path, by
// create, and locks it.
func lockedTemp(path string, create func(name string) (*os.File, error)) (*os.File, error) {
	for range 100 {
		name := filepath.Join(filepath.Dir(path), tempPrefix(path)+fmt.Sprintf("%08x", rand.Uint32()))
		f, err := create(name)
		if os.IsExist(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		// A sweep may hold the lock for the moment that it needs to remove the
		// name: wait for it, then look. File systems without locks have no
		// sweep either, see removeStale.
		_ = flock(f, syscall.LOCK_EX)
		if sameFile(f, name) {
			return f, nil
		}
		f.Close() // another writer's sweep took it before it was locked
	}
	return nil, fmt.Errorf("%s: found no free temporary name beside it", path)
}

// Sweep removes the temporary files and folders in dir, of all targets, whose
// writers are gone. It is for folders whose targets have ever new names, so
// that the next writer of a name does not come by. It is housekeeping: what it
// cannot do is left for the next time.
func Sweep(dir string) { sweepPrefix(dir, ".") }

// sweep is Sweep for one target.
func sweep(path string) { sweepPrefix(filepath.Dir(path), tempPrefix(path)) }

func sweepPrefix(dir, prefix string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		name := e.Name()
		i := strings.LastIndex(name, tempMark)
		if i < 0 || !strings.HasPrefix(name, prefix) || !isHex(name[i+len(tempMark):]) {
			continue
		}
		if e.IsDir() || e.Type().IsRegular() {
			removeStale(filepath.Join(dir, name))
		}
	}
}

// isHex tells the end of a temporary name.
func isHex(s string) bool {
	_, err := strconv.ParseUint(s, 16, 32)
	return err == nil && len(s) == 8
}

// removeStale removes name if nobody holds its lock.
func removeStale(name string) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return
	}
	defer f.Close() // lets the lock go
	if flock(f, syscall.LOCK_EX|syscall.LOCK_NB) == nil && sameFile(f, name) {
		_ = os.RemoveAll(name)
	}
}

// flock is flock(2), called again where a signal interrupts it.
func flock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how); err != syscall.EINTR {
			return err
		}
	}
}

// sameFile reports whether name still leads to the open file f.
func sameFile(f *os.File, name string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Lstat(name)
	return err == nil && os.SameFile(a, b)
}

// syncDir makes the names in a folder durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
