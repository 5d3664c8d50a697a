package datasets

import (
	"archive/zip"
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"zerogcn/graph"
	"zerogcn/internal/npy"
	"zerogcn/internal/sharedtest"
)

// TestOGBCora compares the set in OGB's layout with Planetoid's, node for node.
func TestOGBCora(t *testing.T) {
	d, err := Open(t.Context(), sharedtest.Path(t, "data/derived/ogbn_cora"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	p, err := Open(t.Context(), sharedtest.Path(t, "data/planetoid-cora"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if d.Fingerprint != p.Fingerprint || d.NumNodes != 2708 || d.NumEdges != 2*5278 {
		t.Errorf("%+v, Planetoid's is %+v", d.Meta, p.Meta)
	}
	if got := fmt.Sprint(d.Warnings); got != "[each edge is stored once: the inverse is added, as no edge has one]" {
		t.Error(got)
	}
	s := sharedtest.Path(t, "data/derived/ogbn_cora")
	b, err := Open(t.Context(), s, Options{Memory: MinMemory, Scratch: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if b.Fingerprint != d.Fingerprint || len(b.closers) == 0 {
		t.Errorf("in bounded memory (%d mappings): %+v, want %+v", len(b.closers), b.Meta, d.Meta)
	}
	if err := sameAsBinary(t, s, d); err != nil {
		t.Error(err)
	}
}

// sameAsBinary writes the set as data.npz, in all orders and packings, and
// compares what is read.
func sameAsBinary(t *testing.T, text string, d *Dataset) error {
	var e graph.Edges
	for part, err := range (edgeText{name: filepath.Join(text, "raw", "edge.csv.gz"), nodes: d.NumNodes}).stream(t.Context()) {
		if err != nil {
			return err
		}
		e.Sources, e.Targets = append(e.Sources, part.Sources...), append(e.Targets, part.Targets...)
	}
	x := make([]float32, d.NumNodes*d.NumFeatures)
	if err := d.Features.Float32Rows(t.Context(), 0, d.NumNodes, x); err != nil {
		return err
	}
	class := make([]int32, d.NumNodes)
	if err := d.Labels.Classes(class, nil); err != nil {
		return err
	}
	label := make([]float32, len(class))
	for i, c := range class {
		label[i] = float32(c)
	}
	n, m := int64(d.NumNodes), int64(e.Len())
	pairs := make([]int32, 0, 2*m)
	for i, u := range e.Sources {
		pairs = append(pairs, u, e.Targets[i])
	}
	rows := slices.Concat(e.Sources, e.Targets)
	for _, c := range []struct {
		what    string
		method  uint16
		edges   []int32
		shape   [2]int64
		fortran bool
	}{
		{"deflated", zip.Deflate, rows, [2]int64{2, m}, false},
		{"stored", zip.Store, rows, [2]int64{2, m}, false},
		{"pairs", zip.Deflate, pairs, [2]int64{m, 2}, false},
		{"Fortran", zip.Deflate, pairs, [2]int64{2, m}, true},
		{"Fortran pairs", zip.Store, rows, [2]int64{m, 2}, true},
	} {
		dir := filepath.Join(t.TempDir(), "ogbn_cora")
		if err := os.MkdirAll(filepath.Join(dir, "raw"), 0o755); err != nil {
			return err
		}
		if err := os.CopyFS(filepath.Join(dir, "split"), os.DirFS(filepath.Join(text, "split"))); err != nil {
			return err
		}
		edges := npyBytes(t, c.edges, c.shape[:]...)
		if c.fortran {
			edges = bytes.Replace(edges, []byte("'fortran_order': False"), []byte("'fortran_order': True "), 1)
		}
		write(t, filepath.Join(dir, "raw", "data.npz"), archiveBytes(t, c.method, map[string][]byte{
			"edge_index": edges, "node_feat": npyBytes(t, x, n, int64(d.NumFeatures)),
			"num_nodes_list": npyBytes(t, []int64{n}, 1), "num_edges_list": npyBytes(t, []int64{m}, 1),
		}))
		write(t, filepath.Join(dir, "raw", "node-label.npz"), archiveBytes(t, c.method, map[string][]byte{"node_label": npyBytes(t, label, n, 1)}))
		b, err := Open(t.Context(), dir, Options{})
		if err != nil {
			return fmt.Errorf("%s: %w", c.what, err)
		}
		if b.Fingerprint != d.Fingerprint {
			t.Errorf("%s: %+v, as text %+v", c.what, b.Meta, d.Meta)
		}
		if err := b.Close(); err != nil {
			return err
		}
	}
	return nil
}

func npyBytes[T npy.Element](t testing.TB, v []T, shape ...int64) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := npy.Write(&b, v, shape...); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func archiveBytes(t testing.TB, method uint16, arrays map[string][]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(arrays)) {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: method})
		if err == nil {
			_, err = w.Write(arrays[name])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestOGBGraphs reads graph-level sets as one graph of many components.
func TestOGBGraphs(t *testing.T) {
	for _, c := range []struct {
		name                string
		graphs, nodes       int
		edges               int64
		task                Task
		train, valid, total int
	}{
		{"molbace", 1513, 51577, 55768, Multiclass, 1210, 151, 1513},
		{"molfreesolv", 642, 5600, 5385, Regression, 513, 64, 642},
	} {
		d, err := Open(t.Context(), sharedtest.Path(t, "data/ogb-mol/ogbg_"+c.name), Options{})
		if err != nil {
			t.Error(err)
			continue
		}
		if d.NumNodes != c.nodes || d.NumEdges != 2*c.edges || d.NumFeatures != 9 || d.Task != c.task {
			t.Errorf("%s: %+v", c.name, d.Meta)
		}
		s, err := d.Split(0)
		if err != nil || len(s.Train)+len(s.Valid)+len(s.Test) != c.nodes {
			t.Errorf("%s: split of %d, %d and %d nodes, %v", c.name, len(s.Train), len(s.Valid), len(s.Test), err)
		}
		if len(d.Warnings) != 2 {
			t.Errorf("%s: %q", c.name, d.Warnings)
		}
	}
}

// ogbFolder writes a small set: two graphs where graphs is set.
func ogbFolder(t testing.TB, name string, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	for n, s := range files {
		if s == "absent" {
			continue
		}
		p := filepath.Join(dir, n)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, p, packed(t, []byte(s), ".gz"))
	}
	return dir
}

func smallOGB() map[string]string {
	return map[string]string{
		"raw/edge.csv.gz": "0,1\n1,2\n2,2\n1,2\n", "raw/num-node-list.csv.gz": "3\n", "raw/num-edge-list.csv.gz": "4\n",
		"raw/node-feat.csv.gz": "1,2\n3,4\n5,6\n", "raw/node-label.csv.gz": "0\nnan\n1\n",
		"split/time/train.csv.gz": "0\n", "split/time/valid.csv.gz": "1\n", "split/time/test.csv.gz": "2\n",
	}
}

// TestOGBInverse looks at what is made of edges by name and content: self loops
// stay single (OGB's loader doubles them), labels may be absent.
func TestOGBInverse(t *testing.T) {
	for _, c := range []struct{ name, edges, want string }{
		{"ogbn_products", "0,1\n1,2\n2,2\n1,2\n", "[0 1 3 5] [1 0 2 1 2]"},
		{"ogbn_arxiv", "0,1\n1,2\n2,2\n1,2\n", "[0 0 1 3] [0 1 2]"},
		{"mine", "0,1\n1,2\n2,2\n1,2\n", "[0 1 3 5] [1 0 2 1 2]"},
		{"mine", "0,1\n1,2\n2,1\n1,2\n", "[0 0 2 3] [0 2 1]"},
	} {
		files := smallOGB()
		files["raw/edge.csv.gz"] = c.edges
		folder := ogbFolder(t, c.name, files)
		for _, memory := range []int64{0, MinMemory} {
			d, err := Open(t.Context(), folder, Options{Memory: memory, Scratch: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(d.Graph.Indptr, d.Graph.Indices); got != c.want {
				t.Errorf("%s, %d bytes: %s, want %s", c.name, memory, got, c.want)
			}
			if got := labelText(t, d); got != "[0 -1 1]" {
				t.Errorf("labels %s", got)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestOGBMalformed(t *testing.T) {
	for _, c := range []struct{ what, file, text, says string }{
		{"edge beyond", "raw/edge.csv.gz", "0,1\n1,3\n", "line 2: node 3"},
		{"edges cut", "raw/edge.csv.gz", "0,1\n", "1 edges, and the list of counts says 4"},
		{"edges missing", "raw/edge.csv.gz", "absent", "no known format"},
		{"features short", "raw/node-feat.csv.gz", "1,2\n3,4\n", "2 rows of features for 3 nodes"},
		{"feature NaN", "raw/node-feat.csv.gz", "1,2\n3,nan\n5,6\n", "line 2: column 2"},
		{"labels short", "raw/node-label.csv.gz", "0\n", "1 labels for 3 nodes"},
		{"label of text", "raw/node-label.csv.gz", "0\n1\nx\n", "line 3: column 1"},
		{"label infinite", "raw/node-label.csv.gz", "0\n1\ninf\n", "line 3: column 1"},
		{"class -2", "raw/node-label.csv.gz", "0\n1\n-2\n", ""},
		{"count of text", "raw/num-node-list.csv.gz", "x\n", "line 1"},
		{"count negative", "raw/num-node-list.csv.gz", "-3\n", "line 1"},
		{"count huge", "raw/num-node-list.csv.gz", "99999999999\n", "99999999999 nodes"},
		{"counts of two graphs", "raw/num-node-list.csv.gz", "1\n2\n", "graph"},
		{"split beyond", "split/time/test.csv.gz", "3\n", "line 1: node 3"},
		{"split overlaps", "split/time/test.csv.gz", "0\n", "node 0 is in train and in test"},
		{"split in part", "split/time/test.csv.gz", "absent", "no test.csv.gz"},
	} {
		files := smallOGB()
		files[c.file] = c.text
		dir := ogbFolder(t, "set", files)
		d, err := Open(t.Context(), dir, Options{})
		if c.what == "class -2" { // numbers below zero are targets
			if err != nil || d.Task != Regression {
				t.Errorf("%s: %v", c.what, err)
			}
			continue
		}
		wantFault(t, c.what, err, dir, c.says)
	}
	// Counts alone ask for no memory.
	files := map[string]string{"raw/edge.csv.gz": "0,1\n", "raw/num-node-list.csv.gz": "2000000000\n", "raw/num-edge-list.csv.gz": "1\n"}
	_, err := Open(t.Context(), ogbFolder(t, "set", files), Options{})
	wantFault(t, "counts alone", err, "set", "2000000000 nodes")
	files["raw/num-node-list.csv.gz"], files["raw/num-edge-list.csv.gz"], files["raw/graph-label.csv.gz"] = "2000000000\n5\n", "1\n0\n", "0\n1\n"
	_, err = Open(t.Context(), ogbFolder(t, "set", files), Options{})
	wantFault(t, "counts of graphs alone", err, "set", "2000000005 nodes")
	// The second graph's edges may not reach into the first.
	files = map[string]string{
		"raw/edge.csv.gz": "0,1\n0,2\n", "raw/num-node-list.csv.gz": "2\n0\n2\n", "raw/num-edge-list.csv.gz": "1\n0\n1\n", "raw/graph-label.csv.gz": "0\n0\n1\n",
	}
	_, err = Open(t.Context(), ogbFolder(t, "set", files), Options{})
	wantFault(t, "local id beyond", err, "edge.csv.gz", "edge 1, of graph 2")
}

// TestOGBGraphsSmall has an empty graph and one without edges.
func TestOGBGraphsSmall(t *testing.T) {
	files := map[string]string{
		"raw/edge.csv.gz": "0,1\n1,0\n", "raw/num-node-list.csv.gz": "2\n0\n1\n2\n", "raw/num-edge-list.csv.gz": "1\n0\n0\n1\n",
		"raw/graph-label.csv.gz": "0\n0\n1\n\n1\n", "raw/node-feat.csv.gz": "1\n2\n3\n4\n5\n",
		"split/s/train.csv.gz": "3\n0\n", "split/s/valid.csv.gz": "2\n", "split/s/test.csv.gz": "1\n",
	}
	d, err := Open(t.Context(), ogbFolder(t, "set", files), Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := d.Split(0)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(d.Graph.Indptr, d.Graph.Indices, labelText(t, d), s); got != "[0 1 2 2 3 4] [1 0 4 3][0 0 1 1 1]{[0 1 3 4] [2] []}" {
		t.Error(got)
	}
}

// countedRows counts what is read twice.
type countedRows struct{ read []int }

func (c *countedRows) readRows(lo, hi int, dst []byte) error {
	for r := lo; r < hi; r++ {
		c.read[r]++
		dst[3*(r-lo)], dst[3*(r-lo)+1], dst[3*(r-lo)+2] = byte(r), byte(r>>8), 7
	}
	return nil
}

// TestStreamedRows reads out of order within the window, and beyond it.
func TestStreamedRows(t *testing.T) {
	c := &countedRows{make([]int, 1000)}
	s := newStreamedRows(c, 1000, 3, 30, 8) // blocks of 10 rows, 8 held
	check := func(lo, hi int) {
		t.Helper()
		b := make([]byte, 3*(hi-lo))
		if err := s.readRows(lo, hi, b); err != nil {
			t.Fatal(err)
		}
		for i := range hi - lo {
			if r := int(b[3*i]) | int(b[3*i+1])<<8; r != lo+i || b[3*i+2] != 7 {
				t.Fatalf("row %d holds %d", lo+i, r)
			}
		}
	}
	for _, lo := range []int{40, 0, 25, 60, 30, 90, 70, 55} {
		check(lo, lo+25)
	}
	for r := range 115 {
		if c.read[r] != 1 && r < 110 {
			t.Errorf("row %d read %d times", r, c.read[r])
		}
	}
	check(0, 5) // far back
	check(985, 1000)
	check(3, 997)
}

func FuzzOGBCounts(f *testing.F) {
	f.Add([]byte("3\n0\n12\n"))
	f.Add([]byte("1e3\r\n\r\n 7 \n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := parseCounts(t.Context(), "num-node-list.csv", bytes.NewReader(b))
		if err != nil {
			wantFault(t, "fuzz", err, "num-node-list.csv")
			return
		}
		if len(v) == 0 || slices.Min(v) < 0 {
			t.Fatal(v)
		}
	})
}

// FuzzOGB gives three files of a set of graphs.
func FuzzOGB(f *testing.F) {
	f.Add([]byte("0,1\n0,2\n"), []byte("2\n0\n3\n"), []byte("1\n0\n1\n"), []byte("0\n0\n1\n"))
	f.Add([]byte("0,1\n"), []byte("2000000000\n"), []byte("1\n"), []byte(""))
	f.Fuzz(func(t *testing.T, edges, nodes, counts, labels []byte) {
		dir := filepath.Join(t.TempDir(), "set")
		if err := os.MkdirAll(filepath.Join(dir, "raw"), 0o755); err != nil {
			t.Fatal(err)
		}
		for name, b := range map[string][]byte{"edge.csv": edges, "num-node-list.csv": nodes, "num-edge-list.csv": counts, "graph-label.csv": labels} {
			write(t, filepath.Join(dir, "raw", name), b)
		}
		d, err := Open(t.Context(), dir, Options{Workers: 1})
		if err != nil {
			wantFault(t, "fuzz", err, dir)
			return
		}
		if err := d.Graph.Validate(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
	})
}
