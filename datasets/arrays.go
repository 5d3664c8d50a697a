package datasets

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"zerogcn/dtype"
	"zerogcn/graph"
	"zerogcn/internal/npy"
	"zerogcn/internal/par"
)

// arrays is a collection of arrays by name: an .npz file, or a folder of .npy.
type arrays interface {
	Path() string
	Has(name string) bool
	Array(name string) (*npy.Array, error)
}

// Names that arrays go by, the first that is there counts.
var (
	edgeNames    = []string{"edges", "edge_index", "edge_list"}
	featureNames = []string{"node_features", "features", "feats", "feat", "attr_matrix", "x"}
	labelNames   = []string{"node_labels", "labels", "label", "y"}
	weightNames  = []string{"edge_weight", "edge_weights"}
	// maskNames has, for each part, names of masks and of lists of nodes.
	maskNames = [3][]string{
		{"train_masks", "train_mask"},
		{"val_masks", "val_mask", "valid_masks", "valid_mask"},
		{"test_masks", "test_mask"},
	}
	indexNames = [3][]string{
		{"train_idx", "train_index"}, {"valid_idx", "val_idx", "valid_index", "val_index"}, {"test_idx", "test_index"},
	}
	// csrPrefixes are what the names of a sparse adjacency's parts begin with:
	// gnn-benchmark's, SciPy's with dots, and none, which is our own: then row
	// v lists the sources of v's incoming edges.
	csrPrefixes     = []string{"adj_", "adj_matrix.", ""}
	featurePrefixes = []string{"attr_", "attr_matrix."}
)

// bundle turns a collection of arrays into a Dataset.
type bundle struct {
	arrays
	d *Dataset
	w par.Workers
	n int64 // nodes; -1 as long as it is not known
	// once says that the layout stores each undirected edge once.
	once bool
}

func pick(a arrays, names []string) string {
	for _, n := range names {
		if a.Has(n) {
			return n
		}
	}
	return ""
}

func pickCSR(a arrays, prefixes []string) (prefix string, ok bool) {
	for _, p := range prefixes {
		if a.Has(p+"indptr") && a.Has(p+"indices") {
			return p, true
		}
	}
	return "", false
}

// looksLikeBundle reports whether the collection holds a graph.
func looksLikeBundle(a arrays) bool {
	_, csr := pickCSR(a, csrPrefixes)
	return csr || pick(a, edgeNames) != ""
}

// openBundle reads a collection of arrays. Features of at least two dimensions
// stay in their file where rows can be read from it; close is then called with
// the Dataset, else at once.
func openBundle(ctx context.Context, a arrays, name, source string, o Options, close func() error) (*Dataset, error) {
	d := &Dataset{Meta: Meta{Name: name, Source: source, Task: Multiclass}, closers: []func() error{close}}
	b := bundle{arrays: a, d: d, w: o.Workers, n: -1}
	b.once = a.Has("node_features") && a.Has("edges") // heterophilous-graphs
	for _, step := range []func(context.Context) error{b.features, b.labels, b.graph, b.splits} {
		if err := ctx.Err(); err != nil {
			return nil, errors.Join(err, d.Close())
		}
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, d.Close())
		}
	}
	if b.once && d.Task == Multiclass && d.Labels != nil && d.Labels.Width() == 2 {
		d.Task = Binary // its authors score two classes by ROC-AUC
	}
	if err := d.seal(ctx, o.Workers); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// nodes notes how many nodes an array has, or that it differs.
func (b *bundle) nodes(a *npy.Array, n int64) error {
	switch {
	case n > graph.MaxNodes:
		return a.Errorf("%d nodes: at most %d are possible", n, graph.MaxNodes)
	case b.n < 0:
		b.n = n
	case b.n != n:
		return a.Errorf("%d nodes, and the arrays before it have %d", n, b.n)
	}
	return nil
}

