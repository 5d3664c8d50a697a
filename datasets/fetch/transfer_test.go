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
	"time"

	"zerogcn/datasets"
	"zerogcn/internal/usage"
)

const size = 700_000

// TestTransfer serves a file with one fault each, from which a transfer recovers.
func TestTransfer(t *testing.T) {
	good := noise(size, 1)
	other := noise(size, 2)
	for name, c := range map[string]struct {
		prepare func(h *host)
		unsized bool // without a published checksum
		want    []string
		content []byte
	}{
		"whole":              {func(h *host) {}, false, []string{""}, good},
		"whole, no checksum": {func(h *host) {}, true, []string{""}, good},
		"breaks off twice": {func(h *host) { h.cut = []int{300_000, 1000} }, true,
			[]string{"", "bytes=300000-", "bytes=301000-"}, good},
		"breaks off at once": {func(h *host) { h.cut = []int{0, 0} }, true, []string{"", "", ""}, good},
		"date instead of tag": {func(h *host) { h.cut, h.etag, h.date = []int{5000}, "", "Wed, 01 Jan 2020 00:00:00 GMT" }, true,
			[]string{"", "bytes=5000-"}, good},
		"weak tag": {func(h *host) { h.cut, h.etag = []int{5000}, `W/"v1"` }, true, []string{"", ""}, good},
		"no version, no checksum: anew": {func(h *host) { h.cut, h.etag = []int{5000}, "" }, true,
			[]string{"", ""}, good},
		"no version, but a checksum": {func(h *host) { h.cut, h.etag = []int{5000}, "" }, false,
			[]string{"", "bytes=5000-"}, good},
		"ranges ignored": {func(h *host) {
			h.cut = []int{5000}
			h.answer = func(n int, w http.ResponseWriter, r *http.Request) bool {
				r.Header.Del("Range")
				return false
			}
		}, true, []string{"", "bytes=5000-"}, good},
		"changed between attempts": {func(h *host) {
			h.cut = []int{5000}
			h.answer = func(n int, w http.ResponseWriter, r *http.Request) bool {
				if n == 1 {
					h.change(other, `"v2"`)
				}
				return false
			}
		}, true, []string{"", "bytes=5000-"}, other},
		"changed, and If-Range ignored": {func(h *host) {
			h.cut = []int{5000}
			h.answer = func(n int, w http.ResponseWriter, r *http.Request) bool {
				if n == 1 {
					h.change(other, `"v2"`)
				}
				r.Header.Del("If-Range")
				return false
			}
		}, true, []string{"", "bytes=5000-", ""}, other},
		"changed unseen, and the checksum tells": {func(h *host) {
			h.cut = []int{5000}
			h.change(other, "")
			h.answer = func(n int, w http.ResponseWriter, r *http.Request) bool {
				if n == 1 {
					h.change(good, "")
				}
				return false
			}
		}, false, []string{"", "bytes=5000-", ""}, good},
		"another range than asked for": {func(h *host) {
			h.cut = []int{5000}
			h.answer = func(n int, w http.ResponseWriter, r *http.Request) bool {
				if n != 1 {
					return false
				}
				w.Header().Set("Content-Range", "bytes 7-699999/700000")
				w.WriteHeader(http.StatusPartialContent)
				w.Write(good[7:])
				return true
			}
		}, true, []string{"", "bytes=5000-", ""}, good},
		"breaks off after the last byte": {func(h *host) { h.cut = []int{size} }, true, []string{""}, good},
		"busy": {func(h *host) {
			h.answer = func(n int, w http.ResponseWriter, r *http.Request) bool {
				if n < 3 {
					w.WriteHeader([]int{503, 429, 500}[n])
				}
				return n < 3
			}
		}, true, []string{"", "", "", ""}, good},
		"announces more than it has": {func(h *host) {
			h.answer = func(n int, w http.ResponseWriter, r *http.Request) bool {
				if n == 0 {
					w.Header().Set("Content-Length", "800000")
					w.Write(good)
				}
				return n == 0
			}
		}, true, []string{"", ""}, good},
		"no length": {func(h *host) {
			h.answer = func(n int, w http.ResponseWriter, r *http.Request) bool {
				w.Write(good[:100])
				w.(http.Flusher).Flush()
				w.Write(good[100:])
				return true
			}
		}, true, []string{""}, good},
		"redirected": {func(h *host) {
			h.answer = func(n int, w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path == "/f" {
					http.Redirect(w, r, "/elsewhere/f", http.StatusFound)
				}
				return r.URL.Path == "/f"
			}
		}, true, []string{"", ""}, good},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, good)
			c.prepare(h)
			path := filepath.Join(t.TempDir(), "f")
			want := datasets.PublishedFile{URL: "https://publisher.test/f", Size: size}
			if !c.unsized {
				want.SHA256 = sumOf(c.content)
			}
			sum, err := newTransfer(h, path, want).run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			sameBytes(t, got, c.content)
			if sum != sumOf(c.content) {
				t.Errorf("the checksum is %s", sum)
			}
			if asked := h.requests(); !slices.Equal(asked, c.want) {
				t.Errorf("asked for %q, want %q", asked, c.want)
			}
			left, _ := filepath.Glob(path + ".*")
			if len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// TestTransferRefused serves what no attempt can mend, or what none may accept.
func TestTransferRefused(t *testing.T) {
	good := noise(size, 1)
	pinned := datasets.PublishedFile{Size: size, SHA256: sumOf(good)}
	loose := datasets.PublishedFile{Size: 1000}
	always := func(f func(w http.ResponseWriter, r *http.Request)) func(*host) {
		return func(h *host) {
			h.answer = func(n int, w http.ResponseWriter, r *http.Request) bool { f(w, r); return true }
		}
	}
	for name, c := range map[string]struct {
		prepare func(h *host)
		want    datasets.PublishedFile
		says    string
		user    bool // a fault of the input, not a failure
		asked   int
	}{
		"not there":      {always(http.NotFound), loose, "404 Not Found: has the file moved", true, 1},
		"garbage":        {func(h *host) { h.content = noise(size, 3) }, pinned, "the SHA-256 of what arrived is", true, 1},
		"another length": {func(h *host) { h.content = good[:100] }, pinned, "announces 100 bytes, and the file has 700000", true, 1},
		"announces much": {always(func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Content-Length", "1000000000000") }), loose, "announces 1000000000000 bytes", true, 1},
		"sends much":     {always(func(w http.ResponseWriter, r *http.Request) { sendEndlessly(w) }), loose, "more than 67110864 bytes arrive", true, 1},
		"loop":           {always(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }), loose, "more than 5 redirects", true, 6},
		"to another kind": {always(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		}), loose, "redirects to a file address", true, 1},
		"redirect nowhere": {always(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusFound) }), loose, "302 Found", true, 1},
		"always busy":      {always(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(503) }), loose, "gave up after 4 attempts without progress", false, 4},
		"breaks off":       {func(h *host) { h.cut = slices.Repeat([]int{0}, 100) }, pinned, "gave up after 4 attempts", false, 4},
		"nothing":          {always(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNoContent) }), loose, "204 No Content", true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, good)
			c.prepare(h)
			path := filepath.Join(t.TempDir(), "f")
			_, err := newTransfer(h, path, c.want).run(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), h.URL) {
				t.Errorf("error %v, want it to say %q and the address", err, c.says)
			}
			if usage.Is(err) != c.user {
				t.Errorf("a fault of the input: %v, want %v", usage.Is(err), c.user)
			}
			if strings.ContainsAny(err.Error(), "\n") {
				t.Errorf("more than a line: %q", err)
			}
			if n := len(h.requests()); n != c.asked {
				t.Errorf("asked %d times, want %d", n, c.asked)
			}
			if _, err := os.Stat(path); err == nil {
				t.Errorf("the file has its name")
			}
		})
	}
}

