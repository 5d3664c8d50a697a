package datasets

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"zerogcn/internal/sharedtest"
)

func TestFacebook100(t *testing.T) {
	for _, c := range []struct {
		name                   string
		nodes, unlabelled, dim int
		edges                  int64
		homophily              float64
		classes                [2]int
		firstNonzeros          int
	}{
		// The numbers of features are those of LINKX's paper, table 5.
		{"Reed98", 962, 97, 745, 18812, 0.52, [2]int{504, 361}, 6},
		{"Amherst41", 2235, 203, 1193, 90954, 0.53, [2]int{1015, 1017}, 6},
	} {
		d, err := Open(t.Context(), filepath.Join(sharedtest.Path(t, "data/linkx-facebook100"), c.name+".mat"), Options{})
		if err != nil {
			t.Error(err)
			continue
		}
		if d.Name != c.name || d.NumNodes != c.nodes || d.NumEdges != 2*c.edges || d.NumFeatures != c.dim || d.NumClasses != 2 {
			t.Errorf("%+v", d.Meta)
		}
		r, err := Inspect(t.Context(), d, 0)
		if err != nil {
			t.Fatal(err)
		}
		if c.nodes-r.Labels.Labelled != c.unlabelled || !slices.Equal(r.Labels.Counts, c.classes[:]) || !r.Graph.Symmetric {
			t.Errorf("%+v, %+v", r.Labels, r.Graph)
		}
		if h := *r.Graph.Homophily; math.Abs(h-c.homophily) > 0.005 {
			t.Errorf("homophily %.3f", h)
		}
		if cols, _ := d.Features.Sparse().Row(0); len(cols) != c.firstNonzeros {
			t.Errorf("row 0 has %d ones", len(cols))
		}
	}
}

// matFile writes variables of class double, little-endian, values as doubles.
type matFile struct{ bytes.Buffer }

func newMATFile() *matFile {
	f := &matFile{}
	f.WriteString(fmt.Sprintf("%-124s\x00\x01IM", "MATLAB 5.0 MAT-file, made by a test"))
	return f
}

func (f *matFile) element(kind uint32, body any) []byte {
	var b, d bytes.Buffer
	binary.Write(&d, binary.LittleEndian, body)
	binary.Write(&b, binary.LittleEndian, []uint32{kind, uint32(d.Len())})
	b.Write(d.Bytes())
	b.Write(make([]byte, -d.Len()&7))
	return b.Bytes()
}

func (f *matFile) variable(class uint32, name string, rows, cols int32, parts ...[]byte) *matFile {
	head := [][]byte{f.element(6, []uint32{class, 0}), f.element(5, []int32{rows, cols}), f.element(1, []byte(name))}
	f.Write(f.element(14, slices.Concat(append(head, parts...)...)))
	return f
}

// dense adds a column-major array.
func (f *matFile) dense(name string, rows, cols int32, v ...float64) *matFile {
	return f.variable(6, name, rows, cols, f.element(9, v))
}

func (f *matFile) sparse(name string, rows, cols int32, ir, jc []int32, v ...float64) *matFile {
	return f.variable(5, name, rows, cols, f.element(5, ir), f.element(5, jc), f.element(9, v))
}

// square adds the edges 0 → 1 and 2 → 0 of three nodes.
func (f *matFile) square(name string) *matFile {
	return f.sparse(name, 3, 3, []int32{2, 0}, []int32{0, 1, 2, 2}, 1, 1)
}

