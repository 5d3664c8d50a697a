package datasets

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"zerogcn/datasets/internal/columns"
	"zerogcn/graph"
)

// Parquet: one file of edges, or a folder with edges.parquet and, for features,
// labels and the split, nodes.parquet.
//
// Edges have the columns source and target (or src and dst, from and to, u and v;
// else the first two of whole numbers) and, if there is one, weight. Nodes are
// the rows of nodes.parquet in their order, or by a column id, node or node_id
// that numbers them from 0; label (or y, class, target) has numbers or names, null
// for none; split has train, valid and test; features is one column of lists, or
// else all other columns of numbers, in the order of the schema. Edges are kept as
// directed as they are, repeated ones once.
var parquetFormat = Format{
	Name:     "parquet",
	Describe: "Parquet: a file of edges, or a folder with edges.parquet and nodes.parquet",
	Recognise: func(s *Source) bool {
		if s.Dir {
			return s.Has(parquetEdges) && columns.Recognise(s.Head(parquetEdges, 4))
		}
		return columns.Recognise(s.Head("", 4))
	},
	Open: openParquet,
}

const (
	parquetEdges = "edges.parquet"
	parquetNodes = "nodes.parquet"
)

// Names of columns, the first that is there counts.
var (
	sourceColumns  = []string{"source", "src", "from", "u"}
	targetColumns  = []string{"target", "dst", "to", "v"}
	weightColumns  = []string{"weight", "edge_weight", "w"}
	idColumns      = []string{"id", "node_id", "node"}
	labelColumns   = []string{"label", "labels", "y", "class", "target"}
	splitColumns   = []string{"split", "part"}
	featureColumns = []string{"features", "feature", "feat", "feats", "x", "embedding"}
)

func openParquet(ctx context.Context, s *Source, o Options) (*Dataset, error) {
	path := s.Path
	d := &Dataset{Meta: Meta{Name: s.Base(), Source: "Parquet", Task: Multiclass}}
	n := -1
	if s.Dir {
		if !s.Has(parquetEdges) {
			return nil, missing(s, parquetEdges)
		}
		path = s.File(parquetEdges)
		if s.Has(parquetNodes) {
			var err error
			if n, err = readParquetNodes(ctx, s.File(parquetNodes), d); err != nil {
				return nil, err
			}
		}
	}
	e, err := readParquetEdges(ctx, path, n)
	if err != nil {
		return nil, err
	}
	if n < 0 {
		d.Warnings = append(d.Warnings, "no features", "no labels")
		k, err := nodesOf(e)
		if err != nil {
			return nil, usageErrorf("%s: %w", path, err)
		}
		n = int(k)
	}
	b := graph.Builder{NumNodes: n, Deduplicate: true, Workers: o.Workers}
	if d.Graph, err = b.FromEdges(ctx, e.Sources, e.Targets, e.Weights); err != nil {
		return nil, err
	}
	return d, d.seal(ctx, o.Workers)
}

// column returns the first column of one of these names.
func column(f *columns.File, names []string) (c columns.Column, ok bool) {
	for _, name := range names {
		i := slices.IndexFunc(f.Columns, func(c columns.Column) bool { return strings.EqualFold(c.Name, name) })
		if i >= 0 {
			return f.Columns[i], true
		}
	}
	return c, false
}

// scalars gives the value of each row of a column that has one a row.
func scalars(ctx context.Context, f *columns.File, c columns.Column, each func(row int, v columns.Value) error) error {
	row := 0
	return f.Read(c, func(v columns.Value) error {
		if row&0xFFFF == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if c.List {
			return usageErrorf("%s: column %s: lists, and one value a row is wanted", f.Path(), printableName(c.Name))
		}
		row++
		return each(row-1, v)
	})
}

