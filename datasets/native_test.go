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
	"strings"
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
	d := &Dataset{Meta: Meta{Name: "small", Task: task}, Graph: g, Features: f, NodeIDs: []int64{10, 11, 14, 13, 12}}
	nan := float32(math.NaN())
	switch task {
	case Multilabel:
		d.Labels = NewMultiLabels([]uint8{0, 1, 1, 0, 255, 255, 1, 1, 0, 0}, 2)
	case Regression:
		d.Labels = NewValueLabels([]float32{1, nan, -2.5, 0, 7}, 1)
	case Link:
		d.links = memoryEdges{EdgeSets{
			Train: EdgeList{[]int32{0, 1}, []int32{2, 3}}, Valid: EdgeList{[]int32{4}, []int32{0}}, Test: EdgeList{[]int32{4}, []int32{1}},
			TestNeg: EdgeList{[]int32{3, 3}, []int32{0, 1}},
		}}
	default:
		d.Labels = NewClassLabels([]int32{0, 1, -1, 1, 0}, 2)
		d.ClassNames = []string{"a", "b"}
	}
	var s memorySplits
	for i := range splits {
		s = append(s, Split{Train: []int32{int32(i), 3}, Valid: []int32{4}, Test: []int32{}})
	}
	if splits > 0 {
		d.splits = s
	}
	if err := d.seal(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	return d
}

type memoryEdges struct{ e EdgeSets }

func (m memoryEdges) edges() (*EdgeSets, error) { e := m.e; return &e, nil }

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
					if err != nil || fmt.Sprint(*e) != fmt.Sprint(EdgeSets(d.links.(memoryEdges).e)) {
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

// TestNativeDamaged breaks one thing at a time in a folder.
func TestNativeDamaged(t *testing.T) {
	good := writeFolder(t, small(t, Multiclass, dtype.Int8, 2))
	names := []string{"meta.json", "indptr.npy", "indices.npy", "edge_weight.npy", "features.npy", "scales.npy", "labels.npy", "node_ids.npy", "splits/1/train_idx.npy"}
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(good, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{0, 3, 11, len(b) / 3, len(b) - 2} {
			dir := copyFolder(t, good)
			write(t, filepath.Join(dir, name), b[:n])
			_, err := Open(t.Context(), dir, Options{Format: "native"})
			wantFault(t, fmt.Sprintf("%s cut at %d", name, n), err, filepath.Join(dir, name))
		}
		dir := copyFolder(t, good)
		os.Remove(filepath.Join(dir, name))
		_, err = Open(t.Context(), dir, Options{Format: "native"})
		if name == "edge_weight.npy" || name == "node_ids.npy" {
			if err != nil {
				t.Errorf("%s missing: %v", name, err)
			}
			continue
		}
		wantFault(t, name+" missing", err, name)
	}
}

// put replaces the data of an array in a folder by values of another.
func put[T npy.Element](t testing.TB, dir, name string, v []T, shape ...int64) {
	t.Helper()
	var b bytes.Buffer
	if err := npy.Write(&b, v, shape...); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, name), b.Bytes())
}

// TestNativeShapes has files whose shapes or types contradict meta.json.
func TestNativeShapes(t *testing.T) {
	good := writeFolder(t, small(t, Multiclass, dtype.Float32, 1))
	for what, c := range map[string]struct {
		do   func(dir string)
		file string
	}{
		"too few offsets":    {func(d string) { put(t, d, "indptr.npy", []int64{0, 5}, 2) }, "indptr.npy"},
		"offsets from 1":     {func(d string) { put(t, d, "indptr.npy", []int64{1, 1, 1, 1, 1, 5}, 6) }, "indptr.npy"},
		"offsets beyond":     {func(d string) { put(t, d, "indptr.npy", []int64{0, 1, 1, 1, 1, 6}, 6) }, "indptr.npy"},
		"float offsets":      {func(d string) { put(t, d, "indptr.npy", []float32{0, 1, 1, 1, 1, 5.5}, 6) }, "indptr.npy"},
		"too many edges":     {func(d string) { put(t, d, "indices.npy", make([]int32, 6), 6) }, "indices.npy"},
		"wide ids":           {func(d string) { put(t, d, "indices.npy", []int64{1, 2, 3, 1 << 40, 0}, 5) }, "indices.npy"},
		"wide features":      {func(d string) { put(t, d, "features.npy", make([]float32, 20), 5, 4) }, "features.npy"},
		"few features":       {func(d string) { put(t, d, "features.npy", make([]float32, 12), 4, 3) }, "features.npy"},
		"flat features":      {func(d string) { put(t, d, "features.npy", make([]float32, 15), 15) }, "features.npy"},
		"few labels":         {func(d string) { put(t, d, "labels.npy", make([]int64, 4), 4) }, "labels.npy"},
		"labels in a matrix": {func(d string) { put(t, d, "labels.npy", make([]int64, 5), 5, 1) }, "labels.npy"},
		"few weights":        {func(d string) { put(t, d, "edge_weight.npy", make([]float32, 4), 4) }, "edge_weight.npy"},
		"split in a matrix":  {func(d string) { put(t, d, "train_idx.npy", make([]int64, 4), 2, 2) }, "train_idx.npy"},
		"half a split":       {func(d string) { os.Remove(filepath.Join(d, "valid_idx.npy")) }, "valid_idx.npy"},
		"a folder for a file": {func(d string) {
			os.Remove(filepath.Join(d, "labels.npy"))
			os.Mkdir(filepath.Join(d, "labels.npy"), 0o755)
		}, "labels.npy"},
	} {
		dir := copyFolder(t, good)
		c.do(dir)
		_, err := Open(t.Context(), dir, Options{})
		wantFault(t, what, err, c.file)
	}
}

