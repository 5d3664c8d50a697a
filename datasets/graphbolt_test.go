package datasets

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const smallBolt = `dataset_name: mine
graph:
  nodes:
    - num: 3
  edges:
    - format: csv
      path: edges/e.csv
feature_data:
  - {domain: node, type: null, name: extra, format: numpy, in_memory: true, path: data/x.npy}
  - {domain: node, name: feat, format: numpy, path: data/feat.npy}
  - {domain: edge, name: feat, format: numpy, path: data/none.npy}
tasks:
  - name: node_classification
    num_classes: 4
    train_set:
      - type: null
        data: [{name: seeds, format: numpy, path: set/train.npy}, {name: labels, format: torch, path: set/train_labels.pt}]
    validation_set:
      - data: [{name: seed_nodes, format: numpy, path: set/valid.npy}, {name: labels, format: numpy, path: set/valid_labels.npy}]
    test_set:
      - data: [{name: seeds, format: numpy, path: set/test.npy}]
`

func boltFiles(t testing.TB) map[string]string {
	return map[string]string{
		boltMeta: smallBolt, "edges/e.csv": "0,1\n2,0\n2,0\n", "edges/e.npy": string(npyBytes(t, []int64{0, 2, 1, 0}, 2, 2)),
		"data/feat.npy": string(npyBytes(t, []float32{1, 2, 3}, 3, 1)), "set/train.npy": string(npyBytes(t, []int64{2, 0}, 2)),
		"set/train_labels.pt": torchTensor(t, 3, 1), "set/valid.npy": string(npyBytes(t, []int32{1}, 1)),
		"set/valid_labels.npy": string(npyBytes(t, []int64{-1}, 1)), "set/test.npy": string(npyBytes(t, []int32{}, 0)),
		"set/pairs.npy": string(npyBytes(t, []int32{0, 1, 2, 0}, 2, 2)),
	}
}

// torchTensor is a .pt file of one int64 tensor.
func torchTensor(t testing.TB, v ...int64) string {
	return torchArchive(t, func(tensor func(kind string, data []byte, n int) string) string {
		return tensor("LongStorage", int64s(v...), len(v))
	})
}

func boltFolder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, s := range files {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, p, []byte(s))
	}
	return dir
}

func TestGraphBolt(t *testing.T) {
	files := boltFiles(t)
	for _, edges := range []string{"{format: csv, path: edges/e.csv}", "{format: numpy, path: edges/e.npy}"} {
		files[boltMeta] = strings.Replace(smallBolt, "- format: csv\n      path: edges/e.csv", "- "+edges, 1)
		d, err := Open(t.Context(), boltFolder(t, files), Options{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := d.Split(0)
		got := fmt.Sprint(d.Graph.Indptr, d.Graph.Indices, labelText(t, d), d.NumClasses, d.NumFeatures, s, err)
		if got != "[0 1 2 2] [2 0][1 -1 3]4 1 {[0 2] [1] []} <nil>" {
			t.Error(got)
		}
		if fmt.Sprint(d.Warnings) != "[the node feature extra is not read, feat is]" {
			t.Errorf("%q", d.Warnings)
		}
		d.Close()
	}
	// Pairs are a link set.
	files[boltMeta] = smallBolt[:strings.Index(smallBolt, "tasks:")] + "tasks:\n  - train_set:\n      - data: [{name: seeds, format: numpy, path: set/pairs.npy}]\n"
	d, err := Open(t.Context(), boltFolder(t, files), Options{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := d.EdgeSets()
	if err != nil || d.Task != Link || fmt.Sprint(e.Train) != "{[0 2] [1 0]}" {
		t.Errorf("%+v, %v", e, err)
	}
	d.Close()
}

func TestGraphBoltMalformed(t *testing.T) {
	for _, c := range []struct{ what, file, old, new, says string }{
		{"no yaml", boltMeta, "nodes:", "nodes: [", boltMeta},
		{"two kinds of nodes", boltMeta, "    - num: 3\n", "    - num: 3\n    - num: 4\n", "2 types of nodes"},
		{"too many nodes", boltMeta, "num: 3", "num: 9999999999", "9999999999 nodes"},
		{"other number of nodes", boltMeta, "num: 3", "num: 4", "feat.npy"},
		{"path out of the folder", boltMeta, "data/feat.npy", "../feat.npy", "out of the folder"},
		{"path from the root", boltMeta, "edges/e.csv", "/etc/hosts", "out of the folder"},
		{"edges of a format", boltMeta, "format: csv", "format: parquet", `"parquet"`},
		{"array of a format", boltMeta, "name: feat, format: numpy, path: data/feat", "name: feat, format: hdf5, path: data/feat", `"hdf5"`},
		{"no seeds", boltMeta, "{name: seeds, format: numpy, path: set/train.npy}, ", "", "without seeds"},
		{"class beyond", boltMeta, "num_classes: 4", "num_classes: 3", "class 3"},
		{"edge beyond", "edges/e.csv", "0,1", "0,3", "line 1: node 3"},
		{"seed beyond", "set/train.npy", string(npyBytes(t, []int64{2, 0}, 2)), string(npyBytes(t, []int64{2, 3}, 2)), "element 1 is node 3"},
		{"labels short", "set/valid_labels.npy", string(npyBytes(t, []int64{-1}, 1)), string(npyBytes(t, []int64{}, 0)), "0 labels for 1 seeds"},
		{"overlap", "set/valid.npy", string(npyBytes(t, []int32{1}, 1)), string(npyBytes(t, []int32{0}, 1)), "node 0 is in train and in valid"},
	} {
		files := maps.Clone(boltFiles(t))
		if !strings.Contains(files[c.file], c.old) {
			t.Fatal(c.what, "has nothing to change")
		}
		files[c.file] = strings.Replace(files[c.file], c.old, c.new, 1)
		dir := boltFolder(t, files)
		_, err := Open(t.Context(), dir, Options{})
		wantFault(t, c.what, err, dir, c.says)
	}
	// A number of nodes alone asks for no memory.
	dir := boltFolder(t, map[string]string{boltMeta: "graph:\n  nodes: [{num: 2000000000}]\n  edges: [{format: csv, path: e.csv}]\n", "e.csv": "0,1\n"})
	_, err := Open(t.Context(), dir, Options{})
	wantFault(t, "nodes alone", err, boltMeta, "2000000000 nodes")
}

func FuzzGraphBolt(f *testing.F) {
	f.Add([]byte(smallBolt))
	f.Add([]byte("graph: &a\n  nodes: [{num: 2}]\n  edges: [{format: csv, path: edges/e.csv}]\ntasks: [*a]\n"))
	files := boltFiles(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		s := &Source{Path: "set", Dir: true, Names: []string{boltMeta}}
		x := &boltSet{s: s}
		if err := x.parse(b); err != nil {
			wantFault(t, "fuzz", err, boltMeta)
			return
		}
		if len(b) > 1<<12 {
			return
		}
		mine := maps.Clone(files)
		mine[boltMeta] = string(b)
		d, err := Open(t.Context(), boltFolder(t, mine), Options{Format: "graphbolt", Workers: 1})
		if err != nil {
			wantFault(t, "fuzz", err)
			return
		}
		d.Close()
	})
}
