package datasets

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"
)

func TestMatrixMarket(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"%%MatrixMarket matrix coordinate pattern general\n% a comment\n\n3 3 3\n1 2\n3 1\n1 2\n", "[0 1 2 2] [2 0] []"},
		{"%%MatrixMarket MATRIX Coordinate Real Symmetric\r\n3 3 2\r\n2 1 0.5\r\n3 3 -2e0\r\n", "[0 1 2 3] [1 0 2] [0.5 0.5 -2]"},
		{"%%MatrixMarket matrix coordinate integer general\n2 2 1\n1\t2   7\n", "[0 0 1] [0] [7]"},
		{"%%MatrixMarket matrix coordinate pattern general\n2 2 0\n", "[0 0 0] [] []"},
	} {
		path := filepath.Join(t.TempDir(), "x.mtx.gz")
		write(t, path, packed(t, []byte(c.text), ".gz"))
		d, err := Open(t.Context(), path, Options{})
		if err != nil {
			t.Error(err)
			continue
		}
		if got := fmt.Sprint(d.Graph.Indptr, d.Graph.Indices, d.Graph.Weights); got != c.want || d.Name != "x" || d.Source != "Matrix Market" {
			t.Errorf("%s: %s, want %s", d.Name, got, c.want)
		}
	}
}

func TestMatrixMarketMalformed(t *testing.T) {
	head := "%%MatrixMarket matrix coordinate real general\n"
	for _, c := range []struct{ what, text, says string }{
		{"banner short", "%%MatrixMarket matrix\n1 1 0\n", "line 1"},
		{"dense", "%%MatrixMarket matrix array real general\n1 1\n1\n", `"array"`},
		{"complex", "%%MatrixMarket matrix coordinate complex general\n1 1 0\n", `"complex"`},
		{"skew", "%%MatrixMarket matrix coordinate real skew-symmetric\n1 1 0\n", `"skew-symmetric"`},
		{"no size", head, "0 entries"},
		{"not square", head + "2 3 0\n", "line 2"},
		{"size cut", head + "2 2\n", "line 2"},
		{"size huge", head + "9999999999 9999999999 0\n", "line 2"},
		{"nothing in it", head + "2000000000 2000000000 1\n1 1 1\n", "too few"},
		{"row 0", head + "2 2 1\n0 1 1\n", "line 3"},
		{"row beyond", head + "2 2 1\n1 3 1\n", "line 3"},
		{"entry cut", head + "2 2 1\n1\n", "line 3"},
		{"entry of text", head + "2 2 1\n1 x 1\n", "line 3"},
		{"no value", head + "2 2 1\n1 2\n", "line 3: the value"},
		{"value NaN", head + "2 2 1\n1 2 nan\n", "line 3: the value"},
		{"entries cut", head + "2 2 3\n1 2 1\n", "1 entries, and the size says 3"},
		{"entries too many", head + "2 2 1\n1 2 1\n1 2 1\n", "2 entries, and the size says 1"},
	} {
		path := filepath.Join(t.TempDir(), "x.mtx")
		write(t, path, []byte(c.text))
		_, err := Open(t.Context(), path, Options{})
		wantFault(t, c.what, err, path, c.says)
	}
}

func FuzzMatrixMarket(f *testing.F) {
	f.Add([]byte("%%MatrixMarket matrix coordinate real symmetric\n%\n3 3 2\n2 1 0.5\n3 3 -2e0\n"))
	f.Add([]byte("%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parseMatrixMarket(t.Context(), "x.mtx", bytes.NewReader(b))
		if err != nil {
			wantFault(t, "fuzz", err, "x.mtx")
			return
		}
		for i, u := range m.edges.Sources {
			if v := m.edges.Targets[i]; u < 0 || v < 0 || int(u) >= m.nodes || int(v) >= m.nodes {
				t.Fatalf("edge %d: %d, %d of %d", i, u, v, m.nodes)
			}
		}
	})
}
