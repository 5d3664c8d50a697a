package fetch

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"zerogcn/datasets"
	"zerogcn/internal/sharedtest"
	"zerogcn/internal/usage"
)

// small is a set of four nodes as an edge list.
var small = []entry{
	{name: "small/edges.csv", body: "0,1\n1,2\n2,3\n"},
	{name: "small/features.csv", body: "1,2\n3,4\n5,6\n7,8\n"},
	{name: "small/labels.csv", body: "0\n1\n0\n1\n"},
	{name: "__MACOSX/x", body: "x"},
}

func smallSet(h *host) datasets.PublishedSet {
	return datasets.PublishedSet{Name: "small", Licence: "none", Disk: 1 << 20,
		Files: []datasets.PublishedFile{{URL: "https://publisher.test/data/small.zip", Size: 1000}}}
}

func options(t *testing.T, h *host) Options {
	o := *quick()
	o.Root, o.Mirror = filepath.Join(t.TempDir(), "root"), h.URL
	return o
}

// names lists a folder.
func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestDownload(t *testing.T) {
	h := newHost(t, zipOf(t, small...))
	h.answer = func(n int, w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/publisher.test/data/small.zip" {
			http.NotFound(w, r)
			return true
		}
		return false
	}
	o := options(t, h)
	var stages []Stage
	o.Listen = func(e Event) {
		if len(stages) == 0 || stages[len(stages)-1] != e.Stage {
			stages = append(stages, e.Stage)
		}
	}
	path, err := Download(t.Context(), smallSet(h), o)
	if err != nil {
		t.Fatal(err)
	}
	d, err := datasets.Open(t.Context(), "small", datasets.Options{Root: o.Root})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if d.Name != "small" || d.NumNodes != 4 || d.NumEdges != 3 || path != filepath.Join(o.Root, "small") {
		t.Errorf("%s at %s: %d nodes, %d edges", d.Name, path, d.NumNodes, d.NumEdges)
	}
	if err := datasets.Verify(t.Context(), d, 0); err != nil {
		t.Error(err)
	}
	if got := names(t, o.Root); !slices.Equal(got, []string{recordName, "small"}) {
		t.Errorf("the root has %v", got)
	}
	if !slices.Equal(stages, []Stage{Transfer, Unpacking, Converting}) {
		t.Errorf("stages %v", stages)
	}

	// There already: nobody is asked.
	h.requests()
	if again, err := Download(t.Context(), smallSet(h), o); err != nil || again != path || len(h.requests()) > 0 {
		t.Errorf("again: %s, %v", again, err)
	}

	// The publisher's file is another one a year later.
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	h.change(zipOf(t, small[:3]...), `"v2"`)
	_, err = Download(t.Context(), smallSet(h), o)
	if err == nil || !usage.Is(err) || !strings.Contains(err.Error(), "it changed at its publisher") || !strings.Contains(err.Error(), recordName) {
		t.Errorf("changed: error %v", err)
	}
	if err := os.Remove(filepath.Join(o.Root, recordName)); err != nil {
		t.Fatal(err)
	}
	if _, err := Download(t.Context(), smallSet(h), o); err != nil {
		t.Errorf("changed and agreed to: %v", err)
	}
}

// TestDownloadInterrupted ends downloads in each stage; the next call goes on.
func TestDownloadInterrupted(t *testing.T) {
	big := append(slices.Clone(small), entry{name: "small/padding", body: string(noise(3<<20, 1))})
	for _, stage := range []Stage{Transfer, Unpacking, Converting} {
		t.Run(string(stage), func(t *testing.T) {
			h := newHost(t, zipOf(t, big...))
			o := options(t, h)
			set := smallSet(h)
			set.Disk, set.Files[0].Size = 8<<20, 4<<20
			ctx, cancel := context.WithCancel(t.Context())
			o.Listen = func(e Event) {
				if e.Stage == stage && (e.Done > 1<<20 || stage == Converting) {
					cancel()
				}
			}
			if _, err := Download(ctx, set, o); !errors.Is(err, context.Canceled) {
				t.Fatalf("error %v", err)
			}
			if got := names(t, o.Root); !slices.Equal(got, []string{".small.download"}) {
				t.Errorf("the root has %v", got)
			}
			h.requests()
			o.Listen = nil
			if _, err := Download(t.Context(), set, o); err != nil {
				t.Fatal(err)
			}
			asked := h.requests()
			if stage == Transfer && (len(asked) != 1 || !strings.HasPrefix(asked[0], "bytes=")) || stage != Transfer && len(asked) > 0 {
				t.Errorf("asked for %q", asked)
			}
			if got := names(t, o.Root); !slices.Equal(got, []string{recordName, "small"}) {
				t.Errorf("the root has %v", got)
			}
		})
	}
}

