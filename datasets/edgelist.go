package datasets

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"zerogcn/graph"
)

// An edge list is text with an edge a line (see edgeText): one file, or a folder
// with features.csv and labels.csv beside it, a row per node, and train_idx.csv,
// valid_idx.csv, test_idx.csv, a node per line, or split_0.pt, split_1.pt, …, each
// a dict of tensors saved by PyTorch. Text may be packed with gzip or zstd. A third column of the edges is
// their weight if it is the last and has no header or one that says weight.
//
// Nodes are the rows of the features or labels, else numbers up to the largest.
// Edges are kept as directed as they are, repeated ones once. Where a file's
// header begins with id, node or node_id, its first column is the node and rows
// may come in any order.
var edgeListFormat = Format{
	Name:      "edge-list",
	Describe:  "an edge list: a text file of node pairs, or a folder with edges.csv and features.csv, labels.csv",
	Recognise: recogniseEdgeList,
	Open:      openEdgeList,
}

var (
	edgeListFiles = []string{"edges.csv", "edges_undir.csv", "edge_list.csv", "edgelist.csv", "edges.tsv", "edges.txt", "edge_list.txt", "edgelist.txt"}
	featureFiles  = []string{"features.csv", "node_features.csv", "feats.csv", "features.tsv", "features.txt"}
	labelFiles    = []string{"labels.csv", "node_labels.csv", "labels.tsv", "labels.txt"}
	listFiles     = [3][]string{
		{"train_idx.csv", "train.csv"}, {"valid_idx.csv", "val_idx.csv", "valid.csv"}, {"test_idx.csv", "test.csv"},
	}
	idHeaders = []string{"id", "node", "node_id", "nodeid"}
)

// firstOf returns the first entry of one of these names, packed or not.
func firstOf(s *Source, names []string) string {
	for _, n := range names {
		for _, ext := range compressedExts {
			if s.Has(n + ext) {
				return n + ext
			}
		}
	}
	return ""
}

func recogniseEdgeList(s *Source) bool {
	if s.Dir {
		return firstOf(s, edgeListFiles) != ""
	}
	_, _, ok := probeEdges(s.headText("", 64<<10))
	return ok
}

// probeEdges looks at the beginning of an edge list: whether it is one, and
// whether a third column has weights.
func probeEdges(head []byte) (columns int, weighted, ok bool) {
	if bytes.IndexByte(head, 0) >= 0 {
		return 0, false, false
	}
	lines := newLineReader("", bytes.NewReader(head))
	names := ""
	for {
		line, err := lines.next()
		if err != nil {
			return 0, false, false
		}
		if len(line) == 0 || line[0] == '#' || line[0] == '%' {
			continue
		}
		rest := line
		var fields [][]byte
		for len(rest) > 0 && len(fields) < 64 {
			fields = append(fields, field(&rest))
		}
		if len(fields) < 2 {
			return 0, false, false
		}
		_, ok1 := wholeNumber(fields[0])
		_, ok2 := wholeNumber(fields[1])
		if !ok1 || !ok2 {
			if names == "" && !startsWithNumber(line) {
				names = strings.ToLower(string(line))
				continue
			}
			return 0, false, false
		}
		if len(fields) == 3 {
			_, err := strconv.ParseFloat(string(fields[2]), 32)
			weighted = err == nil && (names == "" || strings.Contains(names, "weight"))
		}
		return len(fields), weighted, true
	}
}

func openEdgeList(ctx context.Context, s *Source, o Options) (*Dataset, error) {
	path := s.Path
	d := &Dataset{Meta: Meta{Name: s.Base(), Source: "edge list", Task: Multiclass}}
	n := -1
	if s.Dir {
		name := firstOf(s, edgeListFiles)
		if name == "" {
			return nil, usageErrorf("%s: no edge list: want one of %s", s.Path, strings.Join(edgeListFiles, ", "))
		}
		path = s.File(name)
		if err := readNodeTables(ctx, s, d, &n); err != nil {
			return nil, err
		}
	}
	name := ""
	if s.Dir {
		name = filepath.Base(path)
	}
	_, weighted, _ := probeEdges(s.headText(name, 64<<10))
	f, err := openText(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t := edgeText{name: path, nodes: n, weights: weighted}
	if n < 0 {
		t.nodes = graph.MaxNodes
	}
	e, err := t.read(ctx, f)
	if err != nil {
		return nil, err
	}
	if n < 0 {
		if len(e.Sources) == 0 {
			return nil, usageErrorf("%s: no edges: want two node numbers a line", path)
		}
		m, err := nodesOf(e)
		if err != nil {
			return nil, usageErrorf("%s: %w", path, err)
		}
		n = int(m)
	}
	b := graph.Builder{NumNodes: n, Deduplicate: true, Workers: o.Workers}
	if d.Graph, err = b.FromEdges(ctx, e.Sources, e.Targets, e.Weights); err != nil {
		return nil, err
	}
	if s.Dir {
		if err := readNodeLists(ctx, s, d, n); err != nil {
			return nil, err
		}
	}
	return d, d.seal(ctx, o.Workers)
}

// readNodeLists reads the lists of a given split.
func readNodeLists(ctx context.Context, s *Source, d *Dataset, n int) error {
	var sp Split
	var names [3]string
	for i := range names {
		names[i] = firstOf(s, listFiles[i])
	}
	if names == [3]string{} {
		return readTorchSplits(s, d, n)
	}
	for i, to := range []*[]int32{&sp.Train, &sp.Valid, &sp.Test} {
		if names[i] == "" {
			return usageErrorf("%s: node lists for some parts only: want %s, %s and %s", s.Path, listFiles[0][0], listFiles[1][0], listFiles[2][0])
		}
		ids, err := readNodeList(ctx, s.File(names[i]), n)
		if err != nil {
			return err
		}
		*to = ids
	}
	if err := sp.check(n); err != nil {
		return usageErrorf("%s: %w", s.Path, err)
	}
	d.splits = memorySplits{sp}
	return nil
}

func readNodeList(ctx context.Context, path string, n int) ([]int32, error) {
	f, err := openText(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var ids []int32
	lines := newLineReader(path, f)
	for {
		line, err := lines.next()
		if errors.Is(err, io.EOF) {
			return ids, nil
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
		if !ok {
			if lines.number == 1 && !startsWithNumber(line) {
				continue // a header
			}
			return nil, lines.faultf("%.40q is not a node number", line)
		}
		if v < 0 || v >= int64(n) {
			return nil, lines.faultf("node %d: there are %d nodes, numbered from 0", v, n)
		}
		ids = append(ids, int32(v))
	}
}
