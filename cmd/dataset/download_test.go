package main

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"zerogcn/internal/cli/clitest"
)

// TestDownloadScripts runs the scripts of testdata/download against a local
// server:
//
//   - $MIRROR serves a small set in OGB's layout as products.zip, but sends
//     only a part in answer to the first two requests;
//   - $GARBAGE serves a web page for everything.
//
// The command asked PATTERN checks the Range header of the last request, and
// that there was one since it was last called; "asked nothing" that there was none.
func TestDownloadScripts(t *testing.T) {
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(bin, "train"), "zerogcn/cmd/train")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building train: %v\n%s", err, out)
	}
	s := &publisher{products: ogbArchive(t)}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	commands := clitest.Commands()
	commands["asked"] = s.asked
	testscript.Run(t, testscript.Params{
		Dir: "testdata/download",
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("PATH", bin+string(os.PathListSeparator)+e.Getenv("PATH"))
			e.Setenv("MIRROR", server.URL+"/good")
			e.Setenv("GARBAGE", server.URL+"/garbage")
			return nil
		},
		Cmds:                commands,
		RequireExplicitExec: true,
	})
}

// publisher serves the mirrors and notes the ranges that it is asked for.
type publisher struct {
	products []byte
	mu       sync.Mutex
	ranges   []string // since they were last looked at
	requests int
}

func (p *publisher) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.ranges = append(p.ranges, r.Header.Get("Range"))
	p.requests++
	n := p.requests
	p.mu.Unlock()
	_, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case strings.HasPrefix(r.URL.Path, "/garbage/"):
		fmt.Fprint(w, "<html>Come back later</html>")
		return
	case rest != "snap.stanford.edu/ogb/data/nodeproppred/products.zip":
		http.NotFound(w, r)
		return
	}
	w.Header().Set("ETag", `"products-1"`)
	out := w
	if n <= 2 {
		out = &halfWriter{ResponseWriter: w, request: r}
	}
	http.ServeContent(out, r, "products.zip", time.Time{}, bytes.NewReader(p.products))
}

// halfWriter sends half of what it is first given, and then keeps the line open.
type halfWriter struct {
	http.ResponseWriter
	request *http.Request
}

func (h *halfWriter) Write(b []byte) (int, error) {
	n, err := h.ResponseWriter.Write(b[:len(b)/2])
	if err != nil {
		return n, err
	}
	h.ResponseWriter.(http.Flusher).Flush()
	<-h.request.Context().Done()
	return n, h.request.Context().Err()
}

func (p *publisher) asked(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: asked PATTERN|nothing")
	}
	p.mu.Lock()
	ranges := p.ranges
	p.ranges = nil
	p.mu.Unlock()
	switch {
	case args[0] == "nothing" && len(ranges) > 0:
		ts.Fatalf("asked for %q", ranges)
	case args[0] == "nothing":
	case len(ranges) == 0:
		ts.Fatalf("nothing was asked for")
	case !regexp.MustCompile(args[0]).MatchString(ranges[len(ranges)-1]):
		ts.Fatalf("asked for %q", ranges)
	}
}

// ogbArchive is a ring of 400 nodes in two classes, in OGB's layout: each edge once,
// its inverse for the reader to add.
func ogbArchive(t *testing.T) []byte {
	const n = 400
	var edges, feats, labels strings.Builder
	var parts [3]strings.Builder
	for v := range n {
		class := v * 2 / n
		if v+1 < n {
			fmt.Fprintf(&edges, "%d,%d\n", v, v+1)
		}
		for k := range 8 {
			fmt.Fprintf(&feats, "%d.%03d,", class*k-3, v*(k+7)%997)
		}
		fmt.Fprintf(&feats, "%d\n", v%10)
		fmt.Fprintf(&labels, "%d\n", class)
		fmt.Fprintf(&parts[min(v%5/2, 2)], "%d\n", v)
	}
	// Enough beside it that does not compress for a transfer to break off in.
	padding := make([]byte, 1<<20)
	for i := range padding {
		padding[i] = byte(i * i >> 7 * 131)
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, text := range map[string]string{
		"raw/edge.csv.gz": edges.String(), "raw/node-feat.csv.gz": feats.String(), "raw/node-label.csv.gz": labels.String(),
		"raw/num-node-list.csv.gz": fmt.Sprintln(n), "raw/num-edge-list.csv.gz": fmt.Sprintln(n - 1),
		"split/sales_ranking/train.csv.gz": parts[0].String(), "split/sales_ranking/valid.csv.gz": parts[1].String(),
		"split/sales_ranking/test.csv.gz": parts[2].String(),
		"mapping/README.md":               string(padding),
	} {
		method := zip.Deflate
		if strings.HasPrefix(name, "mapping") {
			method = zip.Store
		}
		w, err := z.CreateHeader(&zip.FileHeader{Name: "products/" + name, Method: method})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(name, ".gz") {
			w.Write([]byte(text))
			continue
		}
		g := gzip.NewWriter(w)
		g.Write([]byte(text))
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