func (b *bundle) features(context.Context) error {
	if p, ok := pickCSR(b, featurePrefixes); ok {
		rows, cols, parts, err := b.csr(p)
		if err != nil {
			return err
		}
		m, err := sparseParts(rows, cols, parts[2], parts[1], parts[0], b.w)
		if err != nil {
			return err
		}
		b.d.Features = SparseFeatures(m)
		return b.nodes(parts[0], rows)
	}
	name := pick(b, featureNames)
	if name == "" {
		b.d.Warnings = append(b.d.Warnings, "no features")
		return nil
	}
	a, err := b.Array(name)
	if err != nil {
		return err
	}
	if err := a.WantShape(-1, -1); err != nil {
		return err
	}
	if a.Shape[1] > maxFeatures {
		return a.Errorf("%d columns: want at most %d", a.Shape[1], maxFeatures)
	}
	if err := b.nodes(a, a.Shape[0]); err != nil {
		return err
	}
	f, err := arrayFeatures(a, storageOf(a))
	if err != nil {
		return err
	}
	if a.Sequential() {
		f, err = f.inMemory()
		if err != nil {
			return err
		}
	}
	b.d.Features = f
	return nil
}

// storageOf is the storage type of a foreign array of features: what it is in,
// if that is a type of ours, else float32.
func storageOf(a *npy.Array) dtype.Type {
	if a.Type.Kind == npy.Float && a.Type.Size == 2 {
		return dtype.Float16
	}
	return dtype.Float32
}

// inMemory reads the whole table, unchecked; ReadRows checks it later.
func (f *Features) inMemory() (*Features, error) {
	data := make([]byte, f.Rows*f.RowBytes())
	if err := f.file.readRows(0, f.Rows, data); err != nil {
		return nil, err
	}
	return &Features{Rows: f.Rows, Dim: f.Dim, Type: f.Type, name: f.name, data: data}, nil
}

// csr opens the parts of a sparse matrix: indptr, indices, data (nil if there
// is none). Without a shape it has as many columns as rows.
func (b *bundle) csr(prefix string) (rows, cols int64, parts [3]*npy.Array, err error) {
	for i, name := range []string{"indptr", "indices", "data"} {
		if i == 2 && !b.Has(prefix+name) {
			break
		}
		if parts[i], err = b.Array(prefix + name); err != nil {
			return 0, 0, parts, err
		}
		if err := parts[i].WantShape(-1); err != nil {
			return 0, 0, parts, err
		}
	}
	rows = parts[0].Shape[0] - 1
	cols = rows
	if rows < 0 {
		return 0, 0, parts, parts[0].Errorf("no offsets: want one more than there are rows")
	}
	if !b.Has(prefix + "shape") {
		return rows, cols, parts, nil
	}
	a, err := b.Array(prefix + "shape")
	if err != nil {
		return 0, 0, parts, err
	}
	if err := a.WantShape(2); err != nil {
		return 0, 0, parts, err
	}
	shape, err := npy.Read[int64](a, 1)
	if err != nil {
		return 0, 0, parts, err
	}
	if shape[0] != rows || shape[1] < 0 {
		return 0, 0, parts, a.Errorf("%d × %d, and there are %d offsets of rows", shape[0], shape[1], rows+1)
	}
	return rows, shape[1], parts, nil
}

func (b *bundle) graph(ctx context.Context) error {
	if p, ok := pickCSR(b, csrPrefixes); ok {
		return b.graphFromCSR(ctx, p)
	}
	name := pick(b, edgeNames)
	if name == "" {
		return usageErrorf("%s: no graph: want edges, edge_index, or indptr and indices", b.Path())
	}
	a, err := b.Array(name)
	if err != nil {
		return err
	}
	if err := a.WantShape(-1, -1); err != nil {
		return err
	}
	// (edges, 2) or (2, edges): PyG's edge_index is the latter.
	across := a.Shape[0] == 2 && (a.Shape[1] != 2 || name == "edge_index")
	if !across && a.Shape[1] != 2 {
		return a.Errorf("the shape is %s: want (edges, 2) or (2, edges)", a.ShapeString())
	}
	flat, err := npy.Read[int32](a, b.w)
	if err != nil {
		return err
	}
	var e graph.Edges
	if across {
		e = graph.Edges{Sources: flat[:len(flat)/2], Targets: flat[len(flat)/2:]}
	} else {
		l := splitPairs(flat)
		e = graph.Edges{Sources: l.Sources, Targets: l.Targets}
	}
	if b.n < 0 {
		if b.n, err = nodesOf(e); err != nil {
			return a.Errorf("%w", err)
		}
	}
	for i, u := range e.Sources {
		if v := e.Targets[i]; u < 0 || v < 0 || int64(u) >= b.n || int64(v) >= b.n {
			return a.Errorf("edge %d leads from node %d to node %d: there are %d nodes, numbered from 0", i, u, v, b.n)
		}
	}
	if w := pick(b, weightNames); w != "" {
		if e.Weights, err = b.weights(w, int64(len(e.Sources))); err != nil {
			return err
		}
	}
	return b.build(ctx, e)
}