// readParquetEdges reads edges between n nodes; n is -1 where that is not known.
func readParquetEdges(ctx context.Context, path string, n int) (e graph.Edges, err error) {
	f, err := columns.Open(path)
	if err != nil {
		return e, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	src, ok1 := column(f, sourceColumns)
	dst, ok2 := column(f, targetColumns)
	if !ok1 || !ok2 {
		var whole []columns.Column
		for _, c := range f.Columns {
			if c.Kind == columns.Whole && !c.List {
				whole = append(whole, c)
			}
		}
		if len(whole) < 2 {
			return e, usageErrorf("%s: no columns source and target, nor two of whole numbers", path)
		}
		src, dst = whole[0], whole[1]
	}
	limit := int64(graph.MaxNodes)
	if n >= 0 {
		limit = int64(n)
	}
	for _, end := range []struct {
		c  columns.Column
		to *[]int32
	}{{src, &e.Sources}, {dst, &e.Targets}} {
		if err := scalars(ctx, f, end.c, func(row int, v columns.Value) error {
			if end.c.Kind != columns.Whole || v.Null || v.Whole < 0 || v.Whole >= limit {
				return usageErrorf("%s: row %d, column %s: %s is not a node: there are %d, numbered from 0", path, row, printableName(end.c.Name), parquetText(end.c, v), limit)
			}
			*end.to = append(*end.to, int32(v.Whole))
			return nil
		}); err != nil {
			return e, err
		}
	}
	if w, ok := column(f, weightColumns); ok {
		if err := scalars(ctx, f, w, func(row int, v columns.Value) error {
			x, ok := parquetNumber(w, v)
			if !ok {
				return usageErrorf("%s: row %d: the weight %s is not a finite number", path, row, parquetText(w, v))
			}
			e.Weights = append(e.Weights, x)
			return nil
		}); err != nil {
			return e, err
		}
	}
	return e, nil
}

// parquetText writes a value as a label, or for a message; "" for null.
func parquetText(c columns.Column, v columns.Value) string {
	switch {
	case v.Null:
		return ""
	case c.Kind == columns.Whole:
		return strconv.FormatInt(v.Whole, 10)
	case c.Kind == columns.Real:
		return strconv.FormatFloat(v.Real, 'g', -1, 64)
	}
	return printableName(string(v.Text))
}

// parquetNumber returns a value as a finite number.
func parquetNumber(c columns.Column, v columns.Value) (float32, bool) {
	x := float32(v.Real)
	if c.Kind == columns.Whole {
		x = float32(v.Whole)
	}
	return x, !v.Null && (c.Kind == columns.Whole || c.Kind == columns.Real) && x-x == 0
}

// readParquetNodes reads features, labels and split and returns the number of
// nodes.
func readParquetNodes(ctx context.Context, path string, d *Dataset) (n int, err error) {
	f, err := columns.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if f.Rows < 0 || f.Rows > graph.MaxNodes {
		return 0, usageErrorf("%s: %d rows: at most %d nodes are possible", path, f.Rows, graph.MaxNodes)
	}
	at := func(row int) int { return row }
	id, hasID := column(f, idColumns)
	if hasID {
		var node []int32
		seen := map[int32]bool{}
		if err := scalars(ctx, f, id, func(row int, v columns.Value) error {
			if id.Kind != columns.Whole || v.Null || v.Whole < 0 || v.Whole >= f.Rows || seen[int32(v.Whole)] {
				return usageErrorf("%s: row %d: the id %s: want each number from 0 to %d once", path, row, parquetText(id, v), f.Rows-1)
			}
			seen[int32(v.Whole)] = true
			node = append(node, int32(v.Whole))
			return nil
		}); err != nil {
			return 0, err
		}
		at = func(row int) int { return int(node[row]) }
	}
	label, hasLabel := column(f, labelColumns)
	split, hasSplit := column(f, splitColumns)
	if hasLabel {
		var texts []string
		if err := scalars(ctx, f, label, func(_ int, v columns.Value) error {
			texts = append(texts, parquetText(label, v))
			return nil
		}); err != nil {
			return 0, err
		}
		ordered := make([]string, len(texts))
		for i, s := range texts {
			ordered[at(i)] = s
		}
		if err := setLabels(d, ordered); err != nil {
			return 0, usageErrorf("%s: column %s: %w", path, printableName(label.Name), err)
		}
		n = len(texts)
	} else {
		d.Warnings = append(d.Warnings, "no labels")
	}
	if hasSplit {
		if err := parquetSplit(ctx, f, split, at, d); err != nil {
			return 0, err
		}
	}
	var of []columns.Column
	if c, ok := column(f, featureColumns); ok && c.List {
		of = []columns.Column{c}
	} else {
		for _, c := range f.Columns {
			taken := hasID && c == id || hasLabel && c == label || hasSplit && c == split
			if !taken && !c.List && (c.Kind == columns.Whole || c.Kind == columns.Real) {
				of = append(of, c)
			}
		}
	}
	if len(of) == 0 {
		d.Warnings = append(d.Warnings, "no features")
		if !hasLabel && !hasID {
			return 0, usageErrorf("%s: no column of features, labels or ids", path)
		}
		return int(f.Rows), nil
	}
	return int(f.Rows), parquetFeatures(ctx, f, of, at, d)
}

// parquetSplit reads the part of each node; null and other empty texts are none.
func parquetSplit(ctx context.Context, f *columns.File, c columns.Column, at func(int) int, d *Dataset) error {
	var sp Split
	if err := scalars(ctx, f, c, func(row int, v columns.Value) error {
		switch strings.ToLower(parquetText(c, v)) {
		case "train", "training":
			sp.Train = append(sp.Train, int32(at(row)))
		case "valid", "val", "validation":
			sp.Valid = append(sp.Valid, int32(at(row)))
		case "test":
			sp.Test = append(sp.Test, int32(at(row)))
		case "":
		default:
			return usageErrorf("%s: row %d: the part is %q: want train, valid or test", f.Path(), row, parquetText(c, v))
		}
		return nil
	}); err != nil {
		return err
	}
	if err := sp.check(int(f.Rows)); err != nil {
		return usageErrorf("%s: %w", f.Path(), err)
	}
	d.splits = memorySplits{sp}
	return nil
}

// parquetFeatures reads columns of numbers, or one of lists, into a dense table.
func parquetFeatures(ctx context.Context, f *columns.File, of []columns.Column, at func(int) int, d *Dataset) error {
	cols := make([][]float32, len(of)) // as they come: no size of the file is taken on trust
	var ends []int                     // of rows, in a column of lists
	for k, c := range of {
		if err := f.Read(c, func(v columns.Value) error {
			if len(cols[k])&0xFFFF == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			if c.List && v.First {
				ends = append(ends, len(cols[k]))
			}
			x, ok := parquetNumber(c, v)
			if !ok {
				return usageErrorf("%s: value %d, column %s: %q is not a finite number", f.Path(), len(cols[k]), printableName(c.Name), parquetText(c, v))
			}
			cols[k] = append(cols[k], x)
			return nil
		}); err != nil {
			return err
		}
	}
	n, dim := int(f.Rows), len(of)
	list := of[0].List
	if list && n > 0 {
		dim = len(cols[0]) / n
		for row, start := range ends {
			if start != row*dim || len(cols[0]) != n*dim {
				return usageErrorf("%s: column %s: lists of different lengths near row %d", f.Path(), printableName(of[0].Name), row)
			}
		}
	}
	x := make([]float32, n*dim)
	for row := range n {
		to := x[at(row)*dim:][:dim]
		if list {
			copy(to, cols[0][row*dim:])
			continue
		}
		for k := range to {
			to[k] = cols[k][row]
		}
	}
	var err error
	d.Features, err = DenseFeatures(x, n, dim)
	return err
}
