package datasets

import (
	"bytes"
	"context"
	"io"
)

// classMap is a JSON object from node ids to a class, or to a list of 0 and 1
// with an entry per label, as GraphSAGE and GraphSAINT write labels. Nodes that
// it does not name have no label.
type classMap struct {
	class []int32
	multi []uint8
	width int
	none  int // nodes without an entry
}

// readClassMap reads the labels of n nodes; node finds a node by its id.
func readClassMap(ctx context.Context, path string, n int, node func(id string) (int, bool)) (*classMap, error) {
	f, err := openText(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return parseClassMap(ctx, path, f, n, node)
}

func parseClassMap(ctx context.Context, path string, r io.Reader, n int, node func(id string) (int, bool)) (*classMap, error) {
	j := newJSONFile(path, r)
	m := &classMap{none: n}
	seen := make([]bool, n)
	var row []int64
	// Lists lie in the order of the file until all are known.
	var flat []uint8
	var order []int32
	lists, entries := false, 0
	err := j.object("an object from node ids to labels", func(key string) error {
		if entries++; entries&0xFFF == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		v, err := j.value()
		if err != nil {
			return err
		}
		at, ok := node(key)
		switch {
		case !ok:
			return j.faultf("%.40q is no node", key)
		case seen[at]:
			return j.faultf("node %.40q is there twice", key)
		}
		seen[at] = true
		if string(v) == "null" {
			return nil
		}
		m.none--
		if v[0] != '[' {
			if m.class == nil {
				if lists {
					return j.faultf("node %.40q has one class, and those before it have lists", key)
				}
				m.class = make([]int32, n)
				for i := range m.class {
					m.class[i] = NoClass
				}
			}
			c, ok := jsonInt(v)
			if !ok || c < -1 || c >= maxFeatures {
				return j.faultf("node %.40q: %.40q is not a class: want 0 to 2^24-1, -1 for none, or a list of 0 and 1", key, v)
			}
			m.class[at] = int32(c)
			m.width = max(m.width, int(c)+1)
			return nil
		}
		var bad []byte
		if row, bad = jsonInts(row[:0], v); bad != nil {
			return j.faultf("node %.40q: %.40q is not a label: want 0 or 1", key, bad)
		}
		if !lists {
			if m.class != nil {
				return j.faultf("node %.40q has a list, and those before it have one class", key)
			}
			if len(row) == 0 || len(row) > maxFeatures {
				return j.faultf("node %.40q has %d labels: want 1 to 2^24", key, len(row))
			}
			lists, m.width = true, len(row)
		}
		if len(row) != m.width {
			return j.faultf("node %.40q has %d labels, and those before it have %d", key, len(row), m.width)
		}
		for c, x := range row {
			if x != 0 && x != 1 {
				return j.faultf("node %.40q: label %d is %d: want 0 or 1", key, c, x)
			}
			flat = append(flat, uint8(x))
		}
		order = append(order, int32(at))
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := j.end(); err != nil {
		return nil, err
	}
	if m.class == nil && !lists {
		return nil, usageErrorf("%s: no node has a label", path)
	}
	if !lists {
		return m, nil
	}
	// A few wide lists for many nodes would ask for memory that the file does
	// not account for.
	if n > 1000+64*len(order) {
		return nil, usageErrorf("%s: %d entries for %d nodes: is this another set's?", path, len(order), n)
	}
	m.multi = bytes.Repeat([]byte{NoLabel}, n*m.width)
	for i, at := range order {
		copy(m.multi[int(at)*m.width:], flat[i*m.width:(i+1)*m.width])
	}
	return m, nil
}

// label gives the labels to a set.
func (m *classMap) label(d *Dataset, path string) {
	if m.class != nil {
		d.Labels, d.Task = NewClassLabels(m.class, m.width), Multiclass
	} else {
		d.Labels, d.Task = NewMultiLabels(m.multi, m.width), Multilabel
	}
	d.Labels.name = path
}