// nodesOf infers the number of nodes from edges, where nothing else tells it.
// Ids that would leave nearly all nodes without an edge are refused: they are
// names, not numbers, and a single one could ask for any amount of memory.
func nodesOf(e graph.Edges) (int64, error) {
	top := int32(-1)
	for i, u := range e.Sources {
		top = max(top, u, e.Targets[i])
	}
	n := int64(top) + 1
	if n > 1000+64*int64(len(e.Sources)) {
		return 0, fmt.Errorf("the largest node number is %d with %d edges: are these names? give features or labels, whose rows count the nodes", top, len(e.Sources))
	}
	return n, nil
}

func (b *bundle) weights(name string, edges int64) ([]float32, error) {
	a, err := b.Array(name)
	if err != nil {
		return nil, err
	}
	if err := a.WantShape(edges); err != nil {
		return nil, err
	}
	return finiteWeights(a, b.w)
}

// finiteWeights reads weights; nil stands for weights that are all 1.
func finiteWeights(a *npy.Array, w par.Workers) ([]float32, error) {
	v, err := npy.Read[float32](a, w)
	if err != nil {
		return nil, err
	}
	ones := true
	for i, x := range v {
		if x-x != 0 {
			return nil, a.Errorf("the weight of edge %d is %v: want a finite number", i, x)
		}
		ones = ones && x == 1
	}
	if ones {
		return nil, nil
	}
	return v, nil
}

// graphFromCSR takes a sparse adjacency: entry (i, j) is the edge from i to j,
// but for our own layout, whose rows list incoming edges.
func (b *bundle) graphFromCSR(ctx context.Context, prefix string) error {
	rows, cols, parts, err := b.csr(prefix)
	if err != nil {
		return err
	}
	if rows != cols {
		return parts[0].Errorf("an adjacency of %d × %d: want a square one", rows, cols)
	}
	if err := b.nodes(parts[0], rows); err != nil {
		return err
	}
	ptr, err := npy.Read[int64](parts[0], b.w)
	if err != nil {
		return err
	}
	idx, err := npy.Read[int32](parts[1], b.w)
	if err != nil {
		return err
	}
	if err := checkOffsets(parts[0], ptr, int64(len(idx))); err != nil {
		return err
	}
	row := make([]int32, len(idx))
	for r := range int(rows) {
		for k := ptr[r]; k < ptr[r+1]; k++ {
			if c := idx[k]; c < 0 || int64(c) >= rows {
				return parts[1].Errorf("row %d names node %d: there are %d nodes, numbered from 0", r, c, rows)
			}
			row[k] = int32(r)
		}
	}
	e := graph.Edges{Sources: row, Targets: idx}
	if prefix == "" {
		e.Sources, e.Targets = idx, row
	}
	if parts[2] != nil {
		if err := parts[2].WantShape(int64(len(idx))); err != nil {
			return err
		}
		if e.Weights, err = finiteWeights(parts[2], b.w); err != nil {
			return err
		}
	}
	return b.build(ctx, e)
}

