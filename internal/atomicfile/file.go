package atomicfile

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// File is a file that gets its name when it is complete.
type File struct {
	*os.File // open for writing under the temporary name
	target   string
	done     bool
}

// Create starts a file that Commit will put at path with the permissions perm
// (before umask is applied). The folder must exist. Where path is a symbolic
// link, the file that it leads to is replaced; what is no regular file (a
// folder, a device such as /dev/null) is refused.
func Create(path string, perm fs.FileMode) (*File, error) {
	if info, err := os.Stat(path); err == nil {
		if !info.Mode().IsRegular() {
			return nil, &os.PathError{Op: "replace", Path: path, Err: errors.New("not a regular file")}
		}
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return nil, err
		}
	}
	sweep(path)
	f, err := lockedTemp(path, func(name string) (*os.File, error) {
		return os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, perm)
	})
	if err != nil {
		return nil, err
	}
	return &File{File: f, target: path}, nil
}

// Commit syncs the file, gives it its name in place of what was there, syncs
// the folder and closes the file. After an error nothing is left and the old
// file stands, unless it was the folder's sync that failed.
func (f *File) Commit() error {
	if f.done {
		return fs.ErrClosed
	}
	if err := f.Sync(); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := os.Rename(f.Name(), f.target); err != nil {
		return errors.Join(err, f.Close())
	}
	f.done = true
	return errors.Join(f.File.Close(), syncDir(filepath.Dir(f.target)))
}

// Close abandons a file that was not committed: nothing of it is left. After
// Commit it does nothing, so that it can be deferred.
func (f *File) Close() error {
	if f.done {
		return nil
	}
	f.done = true
	return errors.Join(os.Remove(f.Name()), f.File.Close())
}

// Write creates or replaces the file at path with what fill writes. If fill
// fails, its error is returned and nothing changes.
func Write(path string, perm fs.FileMode, fill func(w io.Writer) error) (err error) {
	f, err := Create(path, perm)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriterSize(f, 1<<18)
	if err := fill(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Commit()
}
