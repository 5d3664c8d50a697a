package fetch

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"

	"zerogcn/datasets"
	"zerogcn/internal/usage"
)

// maxMembers bounds the entries of an archive.
const maxMembers = 1 << 17

// IsArchive reports whether Unpack expands files of this name.
func IsArchive(name string) bool {
	return strings.HasSuffix(name, ".zip") || strings.HasSuffix(name, ".tar.gz") || strings.HasSuffix(name, ".tgz")
}

// Unpack expands a zip (.zip) or a gzip-compressed tar archive (.tar.gz, .tgz) into
// the folder dir, which exists. Members may be files and folders inside it: names
// that lead out of it, links, devices, names that occur twice, and more than limit
// bytes in all are errors of the input (internal/usage). What was unpacked before
// an error stays. listen, if not nil, is told the bytes written and those to come, -1
// where the archive does not say.
func Unpack(ctx context.Context, archive, dir string, limit int64, listen func(done, total int64)) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	if listen == nil {
		listen = func(int64, int64) {}
	}
	u := &unpacker{ctx: ctx, root: root, archive: archive, limit: limit, total: -1, listen: listen, buf: make([]byte, 1<<20)}
	if strings.HasSuffix(archive, ".zip") {
		return u.zip(f)
	}
	return u.tar(f)
}

// unpacker writes members below root, which the kernel keeps them in: os.Root
// follows no link out of it, whatever the names say.
type unpacker struct {
	ctx     context.Context
	root    *os.Root
	archive string
	limit   int64
	done    int64
	total   int64
	members int
	listen  func(done, total int64)
	buf     []byte
}

func (u *unpacker) refuse(format string, args ...any) error {
	return usage.Errorf("%s: %w", u.archive, fmt.Errorf(format, args...))
}

func (u *unpacker) zip(f *os.File) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	z, err := zip.NewReader(f, st.Size())
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return u.refuse("not a zip archive that can be read (%w)%s", err, u.looksLike(f))
	}
	z.RegisterDecompressor(zip.Deflate, flate.NewReader)
	sum := int64(0)
	for _, m := range z.File {
		if m.UncompressedSize64 > uint64(u.limit-sum) {
			return u.refuse("its members claim to expand to more than %s: refused, as the set takes less", datasets.SizeText(u.limit))
		}
		sum += int64(m.UncompressedSize64)
	}
	u.total = sum
	for _, m := range z.File {
		if err := u.zipMember(m); err != nil {
			return err
		}
	}
	return nil
}

func (u *unpacker) zipMember(m *zip.File) error {
	// Some writers mark folders by the slash alone.
	mode := m.Mode()
	if strings.HasSuffix(m.Name, "/") {
		mode = fs.ModeDir
	}
	name, err := u.member(m.Name, mode)
	if err != nil || mode.IsDir() {
		return err
	}
	r, err := m.Open()
	if err != nil {
		return u.refuse("member %.200q: %w", m.Name, err)
	}
	defer r.Close()
	return u.write(name, r, int64(m.UncompressedSize64))
}

func (u *unpacker) tar(f *os.File) error {
	z, err := gzip.NewReader(f)
	if err != nil {
		return u.refuse("not a gzip file (%w)%s", err, u.looksLike(f))
	}
	t := tar.NewReader(z)
	for {
		h, err := t.Next()
		if err == io.EOF {
			// What follows the end mark is not looked at, but its checksum is.
			if _, err := io.CopyN(io.Discard, z, 1<<20); err != nil && err != io.EOF {
				return u.refuse("the archive is damaged (%w)", err)
			}
			return nil
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
			return u.refuse("not a tar archive that can be read (%w)", err)
		}
		mode := h.FileInfo().Mode()
		if h.Typeflag == tar.TypeLink {
			mode |= fs.ModeIrregular
		}
		name, err := u.member(h.Name, mode)
		if err != nil {
			return err
		}
		if mode.IsDir() {
			continue
		}
		if h.Size > u.limit-u.done {
			return u.refuse("its members claim to expand to more than %s: refused, as the set takes less", datasets.SizeText(u.limit))
		}
		if err := u.write(name, t, h.Size); err != nil {
			return err
		}
	}
}

// member checks a name and a kind, and makes the folders that it is in.
func (u *unpacker) member(name string, mode fs.FileMode) (string, error) {
	if err := u.ctx.Err(); err != nil {
		return "", err
	}
	if u.members++; u.members > maxMembers {
		return "", u.refuse("more than %d members", maxMembers)
	}
	clean := path.Clean(name)
	if strings.ContainsAny(name, "\\\x00") || path.IsAbs(name) || !filepath.IsLocal(clean) {
		return "", u.refuse("member %.200q would lie outside the folder that it is unpacked to: refused", name)
	}
	if !mode.IsDir() && !mode.IsRegular() {
		return "", u.refuse("member %.200q is a link or a device: refused", name)
	}
	dir := clean
	if !mode.IsDir() {
		dir = path.Dir(clean)
	}
	if dir != "." {
		if err := u.root.MkdirAll(dir, 0o777); err != nil {
			return "", u.refuse("member %.200q: %w", name, err)
		}
	}
	return clean, nil
}

// write writes a member of the given size.
func (u *unpacker) write(name string, r io.Reader, size int64) (err error) {
	f, err := u.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return u.refuse("member %.200q is in it twice", name)
	}
	if err != nil {
		return u.refuse("member %.200q: %w", name, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for n := int64(0); ; {
		if err := u.ctx.Err(); err != nil {
			return err
		}
		k, err := r.Read(u.buf)
		n += int64(k)
		if n > size {
			return u.refuse("member %.200q is longer than the archive says: it is damaged", name)
		}
		if _, err := f.Write(u.buf[:k]); err != nil {
			return err
		}
		u.done += int64(k)
		u.listen(u.done, u.total)
		switch {
		case err == io.EOF && n < size:
			return u.refuse("member %.200q is cut short after %d of %d bytes", name, n, size)
		case err == io.EOF:
			return nil
		case err != nil:
			return u.refuse("member %.200q is damaged (%w)", name, err)
		}
	}
}

// looksLike tells a page that was served in place of an archive.
func (u *unpacker) looksLike(f *os.File) string {
	head := make([]byte, 512)
	n, _ := f.ReadAt(head, 0)
	if text := bytes.ToLower(bytes.TrimSpace(head[:n])); bytes.HasPrefix(text, []byte("<!doctype")) || bytes.HasPrefix(text, []byte("<html")) {
		return ": it is a web page"
	}
	return ""
}