// TestContents has contents that opening does not read: Verify, and whoever
// uses them, must find them.
func TestContents(t *testing.T) {
	good := writeFolder(t, small(t, Multiclass, dtype.Float32, 1))
	nan := float32(math.NaN())
	x := make([]float32, 15)
	x[7] = nan
	for what, c := range map[string]struct {
		do   func(dir string)
		use  func(d *Dataset) error
		says string
	}{
		"id beyond": {func(d string) { put(t, d, "indices.npy", []int32{1, 2, 4, 0, 5}, 5) },
			func(d *Dataset) error { return d.CheckGraph(t.Context(), 2) }, "node 5"},
		"id negative": {func(d string) { put(t, d, "indices.npy", []int32{-1, 2, 4, 0, 4}, 5) },
			func(d *Dataset) error { return d.CheckGraph(t.Context(), 2) }, "node -1"},
		"not ascending": {func(d string) { put(t, d, "indices.npy", []int32{2, 1, 4, 0, 4}, 5) },
			func(d *Dataset) error { return d.CheckGraph(t.Context(), 2) }, "ascending"},
		"offsets fall": {func(d string) { put(t, d, "indptr.npy", []int64{0, 3, 2, 4, 4, 5}, 6) },
			func(d *Dataset) error { return d.CheckGraph(t.Context(), 2) }, "offsets of node 1"},
		"offsets leap": {func(d string) { put(t, d, "indptr.npy", []int64{0, 1 << 60, 2, 4, 4, 5}, 6) },
			func(d *Dataset) error { return d.CheckGraph(t.Context(), 2) }, "offsets of node 0"},
		"weight NaN": {func(d string) { put(t, d, "edge_weight.npy", []float32{1, nan, 1, 1, 1}, 5) },
			func(d *Dataset) error { return d.CheckGraph(t.Context(), 2) }, "weight"},
		"feature NaN": {func(d string) { put(t, d, "features.npy", x, 5, 3) },
			func(d *Dataset) error { return d.Features.ReadRows(t.Context(), 1, 5, make([]byte, 48)) }, "row 2, column 1"},
		"class beyond": {func(d string) { put(t, d, "labels.npy", []int64{0, 1, 2, 0, 0}, 5) },
			func(d *Dataset) error { return d.Labels.Classes(make([]int32, 2), []int32{1, 2}) }, "node 2 has class 2"},
		"class -2": {func(d string) { put(t, d, "labels.npy", []int64{0, 1, -2, 0, 0}, 5) },
			func(d *Dataset) error { return d.Labels.Classes(make([]int32, 5), nil) }, "node 2 has class -2"},
		"split beyond": {func(d string) { put(t, d, "test_idx.npy", []int64{5}, 1) },
			func(d *Dataset) error { _, err := d.Split(0); return err }, "test names node 5"},
		"split wide": {func(d string) { put(t, d, "test_idx.npy", []int64{1 << 33}, 1) },
			func(d *Dataset) error { _, err := d.Split(0); return err }, "test_idx.npy"},
		"split twice": {func(d string) { put(t, d, "test_idx.npy", []int64{2, 1, 2}, 3) },
			func(d *Dataset) error { _, err := d.Split(0); return err }, "node 2 twice"},
		"split shared": {func(d string) { put(t, d, "test_idx.npy", []int64{3, 1}, 2) },
			func(d *Dataset) error { _, err := d.Split(0); return err }, "node 3 is in train and in test"},
		"train empty": {func(d string) { put(t, d, "train_idx.npy", []int64{}, 0) },
			func(d *Dataset) error { _, err := d.Split(0); return err }, "training part is empty"},
		"ids twice": {func(d string) { put(t, d, "node_ids.npy", []int64{0, 1, 2, 1, 4}, 5) },
			func(d *Dataset) error { return d.checkNodeIDs() }, "node 3"},
		"a feature changed": {func(d string) { put(t, d, "features.npy", make([]float32, 15), 5, 3) },
			func(d *Dataset) error { return Verify(t.Context(), d, 1) }, "fingerprint"},
	} {
		dir := copyFolder(t, good)
		c.do(dir)
		d, err := Open(t.Context(), dir, Options{})
		if err != nil {
			t.Errorf("%s: open: %v", what, err)
			continue
		}
		wantFault(t, what, c.use(d), c.says)
		if err := Verify(t.Context(), d, 1); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: Verify says %v", what, err)
		}
		d.Close()
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

func TestMeta(t *testing.T) {
	good := writeFolder(t, small(t, Multiclass, dtype.Float32, 1))
	text, err := os.ReadFile(filepath.Join(good, "meta.json"))
	if err != nil {
		t.Fatal(err)
	}
	edit := func(old, new string) string {
		if !strings.Contains(string(text), old) {
			t.Fatalf("no %q in %s", old, text)
		}
		return strings.Replace(string(text), old, new, 1)
	}
	minimal := `{"name":"x","task":"multiclass","num_nodes":5,"num_edges":5,"num_features":3,"num_classes":2}`
	for what, c := range map[string]string{
		"edited":         edit(`"num_classes": 2`, `"num_classes": 3`),
		"duplicate key":  `{"task":"multiclass","task":"link"}`,
		"bad task":       strings.Replace(minimal, "multiclass", "guess", 1),
		"negative nodes": strings.Replace(minimal, `"num_nodes":5`, `"num_nodes":-5`, 1),
		"huge nodes":     strings.Replace(minimal, `"num_nodes":5`, `"num_nodes":5000000000`, 1),
		"huge edges":     strings.Replace(minimal, `"num_edges":5`, `"num_edges":999999999999999999`, 1),
		"overflow":       strings.Replace(minimal, `"num_edges":5`, `"num_edges":99999999999999999999999`, 1),
		"half":           strings.Replace(minimal, `"num_nodes":5`, `"num_nodes":5.5`, 1),
		"text":           strings.Replace(minimal, `"num_nodes":5`, `"num_nodes":"5"`, 1),
		"order":          strings.Replace(minimal, `}`, `,"order":"random"}`, 1),
		"dtype":          strings.Replace(minimal, `}`, `,"feature_dtype":"float64"}`, 1),
		"names":          strings.Replace(minimal, `}`, `,"class_names":["a"]}`, 1),
		"name":           strings.Replace(minimal, `"x"`, `"../x"`, 1),
		"name of lines":  strings.Replace(minimal, `"x"`, `"x\ny"`, 1),
		"array":          `[]`,
		"null":           `null`,
		"tail":           minimal + "{}",
		"not utf-8":      strings.Replace(minimal, `"x"`, "\"\xff\"", 1),
	} {
		dir := copyFolder(t, good)
		write(t, filepath.Join(dir, "meta.json"), []byte(c))
		_, err := Open(t.Context(), dir, Options{})
		wantFault(t, what, err, filepath.Join(dir, "meta.json"))
	}
	dir := copyFolder(t, good)
	write(t, filepath.Join(dir, "meta.json"), []byte(minimal))
	d, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal("a meta.json written by hand:", err)
	}
	d.Close()
	write(t, filepath.Join(dir, "meta.json"), bytes.Repeat([]byte(" "), maxMetaBytes+1))
	_, err = Open(t.Context(), dir, Options{})
	wantFault(t, "huge file", err, "meta.json")
}

