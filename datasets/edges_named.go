package datasets

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strconv"
	"strings"

	"zerogcn/graph"
)

// A named edge list is text with an edge a line, as edge-list, but with ids that
// are names, or numbers too far apart to count from 0: user names, or SNAP's
// hashed ids. Ids are numbered in ascending order, as numbers if all of them are
// whole numbers from 0 up to int64's last, and then kept as original ids, else as
// bytes.
// Edges are kept as directed as they are, repeated ones once; a third column is
// the weight if it is the last and a number. A first line that begins with #, or
// that names its columns (source, src, from, id_1 …), is no edge.
var namedEdgesFormat = Format{
	Name:      "named-edges",
	Describe:  "an edge list whose ids are names, or numbers too far apart to count from 0",
	Recognise: func(s *Source) bool { return !s.Dir && recogniseNamed(s.headText("", 64<<10)) },
	Open:      openNamedEdges,
}

// sourceHeaders are names of a first column that tell a header.
var sourceHeaders = []string{"source", "src", "from", "fromnodeid", "node1", "node_1", "id_1", "u", "head", "start", "source_id", "#source"}

// recogniseNamed wants several lines of two or three fields with one separator
// that is no space within prose: a text of words is not an edge list.
func recogniseNamed(head []byte) bool {
	if bytes.IndexByte(head, 0) >= 0 {
		return false
	}
	lines := newLineReader("", bytes.NewReader(head))
	edges := 0
	for {
		line, err := lines.next()
		if err != nil {
			return edges > 1
		}
		if len(line) == 0 || line[0] == '#' || line[0] == '%' {
			continue
		}
		if edges++; edges > 100 {
			return true
		}
		if n := bytes.IndexAny(line, "\t,;"); n <= 0 || len(namedFields(nil, line)) > 3 || len(namedFields(nil, line)) < 2 {
			return false
		}
	}
}

// namedFields cuts a line into its fields, without blanks and quotes around.
func namedFields(to [][]byte, line []byte) [][]byte {
	to = splitCells(to[:0], line)
	for i, f := range to {
		if n := len(f); n >= 2 && f[0] == '"' && f[n-1] == '"' {
			to[i] = f[1 : n-1]
		}
	}
	return to
}

func openNamedEdges(ctx context.Context, s *Source, o Options) (*Dataset, error) {
	if s.Dir {
		return nil, usageErrorf("%s: a folder: name the file of edges", s.Path)
	}
	f, err := openText(s.Path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	l, err := parseNamedEdges(ctx, s.Path, f)
	if err != nil {
		return nil, err
	}
	d := &Dataset{Meta: Meta{Name: s.Base(), Source: "edge list of names", Task: Multiclass}, NodeIDs: l.numbers}
	d.Warnings = append(d.Warnings, plural(int64(l.nodes), "id is", "ids are")+" numbered in ascending order", "no features", "no labels")
	b := graph.Builder{NumNodes: l.nodes, Deduplicate: true, Workers: o.Workers}
	if d.Graph, err = b.FromEdges(ctx, l.edges.Sources, l.edges.Targets, l.edges.Weights); err != nil {
		return nil, err
	}
	return d, d.seal(ctx, o.Workers)
}

// namedEdges is an edge list with its ids numbered.
type namedEdges struct {
	edges   graph.Edges
	nodes   int
	numbers []int64 // by node; nil where ids are names
}

func parseNamedEdges(ctx context.Context, path string, r io.Reader) (*namedEdges, error) {
	lines := newLineReader(path, r)
	l := &namedEdges{}
	ids := map[string]int32{}
	var names []string
	var row [][]byte
	columns := 0
	for {
		if lines.number&0xFFFF == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		line, err := lines.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if len(line) == 0 || line[0] == '#' || line[0] == '%' {
			continue
		}
		row = namedFields(row, line)
		if columns == 0 && slices.Contains(sourceHeaders, strings.ToLower(string(row[0]))) {
			continue
		}
		if columns == 0 {
			columns = len(row)
		}
		if len(row) < 2 || len(row) > 3 || len(row) != columns {
			return nil, lines.faultf("%d columns: want two ids, and a weight in all lines or in none", len(row))
		}
		var ends [2]int32
		for i, id := range row[:2] {
			if len(id) == 0 {
				return nil, lines.faultf("column %d: the id is empty", i+1)
			}
			v, ok := ids[string(id)]
			if !ok {
				if len(names) == graph.MaxNodes {
					return nil, lines.faultf("more than %d ids", graph.MaxNodes)
				}
				v = int32(len(names))
				names = append(names, string(id))
				ids[names[v]] = v
			}
			ends[i] = v
		}
		if columns == 3 {
			w, err := parseFloat32(row[2])
			if err != nil || w-w != 0 {
				return nil, lines.faultf("the weight %.40q is not a finite number", row[2])
			}
			l.edges.Weights = append(l.edges.Weights, w)
		}
		l.edges.Sources, l.edges.Targets = append(l.edges.Sources, ends[0]), append(l.edges.Targets, ends[1])
	}
	if l.nodes = len(names); l.nodes == 0 {
		return nil, usageErrorf("%s: no edges: want two ids a line", path)
	}
	l.number(names)
	return l, nil
}

// number gives nodes the rank of their id.
func (l *namedEdges) number(names []string) {
	order := make([]int32, len(names))
	for i := range order {
		order[i] = int32(i)
	}
	value := make([]int64, len(names))
	whole := true
	for i, s := range names {
		v, err := strconv.ParseInt(s, 10, 64)
		if value[i] = v; err != nil || v < 0 || strconv.FormatInt(v, 10) != s { // 07 and 7 are two names
			whole = false
			break
		}
	}
	slices.SortFunc(order, func(a, b int32) int {
		if !whole {
			return strings.Compare(names[a], names[b])
		}
		if value[a] < value[b] {
			return -1
		}
		return 1
	})
	rank := make([]int32, len(order))
	if whole {
		l.numbers = make([]int64, len(order))
	}
	for r, i := range order {
		rank[i] = int32(r)
		if whole {
			l.numbers[r] = value[i]
		}
	}
	for _, ends := range [][]int32{l.edges.Sources, l.edges.Targets} {
		for i, v := range ends {
			ends[i] = rank[v]
		}
	}
}
