package datasets

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strconv"
	"strings"
)

// readNodeTables reads the features and labels that lie beside an edge list, and
// notes the number of nodes.
func readNodeTables(ctx context.Context, s *Source, d *Dataset, n *int) error {
	if name := firstOf(s, featureFiles); name != "" {
		x, err := readFloatTable(ctx, s.File(name), finiteCell)
		if err != nil {
			return err
		}
		d.Features = x.features()
		*n = x.rows
	}
	name := firstOf(s, labelFiles)
	if name == "" {
		return nil
	}
	f, err := openText(s.File(name))
	if err != nil {
		return err
	}
	defer f.Close()
	cells, t, err := parseNames(ctx, s.File(name), f)
	if err != nil {
		return err
	}
	if *n >= 0 && t.rows != *n {
		return usageErrorf("%s: %d rows, and the features have %d", t.name, t.rows, *n)
	}
	*n = t.rows
	if t.cols == 1 {
		if err := setLabels(d, cells); err != nil {
			return usageErrorf("%s: %w", t.name, err)
		}
		return nil
	}
	multi := make([]uint8, len(cells))
	for i, c := range cells {
		switch v, ok := wholeNumber([]byte(c)); {
		case ok && (v == 0 || v == 1):
			multi[i] = uint8(v)
		case noLabelText(c) || v == int64(NoLabel):
			multi[i] = NoLabel
		default:
			return usageErrorf("%s: row %d, column %d: %.40q is not 0 or 1", t.name, i/t.cols, i%t.cols, c)
		}
	}
	d.Task, d.Labels = Multilabel, NewMultiLabels(multi, t.cols)
	return nil
}

// table is the shape of a text table of one row per node.
type table struct {
	name       string
	rows, cols int
}

// tableReader reads the rows of a table of numbers or names, whose cells cannot
// be quoted. A header is passed over; where it begins with a usual name for ids,
// the first column says which node a row is.
type tableReader struct {
	table
	lines *lineReader
	row   [][]byte
	byID  bool
	ids   []int64
	at    []int // lines of the rows, for ids
}

func newTableReader(name string, r io.Reader) *tableReader {
	return &tableReader{table: table{name: name}, lines: newLineReader(name, r)}
}

// cells cuts a line into the cells of a row, which alias it and are valid until
// the next call; nil for a header.
func (t *tableReader) cells(line []byte) ([][]byte, error) {
	row := splitCells(t.row[:0], line)
	t.row = row
	if t.rows == 0 && t.cols == 0 && isHeader(row) {
		t.byID = slices.Contains(idHeaders, strings.ToLower(string(row[0])))
		t.cols = len(row)
		if t.byID {
			t.cols--
		}
		if t.cols == 0 {
			return nil, t.lines.faultf("the only column is %.40q, the numbers of the nodes: want a column of values beside it", row[0])
		}
		return nil, nil
	}
	if t.byID {
		id, ok := wholeNumber(row[0])
		if !ok {
			return nil, t.lines.faultf("%.40q is not a node number", row[0])
		}
		t.ids, t.at = append(t.ids, id), append(t.at, t.lines.number)
		row = row[1:]
	}
	if t.cols == 0 {
		t.cols = len(row)
	}
	if len(row) != t.cols {
		return nil, t.lines.faultf("%d columns, and the lines before have %d", len(row), t.cols)
	}
	if t.cols > maxFeatures {
		return nil, t.lines.faultf("%d columns: want at most %d", t.cols, maxFeatures)
	}
	return row, nil
}

// end checks that there were rows.
func (t *tableReader) end() error {
	if t.rows == 0 || t.cols == 0 {
		return usageErrorf("%s: no rows: want one per node", t.name)
	}
	return nil
}

// places returns the node of each row, nil where rows are in order.
func (t *tableReader) places() ([]int64, error) {
	if !t.byID {
		return nil, nil
	}
	seen := make([]int, t.rows)
	for i, id := range t.ids {
		switch {
		case id < 0 || id >= int64(t.rows):
			return nil, usageErrorf("%s: line %d: node %d: the file has %d rows, one per node, numbered from 0", t.name, t.at[i], id, t.rows)
		case seen[id] != 0:
			return nil, usageErrorf("%s: line %d: node %d is on line %d already", t.name, t.at[i], id, seen[id])
		}
		seen[id] = t.at[i]
	}
	return t.ids, nil
}

// parseNames reads a table of names as row-major texts, in the order of the
// nodes.
func parseNames(ctx context.Context, name string, r io.Reader) ([]string, *table, error) {
	t := newTableReader(name, r)
	var out []string
	for {
		line, err := t.lines.filled(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, nil, err
		}
		row, err := t.cells(line)
		if err != nil {
			return nil, nil, err
		}
		if row == nil {
			continue
		}
		for _, b := range row {
			out = append(out, string(b))
		}
		t.rows++
	}
	if err := t.end(); err != nil {
		return nil, nil, err
	}
	to, err := t.places()
	if err != nil || to == nil {
		return out, &t.table, err
	}
	sorted := make([]string, len(out))
	for i, v := range to {
		copy(sorted[int(v)*t.cols:], out[i*t.cols:(i+1)*t.cols])
	}
	return sorted, &t.table, nil
}

// splitCells cuts a line at commas, or semicolons, or tabs, or spaces: the
// first of these that it has. The cells alias the line.
func splitCells(row [][]byte, line []byte) [][]byte {
	for _, sep := range []byte{',', ';', '\t'} {
		if bytes.IndexByte(line, sep) < 0 {
			continue
		}
		for {
			i := bytes.IndexByte(line, sep)
			if i < 0 {
				return append(row, bytes.TrimSpace(line))
			}
			row = append(row, bytes.TrimSpace(line[:i]))
			line = line[i+1:]
		}
	}
	if f := bytes.Fields(line); len(f) > 0 {
		return append(row, f...)
	}
	return append(row, nil)
}

// isHeader tells a first row of names: none of them a number, and either more
// than one or a usual name.
func isHeader(row [][]byte) bool {
	for _, c := range row {
		if _, err := strconv.ParseFloat(string(c), 64); err == nil || len(c) == 0 {
			return false
		}
	}
	return len(row) > 1 || slices.Contains([]string{"label", "labels", "class", "y", "target", "id", "node", "node_id"}, strings.ToLower(string(row[0])))
}
