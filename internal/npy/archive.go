package npy

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"unicode"

	"github.com/klauspost/compress/flate"

	"zerogcn/internal/usage"
)

// Limits against archives that are made to exhaust memory.
const (
	// maxMembers bounds the entries of an archive.
	maxMembers = 1 << 16
	// maxRatio is more than deflate can reach (1032:1): a member that claims
	// more lies about its size.
	maxRatio = 1040
	// Members may expand to freeExpansion bytes whatever their ratio, and
	// beyond that by usualRatio. Bags of words stay below 300:1.
	freeExpansion = 1 << 30
	usualRatio    = 400
)

// checkedStored is the size up to which stored members are held in memory.
const checkedStored = 64 << 20

// ErrNoMember is wrapped by Archive.Array for names that an archive lacks.
var ErrNoMember = errors.New("no such array")

// Archive is an .npz file: a zip file of arrays.
type Archive struct {
	path    string
	file    *os.File
	size    int64
	members map[string]*zip.File
	names   []string
}

// OpenArchive opens an .npz file and reads its directory. The caller closes it
// after the last use of its arrays.
func OpenArchive(path string) (*Archive, error) {
	f, size, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	a := &Archive{path: path, file: f, size: size, members: map[string]*zip.File{}}
	if err := a.readDirectory(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return a, nil
}

func (a *Archive) readDirectory() error {
	z, err := zip.NewReader(a.file, a.size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return usage.Errorf("%s: the zip directory at the file's end cannot be read (%w): the file is cut short or is no .npz", a.path, err)
	}
	if len(z.File) > maxMembers {
		return usage.Errorf("%s: %d members: at most %d are read", a.path, len(z.File), maxMembers)
	}
	z.RegisterDecompressor(zip.Deflate, flate.NewReader)
	for _, m := range z.File {
		name, ok := strings.CutSuffix(m.Name, ".npy")
		if !ok {
			continue
		}
		if strings.ContainsFunc(name, unicode.IsControl) {
			return usage.Errorf("%s: member %.80q has control characters in its name: the archive is damaged", a.path, m.Name)
		}
		if a.members[name] != nil {
			return usage.Errorf("%s: member %.80q is there twice", a.path, m.Name)
		}
		a.members[name] = m
		a.names = append(a.names, name)
	}
	slices.Sort(a.names)
	return nil
}

// Path returns the path of the file.
func (a *Archive) Path() string { return a.path }

// Names returns the names of the arrays, ascending, without .npy.
func (a *Archive) Names() []string { return slices.Clone(a.names) }

// Has reports whether there is an array of this name.
func (a *Archive) Has(name string) bool { return a.members[name] != nil }

// Close closes the file.
func (a *Archive) Close() error { return a.file.Close() }

// Array opens an array by name. Stored members of up to 64 MiB are read and
// their checksum compared at once; larger ones are read in place, in parallel,
// without it; deflated ones as a stream, with it when read to the end. Nothing is
// allocated by a size that the file does not have.
func (a *Archive) Array(name string) (*Array, error) {
	m := a.members[name]
	full := a.path + ": " + name + ".npy"
	if m == nil {
		return nil, usage.Wrap(fmt.Errorf("%s: %w: there are %s", full, ErrNoMember, strings.Join(a.names[:min(len(a.names), 20)], ", ")))
	}
	if m.UncompressedSize64 > 1<<62 || m.CompressedSize64 > 1<<62 {
		return nil, usage.Errorf("%s: a size of %d bytes cannot be", full, m.UncompressedSize64)
	}
	size, packed := int64(m.UncompressedSize64), int64(m.CompressedSize64)
	if m.Flags&1 != 0 {
		return nil, usage.Errorf("%s: the member is encrypted", full)
	}
	switch m.Method {
	case zip.Store:
		at, err := m.DataOffset()
		if err != nil {
			return nil, usage.Errorf("%s: %w: the archive is damaged", full, err)
		}
		if packed != size || at+size > a.size {
			return nil, usage.Errorf("%s: %d bytes from byte %d on, in a file of %d: the archive is damaged", full, size, at, a.size)
		}
		if size > 0 && size <= checkedStored {
			b := make([]byte, size)
			if _, err := (&stream{open: m.Open, size: size}).ReadAt(b, 0); err != nil {
				return nil, fmt.Errorf("%s: %w", full, err)
			}
			return New(bytes.NewReader(b), size, full)
		}
		return New(io.NewSectionReader(a.file, at, size), size, full)
	case zip.Deflate:
		if size > packed*maxRatio+maxRatio || size > max(freeExpansion, packed*usualRatio) {
			return nil, usage.Errorf("%s: %d bytes claim to expand to %d: refused as a zip bomb; unpack it yourself if it is genuine", full, packed, size)
		}
		arr, err := New(&stream{open: m.Open, size: size}, size, full)
		if err != nil {
			return nil, err
		}
		arr.stream = true
		return arr, nil
	}
	return nil, usage.Errorf("%s: compression method %d: stored and deflated members are read", full, m.Method)
}

// stream makes a forward-only reader an io.ReaderAt: reads that ascend are cheap, a
// step back starts again from the beginning.
type stream struct {
	open func() (io.ReadCloser, error)
	size int64

	mu  sync.Mutex
	r   io.ReadCloser
	pos int64
}

func (s *stream) ReadAt(b []byte, off int64) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if off >= s.size {
		return 0, io.EOF
	}
	if s.r == nil || off < s.pos {
		if s.r != nil {
			s.r.Close()
			s.r = nil
		}
		r, err := s.open()
		if err != nil {
			return 0, corrupt(err)
		}
		s.r, s.pos = r, 0
	}
	if off > s.pos {
		n, err := io.CopyN(io.Discard, s.r, off-s.pos)
		s.pos += n
		if err != nil {
			return 0, corrupt(err)
		}
	}
	want := b[:min(int64(len(b)), s.size-off)]
	n, err := io.ReadFull(s.r, want)
	s.pos += int64(n)
	if err != nil {
		return n, corrupt(err)
	}
	if s.pos == s.size { // the checksum is compared at the end
		var one [1]byte
		if _, err := io.ReadFull(s.r, one[:]); err != io.EOF {
			if err == nil {
				err = errors.New("more bytes than the archive says")
			}
			return 0, corrupt(err)
		}
		s.r.Close()
		s.r = nil
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// corrupt marks what decompression reports as a fault of the content, save for
// errors of the file system.
func corrupt(err error) error {
	var no syscall.Errno
	if errors.As(err, &no) {
		return err
	}
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return usage.Errorf("the compressed data ends too early")
	}
	return usage.Errorf("the compressed data is damaged (%w)", err)
}
