package datasets

import (
	"archive/zip"
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"zerogcn/internal/npy"
	"zerogcn/internal/sharedtest"
)

func TestNPZCounts(t *testing.T) {
	for _, c := range []struct {
		file         string
		nodes        int
		edges        int64 // as kept
		dim, classes int
		task         Task
		homophily    float64 // 0: not published
		splits       int
		split0       string
	}{
		{"npz-gnnbench/cora.npz", 2708, 5429, 1433, 7, Multiclass, 0, 0, ""},
		{"npz-gnnbench/citeseer.npz", 3312, 4715, 3703, 6, Multiclass, 0, 0, ""},
		{"npz-cora_ml", 2995, 8416, 2879, 7, Multiclass, 0, 0, ""},
		{"npz-heterophilous/minesweeper.npz", 10000, 2 * 39402, 7, 2, Binary, 0.683, 10, "5000/2500/2500"},
		{"npz-heterophilous/tolokers.npz", 11758, 2 * 519000, 10, 2, Binary, 0.595, 10, "5879/2939/2940"},
		{"npz-heterophilous/chameleon_filtered.npz", 890, 2 * 8854, 2325, 5, Multiclass, 0.236, 10, "409/287/194"},
		{"npz-heterophilous/squirrel_filtered.npz", 2223, 2 * 46998, 2089, 5, Multiclass, 0.207, 10, "1053/718/452"},
		{"npz-heterophilous/actor.npz", 7600, 2 * 26659, 932, 5, Multiclass, 0.217, 10, "3648/2432/1520"},
	} {
		d, err := Open(t.Context(), sharedtest.Path(t, "data/"+c.file), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if d.NumNodes != c.nodes || d.NumEdges != c.edges || d.NumFeatures != c.dim || d.NumClasses != c.classes || d.Task != c.task {
			t.Errorf("%s: %+v", c.file, d.Meta)
		}
		if d.NumGivenSplits() != c.splits {
			t.Errorf("%s: %d splits", c.file, d.NumGivenSplits())
		}
		if c.homophily > 0 {
			if h := homophily(t, d); math.Abs(h-c.homophily) > 0.0006 {
				t.Errorf("%s: homophily %.4f, want %.3f", c.file, h, c.homophily)
			}
		}
		// A scrambled Fortran array keeps the totals, but not that masks are
		// disjoint, which Split checks.
		for i := range c.splits {
			s, err := d.Split(i)
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprintf("%d/%d/%d", len(s.Train), len(s.Valid), len(s.Test)); i == 0 && got != c.split0 {
				t.Errorf("%s: split 0 is %s", c.file, got)
			}
			if i == 0 && len(s.Train)+len(s.Valid)+len(s.Test) != d.NumNodes {
				t.Errorf("%s: split 0 leaves nodes out", c.file)
			}
		}
		if err := Verify(t.Context(), d, 0); err != nil {
			t.Error(err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// homophily is the share of edges that join nodes of the same class.
func homophily(t testing.TB, d *Dataset) float64 {
	t.Helper()
	class := make([]int32, d.NumNodes)
	if err := d.Labels.Classes(class, nil); err != nil {
		t.Fatal(err)
	}
	same := 0
	for v := range d.NumNodes {
		for _, u := range d.Graph.Row(int32(v)) {
			if class[u] == class[v] {
				same++
			}
		}
	}
	return float64(same) / float64(d.NumEdges)
}

func TestCoraMLNames(t *testing.T) {
	d, err := Open(t.Context(), sharedtest.Path(t, "data/npz-cora_ml"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if d.Name != "cora_ml" || len(d.ClassNames) != 7 || d.Features.Sparse() == nil || d.Features.Sparse().NNZ() != 151171 {
		t.Errorf("%+v, %d non-zeros", d.Meta, d.Features.Sparse().NNZ())
	}
	_, err = Open(t.Context(), sharedtest.Path(t, "data/npz-heterophilous"), Options{})
	wantFault(t, "a folder of several", err, "actor.npz", "name one")
}

func arr[T npy.Element](t testing.TB, v []T, shape ...int64) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := npy.Write(&b, v, shape...); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// bare makes an array of a type that Go has no values for.
func bare(descr, shape, data string) []byte {
	head := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n", descr, shape)
	return append([]byte("\x93NUMPY\x01\x00"+string([]byte{byte(len(head)), 0})), head+data...)
}

// compact takes the padding out of an array's header.
func compact(a []byte) []byte {
	head := append(bytes.TrimRight(a[10:npy.Align], " \n"), '\n')
	return slices.Concat(a[:8], []byte{byte(len(head)), 0}, head, a[npy.Align:])
}

// zipOf writes an archive and returns its path; nil members are left out.
func zipOf(t testing.TB, method uint16, members map[string][]byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "set.npz")
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	var names []string
	for n := range members {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		if members[n] == nil {
			continue
		}
		w, err := z.CreateHeader(&zip.FileHeader{Name: n + ".npy", Method: method})
		if err != nil {
			t.Fatal(err)
		}
		w.Write(members[n])
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, path, b.Bytes())
	return path
}

// folderOf writes the members as a plain folder.
func folderOf(t testing.TB, members map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for n, b := range members {
		if b != nil {
			write(t, filepath.Join(dir, n+".npy"), b)
		}
	}
	return dir
}

// bundleOf is a set of four nodes in the heterophilous layout.
func bundleOf(t testing.TB) map[string][]byte {
	return map[string][]byte{
		"node_features": arr(t, []float32{1, 2, 3, 4, 5, 6, 7, 8}, 4, 2),
		"node_labels":   arr(t, []int64{0, 1, -1, 2}, 4),
		"edges":         arr(t, []int64{0, 1, 1, 2, 3, 3}, 3, 2),
		"train_masks":   arr(t, []uint8{1, 0, 0, 0, 0, 1, 0, 0}, 2, 4),
		"val_masks":     arr(t, []uint8{0, 1, 0, 0, 1, 0, 0, 0}, 2, 4),
		"test_masks":    arr(t, []uint8{0, 0, 0, 1, 0, 0, 0, 1}, 2, 4),
	}
}

// csrOf is the same set in gnn-benchmark's layout, directed.
func csrOf(t testing.TB) map[string][]byte {
	return map[string][]byte{
		"adj_data": arr(t, []float32{1, 1, 1}, 3), "adj_indices": arr(t, []int32{1, 2, 3}, 3),
		"adj_indptr": arr(t, []int32{0, 1, 2, 2, 3}, 5), "adj_shape": arr(t, []int64{4, 4}, 2),
		"attr_data": arr(t, []float32{1, 2, 3}, 3), "attr_indices": arr(t, []int32{1, 0, 2}, 3),
		"attr_indptr": arr(t, []int32{0, 2, 2, 3, 3}, 5), "attr_shape": arr(t, []int64{4, 3}, 2),
		"labels": arr(t, []int8{0, 1, 0, 1}, 4),
	}
}

func TestBundles(t *testing.T) {
	for _, path := range []string{zipOf(t, zip.Store, bundleOf(t)), zipOf(t, zip.Deflate, bundleOf(t)), folderOf(t, bundleOf(t))} {
		d, err := Open(t.Context(), path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(d.Graph.Indptr, d.Graph.Indices, " ", d.Task, " ", d.NumClasses); got != "[0 1 3 4 5] [1 0 2 1 3] multiclass 3" {
			t.Errorf("%s: %s", path, got)
		}
		x := make([]float32, 8)
		if err := d.Features.Float32Rows(t.Context(), 0, 4, x); err != nil || fmt.Sprint(x) != "[1 2 3 4 5 6 7 8]" {
			t.Errorf("%s: %v %v", path, x, err)
		}
		s, err := d.Split(1)
		if err != nil || fmt.Sprint(s) != "{[1] [0] [3]}" {
			t.Errorf("%s: split %v, %v", path, s, err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	d, err := Open(t.Context(), zipOf(t, zip.Deflate, csrOf(t)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	// Entry (i, j) is the edge from i to j: row 1 of ours has source 0.
	if got := fmt.Sprint(d.Graph.Indptr, d.Graph.Indices, d.Graph.Weights == nil); got != "[0 0 1 2 3] [0 1 3] true" {
		t.Errorf("gnn-benchmark: %s", got)
	}
	x := make([]float32, 12)
	if err := d.Features.Float32Rows(t.Context(), 0, 4, x); err != nil || fmt.Sprint(x) != "[2 1 0 0 0 0 0 0 3 0 0 0]" {
		t.Errorf("gnn-benchmark: %v %v", x, err)
	}
}

// TestPlainFolder reads our own CSR layout, edge_index with weights, node lists,
// real targets and label sets.
func TestPlainFolder(t *testing.T) {
	nan := float32(math.NaN())
	for what, c := range map[string]struct {
		in   map[string][]byte
		want string
	}{
		"csr": {map[string][]byte{
			"indptr": arr(t, []int64{0, 2, 2, 3}, 4), "indices": arr(t, []int32{2, 1, 0}, 3),
			"labels": arr(t, []float32{0, nan, 3}, 3), "train_idx": arr(t, []int64{2, 0}, 2), "val_idx": arr(t, []int64{}, 0), "test_idx": arr(t, []int64{1}, 1),
		}, "[0 2 2 3] [1 2 0] [] multiclass 4 0 [0 -1 3] 1"},
		"edge_index": {map[string][]byte{
			"edge_index": arr(t, []int64{0, 1, 1, 0}, 2, 2), "edge_weight": arr(t, []float32{2, 3}, 2), "y": arr(t, []float32{0.5, 1}, 2, 1), "x": arr(t, []float32{1, 2}, 2, 1),
		}, "[0 1 2] [1 0] [3 2] regression 1 1 [0.5 1] 0"},
		"labels in a matrix": {map[string][]byte{
			"edges": arr(t, []int64{0, 1, 1, 0}, 2, 2), "y": arr(t, []uint8{0, 1, 1, 255}, 2, 2),
		}, "[0 1 2] [1 0] [] multilabel 2 0 [0 1 1 255] 0"},
		"unlabelled": {map[string][]byte{"edges": arr(t, []int64{0, 1, 0, 1}, 2, 2)}, "[0 0 1] [0] [] multiclass 0 0 none 0"},
	} {
		d, err := Open(t.Context(), folderOf(t, c.in), Options{})
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		got := fmt.Sprint(d.Graph.Indptr, d.Graph.Indices, d.Graph.Weights, " ", d.Task, " ", d.NumClasses, d.NumFeatures, " ", labelText(t, d), " ", d.NumGivenSplits())
		if got != c.want {
			t.Errorf("%s: %s, want %s", what, got, c.want)
		}
		d.Close()
	}
}

func TestBundlesMalformed(t *testing.T) {
	nan := float32(math.NaN())
	type m = map[string][]byte
	base, csr := bundleOf(t), csrOf(t)
	for _, c := range []struct {
		what string
		base m
		with m
		says []string
	}{
		{"edge beyond", base, m{"edges": arr(t, []int64{0, 4}, 1, 2)}, []string{"edges.npy", "edge 0", "node 4"}},
		{"edge negative", base, m{"edges": arr(t, []int64{0, 1, -1, 0}, 2, 2)}, []string{"edges.npy", "edge 1", "node -1"}},
		{"edge wide", base, m{"edges": arr(t, []int64{0, 1 << 32}, 1, 2)}, []string{"edges.npy", "row 0, column 1"}},
		{"edges half", base, m{"edges": arr(t, []float32{0, 0.5}, 1, 2)}, []string{"edges.npy", "0.5"}},
		{"edges of three", base, m{"edges": arr(t, []int64{0, 1, 2}, 1, 3)}, []string{"edges.npy", "(1, 3)"}},
		{"edges flat", base, m{"edges": arr(t, []int64{0, 1}, 2)}, []string{"edges.npy", "shape"}},
		{"rows too many", base, m{"node_labels": arr(t, []int64{0, 1, 2, 0, 1}, 5)}, []string{"node_labels.npy", "5 nodes"}},
		{"class -2", base, m{"node_labels": arr(t, []int64{0, 1, -2, 0}, 4)}, []string{"node_labels.npy", "node 2 has class -2"}},
		{"class huge", base, m{"node_labels": arr(t, []int64{0, 1 << 40, 2, 0}, 4)}, []string{"node_labels.npy", "node 1"}},
		{"labels of three dimensions", base, m{"node_labels": arr(t, []int64{0, 1, 2, 0}, 4, 1, 1)}, []string{"node_labels.npy", "shape"}},
		{"label sets of 2", base, m{"node_labels": arr(t, []int64{0, 1, 2, 0, 1, 1, 0, 0}, 4, 2)}, []string{"node_labels.npy", "row 1, column 0 is 2"}},
		{"infinite label", base, m{"node_labels": arr(t, []float32{0, 1, float32(math.Inf(1)), 0}, 4)}, []string{"node_labels.npy", "row 2"}},
		{"feature NaN", base, m{"node_features": arr(t, []float32{1, 2, 3, 4, 5, nan, 7, 8}, 4, 2)}, []string{"node_features.npy", "row 2, column 1"}},
		{"features flat", base, m{"node_features": arr(t, []float32{1, 2, 3, 4}, 4)}, []string{"node_features.npy", "shape"}},
		{"mask too short", base, m{"train_masks": arr(t, []uint8{1, 0, 0, 0, 1, 0}, 2, 3)}, []string{"train_masks.npy", "(2, 3)"}},
		{"mask of 2", base, m{"val_masks": arr(t, []uint8{0, 2, 0, 0, 1, 0, 0, 0}, 2, 4)}, []string{"val_masks.npy", "is 2"}},
		{"masks of another count", base, m{"test_masks": arr(t, []uint8{0, 0, 0, 1}, 1, 4)}, []string{"test_masks.npy", "1 splits"}},
		{"masks overlap", base, m{"test_masks": arr(t, []uint8{1, 0, 0, 1, 0, 0, 0, 1}, 2, 4)}, []string{"split 0", "node 0"}},
		{"train empty", base, m{"train_masks": arr(t, make([]uint8, 8), 2, 4)}, []string{"split 0", "empty"}},
		{"no test mask", base, m{"test_masks": nil}, []string{"some parts only"}},
		{"objects", base, m{"node_labels": bare("|O", "(4,)", "")}, []string{"node_labels.npy", "objects"}},
		{"no npy", base, m{"edges": []byte("hello")}, []string{"edges.npy", "byte 0"}},
		{"no graph", base, m{"edges": nil}, nil},
		{"offsets fall", csr, m{"adj_indptr": arr(t, []int32{0, 2, 1, 2, 3}, 5)}, []string{"adj_indptr.npy", "row 1"}},
		{"offsets beyond", csr, m{"adj_indptr": arr(t, []int32{0, 1, 2, 2, 4}, 5)}, []string{"adj_indptr.npy", "want 0 to 3"}},
		{"offsets from 1", csr, m{"adj_indptr": arr(t, []int32{1, 1, 2, 2, 3}, 5)}, []string{"adj_indptr.npy", "from 1"}},
		{"no offsets", csr, m{"adj_indptr": arr(t, []int32{}, 0)}, []string{"adj_indptr.npy"}},
		{"node beyond", csr, m{"adj_indices": arr(t, []int32{1, 2, 4}, 3)}, []string{"adj_indices.npy", "row 3 names node 4"}},
		{"node negative", csr, m{"adj_indices": arr(t, []int32{1, -2, 3}, 3)}, []string{"adj_indices.npy", "row 1 names node -2"}},
		{"weights too few", csr, m{"adj_data": arr(t, []float32{1, 1}, 2)}, []string{"adj_data.npy"}},
		{"weight NaN", csr, m{"adj_data": arr(t, []float32{1, nan, 1}, 3)}, []string{"adj_data.npy", "edge 1"}},
		{"shape lies", csr, m{"adj_shape": arr(t, []int64{5, 5}, 2)}, []string{"adj_shape.npy", "5 × 5"}},
		{"not square", csr, m{"adj_shape": arr(t, []int64{4, 5}, 2)}, []string{"adj_indptr.npy", "square"}},
		{"shape negative", csr, m{"attr_shape": arr(t, []int64{4, -3}, 2)}, []string{"attr_shape.npy"}},
		{"columns huge", csr, m{"attr_shape": arr(t, []int64{4, 1 << 40}, 2)}, []string{"columns"}},
		{"column beyond", csr, m{"attr_indices": arr(t, []int32{1, 0, 3}, 3)}, []string{"attr_indices.npy", "row 2 names column 3"}},
		{"attribute NaN", csr, m{"attr_data": arr(t, []float32{1, nan, 3}, 3)}, []string{"attr_data.npy", "row 0, column 0"}},
		{"rows of features", csr, m{"attr_indptr": arr(t, []int32{0, 2, 2, 3}, 4), "attr_shape": arr(t, []int64{3, 3}, 2)}, []string{"4 nodes", "3"}},
		{"class beyond the names", csr, m{"labels": arr(t, []int8{0, 9, 0, 1}, 4), "class_names": bare("|S1", "(2,)", "ab")}, []string{"labels.npy", "node 1 has class 9"}},
	} {
		in := m{}
		for n, b := range c.base {
			in[n] = b
		}
		for n, b := range c.with {
			in[n] = b
		}
		for _, path := range []string{zipOf(t, zip.Store, in), zipOf(t, zip.Deflate, in), folderOf(t, in)} {
			d, err := Open(t.Context(), path, Options{})
			if err == nil { // our own layout's contents are read later
				err = Verify(t.Context(), d, 1)
			}
			wantFault(t, c.what, err, append(c.says, filepath.Base(path))...)
		}
	}
}

// TestNPZCutAnywhere cuts a small archive at every byte.
func TestNPZCutAnywhere(t *testing.T) {
	path := zipOf(t, zip.Deflate, csrOf(t))
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := 4; n < len(b); n += 1 + len(b)/400 {
		write(t, path, b[:n])
		_, err := Open(t.Context(), path, Options{})
		wantFault(t, fmt.Sprintf("cut at %d", n), err, path)
	}
}

// TestNamesAsNumbers has one huge id and nothing that counts the nodes.
func TestNamesAsNumbers(t *testing.T) {
	_, err := Open(t.Context(), folderOf(t, map[string][]byte{"edges": arr(t, []int64{0, 2_000_000_000}, 1, 2)}), Options{})
	wantFault(t, "huge id", err, "edges.npy", "2000000000")
}

func FuzzBundle(f *testing.F) {
	for _, in := range []map[string][]byte{csrOf(f), bundleOf(f)} {
		for n, a := range in {
			in[n] = compact(a)
		}
		b, err := os.ReadFile(zipOf(f, zip.Store, in))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(dir, fmt.Sprintf("%d.npz", os.Getpid()))
		write(t, path, b)
		d, err := Open(t.Context(), path, Options{Format: "npz", Workers: 1})
		if err != nil {
			wantFault(t, "fuzz", err, path)
			return
		}
		defer d.Close()
		if err := d.Graph.Validate(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
	})
}