func TestMATLABLayouts(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		what string
		file *matFile
		want string // graph, weights, features, labels or label sets
	}{
		{"facebook100", newMATFile().square("A").dense("local_info", 3, 3, 5, 7, 5, 2, 0, 1, 9, 9, 8),
			"[0 1 2 2] [2 0] [] [1 0 0 1 0 1 0 1 1 0 1 0][1 -1 0]"},
		{"pairs", newMATFile().dense("edge_index", 2, 2, 0, 1, 2, 0).dense("node_feat", 3, 2, 1, 2, 3, 4, 5, 6).dense("label", 3, 1, 0, -1, 2),
			"[0 1 2 2] [2 0] [] [1 4 2 5 3 6][0 -1 2]"},
		{"columns of ends", newMATFile().dense("edge_index", 3, 2, 0, 2, 2, 1, 0, 0).dense("label", 1, 3, 1, 2, nan),
			"[0 1 2 2] [2 0] [] [][0 1 -1]"},
		{"sparse features, label sets", newMATFile().sparse("network", 3, 3, []int32{2, 0}, []int32{0, 1, 2, 2}, 2, 1).
			sparse("attrb", 3, 2, []int32{0, 2, 1}, []int32{0, 2, 3}, 1, 2, 3).sparse("group", 3, 2, []int32{0, 2, 2}, []int32{0, 2, 3}, 1, 1, 1),
			"[0 1 2 2] [2 0] [2 1] [1 0 0 3 2 0] sets [1 0 0 0 1 1]"},
	} {
		path := filepath.Join(t.TempDir(), "x.mat")
		write(t, path, c.file.Bytes())
		d, err := Open(t.Context(), path, Options{})
		if err != nil {
			t.Error(c.what, err)
			continue
		}
		x := make([]float32, d.NumNodes*d.NumFeatures)
		if err := d.Features.Float32Rows(t.Context(), 0, d.NumNodes, x); err != nil {
			t.Error(c.what, err)
		}
		got := fmt.Sprint(d.Graph.Indptr, d.Graph.Indices, d.Graph.Weights, x)
		if d.Labels.HasMulti() {
			multi := make([]uint8, d.NumNodes*d.NumClasses)
			if err := d.Labels.Multi(multi, nil); err != nil {
				t.Error(c.what, err)
			}
			got += fmt.Sprint(" sets ", multi)
		} else {
			got += labelText(t, d)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
}

func TestMATLABMalformed(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		what string
		file *matFile
		says string
	}{
		{"no graph", newMATFile().dense("x", 1, 1, 1), "want edge_index"},
		{"not square", newMATFile().sparse("A", 3, 2, []int32{2}, []int32{0, 1, 1}, 1), "variable A"},
		{"dense graph", newMATFile().dense("A", 1, 1, 1), "variable A"},
		{"weight NaN", newMATFile().sparse("A", 1, 1, []int32{0}, []int32{0, 1}, nan), "row 0, column 0"},
		{"weight beyond float32", newMATFile().sparse("A", 1, 1, []int32{0}, []int32{0, 1}, 1e300), "row 0, column 0"},
		{"edge beyond", newMATFile().dense("edge_index", 2, 1, 0, 3).dense("label", 3, 1, 0, 1, 1), "edge 0"},
		{"edge half", newMATFile().dense("edge_index", 2, 1, 0, 0.5), "edge 0"},
		{"edge negative", newMATFile().dense("edge_index", 2, 1, 0, -1), "edge 0"},
		{"edge NaN", newMATFile().dense("edge_index", 2, 1, 0, nan), "edge 0"},
		{"names as numbers", newMATFile().dense("edge_index", 2, 1, 0, 2e9), "2000000000"},
		{"rows claimed", newMATFile().dense("edge_index", 2, 1, 0, 1).sparse("node_feat", 2e9, 1, []int32{0}, []int32{0, 1}, 1), "2000000000 rows"},
		{"rows of nothing", newMATFile().dense("edge_index", 2, 1, 0, 1).dense("node_feat", 2e9, 0), "2000000000 rows"},
		{"feature infinite", newMATFile().square("A").dense("features", 3, 1, 1, 2, inf), "row 2, column 0"},
		{"features short", newMATFile().square("A").dense("features", 2, 1, 1, 2), "variable features"},
		{"sparse feature twice", newMATFile().square("A").sparse("features", 3, 1, []int32{1, 1}, []int32{0, 2}, 1, 1), "twice"},
		{"labels short", newMATFile().square("A").dense("label", 2, 1, 1, 2), "variable label"},
		{"label half", newMATFile().square("A").dense("label", 3, 1, 1, 2, 0.5), "node 2"},
		{"label infinite", newMATFile().square("A").dense("label", 3, 1, 1, 2, inf), "node 2"},
		{"label sets of 2", newMATFile().square("A").dense("label", 3, 2, 1, 0, 1, 0, 2, 1), "row 1, column 1"},
		{"label sets for all", newMATFile().square("A").sparse("group", 3, 1<<20, []int32{}, make([]int32, 1<<20+1)), "too many"},
		{"info short", newMATFile().square("A").dense("local_info", 2, 2, 1, 2, 1, 2), "local_info"},
		{"info NaN", newMATFile().square("A").dense("local_info", 3, 2, 1, nan, 3, 1, 1, 1), "row 1, column 0"},
		{"gender -1", newMATFile().square("A").dense("local_info", 3, 2, 1, 2, 3, 1, 1, -1), "row 2, column 1"},
	} {
		path := filepath.Join(t.TempDir(), "x.mat")
		write(t, path, c.file.Bytes())
		_, err := Open(t.Context(), path, Options{})
		wantFault(t, c.what, err, path, c.says)
	}
	// A file of version 7.3 is known by name.
	path := filepath.Join(t.TempDir(), "x.mat")
	write(t, path, append([]byte("MATLAB 7.3 MAT-file"), make([]byte, 500)...))
	_, err := Open(t.Context(), path, Options{})
	wantFault(t, "version 7.3", err, path, "-v7")
	// A folder of two says so.
	_, err = Open(t.Context(), sharedtest.Path(t, "data/linkx-facebook100"), Options{})
	wantFault(t, "two files", err, "holds 2 .mat files")
}

func FuzzMATLAB(f *testing.F) {
	f.Add(newMATFile().square("A").dense("local_info", 3, 3, 5, 7, 5, 2, 0, 1, 9, 9, 8).Bytes())
	f.Add(newMATFile().dense("edge_index", 2, 2, 0, 1, 2, 0).dense("node_feat", 3, 2, 1, 2, 3, 4, 5, 6).dense("label", 3, 1, 0, -1, 2).Bytes())
	f.Add(newMATFile().square("network").sparse("attrb", 3, 2, []int32{0, 2, 1}, []int32{0, 2, 3}, 1, 2, 3).sparse("group", 3, 2, []int32{0, 2, 2}, []int32{0, 2, 3}, 1, 1, 1).Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := readMATLAB(t.Context(), "x.mat", b, Options{Workers: 1})
		if err != nil {
			wantFault(t, "fuzz", err, "x.mat")
			return
		}
		if err := x.d.Graph.Validate(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if x.d.Features != nil && x.d.Features.Sparse() != nil {
			if err := x.d.Features.Sparse().Validate(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