func (b *bundle) build(ctx context.Context, e graph.Edges) error {
	bld := graph.Builder{NumNodes: int(b.n), Symmetrize: b.once, Deduplicate: true, Workers: b.w}
	var err error
	if b.d.Graph, err = bld.FromEdges(ctx, e.Sources, e.Targets, e.Weights); err != nil {
		return err
	}
	if !b.once {
		if dropped := int64(len(e.Sources)) - b.d.Graph.NumEdges(); dropped > 0 {
			b.d.Warnings = append(b.d.Warnings, plural(dropped, "repeated edge", "repeated edges")+" kept once")
		}
	}
	return nil
}

func (b *bundle) labels(context.Context) error {
	name := pick(b, labelNames)
	if name == "" {
		b.d.Warnings = append(b.d.Warnings, "no labels")
		return nil
	}
	a, err := b.Array(name)
	if err != nil {
		return err
	}
	if len(a.Shape) == 0 || len(a.Shape) > 2 {
		return a.Errorf("the shape is %s: want (nodes,) or (nodes, labels)", a.ShapeString())
	}
	if err := b.nodes(a, a.Shape[0]); err != nil {
		return err
	}
	names := []string(nil)
	if b.Has("class_names") {
		c, err := b.Array("class_names")
		if err != nil {
			return err
		}
		if (c.Type.Kind == npy.Text || c.Type.Kind == npy.Bytes) && len(c.Shape) == 1 {
			if names, err = c.Strings(); err != nil {
				return err
			}
		}
	}
	b.d.Labels, b.d.Task, err = foreignLabels(a, len(names), b.w)
	if err != nil {
		return err
	}
	if b.d.Labels.Width() == len(names) {
		b.d.ClassNames = names
	}
	return nil
}

// foreignLabels tells the kind of labels by type and shape. A column of whole
// numbers has classes (-1 and NaN: none), several columns of 0 and 1 are label
// sets, other numbers regression targets. classes is the number of classes, 0
// if it is not known.
func foreignLabels(a *npy.Array, classes int, w par.Workers) (*Labels, Task, error) {
	n := int(a.Shape[0])
	width := int(a.Width())
	if int64(width) > maxFeatures {
		return nil, "", a.Errorf("%d columns of labels: want at most %d", width, maxFeatures)
	}
	if a.Type.Kind == npy.Float {
		v, err := npy.Read[float32](a, w)
		if err != nil {
			return nil, "", err
		}
		return labelsOfFloats(a, v, n, width, classes)
	}
	v, err := npy.Read[int64](a, w)
	if err != nil {
		return nil, "", err
	}
	return labelsOfInts(a, v, n, width, classes)
}

func labelsOfFloats(a *npy.Array, v []float32, n, width, classes int) (*Labels, Task, error) {
	ints := make([]int64, len(v))
	for i, x := range v {
		switch {
		case x != x && width == 1:
			ints[i] = -1
		case x != x:
			ints[i] = int64(NoLabel)
		case math.IsInf(float64(x), 0):
			return nil, "", a.Errorf("row %d: the label is %v", i/width, x)
		case x != float32(math.Trunc(float64(x))) || x < 0 || x >= maxFeatures:
			l := NewValueLabels(v, width)
			l.name = a.Name()
			return l, Regression, nil
		default:
			ints[i] = int64(x)
		}
	}
	return labelsOfInts(a, ints, n, width, classes)
}

func labelsOfInts(a *npy.Array, v []int64, n, width, classes int) (*Labels, Task, error) {
	if width != 1 {
		multi := make([]uint8, len(v))
		for i, x := range v {
			if x != 0 && x != 1 && x != int64(NoLabel) {
				return nil, "", a.Errorf("row %d, column %d is %d: want 0, 1 or 255 (none) in a matrix of labels", i/width, i%width, x)
			}
			multi[i] = uint8(x)
		}
		l := NewMultiLabels(multi, width)
		l.n = n
		l.name = a.Name()
		return l, Multilabel, nil
	}
	class := make([]int32, n)
	top := int64(-1)
	for i, x := range v {
		if x < -1 || x >= maxFeatures || classes > 0 && x >= int64(classes) {
			if classes > 0 {
				return nil, "", a.Errorf("node %d has class %d: there are %d class names (-1 means none)", i, x, classes)
			}
			return nil, "", a.Errorf("node %d has class %d: want 0 to 2^24-1, or -1 for none", i, x)
		}
		class[i] = int32(x)
		top = max(top, x)
	}
	l := NewClassLabels(class, max(classes, int(top)+1))
	l.name = a.Name()
	return l, Multiclass, nil
}