func sendEndlessly(w http.ResponseWriter) {
	b := make([]byte, 1<<20)
	for {
		if _, err := w.Write(b); err != nil {
			return
		}
	}
}

func TestTransferDowngrade(t *testing.T) {
	from, _ := http.NewRequest(http.MethodGet, "https://a.test/f", nil)
	to, _ := http.NewRequest(http.MethodGet, "http://a.test/f", nil)
	if err := checkRedirect(to, []*http.Request{from}); err == nil || !strings.Contains(err.Error(), "from https to http") {
		t.Errorf("error %v", err)
	}
}

// TestTransferStalls has a server stop in the middle, with the line open.
func TestTransferStalls(t *testing.T) {
	good := noise(size, 1)
	h := newHost(t, good)
	release := make(chan struct{})
	defer close(release)
	h.answer = func(n int, w http.ResponseWriter, r *http.Request) bool {
		if n > 0 {
			return false
		}
		w.Header().Set("ETag", h.etag)
		w.Header().Set("Content-Length", "700000")
		w.Write(good[:4000])
		w.(http.Flusher).Flush()
		select {
		case <-release:
		case <-r.Context().Done():
		}
		return true
	}
	tr := newTransfer(h, filepath.Join(t.TempDir(), "f"), datasets.PublishedFile{Size: size})
	tr.options.Stall = 200 * time.Millisecond
	var notes []string
	tr.options.Listen = func(e Event) {
		if e.Note != "" {
			notes = append(notes, e.Note)
		}
	}
	if _, err := tr.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	// On a busy machine the second request may take as long, and be made again.
	if asked := slices.Compact(h.requests()); !slices.Equal(asked, []string{"", "bytes=4000-"}) {
		t.Errorf("asked for %q", asked)
	}
	if len(notes) == 0 || !strings.Contains(notes[0], "no byte arrived for 200ms") {
		t.Errorf("notes %q", notes)
	}
}

