package datasets

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"zerogcn/graph"
	"zerogcn/sparse"
)

// Cora text is the format of the LINQS citation sets (Sen et al., "Collective
// Classification in Network Data", AI Magazine 29, 2008): NAME.content has a
// line per paper, its id, its words as 0 or 1, and its class; NAME.cites has a
// line per citation, the cited paper and the citing one. In a folder, or
// zipped.
//
// Nodes are numbered in the order of the lines; ids may be any text, and are
// kept where they are numbers. Edges lead from the citing paper to the cited
// one and are kept as directed as they are, repeated ones once. Citations of
// papers without a line, of which Citeseer has some, are left out. There is no
// split.
var coraTextFormat = Format{
	Name:      "cora-text",
	Describe:  "LINQS text: NAME.content and NAME.cites, in a folder or zipped",
	Recognise: recogniseCoraText,
	Open:      openCoraText,
}

const (
	contentExt = ".content"
	citesExt   = ".cites"
	zipExt     = ".zip"
)

// coraZip returns the path of the archive that a source is or holds, "" if
// there is none.
func coraZip(s *Source) string {
	if !s.Dir {
		if bytes.HasPrefix(s.Head("", 4), []byte("PK")) && !strings.EqualFold(filepath.Ext(s.Path), npzExt) {
			return s.Path
		}
		return ""
	}
	if name := s.WithSuffix(zipExt); name != "" {
		return s.File(name)
	}
	return ""
}

func recogniseCoraText(s *Source) bool {
	if s.WithSuffix(contentExt) != "" && s.WithSuffix(citesExt) != "" {
		return true
	}
	path := coraZip(s)
	if path == "" {
		return false
	}
	z, err := openZipped(path)
	if err != nil {
		// A zip that is cut short has no directory: say so in its reader.
		return strings.EqualFold(filepath.Ext(path), zipExt)
	}
	defer z.Close()
	return z.find(contentExt) != nil && z.find(citesExt) != nil
}

func openCoraText(ctx context.Context, s *Source, o Options) (*Dataset, error) {
	d := &Dataset{Meta: Meta{Source: "LINQS text", Task: Multiclass}}
	var ids map[string]int32
	content := func(name string, r io.Reader) (err error) {
		d.Name = strings.TrimSuffix(filepath.Base(name), contentExt)
		ids, err = readContent(ctx, name, r, d)
		return err
	}
	var e graph.Edges
	cites := func(name string, r io.Reader) (err error) {
		var missing int
		if e, missing, err = readCites(ctx, name, r, ids); missing > 0 {
			d.Warnings = append(d.Warnings, plural(int64(missing), "citation", "citations")+" of papers without content left out")
		}
		return err
	}
	if err := eachPart(s, content, cites); err != nil {
		return nil, err
	}
	b := graph.Builder{NumNodes: len(ids), Deduplicate: true, Workers: o.Workers}
	var err error
	if d.Graph, err = b.FromEdges(ctx, e.Sources, e.Targets, nil); err != nil {
		return nil, err
	}
	return d, d.seal(ctx, o.Workers)
}

// eachPart calls content and then cites with the files of a folder, or the
// members of an archive.
func eachPart(s *Source, content, cites func(name string, r io.Reader) error) error {
	if c, t := s.WithSuffix(contentExt), s.WithSuffix(citesExt); c != "" && t != "" {
		for _, part := range []struct {
			name string
			read func(string, io.Reader) error
		}{{s.File(c), content}, {s.File(t), cites}} {
			f, err := openText(part.name)
			if err != nil {
				return err
			}
			err = part.read(part.name, f)
			f.Close()
			if err != nil {
				return err
			}
		}
		return nil
	}
	path := coraZip(s)
	if path == "" {
		return usageErrorf("%s: want NAME.content and NAME.cites, or a zip of them", s.Path)
	}
	z, err := openZipped(path)
	if err != nil {
		return err
	}
	defer z.Close()
	for _, part := range []struct {
		ext  string
		read func(string, io.Reader) error
	}{{contentExt, content}, {citesExt, cites}} {
		m := z.find(part.ext)
		if m == nil {
			return usageErrorf("%s: no member *%s", path, part.ext)
		}
		r, name, err := z.open(m)
		if err != nil {
			return err
		}
		err = part.read(name, r)
		r.Close() // repeats the error of reading, if any
		if err != nil {
			return err
		}
	}
	return nil
}

