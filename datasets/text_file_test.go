package datasets

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"
)

// packed returns b as a gzip (.gz) or zstd (.zst) file, or as it is.
func packed(t testing.TB, b []byte, ext string) []byte {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser
	var err error
	switch ext {
	case ".gz":
		w = gzip.NewWriter(&out)
	case ".zst":
		w, err = zstd.NewWriter(&out)
	default:
		return b
	}
	if err == nil {
		_, err = w.Write(b)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestPackedText reads the same set plain and packed, and packed text under a
// plain name.
func TestPackedText(t *testing.T) {
	defer goleak.VerifyNone(t)
	plain := map[string]string{
		"edges.csv": "source,target,weight\n0,1,0.5\n2.0,1,2\n0,1,9\n", "features.csv": "node,a,b\r\n2,5,6\r\n0,1,2\r\n1,3,4\r\n",
		"labels.csv": "cat\n-1\ndog\n", "train_idx.csv": "2\n0\n", "valid_idx.csv": "", "test_idx.csv": "1",
	}
	prints := map[string]bool{}
	for _, ext := range []string{"", ".gz", ".zst", "disguised"} {
		files := map[string]string{}
		for name, text := range plain {
			if ext == "disguised" {
				files[name] = string(packed(t, []byte(text), ".gz"))
			} else {
				files[name+ext] = string(packed(t, []byte(text), ext))
			}
		}
		d, err := Open(t.Context(), textFolder(t, files), Options{})
		if err != nil {
			t.Fatal(ext, err)
		}
		if d.Graph.Weights == nil || d.NumGivenSplits() != 1 {
			t.Errorf("%s: %+v", ext, d.Meta)
		}
		prints[d.Fingerprint] = true
	}
	if len(prints) != 1 {
		t.Errorf("fingerprints %v", prints)
	}
	// A single file keeps its name, and its name only.
	path := filepath.Join(t.TempDir(), "karate.csv.gz")
	write(t, path, packed(t, []byte("0 1\n1 2\n"), ".gz"))
	d, err := Open(t.Context(), path, Options{})
	if err != nil || d.Name != "karate" || d.NumEdges != 2 {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestPackedMUSAE reads packed csv and json.
func TestPackedMUSAE(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"m_edges.csv": "id_1,id_2\n0,1\n", "m_features.json": `{"0":[1],"1":[0]}`, "m_target.csv": "id,target\n0,a\n1,b\n",
	} {
		write(t, filepath.Join(dir, name+".gz"), packed(t, []byte(text), ".gz"))
	}
	d, err := Open(t.Context(), dir, Options{})
	if err != nil || d.NumNodes != 2 || d.NumEdges != 2 {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestPackedDamaged cuts packed files and flips their bytes: an error that
// names the file, or the same edges, never others.
func TestPackedDamaged(t *testing.T) {
	defer goleak.VerifyNone(t)
	base := map[string]string{"features.csv": "1,2\n3,4\n5,6\n", "labels.csv": "0\n1\n0\n"}
	for _, ext := range []string{".gz", ".zst"} {
		good := packed(t, []byte("0,1\n1,2\n2,0\n"), ext)
		name := "edges.csv" + ext
		for n := range len(good) {
			for _, b := range [][]byte{good[:n], append(append(bytes.Clone(good[:n]), good[n]^0x41), good[n+1:]...)} {
				files := maps.Clone(base)
				files[name] = string(b)
				d, err := Open(t.Context(), textFolder(t, files), Options{Format: "edge-list"})
				switch {
				case err != nil:
					wantFault(t, fmt.Sprintf("%s at byte %d", ext, n), err, name)
				case d.NumEdges != 3:
					t.Errorf("%s at byte %d: %d edges", ext, n, d.NumEdges)
				}
			}
		}
	}
}

// TestTextBomb refuses what expands beyond reason.
func TestTextBomb(t *testing.T) {
	r := &bounded{r: strings.NewReader(strings.Repeat(" ", 1000)), packed: 100, got: freeExpansion}
	if _, err := io.Copy(io.Discard, r); err == nil || !strings.Contains(err.Error(), "bomb") {
		t.Error(err)
	}
	r = &bounded{r: strings.NewReader(strings.Repeat(" ", 1000)), packed: 100 << 20, got: freeExpansion}
	if _, err := io.Copy(io.Discard, r); err != nil {
		t.Error(err)
	}
}

// BenchmarkPackedEdges reads csv.gz edges, unpacking included: ends drawn at
// random, which pack badly, and grouped by their source, as published sets are.
func BenchmarkPackedEdges(b *testing.B) {
	const n, nodes = 500_000, 2449029
	for _, c := range []struct {
		name   string
		source func(i int) int
	}{{"random", func(i int) int { return i * 2654435761 % nodes }}, {"grouped", func(i int) int { return i / 25 }}} {
		b.Run(c.name, func(b *testing.B) {
			var text bytes.Buffer
			for i := range n {
				fmt.Fprintf(&text, "%d,%d\n", c.source(i), i*40503%nodes)
			}
			path := filepath.Join(b.TempDir(), "edge.csv.gz")
			write(b, path, packed(b, text.Bytes(), ".gz"))
			b.SetBytes(int64(text.Len()))
			for b.Loop() {
				got := 0
				for e, err := range (edgeText{name: path, nodes: nodes}).stream(b.Context()) {
					if err != nil {
						b.Fatal(err)
					}
					got += e.Len()
				}
				if got != n {
					b.Fatal(got)
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mlines/s")
		})
	}
}
