package datasets

import (
	"bytes"
	"context"
	"io"
	"strings"

	"zerogcn/graph"
)

// Matrix Market is the exchange format of Boisvert, Pozo and Remington, "The
// Matrix Market Exchange Formats" (NISTIR 5935, 1996), in which the SuiteSparse
// collection and Network Repository publish graphs: a banner, comments that
// begin with %, a line with rows, columns and entries, and an entry a line,
// numbered from 1. Entry (i, j) is the edge from i to j, its value the weight;
// symmetric matrices, of which one triangle is stored, are made whole, and
// repeated edges are kept once. Dense (array), complex and skew-symmetric
// matrices are refused: they are no graphs. The file may be packed.
var matrixMarketFormat = Format{
	Name:     "mtx",
	Describe: "a Matrix Market file (.mtx): a square sparse matrix, general or symmetric",
	Recognise: func(s *Source) bool {
		return !s.Dir && bytes.HasPrefix(bytes.ToLower(s.headText("", len(mtxBanner))), []byte(mtxBanner))
	},
	Open: openMatrixMarket,
}

const mtxBanner = "%%matrixmarket"

func openMatrixMarket(ctx context.Context, s *Source, o Options) (*Dataset, error) {
	if s.Dir {
		return nil, usageErrorf("%s: a folder: name the Matrix Market file", s.Path)
	}
	f, err := openText(s.Path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m, err := parseMatrixMarket(ctx, s.Path, f)
	if err != nil {
		return nil, err
	}
	d := &Dataset{Meta: Meta{Name: s.Base(), Source: "Matrix Market", Task: Multiclass}, Warnings: []string{"no features", "no labels"}}
	b := graph.Builder{NumNodes: m.nodes, Symmetrize: m.symmetric, Deduplicate: true, Workers: o.Workers}
	if d.Graph, err = b.FromEdges(ctx, m.edges.Sources, m.edges.Targets, m.edges.Weights); err != nil {
		return nil, err
	}
	return d, d.seal(ctx, o.Workers)
}

// mtxMatrix is a matrix as it is stored.
type mtxMatrix struct {
	nodes     int
	symmetric bool
	edges     graph.Edges
}

func parseMatrixMarket(ctx context.Context, path string, r io.Reader) (*mtxMatrix, error) {
	lines := newLineReader(path, r)
	line, err := lines.next()
	if err == io.EOF {
		return nil, usageErrorf("%s: the file is empty", path)
	}
	if err != nil {
		return nil, err
	}
	m := &mtxMatrix{}
	// %%MatrixMarket matrix coordinate FIELD SYMMETRY
	banner := strings.Fields(strings.ToLower(string(line[:min(len(line), 200)])))
	if len(banner) != 5 || banner[0] != mtxBanner || banner[1] != "matrix" {
		return nil, lines.faultf("%.60q is no banner: want %%%%MatrixMarket matrix coordinate …", line)
	}
	if banner[2] != "coordinate" {
		return nil, lines.faultf("the layout is %.20q: want coordinate, a sparse matrix", banner[2])
	}
	weights := banner[3] == "real" || banner[3] == "integer"
	if !weights && banner[3] != "pattern" {
		return nil, lines.faultf("the values are %.20q: want real, integer or pattern", banner[3])
	}
	m.symmetric = banner[4] == "symmetric"
	if !m.symmetric && banner[4] != "general" {
		return nil, lines.faultf("the symmetry is %.20q: want general or symmetric", banner[4])
	}
	entries := int64(-1)
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
		if len(line) == 0 || line[0] == '%' {
			continue
		}
		i, rest, ok1 := cutNumber(line)
		j, rest, ok2 := cutNumber(rest)
		if entries < 0 {
			k, _, ok3 := cutNumber(rest)
			if !ok1 || !ok2 || !ok3 || i != j || i < 0 || i > graph.MaxNodes || k < 0 {
				return nil, lines.faultf("the size is %.60q: want rows, as many columns, and entries", line)
			}
			m.nodes, entries = int(i), k
			continue
		}
		if !ok1 || !ok2 || i < 1 || j < 1 || i > int64(m.nodes) || j > int64(m.nodes) {
			return nil, lines.faultf("%.60q is no entry of a matrix of %d × %d, numbered from 1", line, m.nodes, m.nodes)
		}
		if weights {
			w, err := parseFloat32(bytes.TrimSpace(rest))
			if err != nil || w-w != 0 {
				return nil, lines.faultf("the value %.40q is not a finite number", rest)
			}
			m.edges.Weights = append(m.edges.Weights, w)
		}
		m.edges.Sources, m.edges.Targets = append(m.edges.Sources, int32(i-1)), append(m.edges.Targets, int32(j-1))
	}
	if n := int64(m.edges.Len()); n != entries {
		return nil, usageErrorf("%s: %d entries, and the size says %d: the file is cut short, or goes on too long", path, n, max(0, entries))
	}
	if m.nodes > 1000+64*m.edges.Len() { // the size alone may not ask for memory
		return nil, usageErrorf("%s: %s for %d rows: that are too few to be a graph", path, plural(entries, "entry", "entries"), m.nodes)
	}
	return m, nil
}
