package datasets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"zerogcn/datasets/internal/pickle"
	"zerogcn/graph"
	"zerogcn/internal/npy"
	"zerogcn/internal/par"
	"zerogcn/sparse"
)

// Planetoid is the format of Yang, Cohen and Salakhutdinov, "Revisiting
// Semi-Supervised Learning with Graph Embeddings" (ICML 2016): eight files
// ind.NAME.{x,y,tx,ty,allx,ally,graph,test.index}, all but the last pickles.
//
// Nodes are numbered as the files' authors do: the rows of allx come first; row
// i of tx is the node that line i of test.index names. Nodes that are in
// neither (fifteen in Citeseer) have no features and no label. The split is the
// official one: the rows of y train, the 500 after them validate, test.index
// tests. Edges are made symmetric and kept once; self loops are removed, as
// PyTorch Geometric does, and layers that want them add their own.
var planetoidFormat = Format{
	Name:      "planetoid",
	Describe:  "Planetoid pickles: a folder with ind.NAME.graph, .allx, .ally, .tx, .ty, .x, .y, .test.index",
	Recognise: func(s *Source) bool { return planetoidName(s) != "" },
	Open:      openPlanetoid,
}

const (
	planetoidValid = 500
	// maxPickle bounds a pickle's file: unpickled, it may take 100 times the
	// memory.
	maxPickle = 256 << 20
)

// planetoidName returns NAME of ind.NAME.graph, "" if there is no such file.
func planetoidName(s *Source) string {
	for _, n := range s.Names {
		if rest, ok := strings.CutPrefix(n, "ind."); ok {
			if name, ok := strings.CutSuffix(rest, ".graph"); ok && name != "" {
				return name
			}
		}
	}
	return ""
}

type planetoid struct {
	dir, name string
	w         par.Workers
}

func openPlanetoid(ctx context.Context, s *Source, o Options) (*Dataset, error) {
	p := planetoid{dir: s.Path, name: planetoidName(s), w: o.Workers}
	if p.name == "" {
		return nil, usageErrorf("%s: no file ind.NAME.graph: not a Planetoid folder", s.Path)
	}
	test, err := p.testIndex()
	if err != nil {
		return nil, err
	}
	allx, err := p.matrix("allx")
	if err != nil {
		return nil, err
	}
	tx, err := p.matrix("tx")
	if err != nil {
		return nil, err
	}
	x, err := p.matrix("x")
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	classes := -1
	ally, err := p.classes("ally", allx.NumRows, &classes)
	if err != nil {
		return nil, err
	}
	ty, err := p.classes("ty", tx.NumRows, &classes)
	if err != nil {
		return nil, err
	}
	y, err := p.classes("y", x.NumRows, &classes)
	if err != nil {
		return nil, err
	}
	switch {
	case tx.NumCols != allx.NumCols || x.NumCols != allx.NumCols:
		return nil, usageErrorf("%s: x, tx and allx have %d, %d and %d columns: want the same", p.path("allx"), x.NumCols, tx.NumCols, allx.NumCols)
	case len(test) != tx.NumRows:
		return nil, usageErrorf("%s: %d lines, and tx has %d rows: want the same", p.path("test.index"), len(test), tx.NumRows)
	case len(y) > len(ally):
		return nil, usageErrorf("%s: %d rows, and ally has %d: y is its beginning", p.path("y"), len(y), len(ally))
	}
	g, err := p.graph(ctx, allx.NumRows, test)
	if err != nil {
		return nil, err
	}
	n := g.csr.NumNodes()
	d := &Dataset{
		Meta:     Meta{Name: p.name, Source: "Planetoid pickles", Task: Multiclass},
		Graph:    g.csr,
		Features: SparseFeatures(spread(allx, tx, test, n)),
		Warnings: g.warnings,
	}
	class := slices.Repeat([]int32{NoClass}, n)
	copy(class, ally)
	for i, v := range test {
		class[v] = ty[i]
	}
	d.Labels = NewClassLabels(class, classes)
	d.splits = memorySplits{officialSplit(class, len(y), len(ally), test)}
	none := 0
	for _, c := range class {
		if c < 0 {
			none++
		}
	}
	if none > 0 {
		d.Warnings = append(d.Warnings, plural(int64(none), "node has", "nodes have")+" neither features nor label")
	}
	return d, d.seal(ctx, o.Workers)
}

