package datasets

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"zerogcn/dtype"
	"zerogcn/graph"
	"zerogcn/internal/npy"
	"zerogcn/internal/sharedtest"
)

// small makes a set of five nodes with everything that a folder can hold.
func small(t testing.TB, task Task, ft dtype.Type, splits int) *Dataset {
	t.Helper()
	const n, dim = 5, 3
	b := graph.Builder{NumNodes: n}
	g, err := b.FromEdges(t.Context(), []int32{1, 2, 0, 4, 4}, []int32{0, 0, 1, 3, 0}, []float32{1, 2, 3, 4, 5})
	if err != nil {
		t.Fatal(err)
	}
	rows := make([]float32, n*dim)
	for i := range rows {
		rows[i] = float32(i%4) - 1.5
	}
	raw := make([]byte, n*dim*ft.Size())
	var scales []float32
	for r := range n {
		s := ft.Narrow(raw[r*dim*ft.Size():], rows[r*dim:(r+1)*dim])
		if ft == dtype.Int8 {
			scales = append(scales, s)
		}
	}
	f, err := RawFeatures(raw, n, dim, ft, scales)
	if err != nil {
		t.Fatal(err)
	}
	d := Parts{Name: "small", Task: task, Graph: g, Features: f, NodeIDs: []int64{10, 11, 14, 13, 12}}
	nan := float32(math.NaN())
	switch task {
	case Multilabel:
		d.Labels = NewMultiLabels([]uint8{0, 1, 1, 0, 255, 255, 1, 1, 0, 0}, 2)
	case Regression:
		d.Labels = NewValueLabels([]float32{1, nan, -2.5, 0, 7}, 1)
	case Link:
		d.EdgeSets = &EdgeSets{
			Train: EdgeList{[]int32{0, 1}, []int32{2, 3}}, Valid: EdgeList{[]int32{4}, []int32{0}}, Test: EdgeList{[]int32{4}, []int32{1}},
			TestNeg: EdgeList{[]int32{3, 3}, []int32{0, 1}},
		}
	default:
		d.Labels = NewClassLabels([]int32{0, 1, -1, 1, 0}, 2)
		d.ClassNames = []string{"a", "b"}
	}
	for i := range splits {
		d.Splits = append(d.Splits, Split{Train: []int32{int32(i), 3}, Valid: []int32{4}, Test: []int32{}})
	}
	set, err := New(t.Context(), d, 1)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// writeFolder writes d as a native folder and returns its path.
func writeFolder(t testing.TB, d *Dataset) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "set")
	if err := Write(t.Context(), dir, d, 0); err != nil {
		t.Fatal(err)
	}
	return dir
}

// sameSet compares two sets through what users see.
func sameSet(t testing.TB, a, b *Dataset) {
	t.Helper()
	ma, mb := a.Meta, b.Meta
	if ma.Name != mb.Name || ma.Task != mb.Task || ma.NumNodes != mb.NumNodes || ma.NumEdges != mb.NumEdges ||
		ma.NumFeatures != mb.NumFeatures || ma.NumClasses != mb.NumClasses || ma.Order != mb.Order ||
		ma.FeatureType != mb.FeatureType || ma.Fingerprint != mb.Fingerprint || !slices.Equal(ma.ClassNames, mb.ClassNames) {
		t.Errorf("meta\n%+v\n%+v", ma, mb)
	}
	if !slices.Equal(a.Graph.Indptr, b.Graph.Indptr) || !slices.Equal(a.Graph.Indices, b.Graph.Indices) || !slices.Equal(a.Graph.Weights, b.Graph.Weights) {
		t.Error("graphs differ")
	}
	xa, xb := make([]byte, a.NumNodes*a.Features.RowBytes()), make([]byte, b.NumNodes*b.Features.RowBytes())
	if err := errors.Join(a.Features.ReadRows(t.Context(), 0, a.NumNodes, xa), b.Features.ReadRows(t.Context(), 0, b.NumNodes, xb)); err != nil {
		t.Error(err)
	}
	if !bytes.Equal(xa, xb) || !slices.Equal(a.Features.Scales(), b.Features.Scales()) {
		t.Error("features differ")
	}
	if !slices.Equal(a.NodeIDs, b.NodeIDs) {
		t.Error("ids differ")
	}
	if a.NumGivenSplits() != b.NumGivenSplits() {
		t.Errorf("%d and %d splits", a.NumGivenSplits(), b.NumGivenSplits())
	}
	for i := range a.NumGivenSplits() {
		sa, ea := a.Split(i)
		sb, eb := b.Split(i)
		if ea != nil || eb != nil || !slices.Equal(sa.Train, sb.Train) || !slices.Equal(sa.Valid, sb.Valid) || !slices.Equal(sa.Test, sb.Test) {
			t.Errorf("split %d: %v %v, %v %v", i, sa, sb, ea, eb)
		}
	}
	if la, lb := labelText(t, a), labelText(t, b); la != lb {
		t.Errorf("labels %s and %s", la, lb)
	}
}

