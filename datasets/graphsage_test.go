package datasets

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zerogcn/internal/sharedtest"
)

// samePCG compares a set with mlgnc-pcg, of which GraphSAGE's and GraphSAINT's
// layouts were derived: edges, labels and split equal, features up to the
// rounding of text.
func samePCG(t *testing.T, d *Dataset) {
	t.Helper()
	p, err := Open(t.Context(), sharedtest.Path(t, "data/mlgnc-pcg"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if d.NumNodes != 3233 || d.NumEdges != 2*37351 || d.NumFeatures != 32 || d.NumClasses != 15 || d.Task != Multilabel {
		t.Errorf("%+v", d.Meta)
	}
	a, b := make([]uint8, 3233*15), make([]uint8, 3233*15)
	if err := d.Labels.Multi(a, nil); err != nil {
		t.Fatal(err)
	}
	if err := p.Labels.Multi(b, nil); err != nil {
		t.Fatal(err)
	}
	x, y := make([]float32, 3233*32), make([]float32, 3233*32)
	if err := d.Features.Float32Rows(t.Context(), 0, 3233, x); err != nil {
		t.Fatal(err)
	}
	if err := p.Features.Float32Rows(t.Context(), 0, 3233, y); err != nil {
		t.Fatal(err)
	}
	for i := range x {
		if e := x[i] - y[i]; e > 1e-5 || e < -1e-5 {
			t.Fatalf("feature %d is %v, in csv %v", i, x[i], y[i])
		}
	}
	if !bytes.Equal(a, b) || fmt.Sprint(d.Graph.Indptr, d.Graph.Indices) != fmt.Sprint(p.Graph.Indptr, p.Graph.Indices) {
		t.Error("labels or edges differ")
	}
	s, err := d.Split(0)
	if err != nil || len(s.Train) != 1939 || len(s.Valid) != 647 || len(s.Test) != 647 {
		t.Errorf("split of %d, %d and %d nodes, %v", len(s.Train), len(s.Valid), len(s.Test), err)
	}
	if err := Verify(t.Context(), d, 0); err != nil {
		t.Error(err)
	}
}

func TestGraphSAGEPCG(t *testing.T) {
	dir := sharedtest.Path(t, "data/derived/graphsage-pcg")
	d, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	samePCG(t, d)
	if d.Name != "pcg" || len(d.Warnings) != 0 {
		t.Errorf("%s, %q", d.Name, d.Warnings)
	}
	// The graph's file names the set too.
	f, err := Open(t.Context(), filepath.Join(dir, "pcg-G.json"), Options{})
	if err != nil || f.Fingerprint != d.Fingerprint {
		t.Errorf("%+v, %v", f, err)
	}
	f.Close()
}

func smallSAGE(t testing.TB) map[string]string {
	return map[string]string{
		"x-G.json": `{"directed": false, "graph": {"name": "x", "n": [1, {"a": "}"}]}, "multigraph": false,
			"nodes": [{"id": "b", "val": false, "test": false, "feature": [1, 2]}, {"test": false, "val": true, "id": "a"}, {"id": "q\u0022", "val": false, "test": true}, {"id": 7}],
			"links": [{"source": 0, "target": 1, "train_removed": false}, {"source": 1, "target": 2}, {"target": 2, "source": 2}]}`,
		"x-id_map.json":    `{"a": 0, "b": 1, "7": 2, "q\"": 3}`,
		"x-class_map.json": `{"a": 4, "b": 0, "q\"": 2}`,
		"x-feats.npy":      string(npyBytes(t, []float32{1, 2, 3, 4}, 4, 1)),
	}
}

// TestGraphSAGESmall: ends as positions, ids and texts; ids that are not the
// order of the nodes; a node without flags; one without a label.
func TestGraphSAGESmall(t *testing.T) {
	for _, c := range []struct{ what, links, want string }{
		{"positions", "", "[0 2 3 3 5] [1 3 0 0 3]"},
		{"texts", `[{"source": "b", "target": "a"}, {"source": "a", "target": "q\""}, {"source": "q\"", "target": "q\""}]`, "[0 2 3 3 5] [1 3 0 0 3]"},
		{"none", `[]`, "[0 0 0 0 0] []"},
	} {
		files := smallSAGE(t)
		if c.links != "" {
			g := files["x-G.json"]
			files["x-G.json"] = g[:strings.Index(g, `"links": `)+9] + c.links + "}"
		}
		d, err := Open(t.Context(), textFolder(t, files), Options{})
		if err != nil {
			t.Fatal(c.what, err)
		}
		s, err := d.Split(0)
		got := fmt.Sprint(d.Graph.Indptr, d.Graph.Indices, labelText(t, d), s, err)
		if got != c.want+"[4 0 -1 2]{[1] [0] [3]} <nil>" {
			t.Errorf("%s: %s", c.what, got)
		}
		if len(d.Warnings) != 1 || !strings.Contains(d.Warnings[0], "1 node says neither") {
			t.Errorf("%s: %q", c.what, d.Warnings)
		}
		d.Close()
	}
}

// TestGraphSAGENumbers: numbers are ids where all of them are, else positions.
func TestGraphSAGENumbers(t *testing.T) {
	for _, c := range []struct{ nodes, links, want string }{
		{"0 1 2", "0,1", "[0 1 2 2] [1 0]"},
		{"2 0 1", "0,1", "[0 0 1 2] [2 1]"},      // rows are the nodes' order
		{"10 20 30", "10,30", "[0 1 1 2] [2 0]"}, // ids
		{"10 20 30", "0,2", "[0 1 1 2] [2 0]"},   // positions
		{"10 20 30", "10,2", "link 0"},
		{"10 20 30", "0,3", "link 0"},
	} {
		var nodes, ends []any
		for _, id := range strings.Fields(c.nodes) {
			nodes = append(nodes, id)
		}
		for _, e := range strings.Split(c.links, ",") {
			ends = append(ends, e)
		}
		g := fmt.Sprintf(`{"directed": false, "nodes": [{"id": %s}, {"id": %s}, {"id": %s}], `, nodes...) + fmt.Sprintf(`"links": [{"source": %s, "target": %s}]}`, ends...)
		d, err := Open(t.Context(), textFolder(t, map[string]string{"x-G.json": g}), Options{})
		if err != nil {
			wantFault(t, c.nodes+" "+c.links, err, "x-G.json", c.want)
			continue
		}
		if got := fmt.Sprint(d.Graph.Indptr, d.Graph.Indices); got != c.want {
			t.Errorf("%s, %s: %s, want %s", c.nodes, c.links, got, c.want)
		}
	}
}

func TestGraphSAGEMalformed(t *testing.T) {
	for _, c := range []struct{ what, file, old, new, says string }{
		{"cut", "x-G.json", `"source": 2}]}`, `"source": 2}`, "cut short"},
		{"no links", "x-G.json", `"links"`, `"lonks"`, "nodes and links"},
		{"links twice", "x-G.json", `"graph": {`, `"edges": [], "graph": {`, "byte"},
		{"link beyond", "x-G.json", `"target": 1`, `"target": 4`, "link 0"},
		{"link negative", "x-G.json", `"target": 1`, `"target": -1`, "link 0"},
		{"link of null", "x-G.json", `"target": 1`, `"target": null`, "link 0"},
		{"link without end", "x-G.json", `"target": 1`, `"torget": 1`, "link 0"},
		{"link mixed", "x-G.json", `"target": 1`, `"target": "a"`, "link 0"},
		{"link mixed later", "x-G.json", `"source": 1, "target": 2`, `"source": "a", "target": "b"`, "link 1"},
		{"link no object", "x-G.json", `{"target": 2, "source": 2}`, `3`, "no object"},
		{"node twice", "x-G.json", `"id": 7`, `"id": "a"`, `"a" is there twice`},
		{"node not in map", "x-G.json", `"id": 7`, `"id": 8`, `"8" is not in the id map`},
		{"node without id", "x-G.json", `"id": 7`, `"val": true`, "node 3"},
		{"node in both", "x-G.json", `"id": 7`, `"id": 7, "val": true, "test": true`, "in val and in test"},
		{"flag of text", "x-G.json", `"id": 7`, `"id": 7, "val": "yes"`, "true or false"},
		{"text after", "x-G.json", `"source": 2}]}`, `"source": 2}]} x`, "byte"},
		{"no training node", "x-G.json", `"id": "b", "val": false`, `"id": "b", "val": true`, "training part is empty"},
		{"row beyond", "x-id_map.json", `"q\"": 3`, `"q\"": 4`, "row 4"},
		{"row twice", "x-id_map.json", `"q\"": 3`, `"q\"": 2`, "row 2 has two ids"},
		{"row of text", "x-id_map.json", `"q\"": 3`, `"q\"": "3"`, "is not a row"},
		{"row huge", "x-id_map.json", `"q\"": 3`, `"q\"": 30000000000`, "is not a row"},
		{"id twice", "x-id_map.json", `"a": 0`, `"a": 0, "a": 1`, "twice"},
		{"class of text", "x-class_map.json", `4`, `"four"`, "is not a class"},
		{"class huge", "x-class_map.json", `4`, `400000000`, "is not a class"},
		{"class half", "x-class_map.json", `4`, `0.5`, "is not a class"},
		{"class of nobody", "x-class_map.json", `"a"`, `"z"`, `"z" is no node`},
		{"class twice", "x-class_map.json", `"b"`, `"a"`, `"a" is there twice`},
		{"list after class", "x-class_map.json", `2`, `[0, 1]`, "has a list"},
		{"class after list", "x-class_map.json", `4`, `[0, 1]`, "has one class"},
		{"lists unlike", "x-class_map.json", `{"a": 4, "b": 0`, `{"a": [1, 0], "b": [1]`, "1 labels"},
		{"label 2", "x-class_map.json", `4`, `[2]`, "label 0 is 2"},
		{"label of text", "x-class_map.json", `4`, `["x"]`, "is not a label"},
		{"no labels", "x-class_map.json", `{"a": 4, "b": 0, "q\"": 2}`, `{}`, "no node has a label"},
		{"features short", "x-feats.npy", string(npyBytes(t, []float32{1, 2, 3, 4}, 4, 1)), string(npyBytes(t, []float32{1, 2, 3}, 3, 1)), "3 rows for 4 nodes"},
	} {
		files := smallSAGE(t)
		if !strings.Contains(files[c.file], c.old) {
			t.Fatal(c.what, "has nothing to change")
		}
		files[c.file] = strings.Replace(files[c.file], c.old, c.new, 1)
		_, err := Open(t.Context(), textFolder(t, files), Options{})
		wantFault(t, c.what, err, c.file, c.says)
	}
}

func TestGraphSAINTPCG(t *testing.T) {
	dir := sharedtest.Path(t, "data/derived/graphsaint-pcg")
	d, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	samePCG(t, d)
}

func TestGraphSAINTMalformed(t *testing.T) {
	good := map[string]string{
		saintGraph: string(archiveBytes(t, 8, map[string][]byte{
			"indptr": npyBytes(t, []int32{0, 1, 2, 2}, 4), "indices": npyBytes(t, []int32{1, 0}, 2), "data": npyBytes(t, []float64{1, 1}, 2), "shape": npyBytes(t, []int64{3, 3}, 2),
		})),
		saintRoles: `{"tr": [0], "va": [1], "te": [2], "x": {}}`, saintClasses: `{"0": 1, "2": 0}`, "feats.npy": string(npyBytes(t, []float32{1, 2, 3}, 3, 1)),
	}
	d, err := Open(t.Context(), textFolder(t, good), Options{})
	if err != nil || labelText(t, d) != "[1 -1 0]" || d.NumEdges != 2 {
		t.Fatalf("%+v, %v", d, err)
	}
	d.Close()
	for _, c := range []struct{ what, file, text, says string }{
		{"role beyond", saintRoles, `{"tr": [3], "va": [1], "te": [2]}`, "tr"},
		{"role of text", saintRoles, `{"tr": ["a"], "va": [1], "te": [2]}`, "is not a node"},
		{"role missing", saintRoles, `{"tr": [0], "va": [1]}`, "tr, va and te"},
		{"role twice", saintRoles, `{"tr": [0], "tr": [1], "va": [], "te": [2]}`, "twice"},
		{"roles overlap", saintRoles, `{"tr": [0], "va": [0], "te": [2]}`, "node 0 is in train and in valid"},
		{"class of nobody", saintClasses, `{"3": 1}`, "is no node"},
		{"features short", "feats.npy", string(npyBytes(t, []float32{1, 2}, 2, 1)), "2 nodes"},
		{"no matrix", saintGraph, string(archiveBytes(t, 8, map[string][]byte{"row": npyBytes(t, []int32{0}, 1)})), "no graph"},
	} {
		files := maps.Clone(good)
		files[c.file] = c.text
		dir := textFolder(t, files)
		_, err := Open(t.Context(), dir, Options{})
		wantFault(t, c.what, err, dir, c.says)
	}
}

// TestReddit writes DGL's pair, as COO and as CSR.
func TestReddit(t *testing.T) {
	data := map[string][]byte{
		"feature": npyBytes(t, []float32{1, 2, 3, 4, 5, 6}, 3, 2), "label": npyBytes(t, []int32{0, 2, 1}, 3),
		"node_types": npyBytes(t, []int64{3, 1, 2}, 3), "node_ids": npyBytes(t, []int64{5, 6, 7}, 3),
	}
	coo := map[string][]byte{"row": npyBytes(t, []int32{0, 1, 1, 2}, 4), "col": npyBytes(t, []int32{1, 0, 2, 1}, 4), "data": npyBytes(t, []int64{1, 1, 1, 1}, 4), "shape": npyBytes(t, []int64{3, 3}, 2)}
	csr := map[string][]byte{"indptr": npyBytes(t, []int32{0, 1, 3, 4}, 4), "indices": npyBytes(t, []int32{1, 0, 2, 1}, 4)}
	pair := func(d, g map[string][]byte) string {
		return textFolder(t, map[string]string{"reddit_data.npz": string(archiveBytes(t, 8, d)), "reddit_graph.npz": string(archiveBytes(t, 8, g))})
	}
	for _, g := range []map[string][]byte{coo, csr} {
		d, err := Open(t.Context(), pair(data, g), Options{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := d.Split(0)
		if got := fmt.Sprint(d.Name, d.Graph.Indptr, d.Graph.Indices, d.Graph.Weights, labelText(t, d), s, err); got != "reddit[0 1 3 4] [1 0 2 1] [][0 2 1]{[1] [2] [0]} <nil>" {
			t.Error(got)
		}
		d.Close()
	}
	for what, c := range map[string]struct {
		of   map[string][]byte
		name string
		to   []byte
		says string
	}{
		"type 4":      {data, "node_types", npyBytes(t, []int64{3, 1, 4}, 3), "node 2 is of type 4"},
		"no training": {data, "node_types", npyBytes(t, []int64{3, 3, 3}, 3), "empty"},
		"types short": {data, "node_types", npyBytes(t, []int64{1}, 1), "shape"},
		"edge beyond": {coo, "col", npyBytes(t, []int32{1, 0, 3, 1}, 4), "edge 2"},
		"cols short":  {coo, "col", npyBytes(t, []int32{1, 0}, 2), "2 entries"},
	} {
		d, g := maps.Clone(data), maps.Clone(coo)
		for _, m := range []map[string][]byte{d, g} {
			if _, ok := m[c.name]; ok {
				m[c.name] = c.to
			}
		}
		dir := pair(d, g)
		_, err := Open(t.Context(), dir, Options{})
		wantFault(t, what, err, dir, c.says)
	}
}

func FuzzNodeLink(f *testing.F) {
	for _, s := range smallSAGE(f) {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := parseNodeLink(t.Context(), "x-G.json", bytes.NewReader(b))
		if err != nil {
			wantFault(t, "fuzz", err, "x-G.json")
			return
		}
		ids := map[string]int32{}
		for i, id := range g.ids {
			ids[id] = int32(i)
		}
		if err := g.place(ids, len(ids), &Dataset{}); err != nil {
			wantFault(t, "fuzz", err, "x-G.json")
			return
		}
		for i, u := range g.edges.Sources {
			if v := g.edges.Targets[i]; u < 0 || v < 0 || int(u) >= len(ids) || int(v) >= len(ids) {
				t.Fatalf("link %d: %d, %d of %d", i, u, v, len(ids))
			}
		}
	})
}

func FuzzClassMap(f *testing.F) {
	for _, s := range []string{`{"0": 4, "1": null}`, `{"0": [0, 1, 1.0], "2": [true, false, 0]}`, `{"0": -1}`, `{"tr": [0], "va": [1], "te": [2]}`, `{"\u0030": [[]]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		const n = 3
		if m, err := parseClassMap(t.Context(), "c.json", bytes.NewReader(b), n, decimal(n)); err != nil {
			wantFault(t, "fuzz", err, "c.json")
		} else if len(m.class) != n && len(m.multi) != n*m.width {
			t.Fatalf("%+v", m)
		}
		if s, err := parseRoles(t.Context(), "r.json", bytes.NewReader(b), n); err != nil {
			wantFault(t, "fuzz", err, "r.json")
		} else if err := s.check(n); err != nil {
			t.Fatal(err)
		}
		if ids, err := parseIDMap(t.Context(), "i.json", bytes.NewReader(b)); err != nil {
			wantFault(t, "fuzz", err, "i.json")
		} else {
			for id, row := range ids {
				if int(row) >= len(ids) {
					t.Fatalf("%q: row %d of %d", id, row, len(ids))
				}
			}
		}
	})
}

// BenchmarkGraphSAGE reads the derived set's JSON, and Reddit's kind with texts
// as ids.
func BenchmarkGraphSAGE(b *testing.B) {
	dir := sharedtest.Path(b, "data/derived/graphsage-pcg")
	read := func(name string) []byte {
		text, err := os.ReadFile(filepath.Join(dir, "pcg-"+name+".json"))
		if err != nil {
			b.Fatal(err)
		}
		return text
	}
	for name, parse := range map[string]func(text []byte) error{
		"G":      func(text []byte) error { _, err := parseNodeLink(b.Context(), "G", bytes.NewReader(text)); return err },
		"id_map": func(text []byte) error { _, err := parseIDMap(b.Context(), "i", bytes.NewReader(text)); return err },
		"class_map": func(text []byte) error {
			_, err := parseClassMap(b.Context(), "c", bytes.NewReader(text), 3233, decimal(3233))
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			text := read(name)
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if err := parse(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
