package main

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// files is a dataset on disk: contents by name.
type files map[string]string

// with returns the set with some files replaced; an empty content takes a file
// away.
func (f files) with(pairs ...string) files {
	g := maps.Clone(f)
	for i := 0; i < len(pairs); i += 2 {
		if g[pairs[i]] = pairs[i+1]; pairs[i+1] == "" {
			delete(g, pairs[i])
		}
	}
	return g
}

// npy makes an array file of a header and raw data.
func npy(descr, shape, data string) string {
	head := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n", descr, shape)
	return "\x93NUMPY\x01\x00" + string([]byte{byte(len(head)), 0}) + head + data
}

// npz packs arrays into one file, deflated.
func npz(t *testing.T, arrays files) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(arrays)) {
		w, err := z.Create(name + ".npy")
		if err != nil {
			t.Fatal(err)
		}
		w.Write([]byte(arrays[name]))
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// gzipped packs a text.
func gzipped(t *testing.T, s string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(s)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// i64 is little-endian int64s.
func i64(v ...int64) string {
	var b []byte
	for _, x := range v {
		for range 8 {
			b = append(b, byte(x))
			x >>= 8
		}
	}
	return string(b)
}

const nan32, one32 = "\x00\x00\xc0\x7f", "\x00\x00\x80\x3f"

// TestBadInput gives the built command sets with one fault each. It must end
// with code 2 and a single line that names the file and the fault, print
// nothing else, and leave nothing behind.
func TestBadInput(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "dataset")
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	list := files{"edges.csv": "0,1\n1,2\n", "features.csv": "1,2\n3,4\n5,6\n", "labels.csv": "0\n1\n0\n", "train_idx.csv": "0\n", "valid_idx.csv": "1\n", "test_idx.csv": "2\n"}
	musae := files{"m_edges.csv": "id_1,id_2\n0,1\n", "m_features.json": `{"0":[1],"1":[0]}`, "m_target.csv": "id,target\n0,a\n1,b\n"}
	text := files{"x.content": "a\t0\t1\tA\nb\t1\t1\tB\n", "x.cites": "a\tb\n"}
	native := files{
		"meta.json":  `{"name":"x","task":"multiclass","num_nodes":2,"num_edges":1,"num_features":1,"num_classes":2}`,
		"indptr.npy": npy("<i8", "(3,)", i64(0, 0, 1)), "indices.npy": npy("<i4", "(1,)", "\x00\x00\x00\x00"),
		"features.npy": npy("<f4", "(2, 1)", one32+one32), "labels.npy": npy("<i8", "(2,)", i64(0, 1)),
	}
	arrays := files{
		"node_features": npy("<f4", "(2, 1)", one32+one32), "node_labels": npy("<i8", "(2,)", i64(0, 1)), "edges": npy("<i8", "(1, 2)", i64(0, 1)),
		"train_masks": npy("|b1", "(1, 2)", "\x01\x00"), "val_masks": npy("|b1", "(1, 2)", "\x00\x01"), "test_masks": npy("|b1", "(1, 2)", "\x00\x00"),
	}
	graph := "\x80\x02}(K\x00]K\x01au."
	planetoid := files{"ind.x.graph": graph, "ind.x.test.index": "1\n", "ind.x.x": "", "ind.x.allx": "\x80\x02N."}
	pack := func(pairs ...string) files { return files{"set.npz": npz(t, arrays.with(pairs...))} }
	good := npz(t, arrays)

	ogb := files{
		"raw/edge.csv": "0,1\n1,2\n", "raw/num-node-list.csv": "3\n", "raw/num-edge-list.csv": "2\n", "raw/node-feat.csv": "1\n2\n3\n", "raw/node-label.csv": "0\n1\n0\n",
		"split/s/train.csv": "0\n", "split/s/valid.csv": "1\n", "split/s/test.csv": "2\n",
	}
	sage := files{"x-G.json": `{"nodes": [{"id": 0}, {"id": 1}], "links": [{"source": 0, "target": 1}]}`, "x-class_map.json": `{"0": 1, "1": 0}`}
	saint := files{
		"adj_full.npz": npz(t, files{"indptr": npy("<i8", "(3,)", i64(0, 1, 2)), "indices": npy("<i8", "(2,)", i64(1, 0))}),
		"role.json":    `{"tr": [0], "va": [1], "te": []}`, "class_map.json": `{"0": 1, "1": 0}`,
	}
	packed := gzipped(t, "0,1\n1,2\n2,0\n0,2\n")

	cases := []struct {
		what string
		set  files
		says []string // the first is the file's name
	}{
		// Edge lists and tables beside them.
		{"edge beyond", list.with("edges.csv", "0,1\n0,3\n"), []string{"edges.csv", "line 2: node 3"}},
		{"edge negative", list.with("edges.csv", "-1,0\n"), []string{"edges.csv", "line 1: node -1"}},
		{"edge cut", list.with("edges.csv", "0,1\n1\n"), []string{"edges.csv", "line 2"}},
		{"edge of text", list.with("edges.csv", "0,1\n1,x\n"), []string{"edges.csv", "line 2"}},
		{"edge half", list.with("edges.csv", "0,1\n1,1.5\n"), []string{"edges.csv", "line 2"}},
		{"edge id overflows", list.with("edges.csv", "0,1\n1,99999999999999999999\n"), []string{"edges.csv", "line 2"}},
		{"weight NaN", list.with("edges.csv", "0,1,1\n1,2,nan\n"), []string{"edges.csv", "line 2: the weight"}},
		{"names as numbers", files{"edges.csv": "0,1\n0,2000000000\n"}, []string{"edges.csv", "2000000000"}},
		{"feature NaN", list.with("features.csv", "1,2\n3,nan\n5,6\n"), []string{"features.csv", "line 2: column 2"}},
		{"feature infinite", list.with("features.csv", "1,2\n3,4\n5,1e60\n"), []string{"features.csv", "line 3: column 2"}},
		{"feature of text", list.with("features.csv", "1,2\n3,4\nx,6\n"), []string{"features.csv", "line 3: column 1"}},
		{"ragged features", list.with("features.csv", "1,2\n3\n5,6\n"), []string{"features.csv", "line 2: 1 columns"}},
		{"rows for other nodes", list.with("labels.csv", "0\n1\n"), []string{"labels.csv", "2 rows"}},
		{"list beyond", list.with("test_idx.csv", "9\n"), []string{"test_idx.csv", "line 1: node 9"}},
		{"lists overlap", list.with("test_idx.csv", "0\n"), []string{"set", "node 0 is in train and in test"}},
		{"train list empty", list.with("train_idx.csv", "\n"), []string{"set", "training part is empty"}},
		{"a list alone", list.with("test_idx.csv", ""), []string{"set", "some parts only"}},

		// MUSAE.
		{"edge beyond", musae.with("m_edges.csv", "id_1,id_2\n0,2\n"), []string{"m_edges.csv", "line 2: node 2"}},
		{"json cut", musae.with("m_features.json", `{"0":[1],"1":[`), []string{"m_features.json", "byte", "cut short"}},
		{"json key twice", musae.with("m_features.json", `{"0":[1],"0":[2]}`), []string{"m_features.json", "duplicate"}},
		{"json node beyond", musae.with("m_features.json", `{"2":[1]}`), []string{"m_features.json", "byte"}},
		{"json feature negative", musae.with("m_features.json", `{"0":[-1]}`), []string{"m_features.json", "-1"}},
		{"json feature huge", musae.with("m_features.json", `{"0":[4000000000]}`), []string{"m_features.json", "feature number"}},
		{"json nested", musae.with("m_features.json", strings.Repeat(`{"0":`, 100_000)), []string{"m_features.json"}},
		{"target id twice", musae.with("m_target.csv", "id,target\n0,a\n0,b\n"), []string{"m_target.csv", "line 3"}},
		{"target quote open", musae.with("m_target.csv", "id,target\n0,\"a\n1,b\n"), []string{"m_target.csv", "line"}},
		{"target without labels", musae.with("m_target.csv", "id,other\n0,a\n1,b\n"), []string{"m_target.csv", "columns"}},

		// LINQS text.
		{"row short", text.with("x.content", "a\t0\t1\tA\nb\t1\tB\n"), []string{"x.content", "line 2"}},
		{"paper twice", text.with("x.content", "a\t0\tA\na\t1\tB\n"), []string{"x.content", "line 2"}},
		{"word NaN", text.with("x.content", "a\tnan\tA\n"), []string{"x.content", "line 1"}},
		{"cite cut", text.with("x.cites", "a\n"), []string{"x.cites", "line 1"}},
		{"zip cut", files{"c.zip": good[:len(good)-9]}, []string{"c.zip", "cut short"}},

		// The native folder.
		{"meta cut", native.with("meta.json", `{"name":"x"`), []string{"meta.json"}},
		{"meta key twice", native.with("meta.json", `{"name":"x","name":"y"}`), []string{"meta.json", "duplicate"}},
		{"meta task", native.with("meta.json", `{"task":"guess"}`), []string{"meta.json", "task"}},
		{"meta hash", native.with("meta.json", `{"name":"x","task":"multiclass","num_nodes":2,"num_edges":1,"num_features":1,"num_classes":2,"meta_hash":"00"}`), []string{"meta.json", "hash"}},
		{"nodes overflow", native.with("meta.json", `{"name":"x","task":"multiclass","num_nodes":9999999999,"num_edges":1}`), []string{"meta.json", "num_nodes"}},
		{"offsets for other nodes", native.with("indptr.npy", npy("<i8", "(2,)", i64(0, 1))), []string{"indptr.npy", "shape"}},
		{"offsets fall", native.with("indptr.npy", npy("<i8", "(3,)", i64(0, 2, 1))), []string{"graph", "offsets of node"}},
		{"id beyond", native.with("indices.npy", npy("<i4", "(1,)", "\x02\x00\x00\x00")), []string{"graph", "node 2"}},
		{"id negative", native.with("indices.npy", npy("<i4", "(1,)", "\xff\xff\xff\xff")), []string{"graph", "node -1"}},
		{"edges missing", native.with("indices.npy", ""), []string{"indices.npy", "missing"}},
		{"feature NaN", native.with("features.npy", npy("<f4", "(2, 1)", one32+nan32)), []string{"features.npy", "row 1, column 0"}},
		{"features for other nodes", native.with("features.npy", npy("<f4", "(1, 1)", one32)), []string{"features.npy", "shape"}},
		{"features cut", native.with("features.npy", npy("<f4", "(2, 1)", one32)), []string{"features.npy", "byte 10", "cut short"}},
		{"no features", native.with("features.npy", "not an array"), []string{"features.npy", "byte 0"}},
		{"half a split", native.with("train_idx.npy", npy("<i8", "(1,)", i64(0))), []string{"valid_idx.npy", "missing"}},

		// npz bundles.
		{"npz cut", files{"set.npz": good[:len(good)/2]}, []string{"set.npz", "cut short"}},
		{"npz damaged", files{"set.npz": strings.ReplaceAll(good, "edges.npy", "edge\x00.npy")}, []string{"set.npz"}},
		{"edge beyond", pack("edges", npy("<i8", "(1, 2)", i64(0, 2))), []string{"set.npz: edges.npy", "node 2"}},
		{"edge wide", pack("edges", npy("<i8", "(1, 2)", i64(0, 1<<32))), []string{"set.npz: edges.npy", "4294967296"}},
		{"labels for other nodes", pack("node_labels", npy("<i8", "(3,)", i64(0, 1, 0))), []string{"set.npz: node_labels.npy", "3 nodes"}},
		{"class -2", pack("node_labels", npy("<i8", "(2,)", i64(0, -2))), []string{"set.npz: node_labels.npy", "class -2"}},
		{"class beyond its names", pack("class_names", npy("|S1", "(1,)", "a")), []string{"set.npz: node_labels.npy", "class 1"}},
		{"mask short", pack("test_masks", npy("|b1", "(1, 1)", "\x00")), []string{"set.npz: test_masks.npy", "(1, 1)"}},
		{"train mask empty", pack("train_masks", npy("|b1", "(1, 2)", "\x00\x00")), []string{"set.npz", "empty"}},
		{"objects", pack("node_labels", npy("|O", "(2,)", "")), []string{"set.npz: node_labels.npy", "objects"}},
		{"shape overflows", pack("edges", npy("<i8", "(4611686018427387904, 4)", "")), []string{"set.npz: edges.npy", "byte 10"}},
		{"shape negative", pack("edges", npy("<i8", "(-1, 2)", "")), []string{"set.npz: edges.npy", "byte 10"}},
		{"shape lies", pack("edges", npy("<i8", "(1000000000, 2)", "")), []string{"set.npz: edges.npy", "byte 10"}},
		{"header endless", pack("edges", "\x93NUMPY\x02\x00\xff\xff\xff\xff"), []string{"set.npz: edges.npy", "byte 8"}},
		{"bomb", pack("node_features", npy("<f4", "(2, 400000000)", "")), []string{"set.npz: node_features.npy"}},

		// Planetoid pickles.
		{"pickle calls os.system", planetoid.with("ind.x.allx", "\x80\x02cos\nsystem\nU\x04true\x85R."), []string{"ind.x.allx", "byte 2", "refused"}},
		{"pickle asks for 2 GiB", planetoid.with("ind.x.allx", "\x80\x02T\xff\xff\xff\x7fabc."), []string{"ind.x.allx", "byte 2"}},
		{"pickle cut", planetoid.with("ind.x.allx", "\x80\x02(K\x01"), []string{"ind.x.allx", "byte", "cut short"}},
		{"pickle of nothing", planetoid, []string{"ind.x.allx", "csr_matrix"}},
		{"pickle missing", planetoid.with("ind.x.allx", ""), []string{"ind.x.allx", "missing"}},
		{"test index of text", planetoid.with("ind.x.test.index", "x\n"), []string{"ind.x.test.index", "line 1"}},

		// Packed text.
		{"gzip cut", list.with("edges.csv", "", "edges.csv.gz", packed[:len(packed)-6]), []string{"edges.csv.gz", "cut short"}},
		{"gzip damaged", list.with("edges.csv", "", "edges.csv.gz", packed[:12]+"\xff\xff"+packed[14:]), []string{"edges.csv.gz", "damaged"}},

		// OGB.
		{"edges cut", ogb.with("raw/edge.csv", "0,1\n"), []string{"edge.csv", "1 edges", "says 2"}},
		{"edge beyond", ogb.with("raw/edge.csv", "0,1\n0,3\n"), []string{"edge.csv", "line 2: node 3"}},
		{"features for other nodes", ogb.with("raw/node-feat.csv", "1\n"), []string{"node-feat.csv", "1 rows of features for 3 nodes"}},
		{"counts huge", ogb.with("raw/num-node-list.csv", "99999999999\n"), []string{"raw", "99999999999 nodes"}},
		{"split overlaps", ogb.with("split/s/test.csv", "0\n"), []string{"split/s", "node 0 is in train and in test"}},

		// GraphSAGE and GraphSAINT.
		{"json cut", sage.with("x-G.json", `{"nodes": [{"id": 0}`), []string{"x-G.json", "byte", "cut short"}},
		{"link beyond", sage.with("x-G.json", `{"nodes": [{"id": 0}], "links": [{"source": 0, "target": 5}]}`), []string{"x-G.json", "link 0"}},
		{"class of text", sage.with("x-class_map.json", `{"0": "a"}`), []string{"x-class_map.json", "byte", "is not a class"}},
		{"row beyond", sage.with("x-id_map.json", `{"0": 0, "1": 7}`), []string{"x-id_map.json", "row 7"}},
		{"roles overlap", saint.with("role.json", `{"tr": [0], "va": [0], "te": []}`), []string{"role.json", "node 0 is in train and in valid"}},
		{"class of nobody", saint.with("class_map.json", `{"5": 1}`), []string{"class_map.json", "is no node"}},

		// MATLAB, Matrix Market, PyTorch, GraphBolt.
		{"mat cut", files{"x.mat": "MATLAB 5.0 MAT-file"}, []string{"x.mat", "byte 19", "cut short"}},
		{"mat 7.3", files{"x.mat": "MATLAB 7.3 MAT-file" + strings.Repeat(" ", 200)}, []string{"x.mat", "-v7"}},
		{"split no archive", list.with("train_idx.csv", "", "valid_idx.csv", "", "test_idx.csv", "", "split_0.pt", "x"), []string{"split_0.pt", "cut short"}},
		{"bolt path", files{"metadata.yaml": "graph:\n  nodes: [{num: 2}]\n  edges: [{format: csv, path: ../e.csv}]\n"}, []string{"metadata.yaml", "out of the folder"}},
		{"bolt no yaml", files{"metadata.yaml": "graph: [\n"}, []string{"metadata.yaml", "line"}},

		// Nothing known.
		{"empty folder", files{}, []string{"set", "no known format"}},
		{"other files", files{"readme.md": "hello"}, []string{"set", "no known format"}},
	}
	for _, c := range cases {
		t.Run(strings.ReplaceAll(c.says[0]+" "+c.what, "/", "_"), func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			in := filepath.Join(root, "set")
			if err := os.Mkdir(in, 0o755); err != nil {
				t.Fatal(err)
			}
			for name, content := range c.set {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(in, name)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(in, name), []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			var stdout, stderr bytes.Buffer
			cmd := exec.Command(bin, "convert", "-dataset", in, "-out", filepath.Join(root, "out"), "-workers", "1")
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			err := cmd.Run()
			exit, ok := errors.AsType[*exec.ExitError](err)
			if !ok || exit.ExitCode() != 2 || stdout.Len() > 0 {
				t.Errorf("ended with %v, want code 2; printed %q", err, stdout.String())
			}
			line, rest, _ := strings.Cut(stderr.String(), "\n")
			if rest != "" {
				t.Errorf("more than a line: %q", stderr.String())
			}
			for _, s := range c.says {
				if !strings.Contains(line, s) {
					t.Errorf("%q does not say %q", line, s)
				}
			}
			left, err := os.ReadDir(root)
			if err != nil || len(left) != 1 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
	if len(cases) < 80 {
		t.Errorf("%d cases", len(cases))
	}
}
