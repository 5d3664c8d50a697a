package datasets

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"zerogcn/internal/sharedtest"
	"zerogcn/internal/usage"
)

// copyFolder copies the files of a folder to a fresh one, so that a test can
// damage them.
func copyFolder(t testing.TB, from string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	filepath.WalkDir(to, func(p string, e fs.DirEntry, err error) error { return os.Chmod(p, 0o755) })
	return to
}

// wantFault checks that err is one line, marked as the user's, and names what
// is given.
func wantFault(t testing.TB, what string, err error, names ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", what)
		return
	}
	if !usage.Is(err) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%s: want one line of the user's, got %q (usage %v)", what, err, usage.Is(err))
	}
	for _, n := range names {
		if !strings.Contains(err.Error(), n) {
			t.Errorf("%s: %q does not name %q", what, err, n)
		}
	}
}

func TestPlanetoidCounts(t *testing.T) {
	for _, c := range []struct {
		name                                string
		nodes                               int
		edges                               int64
		dim, classes, train, valid, test    int
		unlabelled, isolated, nonzerosFirst int
	}{
		{"cora", 2708, 10556, 1433, 7, 140, 500, 1000, 0, 0, 9},
		{"citeseer", 3327, 9104, 3703, 6, 120, 500, 1000, 15, 48, 30},
	} {
		d, err := Open(t.Context(), sharedtest.Path(t, "data/planetoid-"+c.name), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if d.Name != c.name || d.NumNodes != c.nodes || d.NumEdges != c.edges || d.NumFeatures != c.dim || d.NumClasses != c.classes {
			t.Errorf("%s: %+v", c.name, d.Meta)
		}
		s, err := d.Split(0)
		if err != nil || len(s.Train) != c.train || len(s.Valid) != c.valid || len(s.Test) != c.test {
			t.Errorf("%s: split %d/%d/%d, %v", c.name, len(s.Train), len(s.Valid), len(s.Test), err)
		}
		none, isolated := 0, 0
		for v := range d.NumNodes {
			if !d.Labels.Labelled(v) {
				none++
				// The gaps have neighbours, but no features.
				cols, _ := d.Features.Sparse().Row(v)
				if len(cols) != 0 || d.Graph.InDegree(int32(v)) == 0 {
					t.Errorf("%s: node %d: %d features, degree %d", c.name, v, len(cols), d.Graph.InDegree(int32(v)))
				}
			}
			if d.Graph.InDegree(int32(v)) == 0 {
				isolated++
			}
		}
		if none != c.unlabelled || isolated != c.isolated {
			t.Errorf("%s: %d unlabelled, %d isolated", c.name, none, isolated)
		}
		if err := Verify(t.Context(), d, 0); err != nil {
			t.Error(err)
		}
		d.Close()
	}
}

// TestPlanetoidTestOrder checks that row i of tx goes to line i of test.index,
// by class homophily: 0.81 in Cora if it does, far less if rows are taken in
// ascending order of the nodes.
func TestPlanetoidTestOrder(t *testing.T) {
	d, err := Open(t.Context(), sharedtest.Path(t, "data/planetoid-cora"), Options{})
	if err != nil {
		t.Fatal(err)
	}
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
	if h := float64(same) / float64(d.NumEdges); h < 0.809 || h > 0.811 {
		t.Errorf("homophily %.4f, want 0.810", h)
	}
	if got := d.Labels.Width(); got != 7 {
		t.Errorf("%d classes", got)
	}
}

// TestPlanetoidDamaged cuts each file at many places, and poisons it: every
// error names the file.
func TestPlanetoidDamaged(t *testing.T) {
	dir := copyFolder(t, sharedtest.Path(t, "data/planetoid-cora"))
	for _, part := range []string{"x", "y", "tx", "ty", "allx", "ally", "graph", "test.index"} {
		path := filepath.Join(dir, "ind.cora."+part)
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		step := max(1, len(good)/5)
		if part == "test.index" { // a prefix of it is well-formed, but too short
			step = len(good)/3 + 1
		}
		for n := 0; n < len(good)-2; n += step {
			write(t, path, good[:n])
			_, err := Open(t.Context(), dir, Options{})
			wantFault(t, fmt.Sprintf("%s cut at %d", part, n), err, "ind.cora."+part)
		}
		if part != "test.index" {
			for what, evil := range evilPickles {
				write(t, path, []byte(evil))
				_, err := Open(t.Context(), dir, Options{})
				wantFault(t, part+" "+what, err, "ind.cora."+part, "byte ")
			}
		}
		os.Remove(path)
		_, err = Open(t.Context(), dir, Options{Format: "planetoid"})
		if part == "graph" {
			wantFault(t, part+" missing", err, dir)
		} else {
			wantFault(t, part+" missing", err, "ind.cora."+part, "missing")
		}
		write(t, path, good)
	}
}

var evilPickles = map[string]string{
	"os.system":      "\x80\x02cos\nsystem\nU\x04true\x85R.",
	"builtins eval":  "\x80\x02c__builtin__\neval\nU\x011\x85R.",
	"ext code":       "\x80\x02\x82\x01.",
	"instance":       "(ios\nsystem\n.",
	"huge string":    "\x80\x02T\xff\xff\xff\x7fabc.",
	"huge string 8":  "\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7fabc.",
	"missing memo":   "\x80\x02h\x05.",
	"empty stack":    "\x80\x02.",
	"no mark":        "\x80\x02]e.",
	"append to None": "\x80\x02NNa.",
	"call an int":    "\x80\x02K\x01)R.",
	"odd dict":       "\x80\x02}(K\x01u.",
}

func write(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestPlanetoidSharedLists has one list named many times: the walk is bounded.
func TestPlanetoidSharedLists(t *testing.T) {
	dir := copyFolder(t, sharedtest.Path(t, "data/planetoid-cora"))
	raw := []byte("\x80\x02}(")
	raw = append(raw, "K\x00]("...)
	raw = append(raw, bytes.Repeat([]byte("K\x01"), 2000)...)
	raw = append(raw, "eq\x00"...)
	for v := 1; v < 2708; v++ {
		raw = append(raw, 'M', byte(v), byte(v>>8), 'h', 0)
	}
	raw = append(raw, "u."...)
	write(t, filepath.Join(dir, "ind.cora.graph"), raw)
	_, err := Open(t.Context(), dir, Options{})
	wantFault(t, "shared lists", err, "ind.cora.graph", "more neighbours than")
}

func TestPlanetoidBadEdges(t *testing.T) {
	dir := copyFolder(t, sharedtest.Path(t, "data/planetoid-cora"))
	path := filepath.Join(dir, "ind.cora.graph")
	for what, g := range map[string]string{
		"beyond":       "\x80\x02}(K\x00](M\xff\xffeu.",
		"negative":     "\x80\x02}(K\x00](J\xff\xff\xff\xffeu.",
		"a float":      "\x80\x02}(K\x00](G\x3f\xf0\x00\x00\x00\x00\x00\x00eu.",
		"no list":      "\x80\x02}(K\x00K\x01u.",
		"key twice":    "\x80\x02}(K\x00]K\x00]u.",
		"not a dict":   "\x80\x02].",
		"key negative": "\x80\x02}(J\xfe\xff\xff\xff]u.",
	} {
		write(t, path, []byte(g))
		_, err := Open(t.Context(), dir, Options{})
		wantFault(t, what, err, "ind.cora.graph")
	}
	index := filepath.Join(dir, "ind.cora.test.index")
	good, _ := os.ReadFile(filepath.Join(sharedtest.Path(t, "data/planetoid-cora"), "ind.cora.graph"))
	write(t, path, good)
	for what, text := range map[string]string{
		"beyond":   "2000000000\n",
		"negative": "-4\n",
		"text":     "abc\n",
		"a row":    "3\n",
		"twice":    "1709\n",
	} {
		idx, _ := os.ReadFile(filepath.Join(sharedtest.Path(t, "data/planetoid-cora"), "ind.cora.test.index"))
		lines := strings.SplitAfter(string(idx), "\n")
		lines[7] = text
		if what == "twice" {
			lines[7] = lines[8]
		}
		write(t, index, []byte(strings.Join(lines, "")))
		_, err := Open(t.Context(), dir, Options{})
		wantFault(t, what, err, "ind.cora.test.index", "line ")
	}
}

func TestMakeSplit(t *testing.T) {
	d, err := Open(t.Context(), sharedtest.Path(t, "data/planetoid-citeseer"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := MakeSplit(d, "random:0.6,0.2,0.2", 0)
	if err != nil {
		t.Fatal(err)
	}
	if a, b, c := len(s.Train), len(s.Valid), len(s.Test); a != 1987 || b != 663 || c != 662 {
		t.Errorf("%d/%d/%d of 3312 labelled nodes", a, b, c)
	}
	all := slices.Concat(s.Train, s.Valid, s.Test)
	if err := s.check(d.NumNodes); err != nil {
		t.Error(err)
	}
	for _, v := range all {
		if !d.Labels.Labelled(int(v)) {
			t.Errorf("node %d has no label", v)
		}
	}
	again, _ := MakeSplit(d, "random:0.6,0.2,0.2", 0)
	if !slices.Equal(again.Train, s.Train) {
		t.Error("not the same again")
	}
	other, _ := MakeSplit(d, "random:0.6,0.2,0.2", 1)
	if slices.Equal(other.Train, s.Train) {
		t.Error("the seed does nothing")
	}
	part, err := MakeSplit(d, "random:0.1,0,0.05", 0)
	if err != nil || len(part.Train) != 331 || len(part.Valid) != 0 || len(part.Test) != 166 {
		t.Errorf("%d/%d/%d, %v", len(part.Train), len(part.Valid), len(part.Test), err)
	}
	for _, spec := range []string{"", "random", "random:", "random:0.6,0.4", "random:0.6,0.3,0.2", "random:-1,1,1", "random:0,0.5,0.5", "random:a,b,c", "random:NaN,0,0", "random:1e-9,0,0", "public:1,2,3", "random:0.6,0.2,0.1,0.1"} {
		_, err := MakeSplit(d, spec, 0)
		wantFault(t, spec, err)
	}
}
