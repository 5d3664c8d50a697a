package fetch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"zerogcn/datasets"
	"zerogcn/internal/usage"
)

// Download brings a published set to ROOT/NAME as a native folder and returns
// that path. A set that is there already, in any known format, is left alone.
//
// It needs the agreement of whoever runs it to the set's size and licence
// (datasets.PublishedSet.Terms); asking is the caller's. Cancelling ctx ends it
// with the context's error and keeps what was transferred for the next call.
// Content that is refused, an address that answers otherwise than its publisher
// would, and a full disk are errors of the input (internal/usage); a line that
// stays broken is not.
func Download(ctx context.Context, set datasets.PublishedSet, o Options) (path string, err error) {
	o.ensureDefaults()
	root := datasets.Options{Root: o.Root}.RootFolder()
	path = filepath.Join(root, set.Name)
	if _, err := os.Stat(path); err == nil {
		return path, datasets.Find(asPath(path), datasets.Options{})
	}
	work := filepath.Join(root, "."+set.Name+".download")
	if err := os.MkdirAll(work, 0o777); err != nil {
		return "", usage.Wrap(err)
	}
	unlock, err := lock(work)
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(path); err == nil { // by the process that held the lock
		return path, nil
	}
	d := &download{set: set, options: &o, root: root, work: work}
	if err := d.run(ctx, path); err != nil {
		return "", fmt.Errorf("dataset %s: %w", set.Name, err)
	}
	if o.Keep {
		return path, nil
	}
	return path, os.RemoveAll(work)
}

// asPath makes sure that a name is taken for a path.
func asPath(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// lock holds the working folder until unlock or the end of the process.
func lock(work string) (unlock func(), err error) {
	d, err := os.Open(work)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(d.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errors.Join(usage.Errorf("%s: another process is downloading this set: wait for it", work), d.Close())
	}
	return func() { d.Close() }, nil // file systems without locks have one user at a time
}

// download is one set under way.
type download struct {
	set     datasets.PublishedSet
	options *Options
	root    string
	work    string
	sums    map[string]string // by published address
}

func (d *download) file(f datasets.PublishedFile) string { return filepath.Join(d.work, f.Name()) }

func (d *download) run(ctx context.Context, path string) error {
	if len(d.set.Files) == 0 {
		return usage.Errorf("no address is known for it")
	}
	if err := checkSpace(d.root, d.set.Disk-sizeBelow(d.work)); err != nil {
		return err
	}
	if err := d.transfer(ctx); err != nil {
		return err
	}
	source, err := d.unpack(ctx)
	if err != nil {
		return err
	}
	if err := d.convert(ctx, source, path); err != nil {
		if usage.Is(err) && ctx.Err() == nil {
			err = fmt.Errorf("%w (the files are kept in %s: remove that to transfer them again)", err, d.work)
		}
		return err
	}
	unpinned := map[string]string{}
	for _, f := range d.set.Files {
		if f.SHA256 == "" {
			unpinned[f.URL] = d.sums[f.URL]
		}
	}
	return writeRecords(d.root, unpinned)
}

func (d *download) transfer(ctx context.Context) error {
	d.sums = map[string]string{}
	client := newClient(d.options.Transport)
	defer client.CloseIdleConnections()
	for _, f := range d.set.Files {
		address, err := d.options.address(f.URL)
		if err != nil {
			return err
		}
		t := &transfer{client: client, address: address, path: d.file(f), want: f, options: d.options}
		sum, err := t.run(ctx)
		if err != nil {
			return err
		}
		if f.SHA256 == "" {
			if err := checkRecord(d.root, f.URL, sum); err != nil {
				return errors.Join(err, os.Remove(d.file(f)))
			}
		}
		d.sums[f.URL] = sum
	}
	return nil
}

// Names in the working folder. A folder of the second name is complete.
const (
	unpackingName = "unpacking"
	unpackedName  = "unpacked"
)

// unpack returns the folder or file that holds the set.
func (d *download) unpack(ctx context.Context) (string, error) {
	archives := slices.DeleteFunc(slices.Clone(d.set.Files), func(f datasets.PublishedFile) bool { return !IsArchive(f.Name()) })
	if len(archives) == 0 {
		if len(d.set.Files) == 1 {
			return d.file(d.set.Files[0]), nil
		}
		return d.work, nil
	}
	done := filepath.Join(d.work, unpackedName)
	if _, err := os.Stat(done); err == nil {
		return findSet(done)
	}
	temp := filepath.Join(d.work, unpackingName)
	if err := os.RemoveAll(temp); err != nil {
		return "", err
	}
	if err := os.Mkdir(temp, 0o777); err != nil {
		return "", err
	}
	for _, f := range archives {
		if err := Unpack(ctx, d.file(f), temp, d.set.Disk, func(n, total int64) {
			d.options.Listen(Event{Stage: Unpacking, Name: f.Name(), Done: n, Total: total})
		}); err != nil {
			return "", d.discard(f, err)
		}
	}
	if err := os.Rename(temp, done); err != nil {
		return "", err
	}
	return findSet(done)
}

// findSet goes down into folders that hold nothing else, to one in a known format.
func findSet(dir string) (string, error) {
	const depth = 4
	for at := asPath(dir); ; {
		err := datasets.Find(at, datasets.Options{})
		if err == nil {
			return at, nil
		}
		entries, readErr := os.ReadDir(at)
		if readErr != nil {
			return "", readErr
		}
		entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool {
			return strings.HasPrefix(e.Name(), ".") || e.Name() == "__MACOSX"
		})
		if len(entries) != 1 || !entries[0].IsDir() || strings.Count(at, string(filepath.Separator))-strings.Count(asPath(dir), string(filepath.Separator)) >= depth {
			return "", err
		}
		at = filepath.Join(at, entries[0].Name())
	}
}

func (d *download) convert(ctx context.Context, source, path string) (err error) {
	d.options.Listen(Event{Stage: Converting, Name: d.set.Name})
	set, err := datasets.Open(ctx, asPath(source), datasets.Options{Workers: d.options.Workers})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	set.Name = d.set.Name
	return datasets.Write(ctx, path, set, d.options.Workers)
}

// discard removes what Unpack refused, so that the next call does not stumble over it
// again; files of known checksum stay, as the same would arrive.
func (d *download) discard(f datasets.PublishedFile, why error) error {
	if !usage.Is(why) {
		return why
	}
	why = errors.Join(why, os.RemoveAll(filepath.Join(d.work, unpackingName)))
	if f.SHA256 != "" {
		return why
	}
	return errors.Join(why, os.Remove(d.file(f)))
}
