package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// exchange swaps two names in one step.
func exchange(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}

// WriteDir creates or replaces the folder at path with what fill puts into the
// folder that it is given. It makes the parent folder if need be. If fill
// fails, its error is returned and nothing changes.
func WriteDir(path string, fill func(dir string) error) error {
	return writeDir(path, fill, exchange)
}

// writeDir is WriteDir with the exchange of names passed in: tests pass one
// that the file system does not support.
func writeDir(path string, fill func(dir string) error, exchange func(a, b string) error) (err error) {
	if path, err = resolve(path); err != nil {
		return err
	}
	parent := filepath.Dir(path)
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return err
	}
	if err := Recover(path); err != nil {
		return err
	}
	sweep(path)
	d, err := lockedTemp(path, func(name string) (*os.File, error) {
		if err := os.Mkdir(name, 0o777); err != nil {
			return nil, err
		}
		return os.Open(name)
	})
	if err != nil {
		return err
	}
	temp := d.Name()
	// In the end the temporary name holds a folder that was not completed, the
	// one that was replaced, or nothing.
	defer func() { err = errors.Join(err, os.RemoveAll(temp), d.Close()) }()
	if err := fill(temp); err != nil {
		return err
	}
	if err := syncTree(temp); err != nil {
		return err
	}
	if err := replaceDir(temp, path, exchange); err != nil {
		return err
	}
	return syncDir(parent)
}

// resolve follows path if it is a symbolic link to a folder.
func resolve(path string) (string, error) {
	path = filepath.Clean(path)
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return path, nil
	}
	return filepath.EvalSymlinks(path)
}

// replaceDir gives temp the name path; the old folder, if any, ends under the
// name temp or is removed.
func replaceDir(temp, path string, exchange func(a, b string) error) error {
	err := unix.Renameat2(unix.AT_FDCWD, temp, unix.AT_FDCWD, path, unix.RENAME_NOREPLACE)
	if err == nil {
		return nil
	}
	if !errors.Is(err, fs.ErrExist) && !unsupported(err) {
		return &os.LinkError{Op: "rename", Old: temp, New: path, Err: err}
	}
	if errors.Is(err, fs.ErrExist) {
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return &os.PathError{Op: "replace", Path: path, Err: syscall.ENOTDIR}
		}
		if err := exchange(temp, path); err == nil {
			return nil
		} else if !unsupported(err) {
			return &os.LinkError{Op: "exchange", Old: temp, New: path, Err: err}
		}
	}
	return swapInSteps(temp, path)
}

// unsupported reports that a file system or kernel lacks a flag of renameat2.
func unsupported(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP)
}

// oldName is where swapInSteps keeps the folder that it replaces.
func oldName(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".old")
}

// swapInSteps replaces a folder by two renames. The folder's parent is locked
// so that a reader's Recover does not step between.
func swapInSteps(temp, path string) error {
	unlock := lockDir(filepath.Dir(path))
	defer unlock()
	old := oldName(path)
	switch err := os.Rename(path, old); {
	case errors.Is(err, fs.ErrNotExist):
		return os.Rename(temp, path)
	case err != nil:
		return err
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return errors.Join(err, os.Rename(old, path))
	}
	if err := os.Rename(temp, path); err != nil {
		return errors.Join(err, os.Rename(old, path))
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return err
	}
	return os.RemoveAll(old)
}

// Recover puts a folder back that a crash caught between the two renames of a
// replacement. It does nothing in all other cases, a folder that never was
// among them; a leftover of a replacement that was completed is removed.
func Recover(path string) error {
	path, err := resolve(path)
	if err != nil {
		return err
	}
	old := oldName(path)
	if _, err := os.Lstat(old); err != nil {
		return nil // the usual case costs one look
	}
	unlock := lockDir(filepath.Dir(path))
	defer unlock()
	if _, err := os.Lstat(path); err == nil {
		// Complete: the new folder has its name. A reader without the right
		// to remove the rest may still read.
		_ = os.RemoveAll(old)
		return nil
	}
	if err := os.Rename(old, path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// lockDir waits for the lock of a folder and returns how to let it go. A file
// system without locks has one writer at a time by the package's rule, and
// readers that come in the wrong instant see the folder missing.
func lockDir(dir string) (unlock func()) {
	d, err := os.Open(dir)
	if err != nil {
		return func() {}
	}
	_ = flock(d, syscall.LOCK_EX)
	return func() { d.Close() }
}

// syncTree syncs every file and folder below dir, and dir.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !e.IsDir() && !e.Type().IsRegular() {
			return nil
		}
		return syncDir(path) // as well for files
	})
}
