package datasets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"zerogcn/dtype"
	"zerogcn/graph"
	"zerogcn/internal/npy"
)

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

// cancelling is a table of zeros that cancels its context when it is read for
// the second time.
type cancelling struct {
	cancel func()
	reads  *atomic.Int32
}

func (c cancelling) readRows(lo, hi int, dst []byte) error {
	clear(dst)
	if c.reads.Add(1) == 2 {
		c.cancel()
	}
	return nil
}

// TestWriteInterrupted cancels in the middle of the features.
func TestWriteInterrupted(t *testing.T) {
	const n = 3_000_000
	g, err := graph.Builder{NumNodes: n}.FromEdges(t.Context(), nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	d := &Dataset{Meta: Meta{Name: "big", Task: Multiclass, NumNodes: n, NumFeatures: 32}, Graph: g, graphKnown: true,
		Features: &Features{Rows: n, Dim: 32, Type: dtype.Float32, name: "features", file: cancelling{cancel, new(atomic.Int32)}}}
	parent := t.TempDir()
	if err := Write(ctx, filepath.Join(parent, "set"), d, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if left, _ := os.ReadDir(parent); len(left) != 0 {
		t.Errorf("left behind: %v", left)
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