func (p *planetoid) path(part string) string {
	return filepath.Join(p.dir, "ind."+p.name+"."+part)
}

// read returns the bytes of a part; a missing file is the user's.
func (p *planetoid) read(part string) ([]byte, error) {
	b, err := readSmall(p.path(part), maxPickle)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usageErrorf("%s: the file is missing: a Planetoid set has eight (x, y, tx, ty, allx, ally, graph, test.index)", p.path(part))
	}
	return b, err
}

func (p *planetoid) load(part string) (pickle.Value, []byte, error) {
	b, err := p.read(part)
	if err != nil {
		return nil, nil, err
	}
	v, err := pickle.Load(b, pickle.DataGlobals())
	if err != nil {
		return nil, nil, usageErrorf("%s: %w", p.path(part), err)
	}
	return v, b, nil
}

// matrix reads the sparse features x, tx or allx.
func (p *planetoid) matrix(part string) (*sparse.Matrix, error) {
	v, _, err := p.load(part)
	if err != nil {
		return nil, err
	}
	m, err := pickle.CSRMatrix(v, p.path(part))
	if err != nil {
		return nil, usageErrorf("%s: %w", p.path(part), err)
	}
	if m.Rows > int64(m.Indptr.Count()) { // before anything is sized by it
		return nil, usageErrorf("%s: %d rows with %d offsets", p.path(part), m.Rows, m.Indptr.Count())
	}
	return sparseParts(m.Rows, m.Cols, m.Data, m.Indices, m.Indptr, p.w)
}

// classes reads one-hot labels y, ty or ally; a row of zeros has no class.
// classes is the number of columns, -1 as long as it is not known.
func (p *planetoid) classes(part string, rows int, classes *int) ([]int32, error) {
	v, _, err := p.load(part)
	if err != nil {
		return nil, err
	}
	a, err := pickle.Ndarray(v, p.path(part))
	if err != nil {
		return nil, usageErrorf("%s: %w", p.path(part), err)
	}
	if err := a.WantShape(int64(rows), int64(*classes)); err != nil {
		return nil, err
	}
	hot, err := npy.Read[float32](a, p.w)
	if err != nil {
		return nil, err
	}
	c := int(a.Shape[1])
	if c > maxFeatures {
		return nil, a.Errorf("%d classes: want at most %d", c, maxFeatures)
	}
	*classes = c
	out := make([]int32, rows)
	for r := range out {
		out[r] = NoClass
		for j, x := range hot[r*c : (r+1)*c] {
			switch {
			case x == 0:
			case x != 1 || out[r] != NoClass:
				return nil, a.Errorf("row %d is not one-hot", r)
			default:
				out[r] = int32(j)
			}
		}
	}
	return out, nil
}

// testIndex reads the node of each row of tx: one number a line, in no order.
func (p *planetoid) testIndex() ([]int32, error) {
	b, err := p.read("test.index")
	if err != nil {
		return nil, err
	}
	var out []int32
	for line, text := range bytes.Split(bytes.TrimRight(b, "\r\n \t"), []byte("\n")) {
		v, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 32)
		if err != nil || v < 0 {
			return nil, usageErrorf("%s: line %d: %.40q is not a node number", p.path("test.index"), line+1, bytes.TrimSpace(text))
		}
		out = append(out, int32(v))
	}
	return out, nil
}

type planetoidGraph struct {
	csr      *graph.CSR
	warnings []string
}