// splits reads masks, or lists of nodes.
func (b *bundle) splits(context.Context) error {
	var masks, lists [3]string
	for i := range masks {
		masks[i], lists[i] = pick(b, maskNames[i]), pick(b, indexNames[i])
	}
	switch {
	case masks[0] != "" && masks[1] != "" && masks[2] != "":
		return b.masks(masks)
	case lists[0] != "" && lists[1] != "" && lists[2] != "":
		return b.lists(lists)
	case masks != [3]string{}:
		return usageErrorf("%s: masks for some parts only: want train, val and test", b.Path())
	case lists != [3]string{}:
		return usageErrorf("%s: node lists for some parts only: want train_idx, valid_idx and test_idx", b.Path())
	}
	return nil
}

func (b *bundle) masks(names [3]string) error {
	var parts [3][][]int32
	for i, name := range names {
		a, err := b.Array(name)
		if err != nil {
			return err
		}
		if parts[i], err = readMasks(a, b.n, b.w); err != nil {
			return err
		}
		if len(parts[i]) != len(parts[0]) {
			return a.Errorf("%d splits, and %s has %d", len(parts[i]), names[0], len(parts[0]))
		}
	}
	s := make(memorySplits, len(parts[0]))
	for k := range s {
		s[k] = Split{parts[0][k], parts[1][k], parts[2][k]}
		if err := s[k].check(int(b.n)); err != nil {
			return usageErrorf("%s: split %d: %w", b.Path(), k, err)
		}
	}
	b.d.splits = s
	return nil
}

// readMasks turns masks of the shape (nodes,), (splits, nodes) or (nodes,
// splits) into lists of nodes, one per split.
func readMasks(a *npy.Array, n int64, w par.Workers) ([][]int32, error) {
	byRow := len(a.Shape) == 2 && a.Shape[1] == n
	switch {
	case len(a.Shape) == 1 && a.Shape[0] == n:
	case byRow:
	case len(a.Shape) == 2 && a.Shape[0] == n:
	default:
		return nil, a.Errorf("the shape is %s: want a mask of %d nodes, or several", a.ShapeString(), n)
	}
	count := int64(1)
	if byRow {
		count = a.Shape[0]
	} else if len(a.Shape) == 2 {
		count = a.Shape[1]
	}
	if count > maxSplits {
		return nil, a.Errorf("%d splits: at most %d are read", count, maxSplits)
	}
	v, err := npy.Read[uint8](a, w)
	if err != nil {
		return nil, err
	}
	out := make([][]int32, count)
	for i, x := range v {
		node, k := int64(i)/count, int64(i)%count
		if byRow {
			node, k = int64(i)%n, int64(i)/n
		}
		switch x {
		case 0:
		case 1:
			out[k] = append(out[k], int32(node))
		default:
			return nil, a.Errorf("the mask of node %d is %d: want 0 or 1; a list of nodes is named train_idx", node, x)
		}
	}
	return out, nil
}

func (b *bundle) lists(names [3]string) error {
	var s Split
	for i, to := range []*[]int32{&s.Train, &s.Valid, &s.Test} {
		a, err := b.Array(names[i])
		if err != nil {
			return err
		}
		if err := a.WantShape(-1); err != nil {
			return err
		}
		if *to, err = npy.Read[int32](a, b.w); err != nil {
			return err
		}
		for _, v := range *to {
			if v < 0 || int64(v) >= b.n {
				return a.Errorf("node %d: there are %d nodes, numbered from 0", v, b.n)
			}
		}
		slices.Sort(*to)
	}
	if err := s.check(int(b.n)); err != nil {
		return usageErrorf("%s: %w", b.Path(), err)
	}
	b.d.splits = memorySplits{s}
	return nil
}
