package datasets

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"zerogcn/internal/usage"
)

// Compressed text may expand to freeExpansion bytes, and beyond that to
// textRatio times its packed size: bags of words as csv reach 100.
const textRatio = 400

// compressedExts are the endings that a compressed text file may have besides
// its own. What a file really is, its first bytes say.
var compressedExts = []string{"", ".gz", ".zst"}

// aheadBytes and aheadBlocks say how much is unpacked ahead of the parser, so
// that a second core can do it.
const (
	aheadBytes  = 256 << 10
	aheadBlocks = 4
)

// textFile is a text file that may be compressed with gzip or zstd. It is read
// as a stream of the unpacked bytes.
type textFile struct {
	io.Reader
	file  *os.File
	close func() // ends the unpacking; nil for plain text
}

// openText opens a text file, and unpacks it as its first bytes say. Damage of
// the packed data is the user's (internal/usage), without the file's name,
// which the parser puts before it.
func openText(path string) (*textFile, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, usage.Wrap(err)
	}
	if !st.Mode().IsRegular() { // a pipe would block
		return nil, usageErrorf("%s: not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, usage.Wrap(err)
	}
	var magic [4]byte
	n, err := io.ReadFull(f, magic[:])
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, errors.Join(usage.Wrap(&readError{path, err}), f.Close())
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, errors.Join(&readError{path, err}, f.Close())
	}
	if n < len(magic) && plainName(path) != path {
		return nil, errors.Join(usageErrorf("%s: %d bytes are no packed file: it is cut short", path, n), f.Close())
	}
	t := &textFile{Reader: f, file: f}
	r, done, err := unpack(f, magic[:n])
	if err != nil {
		return nil, errors.Join(usageErrorf("%s: %w", path, damaged(err)), f.Close())
	}
	if done != nil {
		a := newReadAhead(&bounded{r: r, packed: st.Size()})
		t.Reader, t.close = a, func() { a.stop(); done() }
	}
	return t, nil
}

// Close ends the unpacking, waits for it, and closes the file.
func (t *textFile) Close() error {
	if t.close != nil {
		t.close()
	}
	return t.file.Close()
}

// unpack returns the stream that packed data stand for, by their first bytes;
// done is nil where they are not packed.
func unpack(r io.Reader, magic []byte) (out io.Reader, done func(), err error) {
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(bufio.NewReaderSize(r, 64<<10))
		if err != nil {
			return nil, nil, err
		}
		return z, func() { z.Close() }, nil
	case bytes.HasPrefix(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		// zstd frees the window that a frame asks for as it goes; a bound on it
		// keeps a frame from asking for memory at will.
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128<<20))
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	}
	return r, nil, nil
}

// headText returns up to n bytes of the beginning of an entry's text, or of
// the file itself for an empty name, unpacked; nil if it cannot be read.
func (s *Source) headText(name string, n int) []byte {
	p := s.Path
	if name != "" {
		p = s.File(name)
	}
	t, err := openText(p)
	if err != nil {
		return nil
	}
	defer t.Close()
	b := make([]byte, n)
	m, _ := io.ReadFull(t, b)
	return b[:m]
}

// plainName is a name without the ending of a compressed file.
func plainName(name string) string {
	for _, ext := range compressedExts[1:] {
		if rest, ok := strings.CutSuffix(name, ext); ok {
			return rest
		}
	}
	return name
}

// bounded refuses what expands beyond reason, and marks errors of unpacking as
// the user's.
type bounded struct {
	r      io.Reader
	packed int64
	got    int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	b.got += int64(n)
	if b.got > freeExpansion && b.got/textRatio > b.packed {
		return 0, usageErrorf("%d packed bytes expand to more than %d: refused as a bomb; unpack it yourself if it is genuine", b.packed, b.got)
	}
	if err != nil && err != io.EOF {
		err = damaged(err)
	}
	return n, err
}

func damaged(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) { // the disk, not the content
		return err
	}
	if err == io.ErrUnexpectedEOF || err == io.EOF {
		return usageErrorf("the compressed data ends too early: the file is cut short")
	}
	return usageErrorf("the compressed data is damaged (%w)", err)
}

// readAhead reads from r in a goroutine of its own, a few blocks ahead.
type readAhead struct {
	full chan block
	free chan []byte
	quit chan struct{}
	wg   sync.WaitGroup

	now  block
	rest []byte
	err  error
}

type block struct {
	b   []byte
	err error // after b
}

func newReadAhead(r io.Reader) *readAhead {
	a := &readAhead{full: make(chan block, aheadBlocks), free: make(chan []byte, aheadBlocks), quit: make(chan struct{})}
	for range aheadBlocks {
		a.free <- make([]byte, aheadBytes)
	}
	a.wg.Go(func() { a.run(r) })
	return a
}

func (a *readAhead) run(r io.Reader) {
	for {
		select {
		case <-a.quit:
			return
		case b := <-a.free:
			n, err := io.ReadFull(r, b[:aheadBytes])
			if err == io.ErrUnexpectedEOF { // ReadFull's own: bounded has another
				err = io.EOF
			}
			a.full <- block{b[:n], err} // never blocks: there are no more blocks than places
			if err != nil {
				return
			}
		}
	}
}

func (a *readAhead) Read(p []byte) (int, error) {
	for len(a.rest) == 0 {
		if a.err != nil {
			return 0, a.err
		}
		if a.now.b != nil {
			a.free <- a.now.b
		}
		a.now = <-a.full
		a.rest, a.err = a.now.b, a.now.err
	}
	n := copy(p, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}

// stop ends the goroutine and waits for it.
func (a *readAhead) stop() {
	close(a.quit)
	a.wg.Wait()
}

// withText returns the first entry that ends in suffix, or in that and the
// ending of a compressed file; "" if there is none.
func (s *Source) withText(suffix string) string {
	for _, ext := range compressedExts {
		if n := s.WithSuffix(suffix + ext); n != "" {
			return n
		}
	}
	return ""
}