func labelText(t testing.TB, d *Dataset) string {
	l := d.Labels
	if l == nil {
		return "none"
	}
	var err error
	var out any
	switch {
	case l.HasMulti():
		v := make([]uint8, l.Len()*l.Width())
		out, err = v, l.Multi(v, nil)
	case l.HasValue():
		v := make([]float32, l.Len()*l.Width())
		err = l.Values(v, nil)
		out = v
	default:
		v := make([]int32, l.Len())
		err = l.Classes(v, nil)
		out = v
	}
	if err != nil {
		t.Error(err)
	}
	return fmt.Sprint(out)
}

func TestNativeRoundTrip(t *testing.T) {
	for _, task := range []Task{Multiclass, Binary, Multilabel, Regression, Link} {
		for ft := dtype.Float32; ft <= dtype.Int8; ft++ {
			for _, splits := range [][]int{{0}, {1}, {3}, {1}}[ft] {
				d := small(t, task, ft, splits)
				dir := writeFolder(t, d)
				r, err := Open(t.Context(), dir, Options{})
				if err != nil {
					t.Fatal(err)
				}
				sameSet(t, d, r)
				if err := Verify(t.Context(), r, 2); err != nil {
					t.Error(err)
				}
				if _, off, ok := r.Features.File(); !ok || off%npy.Align != 0 {
					t.Errorf("features begin at byte %d", off)
				}
				if task == Link {
					e, err := r.EdgeSets()
					if err != nil || fmt.Sprint(*e) != fmt.Sprint(d.links.(memoryEdges).e) {
						t.Errorf("edge sets %v, %v", e, err)
					}
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
				if err := r.Close(); err != nil {
					t.Error("second Close:", err)
				}
			}
		}
	}
}

// TestConvertedEqual converts real sets and compares; sparse features become
// dense and keep the fingerprint.
func TestConvertedEqual(t *testing.T) {
	d, err := Open(t.Context(), sharedtest.Path(t, "data/planetoid-cora"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := Open(t.Context(), writeFolder(t, d), Options{Workers: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	sameSet(t, d, r)
	if err := Verify(t.Context(), r, 1); err != nil {
		t.Error(err)
	}
}

// TestFingerprintWorkers computes the same for any number of workers.
func TestFingerprintWorkers(t *testing.T) {
	d, err := Open(t.Context(), "demo", Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	e, err := Open(t.Context(), "demo", Options{Workers: 7})
	if err != nil {
		t.Fatal(err)
	}
	sameSet(t, d, e)
	const want = demoFingerprint
	if d.Fingerprint != want {
		t.Errorf("the demo's fingerprint is %s, and was %s: its content changed", d.Fingerprint, want)
	}
}

// TestOtherLayouts opens folders that others wrote: older headers, big-endian,
// int64 ids, float64 features in Fortran order, unsorted splits.
func TestOtherLayouts(t *testing.T) {
	d := small(t, Multiclass, dtype.Float32, 1)
	dir := writeFolder(t, d)
	put(t, dir, "indices.npy", []int64{1, 2, 4, 0, 4}, 5)
	put(t, dir, "train_idx.npy", []int32{3, 0}, 2)
	put(t, dir, "labels.npy", []int8{0, 1, -1, 1, 0}, 5)
	var b bytes.Buffer
	head := "{'descr': '>f8', 'fortran_order': True, 'shape': (5, 3)}"
	b.WriteString("\x93NUMPY\x01\x00")
	binary.Write(&b, binary.LittleEndian, uint16(len(head)))
	b.WriteString(head)
	x := make([]float32, 15)
	if err := d.Features.Float32Rows(t.Context(), 0, 5, x); err != nil {
		t.Fatal(err)
	}
	for c := range 3 {
		for r := range 5 {
			binary.Write(&b, binary.BigEndian, float64(x[r*3+c]))
		}
	}
	write(t, filepath.Join(dir, "features.npy"), b.Bytes())
	r, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	sameSet(t, d, r)
	if err := Verify(t.Context(), r, 0); err != nil {
		t.Error(err)
	}
	if _, _, ok := r.Features.File(); ok {
		t.Error("a table that must be converted is offered as a file")
	}
}

func TestNames(t *testing.T) {
	root := t.TempDir()
	if err := Write(t.Context(), filepath.Join(root, "my-set"), small(t, Multiclass, dtype.Float32, 1), 0); err != nil {
		t.Fatal(err)
	}
	d, err := Open(t.Context(), "my-set", Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	d.Close()
	t.Setenv("ZEROGCN_DATA", root)
	if d, err = Open(t.Context(), "my-set", Options{}); err != nil {
		t.Fatal(err)
	}
	d.Close()
	for _, c := range []struct {
		name, format string
		says         []string
	}{
		{"my-sett", "", []string{"my-sett", "did you mean my-set?", root}},
		{"dmeo", "", []string{"did you mean demo?"}},
		{"nosuch", "", []string{"nosuch", "demo"}},
		{"./my-set", "", []string{"./my-set"}},
		{"", "", []string{"dataset list"}},
		{"demo?x=1", "", []string{"demo"}},
		{"demo", "native", []string{"-format"}},
		{"my-set", "natvie", []string{"natvie", "did you mean native?"}},
		{root, "", []string{root, "no known format"}},
	} {
		_, err := Open(t.Context(), c.name, Options{Format: c.format})
		wantFault(t, c.name, err, c.says...)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, "demo", Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// BenchmarkOpenNative opens a folder of 100 million nodes and 50 GB of
// features, all holes.
func BenchmarkOpenNative(b *testing.B) {
	const n, dim = 100_000_000, 128
	dir := b.TempDir()
	hole := func(name string, size int64, head func(f *os.File) error) {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		if err := errors.Join(head(f), f.Truncate(npy.Align+size)); err != nil {
			b.Fatal(err)
		}
	}
	hole(indptrFile, (n+1)*8, func(f *os.File) error { _, err := npy.NewWriter[int64](f, n+1); return err })
	hole(indicesFile, 0, func(f *os.File) error { _, err := npy.NewWriter[int32](f, 0); return err })
	hole(labelsFile, n*8, func(f *os.File) error { _, err := npy.NewWriter[int64](f, n); return err })
	hole(featuresFile, n*dim*4, func(f *os.File) error { _, err := npy.NewWriter[float32](f, n, dim); return err })
	for _, name := range splitFiles {
		hole(name, n*8, func(f *os.File) error { _, err := npy.NewWriter[int64](f, n); return err })
	}
	m := Meta{Name: "big", Task: Multiclass, NumNodes: n, NumFeatures: dim, NumClasses: 2, FeatureType: "float32", Order: Original}
	text, err := m.encode()
	if err != nil {
		b.Fatal(err)
	}
	write(b, filepath.Join(dir, metaFile), text)
	for b.Loop() {
		d, err := Open(b.Context(), dir, Options{})
		if err != nil {
			b.Fatal(err)
		}
		d.Close()
	}
}

func BenchmarkFingerprint(b *testing.B) {
	d, err := Open(b.Context(), "demo", Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(d.NumNodes*d.Features.RowBytes()) + 4*d.NumEdges)
	for b.Loop() {
		if _, err := Fingerprint(b.Context(), d, 0); err != nil {
			b.Fatal(err)
		}
	}
}

// TestConvertEverything writes sets of all kinds and reads them back: without
// labels or features, with weights, many splits, label sets.
func TestConvertEverything(t *testing.T) {
	for _, rel := range []string{"karate/karate.csv", "mlgnc-pcg", "npz-cora_ml", "npz-heterophilous/minesweeper.npz"} {
		d, err := Open(t.Context(), sharedtest.Path(t, "data/"+rel), Options{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := Open(t.Context(), writeFolder(t, d), Options{})
		if err != nil {
			t.Fatal(err)
		}
		sameSet(t, d, r)
		if err := Verify(t.Context(), r, 0); err != nil {
			t.Error(err)
		}
		if err := errors.Join(r.Close(), d.Close()); err != nil {
			t.Error(err)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	g, err := graph.Builder{NumNodes: 3}.FromEdges(t.Context(), []int32{0, 1}, []int32{1, 2}, nil)
	if err != nil {
		t.Fatal(err)
	}
	two, _ := DenseFeatures(make([]float32, 4), 2, 2)
	nan, _ := DenseFeatures([]float32{1, float32(math.NaN()), 1}, 3, 1)
	for what, p := range map[string]Parts{
		"no graph":         {Task: Multiclass},
		"bad graph":        {Task: Multiclass, Graph: &graph.CSR{Indptr: []int64{0, 1, 2}, Indices: []int32{0, 7}}},
		"no task":          {Graph: g},
		"bad name":         {Name: "a/b", Task: Multiclass, Graph: g},
		"few features":     {Task: Multiclass, Graph: g, Features: two},
		"NaN":              {Task: Multiclass, Graph: g, Features: nan},
		"few labels":       {Task: Multiclass, Graph: g, Labels: NewClassLabels([]int32{0, 1}, 2)},
		"class beyond":     {Task: Multiclass, Graph: g, Labels: NewClassLabels([]int32{0, 1, 2}, 2)},
		"names too few":    {Task: Multiclass, Graph: g, Labels: NewClassLabels([]int32{0, 1, 1}, 2), ClassNames: []string{"a"}},
		"split beyond":     {Task: Multiclass, Graph: g, Splits: []Split{{Train: []int32{3}}}},
		"split shared":     {Task: Multiclass, Graph: g, Splits: []Split{{Train: []int32{1}, Test: []int32{1}}}},
		"edge beyond":      {Task: Link, Graph: g, EdgeSets: &EdgeSets{Train: EdgeList{[]int32{0}, []int32{3}}}},
		"edges uneven":     {Task: Link, Graph: g, EdgeSets: &EdgeSets{Train: EdgeList{[]int32{0}, nil}}},
		"ids too few":      {Task: Link, Graph: g, NodeIDs: []int64{1}},
		"ids repeated":     {Task: Link, Graph: g, NodeIDs: []int64{1, 2, 1}},
		"order of no kind": {Task: Link, Graph: g, Order: "random"},
	} {
		if _, err := New(t.Context(), p, 1); err == nil {
			t.Errorf("%s: taken", what)
		}
	}
}
