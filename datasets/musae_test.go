package datasets

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zerogcn/internal/sharedtest"
)

func TestFacebookCounts(t *testing.T) {
	d, err := Open(t.Context(), sharedtest.Path(t, "data/musae-facebook"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	// 170,823 undirected edges and 179 self loops.
	if d.NumNodes != 22470 || d.NumEdges != 2*170823+179 || d.NumFeatures != 4714 || d.NumClasses != 4 || d.Task != Multiclass {
		t.Errorf("%+v", d.Meta)
	}
	if got := fmt.Sprint(d.ClassNames); got != "[company government politician tvshow]" {
		t.Errorf("classes %s", got)
	}
	class := make([]int32, d.NumNodes)
	if err := d.Labels.Classes(class, nil); err != nil {
		t.Fatal(err)
	}
	var count [4]int
	for _, c := range class {
		count[c]++
	}
	if count != [4]int{6495, 6880, 5768, 3327} {
		t.Errorf("class sizes %v", count)
	}
	same, loops := 0, 0
	for v := range d.NumNodes {
		for _, u := range d.Graph.Row(int32(v)) {
			if class[u] == class[v] {
				same++
			}
			if int(u) == v {
				loops++
			}
		}
	}
	if h := float64(same-loops) / float64(2*170823); h < 0.8845 || h > 0.8855 || loops != 179 {
		t.Errorf("homophily %.4f, %d loops", h, loops)
	}
	if nnz := d.Features.Sparse().NNZ(); nnz != 314583 {
		t.Errorf("%d non-zeros", nnz)
	}
	if err := Verify(t.Context(), d, 0); err != nil {
		t.Error(err)
	}
	if _, err := d.Split(0); err == nil {
		t.Error("a split out of nothing")
	}
}

// musaeFolder writes a small set; empty texts leave a default.
func musaeFolder(t testing.TB, edges, features, target string) string {
	t.Helper()
	dir := t.TempDir()
	if edges == "" {
		edges = "id_1,id_2\n0,1\n1,2\n"
	}
	if features == "" {
		features = `{"2": [5, 1, 5], "0": [0], "1": []}`
	}
	if target == "" {
		target = "id,days,mature,new_id\n77,1,True,2\n78,1,False,0\n79,5,True,1\n"
	}
	write(t, filepath.Join(dir, "m_edges.csv"), []byte(edges))
	write(t, filepath.Join(dir, "m_features.json"), []byte(features))
	write(t, filepath.Join(dir, "m_target.csv"), []byte(target))
	return dir
}

// TestMUSAESmall has permuted rows, a feature named twice, gaps, CRLF, a
// quoted name with a comma and a byte-order mark.
func TestMUSAESmall(t *testing.T) {
	dir := musaeFolder(t, "\xef\xbb\xbfid_1,id_2\r\n0,1\r\n2.0,1\r\n2,2\r\n", "", "")
	d, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	class := make([]int32, 3)
	if err := d.Labels.Classes(class, nil); err != nil || fmt.Sprint(class, d.ClassNames) != "[0 1 1] [False True]" {
		t.Errorf("classes %v %v, %v", class, d.ClassNames, err)
	}
	x := make([]float32, 3*6)
	if err := d.Features.Float32Rows(t.Context(), 0, 3, x); err != nil || fmt.Sprint(x) != "[1 0 0 0 0 0 0 0 0 0 0 0 0 1 0 0 0 1]" {
		t.Errorf("features %v, %v", x, err)
	}
	if got := fmt.Sprint(d.Graph.Indptr, d.Graph.Indices); got != "[0 1 3 5] [1 0 2 1 2]" {
		t.Errorf("graph %s", got)
	}
	if got := fmt.Sprint(d.Warnings); got != "[1 node has no features 1 node names a feature twice; it counts once]" {
		t.Errorf("warnings %s", got)
	}
	q := musaeFolder(t, "", "", "id,page_name,page_type\n0,\"a, \"\"b\"\"\",x\n1,\"two\nlines\",y\n2,c,x\n")
	d, err = Open(t.Context(), q, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Labels.Classes(class, nil); err != nil || fmt.Sprint(class) != "[0 1 0]" {
		t.Errorf("classes %v, %v", class, err)
	}
}

func TestMUSAEMalformed(t *testing.T) {
	for _, c := range []struct{ what, edges, features, target, file, says string }{
		{"edge beyond", "0,3\n", "", "", "m_edges.csv", "line 1: node 3"},
		{"edge beyond, after header", "id_1,id_2\n0,1\n0,99\n", "", "", "m_edges.csv", "line 3: node 99"},
		{"edge negative", "id_1,id_2\n-1,0\n", "", "", "m_edges.csv", "line 2: node -1"},
		{"edge one number", "id_1,id_2\n0\n", "", "", "m_edges.csv", "line 2"},
		{"edge text", "id_1,id_2\n0,a\n", "", "", "m_edges.csv", "line 2"},
		{"edge half", "id_1,id_2\n0,0.5\n", "", "", "m_edges.csv", "line 2"},
		{"edge huge", "id_1,id_2\n0,99999999999999999999999\n", "", "", "m_edges.csv", "line 2"},
		{"two headers", "id_1,id_2\nid_1,id_2\n", "", "", "m_edges.csv", "line 2"},
		{"first line half", "0,x\n", "", "", "m_edges.csv", "line 1"},
		{"json node beyond", "", `{"3": [1]}`, "", "m_features.json", "byte 4"},
		{"json node text", "", `{"a": [1]}`, "", "m_features.json", "byte"},
		{"json node twice", "", `{"1": [1], "1": [2]}`, "", "m_features.json", "duplicate"},
		{"json node twice in disguise", "", `{"1": [1], "01": [2]}`, "", "m_features.json", "twice"},
		{"json feature negative", "", `{"1": [-1]}`, "", "m_features.json", "-1"},
		{"json feature huge", "", `{"1": [16777216]}`, "", "m_features.json", "feature number"},
		{"json feature half", "", `{"1": [1.5]}`, "", "m_features.json", "1.5"},
		{"json feature text", "", `{"1": ["x"]}`, "", "m_features.json", "byte"},
		{"json nested", "", `{"1": [[1]]}`, "", "m_features.json", "byte"},
		{"json list", "", `[1, 2]`, "", "m_features.json", "object"},
		{"json no list", "", `{"1": 3}`, "", "m_features.json", "list"},
		{"json tail", "", `{"1": [1]} {}`, "", "m_features.json", "after"},
		{"json empty", "", " ", "", "m_features.json", "cut short"},
		{"target without id", "", "", "x,target\n0,1\n", "m_target.csv", "columns"},
		{"target without label", "", "", "id,x\n0,1\n", "m_target.csv", "columns"},
		{"target short row", "", "", "id,target\n0,1\n1\n", "m_target.csv", "line 3"},
		{"target quote", "", "", "id,target\n0,\"1\n", "m_target.csv", "line"},
		{"target node twice", "", "", "id,target\n0,1\n0,1\n", "m_target.csv", "line 3: node 0 is on line 2"},
		{"target node beyond", "", "", "id,target\n0,1\n5,1\n", "m_target.csv", "line 3: node 5"},
		{"target node text", "", "", "id,target\nx,1\n", "m_target.csv", "line 2"},
		{"target no label", "", "", "id,target\n0,\n", "m_target.csv", "line 2"},
		{"target empty", "", "", "\n", "m_target.csv", "empty"},
	} {
		_, err := Open(t.Context(), musaeFolder(t, c.edges, c.features, c.target), Options{})
		wantFault(t, c.what, err, c.file, c.says)
	}
}

// TestMUSAECutAnywhere cuts the JSON at every byte.
func TestMUSAECutAnywhere(t *testing.T) {
	whole := `{"2": [5, 1, 5], "0": [0], "1": []}`
	for n := range len(whole) {
		_, _, err := parseMultiHot("f.json", strings.NewReader(whole[:n]), 3)
		wantFault(t, fmt.Sprintf("cut at %d", n), err, "f.json", "cut short")
	}
}

func TestFacebookCut(t *testing.T) {
	dir := copyFolder(t, sharedtest.Path(t, "data/musae-facebook"))
	path := filepath.Join(dir, "facebook_features.json")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, b[:len(b)/2])
	_, err = Open(t.Context(), dir, Options{})
	wantFault(t, "cut", err, path, "cut short")
}

func FuzzMultiHot(f *testing.F) {
	f.Add([]byte(`{"2": [5, 1, 5], "0": [0], "1": []}`))
	f.Add([]byte(`{"0": [1e3]}`))
	f.Add([]byte(`{"0": [`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, _, err := parseMultiHot("f.json", bytes.NewReader(b), 3)
		if err != nil {
			wantFault(t, "fuzz", err, "f.json")
			return
		}
		if err := m.Validate(); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzTarget(f *testing.F) {
	f.Add([]byte("id,target\n0,\"a\nb\"\n1,c\n"))
	f.Add([]byte("id,days,mature,new_id\n77,1,True,0\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		labels, err := parseTarget("f.csv", bytes.NewReader(b))
		if err != nil {
			wantFault(t, "fuzz", err, "f.csv")
			return
		}
		var d Dataset
		if setLabels(&d, labels) == nil && d.Labels.Len() != len(labels) {
			t.Fatalf("%d labels of %d", d.Labels.Len(), len(labels))
		}
	})
}

func FuzzEdgeText(f *testing.F) {
	f.Add([]byte("id_1,id_2\n0,1\n2.0,1\r\n"))
	f.Add([]byte("# c\n0 1 0.5\n1\t2\t3\n"))
	f.Add([]byte("\xef\xbb\xbf0;1\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := edgeText{name: "f.csv", nodes: 5, weights: true}.read(t.Context(), bytes.NewReader(b))
		if err != nil {
			wantFault(t, "fuzz", err, "f.csv")
			return
		}
		for i, u := range e.Sources {
			if u < 0 || u > 4 || e.Targets[i] < 0 || e.Targets[i] > 4 || e.Weights[i]-e.Weights[i] != 0 {
				t.Fatalf("edge %d: %d %d %v", i, u, e.Targets[i], e.Weights[i])
			}
		}
	})
}

func BenchmarkEdgeText(b *testing.B) {
	var buf bytes.Buffer
	for i := range 200_000 {
		fmt.Fprintf(&buf, "%d,%d\n", i*7%100_000, i*13%100_000)
	}
	t := edgeText{name: "f.csv", nodes: 100_000}
	b.SetBytes(int64(buf.Len()))
	for b.Loop() {
		if _, err := t.read(b.Context(), bytes.NewReader(buf.Bytes())); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(200_000*float64(b.N)/b.Elapsed().Seconds(), "edges/s")
}
