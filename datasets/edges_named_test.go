package datasets

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"
)

func TestNamedEdges(t *testing.T) {
	for _, c := range []struct{ what, format, text, want string }{
		{"names", "", "source,target\r\nbob,alice\r\n\"carol\",bob\r\nbob,alice\r\n", "[0 1 2 2] [1 2] [] []"},
		{"tabs and weights", "", "# a comment\nb\ta b\t0.5\na b\tc\t2\n", "[0 1 1 2] [1 0] [0.5 2] []"},
		{"numbers far apart", "named-edges", "7 2000000000\n2000000000 5\n", "[0 1 1 2] [2 1] [] [5 7 2000000000]"},
		{"a number below 0", "named-edges", "7 9\n9 -5\n", "[0 1 1 2] [2 1] [] []"},
		{"beyond int64", "", "112188647432305746617\t7\n7\t10\n", "[0 1 1 2] [2 1] [] []"}, // by bytes: 10, 112…, 7
		{"two ways to write 7", "named-edges", "7,07\n07,8\n", "[0 1 1 2] [1 0] [] []"},
	} {
		path := filepath.Join(t.TempDir(), "x.txt")
		write(t, path, []byte(c.text))
		d, err := Open(t.Context(), path, Options{Format: c.format})
		if err != nil {
			t.Error(c.what, err)
			continue
		}
		if got := fmt.Sprint(d.Graph.Indptr, d.Graph.Indices, d.Graph.Weights, d.NodeIDs); got != c.want || d.Source != "edge list of names" {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
		if err := Verify(t.Context(), d, 0); err != nil {
			t.Error(c.what, err)
		}
	}
}

func TestNamedEdgesMalformed(t *testing.T) {
	for _, c := range []struct{ what, text, says string }{
		{"one id", "a,b\nc\n", "line 2: 1 columns"},
		{"four", "a,b\nc,d,1,2\n", "line 2: 4 columns"},
		{"weight in some", "a,b\nc,d,1\n", "line 2: 3 columns"},
		{"weight of text", "a,b,1\nc,d,x\n", "line 2: the weight"},
		{"weight infinite", "a,b,1\nc,d,inf\n", "line 2: the weight"},
		{"empty id", "a,b\n,d\n", "line 2: column 1"},
		{"nothing", "# only this\n", "no edges"},
	} {
		path := filepath.Join(t.TempDir(), "x.csv")
		write(t, path, []byte(c.text))
		_, err := Open(t.Context(), path, Options{Format: "named-edges"})
		wantFault(t, c.what, err, path, c.says)
	}
}

func FuzzNamedEdges(f *testing.F) {
	f.Add([]byte("source,target\nbob,alice\ncarol,bob\n"))
	f.Add([]byte("7 2000000000 1\n2000000000 -5 2e1\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := parseNamedEdges(t.Context(), "x.txt", bytes.NewReader(b))
		if err != nil {
			wantFault(t, "fuzz", err, "x.txt")
			return
		}
		seen := make([]bool, l.nodes)
		for i, u := range l.edges.Sources {
			seen[u], seen[l.edges.Targets[i]] = true, true
		}
		for v, ok := range seen {
			if !ok || v > 0 && l.numbers != nil && l.numbers[v-1] >= l.numbers[v] {
				t.Fatalf("node %d: %v", v, l.numbers)
			}
		}
	})
}
