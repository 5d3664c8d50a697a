package datasets

import (
	"bytes"
	"context"
	"errors"
	"io"

	"zerogcn/internal/usage"
)

// maxLine bounds a line: 64 MiB.
const maxLine = 64 << 20

// lineReader reads lines and counts them. Lines come without their end and
// without a carriage return; a byte-order mark before the first is dropped.
type lineReader struct {
	name   string
	r      io.Reader
	buf    []byte
	lo, hi int
	eof    bool
	number int // of the line that next returned last, from 1
}

func newLineReader(name string, r io.Reader) *lineReader {
	return &lineReader{name: name, r: r, buf: make([]byte, 1<<18)}
}

// next returns the next line, valid until the call after; io.EOF at the end.
func (l *lineReader) next() ([]byte, error) {
	for {
		if n := bytes.IndexByte(l.buf[l.lo:l.hi], '\n'); n >= 0 {
			line := l.buf[l.lo : l.lo+n]
			l.lo += n + 1
			return l.trim(line), nil
		}
		if l.eof {
			if l.lo == l.hi {
				return nil, io.EOF
			}
			line := l.buf[l.lo:l.hi]
			l.lo = l.hi
			return l.trim(line), nil
		}
		if err := l.fill(); err != nil {
			return nil, err
		}
	}
}

func (l *lineReader) fill() error {
	copy(l.buf, l.buf[l.lo:l.hi])
	l.lo, l.hi = 0, l.hi-l.lo
	if l.hi == len(l.buf) {
		if len(l.buf) >= maxLine {
			l.number++
			return l.faultf("the line is longer than %d bytes", l.hi)
		}
		l.buf = append(l.buf, make([]byte, len(l.buf))...)
	}
	n, err := io.ReadAtLeast(l.r, l.buf[l.hi:], 1)
	l.hi += n
	switch {
	case errors.Is(err, io.EOF):
		l.eof = true
	case usage.Is(err):
		return usageErrorf("%s: %w", l.name, err)
	case err != nil:
		return &readError{l.name, err}
	}
	return nil
}

func (l *lineReader) trim(line []byte) []byte {
	l.number++
	if l.number == 1 {
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	return bytes.TrimSuffix(line, []byte("\r"))
}

// filled is next, without lines that are empty. It looks at ctx now and then.
func (l *lineReader) filled(ctx context.Context) ([]byte, error) {
	for {
		line, err := l.next()
		if err != nil {
			return nil, err
		}
		if l.number&0xFFF == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if len(line) > 0 {
			return line, nil
		}
	}
}

// faultf makes an error of the user's about the line that was read last.
func (l *lineReader) faultf(format string, args ...any) error {
	return usageErrorf("%s: line %d: "+format, append([]any{l.name, l.number}, args...)...)
}

// readError is a failure to read, not a fault of the content.
type readError struct {
	name string
	err  error
}

func (e *readError) Error() string { return e.name + ": " + e.err.Error() }
func (e *readError) Unwrap() error { return e.err }
