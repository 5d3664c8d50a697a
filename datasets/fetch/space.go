package fetch

import (
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"zerogcn/datasets"
	"zerogcn/internal/usage"
)

// checkSpace reports a file system without room for need more bytes.
func checkSpace(dir string, need int64) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return nil // it will be seen when it is full
	}
	if free := int64(st.Bavail) * st.Bsize; free < need {
		return usage.Errorf("%s: %s are needed there and %s are free: make room, or name another folder with -root", dir, datasets.SizeText(need), datasets.SizeText(free))
	}
	return nil
}

// sizeBelow returns the bytes of the files below a folder, as far as they can be
// seen.
func sizeBelow(dir string) int64 {
	total := int64(0)
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			total += info.Size()
		}
		return nil
	})
	return total
}
