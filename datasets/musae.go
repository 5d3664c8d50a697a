package datasets

import (
	"context"
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"zerogcn/graph"
	"zerogcn/internal/usage"
	"zerogcn/sparse"
)

// MUSAE is the format of Rozemberczki, Allen and Sarkar, "Multi-Scale
// Attributed Node Embedding" (Journal of Complex Networks 9, 2021): three files
// *_edges.csv (each edge once), *_features.json (node to list of feature
// numbers) and *_target.csv (with a header; quoted where names need it).
//
// A node is the number in the target's column new_id, or id where there is no
// such column: rows may come in any order. Features are multi-hot; a number
// that a node lists twice counts once; numbers may have gaps. Edges are made
// symmetric and kept once, self loops are kept. There is no split.
var musaeFormat = Format{
	Name:     "musae",
	Describe: "MUSAE: a folder with *_edges.csv, *_features.json and *_target.csv",
	Recognise: func(s *Source) bool {
		return s.withText(musaeEdges) != "" && s.withText(musaeFeatures) != "" && s.withText(musaeTarget) != ""
	},
	Open: openMUSAE,
}

const (
	musaeEdges    = "_edges.csv"
	musaeFeatures = "_features.json"
	musaeTarget   = "_target.csv"
)

// musaeLabels are the label columns of the published sets.
var musaeLabels = []string{"page_type", "ml_target", "mature", "target"}

