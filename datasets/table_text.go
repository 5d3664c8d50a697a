package datasets

import (
	"bytes"
	"context"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"zerogcn/internal/usage"
)

// readNodeTables reads the features and labels that lie beside an edge list, and
// notes the number of nodes.
func readNodeTables(ctx context.Context, s *Source, d *Dataset, n *int) error {
	if name := firstOf(s, featureFiles); name != "" {
		x, t, err := readFile(s.File(name), func(path string, r io.Reader) ([]float32, *table, error) {
			return parseTable(ctx, path, r, parseFloatCell)
		})
		if err != nil {
			return err
		}
		if d.Features, err = DenseFeatures(x, t.rows, t.cols); err != nil {
			return err
		}
		*n = t.rows
	}
	name := firstOf(s, labelFiles)
	if name == "" {
		return nil
	}
	cells, t, err := readFile(s.File(name), func(path string, r io.Reader) ([]string, *table, error) {
		return parseTable(ctx, path, r, func(b []byte) (string, string) { return string(b), "" })
	})
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

// readFile opens a file for parse.
func readFile[T any](path string, parse func(path string, r io.Reader) ([]T, *table, error)) ([]T, *table, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, usage.Wrap(err)
	}
	defer f.Close()
	return parse(path, f)
}

// table is the shape of a text table of one row per node.
type table struct {
	name       string
	rows, cols int
}

// parseFloatCell reads a finite number.
func parseFloatCell(b []byte) (float32, string) {
	v, err := strconv.ParseFloat(string(b), 32)
	if err != nil || v-v != 0 {
		return 0, "is not a finite number"
	}
	return float32(v), ""
}

// parseTable reads a table of numbers or names, whose cells cannot be quoted, as
// row-major values; cell reads one, or says what is wrong with it. A header is
// passed over; where it begins with a usual name for ids, the first column
// says which node a row is, and rows are put in order.
func parseTable[T any](ctx context.Context, name string, r io.Reader, cell func(b []byte) (T, string)) ([]T, *table, error) {
	t := &table{name: name}
	var (
		out   []T
		ids   []int64
		at    []int // lines of the rows, for ids
		row   [][]byte
		byID  bool
		lines = newLineReader(name, r)
	)
	for {
		line, err := lines.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, nil, err
		}
		if lines.number&0xFFF == 0 && ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if len(line) == 0 {
			continue
		}
		row = splitCells(row[:0], line)
		if t.rows == 0 && t.cols == 0 && isHeader(row) {
			byID = slices.Contains(idHeaders, strings.ToLower(string(row[0])))
			t.cols = len(row)
			if byID {
				t.cols--
			}
			continue
		}
		if byID {
			id, ok := wholeNumber(row[0])
			if !ok {
				return nil, nil, lines.faultf("%.40q is not a node number", row[0])
			}
			ids, at = append(ids, id), append(at, lines.number)
			row = row[1:]
		}
		if t.cols == 0 {
			t.cols = len(row)
		}
		if len(row) != t.cols {
			return nil, nil, lines.faultf("%d columns, and the lines before have %d", len(row), t.cols)
		}
		for c, b := range row {
			v, wrong := cell(b)
			if wrong != "" {
				return nil, nil, lines.faultf("column %d: %.40q %s", c+1, b, wrong)
			}
			out = append(out, v)
		}
		t.rows++
	}
	if t.rows == 0 || t.cols == 0 {
		return nil, nil, usageErrorf("%s: no rows: want one per node", name)
	}
	if !byID {
		return out, t, nil
	}
	out, err := reorderRows(t, out, ids, at)
	return out, t, err
}

// reorderRows puts the row of node v in place v; lines are those of the rows.
func reorderRows[T any](t *table, v []T, ids []int64, lines []int) ([]T, error) {
	out, seen := make([]T, len(v)), make([]int, t.rows)
	for i, id := range ids {
		switch {
		case id < 0 || id >= int64(t.rows):
			return nil, usageErrorf("%s: line %d: node %d: the file has %d rows, one per node, numbered from 0", t.name, lines[i], id, t.rows)
		case seen[id] != 0:
			return nil, usageErrorf("%s: line %d: node %d is on line %d already", t.name, lines[i], id, seen[id])
		}
		seen[id] = lines[i]
		copy(out[int(id)*t.cols:], v[i*t.cols:(i+1)*t.cols])
	}
	return out, nil
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
