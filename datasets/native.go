package datasets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"zerogcn/dtype"
	"zerogcn/graph"
	"zerogcn/internal/npy"
	"zerogcn/internal/par"
	"zerogcn/internal/usage"
)

// Names in a native folder. Given splits lie beside them, or, several of them,
// in splits/0, splits/1 and so on.
const (
	metaFile     = "meta.json"
	indptrFile   = "indptr.npy"
	indicesFile  = "indices.npy"
	weightsFile  = "edge_weight.npy"
	featuresFile = "features.npy"
	scalesFile   = "scales.npy"
	labelsFile   = "labels.npy"
	idsFile      = "node_ids.npy"
	splitsFolder = "splits"
)

var splitFiles = [3]string{"train_idx.npy", "valid_idx.npy", "test_idx.npy"}

var edgeFiles = [6]string{
	"train_edges.npy", "valid_edges.npy", "test_edges.npy",
	"train_edges_neg.npy", "valid_edges_neg.npy", "test_edges_neg.npy",
}

// maxSplits bounds the given splits of a set.
const maxSplits = 10_000

var nativeFormat = Format{
	Name:      "native",
	Describe:  "zerogcn's own folder: meta.json, indptr.npy, indices.npy, features.npy, labels.npy, *_idx.npy",
	Recognise: func(s *Source) bool { return s.Dir && s.Has(metaFile) && s.Has(indptrFile) },
	Open:      openNative,
}