func openMUSAE(ctx context.Context, s *Source, o Options) (*Dataset, error) {
	var paths [3]string
	for i, suffix := range []string{musaeEdges, musaeFeatures, musaeTarget} {
		name := s.withText(suffix)
		if name == "" {
			return nil, usageErrorf("%s: no file *%s: a MUSAE set has one", s.Path, suffix)
		}
		paths[i] = s.File(name)
	}
	d := &Dataset{Meta: Meta{Name: s.Base(), Source: "MUSAE csv and json", Task: Multiclass}}
	labels, err := readTarget(paths[2])
	if err != nil {
		return nil, err
	}
	n := len(labels)
	if err := setLabels(d, labels); err != nil {
		return nil, usageErrorf("%s: %w", paths[2], err)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m, warnings, err := readMultiHot(paths[1], n)
	if err != nil {
		return nil, err
	}
	d.Features = SparseFeatures(m)
	d.Warnings = warnings
	f, err := openText(paths[0])
	if err != nil {
		return nil, err
	}
	defer f.Close()
	e, err := edgeText{name: paths[0], nodes: n}.read(ctx, f)
	if err != nil {
		return nil, err
	}
	b := graph.Builder{NumNodes: n, Symmetrize: true, Deduplicate: true, Workers: o.Workers}
	if d.Graph, err = b.FromEdges(ctx, e.Sources, e.Targets, nil); err != nil {
		return nil, err
	}
	return d, d.seal(ctx, o.Workers)
}

// readTarget returns the label of each node as text.
func readTarget(path string) ([]string, error) {
	f, err := openText(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return parseTarget(path, f)
}

func parseTarget(path string, in io.Reader) ([]string, error) {
	r := csv.NewReader(in)
	r.ReuseRecord = true
	fault := func(err error) error {
		var pe *csv.ParseError
		if errors.As(err, &pe) {
			return usageErrorf("%s: line %d: %w", path, pe.Line, pe.Err)
		}
		return usage.Wrap(&readError{path, err})
	}
	head, err := r.Read()
	if err == io.EOF {
		return nil, usageErrorf("%s: the file is empty: want a header and a row per node", path)
	}
	if err != nil {
		return nil, fault(err)
	}
	head = slices.Clone(head)
	head[0] = strings.TrimPrefix(head[0], "\ufeff")
	id := slices.Index(head, "new_id")
	if id < 0 {
		id = slices.Index(head, "id")
	}
	label := -1
	for _, name := range musaeLabels {
		if label < 0 {
			label = slices.Index(head, name)
		}
	}
	if id < 0 || label < 0 {
		return nil, usageErrorf("%s: line 1: the columns are %.200q: want new_id or id, and one of %s", path, head, strings.Join(musaeLabels, ", "))
	}
	type row struct {
		node int64
		line int
		text string
	}
	var rows []row
	for {
		rec, err := r.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fault(err)
		}
		line, _ := r.FieldPos(0)
		node, ok := wholeNumber([]byte(rec[id]))
		if !ok {
			return nil, usageErrorf("%s: line %d: %.40q in column %s is not a node number", path, line, rec[id], head[id])
		}
		rows = append(rows, row{node, line, strings.Clone(rec[label])})
	}
	out := make([]string, len(rows))
	lines := make([]int, len(rows))
	for _, x := range rows {
		switch {
		case x.node < 0 || x.node >= int64(len(rows)):
			return nil, usageErrorf("%s: line %d: node %d: the file has %d rows, one per node, numbered from 0", path, x.line, x.node, len(rows))
		case lines[x.node] != 0:
			return nil, usageErrorf("%s: line %d: node %d is on line %d already", path, x.line, x.node, lines[x.node])
		case x.text == "":
			return nil, usageErrorf("%s: line %d: node %d has no label", path, x.line, x.node)
		}
		out[x.node], lines[x.node] = x.text, x.line
	}
	return out, nil
}

// readMultiHot reads an object from node numbers to lists of feature numbers.
func readMultiHot(path string, n int) (*sparse.Matrix, []string, error) {
	f, err := openText(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	return parseMultiHot(path, f, n)
}

func parseMultiHot(path string, in io.Reader, n int) (*sparse.Matrix, []string, error) {
	dec := jsontext.NewDecoder(in)
	fault := func(err error) error {
		if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
			return usageErrorf("%s: byte %d: the JSON ends too early: the file is cut short", path, dec.InputOffset())
		}
		var se *jsontext.SyntacticError
		if errors.As(err, &se) {
			return usageErrorf("%s: byte %d: %.200v", path, se.ByteOffset, se.Err)
		}
		return usage.Wrap(&readError{path, err})
	}
	at := func(format string, args ...any) error {
		return usageErrorf("%s: byte %d: "+format, append([]any{path, dec.InputOffset()}, args...)...)
	}
	tok, err := dec.ReadToken()
	if err != nil {
		return nil, nil, fault(err)
	}
	if tok.Kind() != '{' {
		return nil, nil, at("want an object from node numbers to lists of features")
	}
	// Lists in the order of the file, then put in the order of the nodes.
	var flat []int32
	start, end := make([]int, n), make([]int, n)
	given := make([]bool, n)
	top, twice := int32(-1), 0
	for {
		key, err := dec.ReadToken()
		if err != nil {
			return nil, nil, fault(err)
		}
		if key.Kind() == '}' {
			break
		}
		v, err := strconv.ParseInt(key.String(), 10, 64)
		if err != nil || v < 0 || v >= int64(n) {
			return nil, nil, at("%.40q is not a node: there are %d, numbered from 0", key.String(), n)
		}
		if given[v] { // "7" and "07"
			return nil, nil, at("node %d is there twice", v)
		}
		given[v] = true
		if tok, err = dec.ReadToken(); err != nil {
			return nil, nil, fault(err)
		}
		if tok.Kind() != '[' {
			return nil, nil, at("node %d: want a list of feature numbers", v)
		}
		start[v] = len(flat)
		for {
			if tok, err = dec.ReadToken(); err != nil {
				return nil, nil, fault(err)
			}
			if tok.Kind() == ']' {
				break
			}
			if tok.Kind() != '0' {
				return nil, nil, at("node %d: want feature numbers", v)
			}
			x, err := tok.Float()
			if err != nil || !(x >= 0 && x < maxFeatures) || x != float64(int32(x)) {
				return nil, nil, at("node %d: %v is not a feature number: want 0 to 2^24-1", v, x)
			}
			flat = append(flat, int32(x))
		}
		row := flat[start[v]:]
		slices.Sort(row)
		if kept := len(slices.Compact(row)); kept < len(row) {
			flat = flat[:start[v]+kept]
			twice++
		}
		end[v] = len(flat)
		if len(flat) > start[v] {
			top = max(top, flat[len(flat)-1])
		}
	}
	if _, err := dec.ReadToken(); err != io.EOF {
		if err != nil {
			return nil, nil, fault(err)
		}
		return nil, nil, at("text after the object's end")
	}
	m := &sparse.Matrix{NumRows: n, NumCols: int(top) + 1, Indptr: make([]int64, 1, n+1), Cols: make([]int32, 0, len(flat))}
	bare := 0
	for v := range n {
		m.Cols = append(m.Cols, flat[start[v]:end[v]]...)
		m.Indptr = append(m.Indptr, int64(len(m.Cols)))
		if start[v] == end[v] {
			bare++
		}
	}
	m.Vals = slices.Repeat([]float32{1}, len(m.Cols))
	var warnings []string
	if bare > 0 {
		warnings = append(warnings, plural(int64(bare), "node has", "nodes have")+" no features")
	}
	if twice > 0 {
		warnings = append(warnings, plural(int64(twice), "node names", "nodes name")+" a feature twice; it counts once")
	}
	return m, warnings, nil
}
