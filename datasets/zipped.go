package datasets

import (
	"archive/zip"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/flate"

	"zerogcn/internal/usage"
)

// Text in zip archives may expand to freeExpansion bytes, and beyond that to
// usualRatio times its packed size; more is taken for a zip bomb.
const (
	freeExpansion = 1 << 30
	usualRatio    = 200
	maxZipMembers = 1 << 16
)

// zipped is a zip archive of text files.
type zipped struct {
	path  string
	file  *os.File
	files []*zip.File
}

func openZipped(path string) (*zipped, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, usage.Wrap(err)
	}
	st, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	z, err := zip.NewReader(f, st.Size())
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, errors.Join(usageErrorf("%s: the zip directory at the file's end cannot be read (%w): the file is cut short or is no zip", path, err), f.Close())
	}
	if len(z.File) > maxZipMembers {
		return nil, errors.Join(usageErrorf("%s: %d members: at most %d are read", path, len(z.File), maxZipMembers), f.Close())
	}
	z.RegisterDecompressor(zip.Deflate, flate.NewReader)
	return &zipped{path, f, z.File}, nil
}

func (z *zipped) Close() error { return z.file.Close() }

// find returns the first member whose name ends in suffix, nil if there is none.
func (z *zipped) find(suffix string) *zip.File {
	for _, m := range z.files {
		if strings.HasSuffix(m.Name, suffix) && !strings.HasPrefix(m.Name, "__MACOSX/") {
			return m
		}
	}
	return nil
}

// open opens a member as a stream that ends, with an error, where the archive's
// size says.
func (z *zipped) open(m *zip.File) (io.ReadCloser, string, error) {
	name := z.path + ": " + strings.Map(func(r rune) rune {
		if r < ' ' {
			return '?'
		}
		return r
	}, m.Name)
	size, packed := m.UncompressedSize64, m.CompressedSize64
	if size > freeExpansion && size/usualRatio > packed {
		return nil, name, usageErrorf("%s: %d bytes claim to expand to %d: refused as a zip bomb; unpack it yourself if it is genuine", name, packed, size)
	}
	r, err := m.Open()
	if err != nil {
		return nil, name, usageErrorf("%s: %w: the archive is damaged", name, err)
	}
	return &zipMember{ReadCloser: r, left: size}, name, nil
}

// zipMember marks errors of decompression as the user's.
type zipMember struct {
	io.ReadCloser
	left uint64
}

func (m *zipMember) Read(b []byte) (int, error) {
	if uint64(len(b)) > m.left+1 {
		b = b[:m.left+1]
	}
	n, err := m.ReadCloser.Read(b)
	if uint64(n) > m.left {
		return 0, usageErrorf("the compressed data is longer than the archive says: the archive is damaged")
	}
	m.left -= uint64(n)
	if err != nil && err != io.EOF {
		err = usageErrorf("the compressed data is damaged (%w)", err)
	}
	return n, err
}
