package datasets

import (
	"archive/zip"
	"bytes"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"zerogcn/internal/sharedtest"
)

func TestCoraText(t *testing.T) {
	d, err := Open(t.Context(), sharedtest.Path(t, "data/cora-text"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if d.Name != "cora" || d.NumNodes != 2708 || d.NumEdges != 5429 || d.NumFeatures != 1433 || d.NumClasses != 7 {
		t.Errorf("%+v", d.Meta)
	}
	if d.OriginalID(0) != 31336 || d.ClassNames[0] != "Case_Based" || d.NumGivenSplits() != 0 {
		t.Errorf("id %d, classes %v", d.OriginalID(0), d.ClassNames)
	}
	if err := Verify(t.Context(), d, 0); err != nil {
		t.Error(err)
	}
	// Symmetric, it is Planetoid's graph with other numbers.
	s, err := TransformGraph(t.Context(), d, GraphOptions{Symmetrize: true})
	if err != nil {
		t.Fatal(err)
	}
	p, err := Open(t.Context(), sharedtest.Path(t, "data/planetoid-cora"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if a, b := degrees(s), degrees(p); !slices.Equal(a, b) || s.NumEdges != p.NumEdges {
		t.Error("degrees differ from Planetoid's")
	}
	if a, b := homophily(t, s), homophily(t, p); a != b {
		t.Errorf("homophily %v and %v", a, b)
	}
	if a, b := s.Features.Sparse().NNZ(), p.Features.Sparse().NNZ(); a != b {
		t.Errorf("%d and %d words", a, b)
	}
}

// degrees returns the in-degrees, ascending.
func degrees(d *Dataset) []int {
	out := make([]int, d.NumNodes)
	for v := range out {
		out[v] = d.Graph.InDegree(int32(v))
	}
	slices.Sort(out)
	return out
}

// textFolder writes files by name.
func textFolder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for n, s := range files {
		write(t, filepath.Join(dir, n), []byte(s))
	}
	return dir
}

func TestCoraTextSmall(t *testing.T) {
	dir := textFolder(t, map[string]string{
		"x.content": "p1\t0\t1\t0\tb\r\nq\t1\t1\t0\ta\r\n7\t0\t0\t0\tb\r\n",
		"x.cites":   "p1\tq\nq\t7\np1\tq\nghost\tq\n",
	})
	d, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	// q cites p1, 7 cites q.
	if got := fmt.Sprint(d.Graph.Indptr, d.Graph.Indices, " ", labelText(t, d), " ", d.NodeIDs, d.Warnings); got != "[0 1 2 2] [1 2] [1 0 1] [] [1 citation of papers without content left out]" {
		t.Error(got)
	}
}

func TestCoraTextMalformed(t *testing.T) {
	content, cites := "1\t0\t1\ta\n2\t1\t1\tb\n", "1\t2\n"
	for _, c := range []struct{ what, content, cites, file, says string }{
		{"row short", "1\t0\t1\ta\n2\t1\tb\n", cites, "x.content", "line 2: 1 words"},
		{"word of text", "1\t0\tx\ta\n", cites, "x.content", "line 1: word 1"},
		{"word NaN", "1\t0\tNaN\ta\n", cites, "x.content", "line 1: word 1"},
		{"word infinite", "1\t1e99\t0\ta\n", cites, "x.content", "line 1: word 0"},
		{"paper twice", content + "1\t0\t0\ta\n", cites, "x.content", "line 3"},
		{"id alone", "1\n", cites, "x.content", "line 1"},
		{"empty", "", cites, "x.content", "no line"},
		{"one id", content, "1\n", "x.cites", "line 1"},
		{"three ids", content, "1\t2\t1\n", "x.cites", "line 1"},
	} {
		_, err := Open(t.Context(), textFolder(t, map[string]string{"x.content": c.content, "x.cites": c.cites}), Options{})
		wantFault(t, c.what, err, c.file, c.says)
	}
}

// TestCoraZipDamaged cuts the archive and flips its bytes; a bomb is refused.
func TestCoraZipDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.zip")
	pack := func(content []byte) []byte {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for _, m := range []struct {
			name string
			data []byte
		}{{"c/x.content", content}, {"c/x.cites", []byte("1\t2\n")}} {
			w, err := z.Create(m.name)
			if err != nil {
				t.Fatal(err)
			}
			w.Write(m.data)
		}
		z.Close()
		return b.Bytes()
	}
	good := pack([]byte("1\t0\t1\ta\n2\t1\t1\tb\n"))
	write(t, path, good)
	d, err := Open(t.Context(), path, Options{})
	if err != nil || d.NumNodes != 2 || d.Name != "x" {
		t.Fatal(d, err)
	}
	for n := range len(good) {
		if n >= 4 {
			write(t, path, good[:n])
			_, err := Open(t.Context(), path, Options{})
			wantFault(t, fmt.Sprintf("cut at %d", n), err, path)
		}
		b := bytes.Clone(good)
		b[n] ^= 0x41
		write(t, path, b)
		if _, err := Open(t.Context(), path, Options{}); err != nil {
			wantFault(t, fmt.Sprintf("flip at %d", n), err, path)
		}
	}
	z := zipped{path: path}
	m := &zip.File{FileHeader: zip.FileHeader{Name: "x.content", UncompressedSize64: 1 << 40, CompressedSize64: 1 << 20}}
	_, _, err = z.open(m)
	wantFault(t, "bomb", err, "bomb", path)
}

func TestKarate(t *testing.T) {
	d, err := Open(t.Context(), filepath.Join(sharedtest.Path(t, "data/karate"), "karate.csv"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if d.NumNodes != 34 || d.NumEdges != 156 || d.Graph.Weights == nil || d.NumFeatures != 0 || d.Labels != nil {
		t.Errorf("%+v", d.Meta)
	}
	if err := Verify(t.Context(), d, 0); err != nil {
		t.Error(err)
	}
}

// TestPCG reads the multi-label csvs, which have CRLF ends.
func TestPCG(t *testing.T) {
	d, err := Open(t.Context(), sharedtest.Path(t, "data/mlgnc-pcg"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if d.NumNodes != 3233 || d.NumEdges != 74702 || d.NumFeatures != 32 || d.NumClasses != 15 || d.Task != Multilabel {
		t.Errorf("%+v", d.Meta)
	}
	multi := make([]uint8, 3233*15)
	if err := d.Labels.Multi(multi, nil); err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, x := range multi {
		sum += int(x)
	}
	if mean := float64(sum) / 3233; mean < 1.925 || mean > 1.935 {
		t.Errorf("%.3f labels per node, want 1.93", mean)
	}
	if err := Verify(t.Context(), d, 0); err != nil {
		t.Error(err)
	}
}

func TestEdgeListFolder(t *testing.T) {
	dir := textFolder(t, map[string]string{
		"edges.csv":     "source,target,weight\n0,1,0.5\n2.0,1,2\n0,1,9\n",
		"features.csv":  "node,a,b\r\n2,5,6\r\n0,1,2\r\n1,3,4\r\n",
		"labels.csv":    "label\ncat\n-1\ndog\n",
		"train_idx.csv": "node\n2\n0\n", "valid_idx.csv": "", "test_idx.csv": "1",
	})
	d, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	x := make([]float32, 6)
	if err := d.Features.Float32Rows(t.Context(), 0, 3, x); err != nil {
		t.Fatal(err)
	}
	s, err := d.Split(0)
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(d.Graph.Indptr, d.Graph.Indices, d.Graph.Weights, x, " ", labelText(t, d), " ", d.ClassNames, s)
	if got != "[0 0 2 2] [0 2] [0.5 2] [1 2 3 4 5 6] [0 -1 1] [cat dog] {[0 2] [] [1]}" {
		t.Error(got)
	}
}

func TestEdgeListMalformed(t *testing.T) {
	base := map[string]string{"edges.csv": "0,1\n1,2\n", "features.csv": "1,2\n3,4\n5,6\n", "labels.csv": "0\n1\n0\n"}
	for _, c := range []struct{ what, file, text, says string }{
		{"edge beyond", "edges.csv", "0,3\n", "line 1: node 3"},
		{"edge negative", "edges.csv", "0,1\n0,-1\n", "line 2: node -1"},
		{"edge alone", "edges.csv", "0,1\n2\n", "line 2"},
		{"edge of text", "edges.csv", "0,1\n0,b\n", "line 2"},
		{"weight of text", "edges.csv", "0,1,2\n1,2,x\n", "line 2: the weight"},
		{"weight infinite", "edges.csv", "0,1,2\n1,2,inf\n", "line 2: the weight"},
		{"feature of text", "features.csv", "1,2\n3,x\n5,6\n", "line 2: column 2"},
		{"feature NaN", "features.csv", "1,2\n3,4\nnan,6\n", "line 3: column 1"},
		{"feature infinite", "features.csv", "1,2\n3,4\n1e60,6\n", "line 3: column 1"},
		{"feature empty", "features.csv", "1,2\n,4\n1,6\n", "line 2: column 1"},
		{"feature row short", "features.csv", "1,2\n3\n5,6\n", "line 2: 1 columns"},
		{"feature row long", "features.csv", "1,2\n3,4,5\n5,6\n", "line 2: 3 columns"},
		{"no features", "features.csv", "", "no rows"},
		{"header alone", "features.csv", "a,b\n", "no rows"},
		{"ids twice", "features.csv", "id,a\n0,1\n1,1\n1,2\n", "line 4: node 1 is on line 3"},
		{"ids beyond", "features.csv", "id,a\n0,1\n1,1\n7,2\n", "line 4: node 7"},
		{"ids of text", "features.csv", "id,a\n0,1\n1,1\nx,2\n", "line 4"},
		{"labels too few", "labels.csv", "0\n1\n", "2 rows"},
		{"label sets of 2", "labels.csv", "0,1\n1,2\n0,0\n", "row 1, column 1"},
		{"list beyond", "train_idx.csv", "0\n9\n", "line 2: node 9"},
		{"list of text", "train_idx.csv", "0\nx\n", "line 2"},
		{"list alone", "train_idx.csv", "0\n", "some parts only"},
	} {
		files := map[string]string{}
		for n, s := range base {
			files[n] = s
		}
		files[c.file] = c.text
		if c.file == "train_idx.csv" && c.what != "list alone" {
			files["valid_idx.csv"], files["test_idx.csv"] = "1\n", "2\n"
		}
		dir := textFolder(t, files)
		_, err := Open(t.Context(), dir, Options{})
		name := c.file
		if c.what == "list alone" {
			name = dir
		}
		wantFault(t, c.what, err, name, c.says)
	}
	_, err := Open(t.Context(), filepath.Join(textFolder(t, map[string]string{"e.txt": "0 1\n0 2000000000\n"}), "e.txt"), Options{})
	wantFault(t, "names as numbers", err, "e.txt", "2000000000")
	long := filepath.Join(t.TempDir(), "e.txt")
	write(t, long, bytes.Repeat([]byte("1"), 3<<20))
	_, err = Open(t.Context(), long, Options{})
	wantFault(t, "one long line", err, "e.txt")
}

// TestNotASet gives files and folders of no format.
func TestNotASet(t *testing.T) {
	for what, b := range map[string][]byte{"empty": nil, "text": []byte("hello\nworld\n"), "binary": {0, 1, 2}, "png": []byte("\x89PNG\r\n")} {
		path := filepath.Join(t.TempDir(), "f")
		write(t, path, b)
		_, err := Open(t.Context(), path, Options{})
		wantFault(t, what, err, path, "no known format")
		for _, f := range Formats() {
			_, err := Open(t.Context(), path, Options{Format: f.Name})
			wantFault(t, what+" as "+f.Name, err, path)
			_, err = Open(t.Context(), filepath.Dir(path), Options{Format: f.Name})
			wantFault(t, what+" in a folder as "+f.Name, err, filepath.Dir(path))
		}
	}
}

func FuzzCoraText(f *testing.F) {
	f.Add([]byte("p1\t0\t1\t0\tb\r\nq\t1\t1\t0\ta\n"), []byte("p1\tq\n"))
	f.Fuzz(func(t *testing.T, content, cites []byte) {
		d := &Dataset{}
		ids, err := readContent(t.Context(), "x.content", bytes.NewReader(content), d)
		if err != nil {
			wantFault(t, "fuzz", err, "x.content")
			return
		}
		if err := d.Features.Sparse().Validate(); err != nil {
			t.Fatal(err)
		}
		e, _, err := readCites(t.Context(), "x.cites", bytes.NewReader(cites), ids)
		if err != nil {
			wantFault(t, "fuzz", err, "x.cites")
			return
		}
		for i, s := range e.Sources {
			if int(s) >= len(ids) || int(e.Targets[i]) >= len(ids) {
				t.Fatalf("edge %d: %d, %d of %d", i, s, e.Targets[i], len(ids))
			}
		}
	})
}

func FuzzTable(f *testing.F) {
	f.Add([]byte("node,a,b\r\n2,5,6\r\n0,1,2\r\n1,3,4\r\n"))
	f.Add([]byte("1 2\n3 4\n"))
	f.Add([]byte("node\n0\n1 5\n")) // rows of no values, then one of one
	f.Fuzz(func(t *testing.T, b []byte) {
		names, shape, err := parseNames(t.Context(), "f.csv", bytes.NewReader(b))
		if err != nil {
			wantFault(t, "fuzz", err, "f.csv")
			return
		}
		if len(names) != shape.rows*shape.cols {
			t.Fatalf("%d values, %d × %d", len(names), shape.rows, shape.cols)
		}
		x, err := parseFloats(t.Context(), "f.csv", bytes.NewReader(b), labelCell)
		if err != nil {
			wantFault(t, "fuzz", err, "f.csv")
			return
		}
		// The short way and the long one read the same.
		if x.rows != shape.rows || x.cols != shape.cols {
			t.Fatalf("%d × %d numbers, %d × %d names", x.rows, x.cols, shape.rows, shape.cols)
		}
		for i, v := range x.all() {
			want, err := strconv.ParseFloat(names[i], 32)
			if names[i] != "" && (err != nil || v != float32(want) && (v == v || want == want)) {
				t.Fatalf("value %d of %q is %v", i, names[i], v)
			}
		}
	})
}

func BenchmarkTable(b *testing.B) {
	for _, c := range []struct{ name, format string }{{"6 places", "%.6f,"}, {"shortest", "%v,"}, {"bag of words", "%.0f,"}} {
		b.Run(c.name, func(b *testing.B) {
			var buf bytes.Buffer
			for i := range 2000 {
				for j := range 100 {
					v := float64(i*j%977) / 31
					if c.name == "bag of words" {
						v = math.Floor(v / 31)
					}
					fmt.Fprintf(&buf, c.format, float32(v))
				}
				buf.Truncate(buf.Len() - 1)
				buf.WriteByte('\n')
			}
			b.SetBytes(int64(buf.Len()))
			for b.Loop() {
				if _, err := parseFloats(b.Context(), "f.csv", bytes.NewReader(buf.Bytes()), finiteCell); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
