package datasets

import (
	"context"
	"errors"

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