// TestTransferInterrupted cancels in the middle; the next call, as by another
// process, asks for the rest only.
func TestTransferInterrupted(t *testing.T) {
	good := noise(4<<20, 1)
	h := newHost(t, good)
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	ctx, cancel := context.WithCancel(t.Context())
	tr := newTransfer(h, path, datasets.PublishedFile{Size: 4 << 20})
	tr.options.Listen = func(e Event) {
		if e.Done > 1<<20 {
			cancel()
		}
	}
	if _, err := tr.run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	part, err := os.ReadFile(partName(path))
	if err != nil || len(part) <= 1<<20 {
		t.Fatalf("%d bytes are kept (%v)", len(part), err)
	}
	h.requests()
	sum, err := newTransfer(h, path, datasets.PublishedFile{Size: 4 << 20}).run(t.Context())
	if err != nil || sum != sumOf(good) {
		t.Fatalf("checksum %s, error %v", sum, err)
	}
	if asked := h.requests(); len(asked) != 1 || !strings.HasPrefix(asked[0], "bytes=") {
		t.Errorf("asked for %q", asked)
	}
	// And once it is there, nothing is asked for.
	if again, err := newTransfer(h, path, datasets.PublishedFile{Size: 4 << 20}).run(t.Context()); err != nil || again != sum {
		t.Errorf("checksum %s, error %v", again, err)
	}
	if asked := h.requests(); len(asked) != 0 {
		t.Errorf("asked for %q", asked)
	}
}

// TestPartialUnknown drops bytes that cannot be told the version of.
func TestPartialUnknown(t *testing.T) {
	for name, note := range map[string]string{
		"no note": "", "damaged note": `{"url":`, "from another address": `{"url":"http://other.test/f","etag":"\"v1\"","length":9}`,
	} {
		path := filepath.Join(t.TempDir(), "f")
		os.WriteFile(partName(path), []byte("something"), 0o644)
		if note != "" {
			os.WriteFile(versionName(path), []byte(note), 0o644)
		}
		p, err := openPartial(t.Context(), path, "http://here.test/f")
		if err != nil || p.n != 0 {
			t.Errorf("%s: %d bytes, error %v", name, p.n, err)
		}
		p.file.Close()
	}
}

func TestContentRange(t *testing.T) {
	for s, want := range map[string][3]int64{
		"bytes 5-9/10": {5, 10, 1}, "bytes 5-9/*": {5, -1, 1}, "bytes */10": {-1, 10, 1},
		"bytes 5-8/10": {}, "bytes 9-5/10": {}, "bytes -5/10": {}, "bytes */*": {-1, -1, 0}, "": {}, "items 5-9/10": {}, "bytes 5-9": {},
		"bytes 99999999999999999999-5/10": {},
	} {
		first, total, ok := parseContentRange(s)
		if ok != (want[2] == 1) || ok && (first != want[0] || total != want[1]) {
			t.Errorf("%q: %d, %d, %v", s, first, total, ok)
		}
	}
}

func FuzzContentRange(f *testing.F) {
	for _, s := range []string{"bytes 5-9/10", "bytes */10", "bytes 0-0/1", "bytes 1-2/*", "bytes 18446744073709551615-1/0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		first, total, ok := parseContentRange(s)
		if ok && (first < -1 || total < -1 || total >= 0 && first >= total && first >= 0) {
			t.Errorf("%q: %d, %d", s, first, total)
		}
	})
}