// readContent reads features and labels into d and returns the number of each
// id.
func readContent(ctx context.Context, name string, r io.Reader, d *Dataset) (map[string]int32, error) {
	ids := map[string]int32{}
	m := &sparse.Matrix{Indptr: []int64{0}, NumCols: -1}
	var texts []string
	var numbers []int64
	lines := newLineReader(name, r)
	for {
		line, err := lines.filled(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		id := string(field(&line))
		last := bytes.LastIndexAny(line, "\t ,")
		if id == "" || last < 0 {
			return nil, lines.faultf("want an id, words as 0 or 1, and a class, separated by tabs")
		}
		if _, twice := ids[id]; twice {
			return nil, lines.faultf("paper %.60q is there twice", id)
		}
		ids[id] = int32(len(ids))
		if v, err := strconv.ParseInt(id, 10, 64); err == nil && v >= 0 {
			numbers = append(numbers, v)
		}
		texts = append(texts, string(line[last+1:]))
		if err := wordRow(lines, line[:last], m); err != nil {
			return nil, err
		}
	}
	if len(ids) == 0 {
		return nil, usageErrorf("%s: no line: want one per paper", name)
	}
	d.Features = SparseFeatures(m)
	if len(numbers) == len(ids) {
		d.NodeIDs = numbers
	}
	if err := setLabels(d, texts); err != nil {
		return nil, usageErrorf("%s: %w", name, err)
	}
	return ids, nil
}

// wordRow adds the numbers of a line as a row.
func wordRow(lines *lineReader, line []byte, m *sparse.Matrix) error {
	col := 0
	for len(line) > 0 {
		x := float32(0)
		if len(line) >= 2 && line[1] == '\t' && (line[0] == '0' || line[0] == '1') {
			x = float32(line[0] - '0')
			line = line[2:]
		} else {
			f := field(&line)
			v, err := strconv.ParseFloat(string(f), 32)
			if err != nil || v-v != 0 {
				return lines.faultf("word %d is %.40q: want a finite number", col, f)
			}
			x = float32(v)
		}
		if x != 0 {
			if col >= maxFeatures {
				return lines.faultf("more than %d words", maxFeatures)
			}
			m.Cols = append(m.Cols, int32(col))
			m.Vals = append(m.Vals, x)
		}
		col++
	}
	if m.NumCols >= 0 && col != m.NumCols {
		return lines.faultf("%d words, and the lines before have %d", col, m.NumCols)
	}
	m.NumCols = col
	m.NumRows++
	m.Indptr = append(m.Indptr, int64(len(m.Vals)))
	return nil
}

// readCites reads citations; missing counts those of papers without content.
func readCites(ctx context.Context, name string, r io.Reader, ids map[string]int32) (e graph.Edges, missing int, err error) {
	lines := newLineReader(name, r)
	for {
		line, err := lines.filled(ctx)
		if err == io.EOF {
			return e, missing, nil
		}
		if err != nil {
			return e, 0, err
		}
		cited, citing := field(&line), field(&line)
		if len(citing) == 0 || len(line) != 0 {
			return e, 0, lines.faultf("want two ids: the cited paper and the citing one")
		}
		t, ok1 := ids[string(cited)]
		s, ok2 := ids[string(citing)]
		if !ok1 || !ok2 {
			missing++
			continue
		}
		e.Sources = append(e.Sources, s)
		e.Targets = append(e.Targets, t)
	}
}
