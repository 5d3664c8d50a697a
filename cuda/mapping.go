package cuda

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// hostMemoryAdvice completes an error of page-locking: the limits that usually
// cause it, as they are now.
func hostMemoryAdvice(err error, what string, n int64, p Purpose) error {
	limit := "unlimited"
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &r) == nil && r.Cur != unix.RLIM_INFINITY {
		limit = byteCount(int64(r.Cur))
	}
	available := "unknown"
	if f, e := os.Open("/proc/meminfo"); e == nil {
		defer f.Close()
		if kb, ok := memAvailable(f); ok {
			available = byteCount(kb << 10)
		}
	}
	return detail(err, "asked to %s %s of host memory for %v, %s available, memlock limit %s (ulimit -l; container memory limits count too)",
		what, byteCount(n), p, available, limit)
}

// memAvailable reads the line MemAvailable of /proc/meminfo, in KiB.
func memAvailable(r io.Reader) (int64, bool) {
	for s := bufio.NewScanner(r); s.Scan(); {
		f := strings.Fields(s.Text())
		if len(f) >= 2 && f[0] == "MemAvailable:" {
			v, err := strconv.ParseInt(f[1], 10, 64)
			return v, err == nil
		}
	}
	return 0, false
}

// checkMapping returns an ErrFileMapping if a part of [lo, hi) is the mapping
// of a file on disk, as /proc/self/maps tells. Memory file systems are fine.
// Where the list cannot be read the range passes.
func checkMapping(lo, hi uintptr) error {
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return nil
	}
	defer f.Close()
	path, offset := fileMapping(f, uint64(lo), uint64(hi))
	if path == "" || inMemory(path) {
		return nil
	}
	return fmt.Errorf("cuda: register: %d bytes from byte %d are the %w, %s, which can hang the process: read the file into anonymous memory or /dev/shm",
		hi-lo, offset, ErrFileMapping, path)
}

// fileMapping returns the path of the first file that is mapped into [lo, hi)
// and the offset in the range where it begins. A line of the list is
// "lo-hi perms offset dev inode path".
func fileMapping(maps io.Reader, lo, hi uint64) (path string, offset uint64) {
	s := bufio.NewScanner(maps)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		line := s.Text()
		addresses, rest, _ := strings.Cut(line, " ")
		a, b, ok := strings.Cut(addresses, "-")
		from, err1 := strconv.ParseUint(a, 16, 64)
		to, err2 := strconv.ParseUint(b, 16, 64)
		if !ok || err1 != nil || err2 != nil || to <= lo || from >= hi {
			continue
		}
		slash := strings.IndexByte(rest, '/')
		if slash < 0 { // anonymous, [heap], [stack]
			continue
		}
		return rest[slash:], max(from, lo) - lo
	}
	return "", 0
}

// inMemory tells whether a mapped path has no disk behind it.
func inMemory(path string) bool {
	path = strings.TrimSuffix(path, " (deleted)")
	for _, p := range []string{"/dev/shm/", "/memfd:", "/SYSV", "/dev/zero", "/anon_hugepage", "/dev/hugepages/", "/dev/nvidia"} {
		if strings.HasPrefix(path, p) {
			return true
		}
	}
	var fs unix.Statfs_t
	if unix.Statfs(path, &fs) != nil {
		return false
	}
	return int64(fs.Type) == unix.TMPFS_MAGIC || int64(fs.Type) == unix.HUGETLBFS_MAGIC
}
