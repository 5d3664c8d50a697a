package datasets

import (
	"bytes"
	"context"
	"io"

	"zerogcn/internal/npy"
)

// text reads raw/*.csv.gz.
func (x *ogbSet) text(ctx context.Context) error {
	var err error
	if x.nodes, err = x.counts(ctx, "num-node-list.csv"); err != nil {
		return err
	}
	if x.edges, err = x.counts(ctx, "num-edge-list.csv"); err != nil {
		return err
	}
	rows, labels := int64(-1), int64(-1)
	feat := x.raw.textEntry("node-feat.csv")
	if feat != "" {
		t, err := readFloatTable(ctx, x.raw.File(feat), finiteCell)
		if err != nil {
			return err
		}
		x.d.Features, rows = t.features(), int64(t.rows)
	} else {
		x.d.Warnings = append(x.d.Warnings, "no features")
	}
	var label *npy.Array
	name := x.raw.textEntry("node-label.csv")
	if name == "" {
		name = x.raw.textEntry("graph-label.csv")
		x.graphLevel = name != ""
	}
	if name != "" {
		t, err := readFloatTable(ctx, x.raw.File(name), labelCell)
		if err != nil {
			return err
		}
		if label, err = t.array(); err != nil {
			return err
		}
		labels = int64(t.rows)
	}
	if err := x.count(rows, labels, x.raw.File(feat)); err != nil {
		return err
	}
	edge := x.raw.textEntry(ogbEdges)
	if edge == "" {
		return missing(x.raw, ogbEdges+".gz")
	}
	path := x.raw.File(edge)
	return x.build(ctx, label, path, edgeText{name: path, nodes: x.numNodes()}.stream(ctx))
}

// array returns the table as an array, for the readers of arrays.
func (f *floatTable) array() (*npy.Array, error) {
	b := bytesOf(f.all())
	return npy.NewRaw(bytes.NewReader(b), int64(len(b)), "<f4", false, []int64{int64(f.rows), int64(f.cols)}, f.name)
}

// counts reads a list of counts, a graph per line; nil if it is not there.
func (x *ogbSet) counts(ctx context.Context, name string) ([]int64, error) {
	file := x.raw.textEntry(name)
	if file == "" {
		return nil, nil
	}
	path := x.raw.File(file)
	f, err := openText(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return parseCounts(ctx, path, f)
}

func parseCounts(ctx context.Context, path string, r io.Reader) ([]int64, error) {
	var out []int64
	lines := newLineReader(path, r)
	for {
		line, err := lines.next()
		if err == io.EOF {
			if len(out) == 0 {
				return nil, usageErrorf("%s: no counts: want one per graph", path)
			}
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if lines.number&0xFFFF == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		v, ok := wholeNumber(line)
		if !ok || v < 0 || v > maxCount {
			return nil, lines.faultf("%.40q is not a count", line)
		}
		out = append(out, v)
	}
}

// maxCount keeps sums of counts within int64.
const maxCount = 1 << 46
