package datasets

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go"
)

type parquetEdge struct {
	Source int64   `parquet:"source"`
	Target int32   `parquet:"target,zstd"`
	Weight float32 `parquet:"weight"`
}

type parquetNode struct {
	ID       int64     `parquet:"id"`
	Features []float64 `parquet:"features,snappy"`
	Label    *string   `parquet:"label,optional,dict"`
	Split    string    `parquet:"split"`
}

func parquetBytes[T any](t testing.TB, rows ...T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func smallParquet() ([]parquetEdge, []parquetNode) {
	a, b := "a", "b"
	return []parquetEdge{{0, 1, 0.5}, {2, 1, 2}, {0, 1, 9}}, []parquetNode{
		{2, []float64{5, 6}, &b, "test"}, {0, []float64{1, 2}, &a, "train"}, {1, []float64{3, 4}, nil, ""},
	}
}

func parquetFolder(t testing.TB, e []parquetEdge, n []parquetNode) string {
	return textFolder(t, map[string]string{parquetEdges: string(parquetBytes(t, e...)), parquetNodes: string(parquetBytes(t, n...))})
}

func TestParquet(t *testing.T) {
	e, n := smallParquet()
	d, err := Open(t.Context(), parquetFolder(t, e, n), Options{})
	if err != nil {
		t.Fatal(err)
	}
	x := make([]float32, 6)
	if err := d.Features.Float32Rows(t.Context(), 0, 3, x); err != nil {
		t.Fatal(err)
	}
	s, err := d.Split(0)
	got := fmt.Sprint(d.Graph.Indptr, d.Graph.Indices, d.Graph.Weights, x, labelText(t, d), d.ClassNames, s, err)
	if got != "[0 0 2 2] [0 2] [0.5 2] [1 2 3 4 5 6][0 -1 1][a b] {[0] [] [2]} <nil>" {
		t.Error(got)
	}
	// A file of edges alone, its columns found by type; features as columns.
	path := filepath.Join(t.TempDir(), "g.parquet")
	write(t, path, parquetBytes(t, struct {
		Note string
		A, B int32
	}{"x", 0, 2}, struct {
		Note string
		A, B int32
	}{"y", 1, 0}))
	if d, err = Open(t.Context(), path, Options{}); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(d.Name, d.Graph.Indptr, d.Graph.Indices); got != "g[0 1 1 2] [1 0]" {
		t.Error(got)
	}
	type columns struct {
		Y  int64 `parquet:"y"`
		F1 float32
		F2 int32
	}
	dir := textFolder(t, map[string]string{parquetEdges: string(parquetBytes(t, e...)), parquetNodes: string(parquetBytes(t, columns{1, 0.5, 7}, columns{0, 1.5, 8}, columns{-1, 2.5, 9}))})
	if d, err = Open(t.Context(), dir, Options{}); err != nil {
		t.Fatal(err)
	}
	if err := d.Features.Float32Rows(t.Context(), 0, 3, x); err != nil || fmt.Sprint(x)+labelText(t, d) != "[0.5 7 1.5 8 2.5 9][1 0 -1]" {
		t.Errorf("%v %s, %v", x, labelText(t, d), err)
	}
}

func TestParquetMalformed(t *testing.T) {
	for what, c := range map[string]struct {
		change func(e []parquetEdge, n []parquetNode)
		says   string
	}{
		"edge beyond":     {func(e []parquetEdge, _ []parquetNode) { e[1].Target = 3 }, "row 1, column target: 3"},
		"edge negative":   {func(e []parquetEdge, _ []parquetNode) { e[1].Source = -1 }, "row 1, column source: -1"},
		"edge wide":       {func(e []parquetEdge, _ []parquetNode) { e[1].Source = 1 << 32 }, "row 1, column source"},
		"weight infinite": {func(e []parquetEdge, _ []parquetNode) { e[2].Weight *= 1e38; e[2].Weight *= 10 }, "row 2: the weight"},
		"id twice":        {func(_ []parquetEdge, n []parquetNode) { n[1].ID = 2 }, "row 1: the id 2"},
		"id beyond":       {func(_ []parquetEdge, n []parquetNode) { n[1].ID = 3 }, "row 1: the id 3"},
		"list short":      {func(_ []parquetEdge, n []parquetNode) { n[1].Features = n[1].Features[:1] }, "different lengths"},
		"list empty":      {func(_ []parquetEdge, n []parquetNode) { n[1].Features = nil }, "column features"},
		"feature beyond":  {func(_ []parquetEdge, n []parquetNode) { n[1].Features[1] = 1e300 }, "column features"},
		"part unknown":    {func(_ []parquetEdge, n []parquetNode) { n[1].Split = "other" }, "row 1: the part"},
		"no training":     {func(_ []parquetEdge, n []parquetNode) { n[1].Split = "" }, "empty"},
	} {
		e, n := smallParquet()
		c.change(e, n)
		dir := parquetFolder(t, e, n)
		_, err := Open(t.Context(), dir, Options{})
		wantFault(t, what, err, dir, c.says)
	}
	// Cut and flipped anywhere: an error that names the file, or a set.
	good := parquetBytes(t, parquetEdge{0, 1, 1}, parquetEdge{1, 2, 1})
	path := filepath.Join(t.TempDir(), "g.parquet")
	for n := 0; n < len(good); n += 3 {
		if n >= 4 {
			write(t, path, good[:n])
			_, err := Open(t.Context(), path, Options{})
			wantFault(t, fmt.Sprintf("cut at %d", n), err, path)
		}
		b := bytes.Clone(good)
		b[n] ^= 0x41
		write(t, path, b)
		if d, err := Open(t.Context(), path, Options{Format: "parquet"}); err != nil {
			wantFault(t, fmt.Sprintf("flip at %d", n), err, path)
		} else if err := d.Graph.Validate(t.Context(), 1); err != nil {
			t.Error(err)
		}
	}
}

func FuzzParquet(f *testing.F) {
	e, n := smallParquet()
	f.Add(parquetBytes(f, e...), parquetBytes(f, n...))
	f.Fuzz(func(t *testing.T, edges, nodes []byte) {
		dir := textFolder(t, map[string]string{parquetEdges: string(edges), parquetNodes: string(nodes)})
		d, err := Open(t.Context(), dir, Options{Format: "parquet", Workers: 1})
		if err != nil {
			wantFault(t, "fuzz", err, dir)
			return
		}
		if err := d.Graph.Validate(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
	})
}
