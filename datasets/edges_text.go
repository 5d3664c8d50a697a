package datasets

import (
	"context"
	"io"
	"math"
	"strconv"

	"zerogcn/graph"
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

// edgeChunk is how many edges a stream yields at a time.
const edgeChunk = 1 << 16

// read returns the edges and, per edge, what comes first as its source.
func (t edgeText) read(ctx context.Context, r io.Reader) (graph.Edges, error) {
	var e graph.Edges
	p := edgeParser{edgeText: t, lines: newLineReader(t.name, r)}
	for {
		switch err := p.more(ctx, &e, edgeChunk); err {
		case nil:
		case io.EOF:
			return e, nil
		default:
			return e, err
		}
	}
}

// stream yields the edges of a file each time it is ranged over, so that they
// are never held together. The file is opened by the name t.name.
func (t edgeText) stream(ctx context.Context) graph.EdgeSource {
	return func(yield func(graph.Edges, error) bool) {
		f, err := openText(t.name)
		if err != nil {
			yield(graph.Edges{}, err)
			return
		}
		defer f.Close()
		p := edgeParser{edgeText: t, lines: newLineReader(t.name, f)}
		var e graph.Edges
		for {
			e.Sources, e.Targets, e.Weights = e.Sources[:0], e.Targets[:0], e.Weights[:0]
			err := p.more(ctx, &e, edgeChunk)
			if err != nil && err != io.EOF {
				yield(graph.Edges{}, err)
				return
			}
			if !yield(e, nil) || err == io.EOF {
				return
			}
		}
	}
}

// edgeParser is a file of edges half read.
type edgeParser struct {
	edgeText
	lines *lineReader
	begun bool
}

// more adds up to n lines of edges to e. At the end of the file it returns
// io.EOF, with the last edges added.
func (t *edgeParser) more(ctx context.Context, e *graph.Edges, n int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for range n {
		line, err := t.lines.next()
		if err != nil {
			return err
		}
		if len(line) == 0 || line[0] == '#' || line[0] == '%' {
			continue
		}
		header := !t.begun
		t.begun = true
		u, rest, ok1 := cutNumber(line)
		v, rest, ok2 := cutNumber(rest)
		if !ok1 || !ok2 {
			if header && !startsWithNumber(line) {
				continue
			}
			return t.lines.faultf("%.60q does not begin with two node numbers", line)
		}
		if nodes := int64(t.nodes); u < 0 || v < 0 || u >= nodes || v >= nodes {
			if u >= 0 && u < nodes {
				u = v
			}
			return t.lines.faultf("node %d: there are %d nodes, numbered from 0", u, t.nodes)
		}
		if t.weights {
			w := float32(1)
			if f := field(&rest); len(f) > 0 {
				w, err = parseFloat32(f)
				if err != nil || w-w != 0 {
					return t.lines.faultf("the weight %.40q is not a finite number", f)
				}
			}
			e.Weights = append(e.Weights, w)
		}
		e.Sources = append(e.Sources, int32(u))
		e.Targets = append(e.Targets, int32(v))
	}
	return nil
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
	if i > 0 && i == len(line) { // the usual cases, without field
		return v, nil, true
	}
	if i > 0 && isSeparator(line[i]) {
		if line[i] == ',' {
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
