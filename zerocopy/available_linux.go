package zerocopy

import (
	"bufio"
	"bytes"
	"os"
	"path"
	"strconv"
	"strings"

	"zerogcn/dtype"
	"zerogcn/internal/usage"
)

// checkAvailable refuses a table that does not fit the memory left. The kernel
// would hand out the mapping all the same and kill the process while it is
// filled.
func checkAvailable(s shape, available func() (int64, bool)) error {
	need := int64(s.bytes()) + int64(s.scaleBytes())
	free, known := available()
	if !known || need <= free {
		return nil
	}
	advice := "use a machine with more memory"
	if s.dt == dtype.Float32 {
		advice = "dataset convert -dtype bf16 makes it " + formatBytes(need/2)
	}
	return usage.Errorf("a table of %v needs %s of memory, but %s are available: %s",
		s, formatBytes(need), formatBytes(free), advice)
}

// availableMemory is what this process can still use without swapping: the
// machine's MemAvailable, or what the control groups above it leave.
func availableMemory() (bytes int64, known bool) {
	if b, err := os.ReadFile("/proc/meminfo"); err == nil {
		bytes, known = memAvailable(b)
	}
	if b, err := os.ReadFile("/proc/zoneinfo"); err == nil && known {
		bytes += heldBack(b) * int64(os.Getpagesize())
	}
	if b, err := os.ReadFile("/proc/self/cgroup"); err == nil {
		if left, ok := cgroupLeft(b, os.ReadFile); ok && (!known || left < bytes) {
			bytes, known = left, true
		}
	}
	return bytes, known
}

func memAvailable(meminfo []byte) (int64, bool) {
	kb, ok := field(meminfo, "MemAvailable:")
	return kb << 10, ok
}

// heldBack returns the pages that a hypervisor keeps from this machine until
// they are asked for (a balloon): present in /proc/zoneinfo, but not managed.
// Up to a tenth of the pages is the kernel's own and does not count.
func heldBack(zoneinfo []byte) int64 {
	var present, managed int64
	sc := bufio.NewScanner(bytes.NewReader(zoneinfo))
	for sc.Scan() {
		f := strings.Fields(sc.Text())
		if len(f) != 2 {
			continue
		}
		n, err := strconv.ParseInt(f[1], 10, 64)
		switch {
		case err != nil:
		case f[0] == "present":
			present += n
		case f[0] == "managed":
			managed += n
		}
	}
	if d := present - managed; d > present/10 {
		return d
	}
	return 0
}

// cgroupLeft walks from the process's control group to the root and returns
// the least memory that any limit on the way leaves. Page cache counts as
// free, as the kernel drops it under pressure.
func cgroupLeft(self []byte, readFile func(string) ([]byte, error)) (left int64, ok bool) {
	for _, line := range strings.Split(strings.TrimSpace(string(self)), "\n") {
		parts := strings.SplitN(line, ":", 3)
		if len(parts) != 3 {
			continue
		}
		root, limitName, usedName, cacheKey := "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"
		switch {
		case parts[0] == "0" && parts[1] == "": // version 2
		case hasItem(parts[1], "memory"): // version 1
			root, limitName, usedName, cacheKey = "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
		default:
			continue
		}
		for dir := path.Clean("/" + parts[2]); ; dir = path.Dir(dir) {
			folder := path.Join(root, dir)
			limit, ok1 := number(readFile, path.Join(folder, limitName))
			used, ok2 := number(readFile, path.Join(folder, usedName))
			// Version 1 writes "no limit" as a number near 2^63.
			if ok1 && ok2 && limit < 1<<60 {
				if stat, err := readFile(path.Join(folder, "memory.stat")); err == nil {
					if cache, found := field(stat, cacheKey); found {
						used -= cache
					}
				}
				if l := max(0, limit-used); !ok || l < left {
					left, ok = l, true
				}
			}
			if dir == "/" {
				break
			}
		}
	}
	return left, ok
}

// field finds the number behind a key in lines of "key number …".
func field(text []byte, key string) (int64, bool) {
	sc := bufio.NewScanner(bytes.NewReader(text))
	for sc.Scan() {
		f := strings.Fields(sc.Text())
		if len(f) >= 2 && f[0] == key {
			n, err := strconv.ParseInt(f[1], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

func number(readFile func(string) ([]byte, error), name string) (int64, bool) {
	b, err := readFile(name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return n, err == nil // "max" is no limit
}

func hasItem(list, item string) bool {
	for _, s := range strings.Split(list, ",") {
		if s == item {
			return true
		}
	}
	return false
}