// openNative opens a native folder. Headers, sizes and meta.json's hash are
// checked; arrays are mapped where they can be, and not read.
func openNative(ctx context.Context, s *Source, o Options) (*Dataset, error) {
	path := s.File(metaFile)
	text, err := readSmall(path, maxMetaBytes)
	if err != nil {
		return nil, err
	}
	m, err := decodeMeta(text)
	if err != nil {
		return nil, usageErrorf("%s: %w", path, err)
	}
	if m.Name == "" {
		m.Name = s.Base()
	}
	d := &Dataset{Meta: *m}
	f := folder{dir: s.Path, d: d, w: o.Workers}
	if err := f.read(ctx); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// folder opens the arrays of a native folder into a Dataset.
type folder struct {
	dir string
	d   *Dataset
	w   par.Workers
}

func (f *folder) read(ctx context.Context) error {
	for _, step := range []func() error{f.graph, f.features, f.labels, f.nodeIDs, f.splits, f.edgeSets} {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// open opens an array that the Dataset closes. A missing file gives nil where
// it is optional.
func (f *folder) open(name string, optional bool) (*npy.Array, error) {
	a, err := npy.Open(filepath.Join(f.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		if optional {
			return nil, nil
		}
		return nil, usageErrorf("%s: the file is missing: a native folder has one", filepath.Join(f.dir, name))
	}
	if err != nil {
		return nil, err
	}
	f.d.closers = append(f.d.closers, a.Close)
	return a, nil
}

// view maps the array, or reads it where it cannot be mapped.
func view[T npy.Element](a *npy.Array, w par.Workers) ([]T, error) {
	v, ok, err := npy.View[T](a)
	if ok || err != nil {
		return v, err
	}
	return npy.Read[T](a, w)
}

func (f *folder) graph() error {
	d := f.d
	ip, err := f.open(indptrFile, false)
	if err != nil {
		return err
	}
	ix, err := f.open(indicesFile, false)
	if err != nil {
		return err
	}
	if err := ip.WantShape(int64(d.NumNodes) + 1); err != nil {
		return fmt.Errorf("%w (%s says %d nodes)", err, metaFile, d.NumNodes)
	}
	if err := ix.WantShape(d.NumEdges); err != nil {
		return fmt.Errorf("%w (%s says %d edges)", err, metaFile, d.NumEdges)
	}
	g := &graph.CSR{}
	if g.Indptr, err = view[int64](ip, f.w); err != nil {
		return err
	}
	if g.Indices, err = view[int32](ix, f.w); err != nil {
		return err
	}
	if a, b := g.Indptr[0], g.Indptr[d.NumNodes]; a != 0 || b != d.NumEdges {
		return ip.Errorf("offsets run from %d to %d: want 0 to %d, the number of edges", a, b, d.NumEdges)
	}
	ew, err := f.open(weightsFile, true)
	if err != nil {
		return err
	}
	if ew != nil {
		if err := ew.WantShape(d.NumEdges); err != nil {
			return err
		}
		if g.Weights, err = view[float32](ew, f.w); err != nil {
			return err
		}
	}
	d.Graph = g
	return nil
}

func (f *folder) features() error {
	d := f.d
	if d.FeatureType == "" {
		d.FeatureType = dtype.Float32.String()
	}
	t, err := dtype.Parse(d.FeatureType)
	if err != nil {
		return err
	}
	d.FeatureType = t.String()
	x, err := f.open(featuresFile, d.NumFeatures == 0)
	if err != nil {
		return err
	}
	if x == nil {
		d.Features, err = RawFeatures(nil, d.NumNodes, 0, t, nil)
		return err
	}
	if err := x.WantShape(int64(d.NumNodes), int64(d.NumFeatures)); err != nil {
		return fmt.Errorf("%w (%s says %d nodes and %d features)", err, metaFile, d.NumNodes, d.NumFeatures)
	}
	feats, err := arrayFeatures(x, t)
	if err != nil {
		return err
	}
	if t == dtype.Int8 {
		sc, err := f.open(scalesFile, false)
		if err != nil {
			return err
		}
		if err := sc.WantShape(int64(d.NumNodes)); err != nil {
			return err
		}
		if feats.scales, err = view[float32](sc, f.w); err != nil {
			return err
		}
	}
	d.Features = feats
	return nil
}

// arrayFeatures wraps a two-dimensional array whose rows are read when asked
// for. float64 and integer arrays are converted to float32 as they are read.
func arrayFeatures(x *npy.Array, t dtype.Type) (*Features, error) {
	want := map[dtype.Type]npy.Type{
		dtype.Float32:  {Kind: npy.Float, Size: 4},
		dtype.Float16:  {Kind: npy.Float, Size: 2},
		dtype.BFloat16: {Kind: npy.Uint, Size: 2},
		dtype.Int8:     {Kind: npy.Int, Size: 1},
	}[t]
	f := &Features{Rows: int(x.Shape[0]), Dim: int(x.Shape[1]), Type: t, name: x.Name()}
	switch {
	case x.Type.Kind == want.Kind && x.Type.Size == want.Size:
		f.file = rawArray{x}
		if x.RowMajor() && x.Path() != "" {
			f.path, f.offset = x.Path(), x.Offset
		}
	case t == dtype.Float32 && x.Type.Numeric():
		f.file = convertedArray{x}
	default:
		return nil, x.Errorf("elements are %s: %s says the features are %s", x.Type, metaFile, t)
	}
	return f, nil
}

// rawArray reads rows in the array's own element type.
type rawArray struct{ a *npy.Array }

func (r rawArray) readRows(lo, hi int, dst []byte) error {
	return npy.RawRows(r.a, int64(lo), int64(hi), dst)
}

// convertedArray reads rows as float32.
type convertedArray struct{ a *npy.Array }

func (r convertedArray) readRows(lo, hi int, dst []byte) error {
	v := make([]float32, len(dst)/4)
	if err := npy.ReadRows(r.a, int64(lo), int64(hi), v); err != nil {
		return err
	}
	copy(dst, bytesOf(v))
	return nil
}

func (f *folder) labels() error {
	a, err := f.open(labelsFile, f.d.NumClasses == 0)
	if err != nil || a == nil {
		return err
	}
	f.d.Labels, err = arrayLabels(a, f.d.Task, f.d.NumNodes, f.d.NumClasses, f.w)
	return err
}

// arrayLabels reads or maps the labels of a task.
func arrayLabels(a *npy.Array, task Task, nodes, width int, w par.Workers) (*Labels, error) {
	l := &Labels{name: a.Name(), n: nodes, width: width}
	n, c := int64(nodes), int64(width)
	var err error
	switch task {
	case Multilabel:
		if err := a.WantShape(n, c); err != nil {
			return nil, err
		}
		l.multi, err = view[uint8](a, w)
	case Regression:
		if width != 1 || len(a.Shape) != 1 {
			err = a.WantShape(n, c)
		} else {
			err = a.WantShape(n)
		}
		if err != nil {
			return nil, err
		}
		l.value, err = view[float32](a, w)
	default:
		if err := a.WantShape(n); err != nil {
			return nil, err
		}
		if a.Type.Kind == npy.Int && a.Type.Size == 8 {
			l.class64, err = view[int64](a, w)
		} else {
			l.class32, err = npy.Read[int32](a, w)
		}
	}
	return l, err
}

func (f *folder) nodeIDs() error {
	a, err := f.open(idsFile, true)
	if err != nil || a == nil {
		return err
	}
	if err := a.WantShape(int64(f.d.NumNodes)); err != nil {
		return err
	}
	f.d.NodeIDs, err = view[int64](a, f.w)
	return err
}

// readSmall reads a file of at most limit bytes.
func readSmall(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, usage.Wrap(err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, usage.Wrap(fmt.Errorf("%s: %w", path, err))
	}
	if int64(len(b)) > limit {
		return nil, usageErrorf("%s: more than %d bytes: no such file is that large", path, limit)
	}
	return b, nil
}
