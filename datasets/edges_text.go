package datasets

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"strconv"

	"zerogcn/graph"
	"zerogcn/internal/usage"
)

// edgeText reads edges from lines of text: two node numbers, separated by
// commas, semicolons, tabs or spaces. A first line that is no edge is a header.
// Empty lines and lines that begin with # or % are passed over, CRLF ends a line
// as LF does, numbers may be written as floats (2746.0).
type edgeText struct {
	name  string // of the file, for messages
	nodes int    // ids must be below it
	// weights says that a third column is the weight; otherwise further
	// columns are passed over.
	weights bool
}

// maxLine bounds a line: 64 MiB.
const maxLine = 64 << 20

// read returns the edges and, per edge, what comes first as its source.
func (t edgeText) read(ctx context.Context, r io.Reader) (graph.Edges, error) {
	var e graph.Edges
	lines := newLineReader(t.name, r)
	first := true
	for {
		line, err := lines.next()
		if err == io.EOF {
			return e, nil
		}
		if err != nil {
			return e, err
		}
		if lines.number&0xFFFF == 0 && ctx.Err() != nil {
			return e, ctx.Err()
		}
		if len(line) == 0 || line[0] == '#' || line[0] == '%' {
			continue
		}
		header := first
		first = false
		u, rest, ok1 := cutNumber(line)
		v, rest, ok2 := cutNumber(rest)
		if !ok1 || !ok2 {
			if header && !startsWithNumber(line) {
				continue
			}
			return e, lines.faultf("%.60q does not begin with two node numbers", line)
		}
		for _, id := range [2]int64{u, v} {
			if id < 0 || id >= int64(t.nodes) {
				return e, lines.faultf("node %d: there are %d nodes, numbered from 0", id, t.nodes)
			}
		}
		if t.weights {
			w := float32(1)
			if f := field(&rest); len(f) > 0 {
				x, err := strconv.ParseFloat(string(f), 32)
				if err != nil || x-x != 0 {
					return e, lines.faultf("the weight %.40q is not a finite number", f)
				}
				w = float32(x)
			}
			e.Weights = append(e.Weights, w)
		}
		e.Sources = append(e.Sources, int32(u))
		e.Targets = append(e.Targets, int32(v))
	}
}

func isSeparator(c byte) bool { return c == ',' || c == ';' || c == '\t' || c == ' ' }

// field cuts the next field off a line: one separator, or several spaces and
// tabs, end it.
func field(line *[]byte) []byte {
	b := *line
	i := 0
	for i < len(b) && (b[i] == ' ' || b[i] == '\t') {
		i++
	}
	j := i
	for j < len(b) && !isSeparator(b[j]) {
		j++
	}
	f := b[i:j]
	for j < len(b) && (b[j] == ' ' || b[j] == '\t') {
		j++
	}
	if j < len(b) && (b[j] == ',' || b[j] == ';') {
		j++
	}
	*line = b[j:]
	return f
}

// cutNumber cuts a whole number off a line.
func cutNumber(line []byte) (v int64, rest []byte, ok bool) {
	i := 0
	for i < len(line) && line[i]-'0' <= 9 && i < 18 {
		v = v*10 + int64(line[i]-'0')
		i++
	}
	if i > 0 && (i == len(line) || isSeparator(line[i])) {
		if i < len(line) && line[i] == ',' { // the usual case, without field
			return v, line[i+1:], true
		}
		rest = line
		field(&rest)
		return v, rest, true
	}
	rest = line
	v, ok = wholeNumber(field(&rest))
	return v, rest, ok
}

// wholeNumber reads an integer, also one written as a float or in quotes.
func wholeNumber(f []byte) (int64, bool) {
	if n := len(f); n >= 2 && f[0] == '"' && f[n-1] == '"' {
		f = f[1 : n-1]
	}
	if v, err := strconv.ParseInt(string(f), 10, 64); err == nil {
		return v, true
	}
	x, err := strconv.ParseFloat(string(f), 64)
	if err != nil || x != math.Trunc(x) || math.Abs(x) > 1<<53 {
		return 0, false
	}
	return int64(x), true
}

// startsWithNumber tells a malformed edge from a header.
func startsWithNumber(line []byte) bool {
	f := field(&line)
	_, err := strconv.ParseFloat(string(f), 64)
	return err == nil
}

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