// TestWriteLeavesNothing interrupts and fails writing: no folder, no remains.
func TestWriteLeavesNothing(t *testing.T) {
	d := small(t, Multiclass, dtype.Float32, 1)
	parent := t.TempDir()
	dir := filepath.Join(parent, "set")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Write(ctx, dir, d, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	x := make([]float32, 15)
	x[14] = float32(math.Inf(1))
	d.Features, _ = DenseFeatures(x, 5, 3)
	wantFault(t, "infinite feature", Write(t.Context(), dir, d, 0), "row 4, column 2")
	if left, _ := os.ReadDir(parent); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	os.Mkdir(dir, 0o755)
	err := Write(t.Context(), dir, small(t, Multiclass, dtype.Float32, 1), 0)
	wantFault(t, "exists", err, dir)
	if !errors.Is(err, ErrExists) {
		t.Error("not ErrExists")
	}
}

// TestShortenedWhileMapped cuts a mapped file: an error, not a crash.
func TestShortenedWhileMapped(t *testing.T) {
	n := 1 << 16
	b := graph.Builder{NumNodes: n, AddSelfLoops: true}
	g, err := b.FromEdges(t.Context(), nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	d := &Dataset{Meta: Meta{Name: "loops", Task: Multiclass}, Graph: g, Labels: NewClassLabels(make([]int32, n), 1)}
	if err := d.seal(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	dir := writeFolder(t, d)
	r, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := os.Truncate(filepath.Join(dir, indicesFile), npy.Align); err != nil {
		t.Fatal(err)
	}
	wantFault(t, "cut short", r.CheckGraph(t.Context(), 2), "shorter")
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

func FuzzMeta(f *testing.F) {
	f.Add([]byte(`{"name":"x","task":"multiclass","num_nodes":5,"num_edges":5,"num_features":3,"num_classes":2}`))
	m := Meta{Name: "y", Task: Link, Order: ByDegree, FeatureType: "bf16", Fingerprint: "sha256:00"}
	text, err := m.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeMeta(b)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("error of several lines: %q", err)
			}
			return
		}
		text, err := m.encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := decodeMeta(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if fmt.Sprint(*m) != fmt.Sprint(*again) {
			t.Fatalf("%+v became %+v", m, again)
		}
	})
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