// graph reads the dict from node to the list of its neighbours. Nodes are the
// rows of allx, the nodes of test.index and the dict's keys.
func (p *planetoid) graph(ctx context.Context, rows int, test []int32) (*planetoidGraph, error) {
	v, b, err := p.load("graph")
	if err != nil {
		return nil, err
	}
	path := p.path("graph")
	var d *pickle.Dict
	switch v := v.(type) {
	case *pickle.Dict:
		d = v
	case *pickle.Object: // collections.defaultdict
		d = &v.Dict
	default:
		return nil, usageErrorf("%s: not a dict of lists", path)
	}
	n := max(rows+len(test), len(d.Keys))
	seen := map[int32]bool{}
	for i, v := range test {
		switch {
		case seen[v]:
			return nil, usageErrorf("%s: line %d: node %d is there twice", p.path("test.index"), i+1, v)
		case int(v) < rows:
			return nil, usageErrorf("%s: line %d: node %d is a row of allx, which has %d", p.path("test.index"), i+1, v, rows)
		case int(v) > 2*n+1000: // gaps are few: fifteen in Citeseer
			return nil, usageErrorf("%s: line %d: node %d: there are about %d nodes", p.path("test.index"), i+1, v, n)
		}
		seen[v] = true
	}
	for v := range seen {
		n = max(n, int(v)+1)
	}
	edges, loops, err := listEdges(d, n, len(b))
	if err != nil {
		return nil, usageErrorf("%s: %w", path, err)
	}
	bld := graph.Builder{NumNodes: n, Symmetrize: true, RemoveSelfLoops: true, Deduplicate: true, Workers: p.w}
	g := &planetoidGraph{}
	if g.csr, err = bld.FromEdges(ctx, edges.Sources, edges.Targets, nil); err != nil {
		return nil, err
	}
	if loops > 0 {
		g.warnings = append(g.warnings, plural(int64(loops), "self loop", "self loops")+" left out (as stored; layers that want them add their own)")
	}
	return g, nil
}

// listEdges turns a dict of lists into edges from each key's neighbours to it.
// An entry of a list takes at least a byte of the pickle, unless lists are
// shared: more entries than bytes are refused.
func listEdges(d *pickle.Dict, n, bytes int) (e graph.Edges, loops int, err error) {
	node := func(v pickle.Value) (int32, error) {
		id, ok := v.(int64)
		if !ok {
			return 0, fmt.Errorf("a node number that is no integer")
		}
		if id < 0 || id >= int64(n) {
			return 0, fmt.Errorf("node %d: there are %d nodes, from 0 on", id, n)
		}
		return int32(id), nil
	}
	seen := make([]bool, n)
	for i, k := range d.Keys {
		v, err := node(k)
		if err != nil {
			return e, 0, fmt.Errorf("key %d of the dict: %w", i, err)
		}
		if seen[v] {
			return e, 0, fmt.Errorf("key %d of the dict: node %d is there twice", i, v)
		}
		seen[v] = true
		list, ok := d.Vals[i].(*pickle.List)
		if !ok {
			return e, 0, fmt.Errorf("node %d: its neighbours are not a list", v)
		}
		if len(e.Sources)+len(list.Items) > bytes {
			return e, 0, fmt.Errorf("node %d: more neighbours than the file has bytes", v)
		}
		for j, it := range list.Items {
			u, err := node(it)
			if err != nil {
				return e, 0, fmt.Errorf("neighbour %d of node %d: %w", j, v, err)
			}
			e.Sources = append(e.Sources, u)
			e.Targets = append(e.Targets, v)
		}
	}
	return e, countSelfLoops(e), nil
}

// spread puts the rows of allx first and row i of tx at node test[i]; other
// nodes have no features.
func spread(allx, tx *sparse.Matrix, test []int32, n int) *sparse.Matrix {
	from := slices.Repeat([]int32{-1}, n)
	for i, v := range test {
		from[v] = int32(i)
	}
	m := &sparse.Matrix{NumRows: n, NumCols: allx.NumCols, Indptr: make([]int64, 1, n+1)}
	for v := range n {
		var c []int32
		var x []float32
		switch {
		case v < allx.NumRows:
			c, x = allx.Row(v)
		case from[v] >= 0:
			c, x = tx.Row(int(from[v]))
		}
		m.Cols = append(m.Cols, c...)
		m.Vals = append(m.Vals, x...)
		m.Indptr = append(m.Indptr, int64(len(m.Vals)))
	}
	return m
}

// officialSplit takes the nodes of y for training, the next 500 of ally for
// validation and those of test.index for testing; unlabelled ones are left out.
func officialSplit(class []int32, train, all int, test []int32) Split {
	labelled := func(lo, hi int) (ids []int32) {
		for v := lo; v < hi; v++ {
			if class[v] >= 0 {
				ids = append(ids, int32(v))
			}
		}
		return ids
	}
	s := Split{Train: labelled(0, train), Valid: labelled(train, min(all, train+planetoidValid))}
	for _, v := range test {
		if class[v] >= 0 {
			s.Test = append(s.Test, v)
		}
	}
	slices.Sort(s.Test)
	return s
}