func TestDownloadRefused(t *testing.T) {
	evil := []entry{small[0], {name: "../evil", body: "x"}}
	for name, c := range map[string]struct {
		content []byte
		change  func(set *datasets.PublishedSet, o *Options)
		says    string
		left    []string // in the working folder
	}{
		"web page":   {[]byte("<html>Please log in"), nil, "it is a web page", nil},
		"leads out":  {zipOf(t, evil...), nil, "would lie outside", nil},
		"bomb":       {zipOf(t, append(slices.Clone(small), entry{name: "z", body: strings.Repeat("\x00", 5<<20)})...), nil, "claim to expand", nil},
		"no set":     {zipOf(t, entry{name: "readme", body: "hello"}), nil, "no known format", []string{"small.zip", unpackedName}},
		"bad set":    {zipOf(t, entry{name: "edges.csv", body: "0,1\n0,x\n"}), nil, "edges.csv: line 2", []string{"small.zip", unpackedName}},
		"no room":    {zipOf(t, small...), func(set *datasets.PublishedSet, o *Options) { set.Disk = 1 << 60 }, "1.15 EB are needed there", nil},
		"bad mirror": {zipOf(t, small...), func(set *datasets.PublishedSet, o *Options) { o.Mirror = "ftp://x/" }, "want an address such as http://HOST/PATH (ZEROGCN_MIRROR)", nil},
		"nowhere":    {zipOf(t, small...), func(set *datasets.PublishedSet, o *Options) { set.Files = nil }, "no address is known", nil},
		"checksum wrong": {zipOf(t, small...), func(set *datasets.PublishedSet, o *Options) {
			set.Files[0].SHA256 = strings.Repeat("0", 64)
			set.Files[0].Size = int64(len(zipOf(t, small...)))
		}, "is published: the bytes were dropped", nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, c.content)
			o, set := options(t, h), smallSet(h)
			if c.change != nil {
				c.change(&set, &o)
			}
			_, err := Download(t.Context(), set, o)
			if err == nil || !usage.Is(err) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want a line that says %q", err, c.says)
			}
			if got := names(t, o.Root); !slices.Equal(got, []string{".small.download"}) {
				t.Errorf("the root has %v", got)
			}
			got := slices.DeleteFunc(names(t, filepath.Join(o.Root, ".small.download")), func(n string) bool { return strings.Contains(n, ".part") })
			if !slices.Equal(got, c.left) {
				t.Errorf("the working folder has %v, want %v", got, c.left)
			}
		})
	}
}

func TestDownloadLocked(t *testing.T) {
	h := newHost(t, zipOf(t, small...))
	o := options(t, h)
	work := filepath.Join(o.Root, ".small.download")
	if err := os.MkdirAll(work, 0o755); err != nil {
		t.Fatal(err)
	}
	unlock, err := lock(work)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if _, err := Download(t.Context(), smallSet(h), o); err == nil || !usage.Is(err) || !strings.Contains(err.Error(), "another process") {
		t.Errorf("error %v", err)
	}
}

// TestPublishedTable holds the table to what its users rely on.
func TestPublishedTable(t *testing.T) {
	for _, p := range datasets.Published() {
		if p.Home == "" || p.Licence == "" || len(p.Files) == 0 || p.Disk < 2*p.Bytes() || strings.Contains(p.Terms(), "\n") {
			t.Errorf("%s: %+v", p.Name, p)
		}
		seen := map[string]bool{}
		for _, f := range p.Files {
			if !strings.HasPrefix(f.URL, "https://") || f.Size <= 0 || f.SHA256 != "" && len(f.SHA256) != 64 || seen[f.Name()] || f.Name() == "" {
				t.Errorf("%s: %+v", p.Name, f)
			}
			seen[f.Name()] = true
		}
	}
}

// TestDownloadCora brings the real set from a mirror: eight files, whose
// checksums are published.
func TestDownloadCora(t *testing.T) {
	dir := sharedtest.Path(t, "data/planetoid-cora")
	h := newHost(t, nil)
	h.answer = func(n int, w http.ResponseWriter, r *http.Request) bool {
		http.ServeFile(w, r, filepath.Join(dir, filepath.Base(r.URL.Path)))
		return true
	}
	o := options(t, h)
	set, ok := datasets.FindPublished("cora")
	if !ok {
		t.Fatal("not in the table")
	}
	if _, err := Download(t.Context(), set, o); err != nil {
		t.Fatal(err)
	}
	d, err := datasets.Open(t.Context(), "cora", datasets.Options{Root: o.Root})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if d.NumNodes != 2708 || d.NumEdges != 10556 {
		t.Errorf("%d nodes, %d edges", d.NumNodes, d.NumEdges)
	}
	if _, err := os.Stat(filepath.Join(o.Root, recordName)); err == nil {
		t.Error("known checksums were recorded")
	}
}
