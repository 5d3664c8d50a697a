package fetch

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"zerogcn/datasets"
)

// host serves one file as a careful server does, but for the faults that a test
// asks for.
type host struct {
	mu      sync.Mutex
	content []byte
	etag    string
	date    string // Last-Modified
	// cut breaks the first len(cut) requests off after so many bytes of the body.
	cut []int
	// answer, if not nil, may answer instead; it reports whether it did.
	answer func(n int, w http.ResponseWriter, r *http.Request) bool

	ranges []string // the Range header of each request, in order
	*httptest.Server
}

func newHost(t *testing.T, content []byte) *host {
	h := &host{content: content, etag: `"v1"`}
	h.Server = httptest.NewServer(h)
	t.Cleanup(h.Close)
	return h
}

func (h *host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	n := len(h.ranges)
	h.ranges = append(h.ranges, r.Header.Get("Range"))
	cut := -1
	if n < len(h.cut) {
		cut = h.cut[n]
	}
	answer := h.answer
	h.mu.Unlock()
	if answer != nil && answer(n, w, r) {
		return
	}
	h.mu.Lock()
	content, etag, date := h.content, h.etag, h.date
	h.mu.Unlock()
	if etag != "" {
		w.Header().Set("ETag", etag)
	}
	if date != "" {
		w.Header().Set("Last-Modified", date)
	}
	from := 0
	if spec, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes="); ok {
		if v := r.Header.Get("If-Range"); v == "" || v == etag || v == date {
			from, _ = strconv.Atoi(strings.TrimSuffix(spec, "-"))
			if from >= len(content) {
				w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", len(content)))
				w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
				return
			}
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(content)-1, len(content)))
		}
	}
	body := content[from:]
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	if w.Header().Get("Content-Range") != "" {
		w.WriteHeader(http.StatusPartialContent)
	}
	if cut < 0 || cut > len(body) {
		w.Write(body)
		return
	}
	w.Write(body[:cut])
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

// change puts another version of the file in place.
func (h *host) change(content []byte, etag string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.content, h.etag = content, etag
}

// requests returns the Range headers so far, and forgets them.
func (h *host) requests() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.ranges
	h.ranges = nil
	return r
}

// noise is content that does not compress and differs everywhere.
func noise(n int, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func sumOf(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// quick are options of a test: no pause that anybody would notice.
func quick() *Options {
	o := &Options{Pause: time.Millisecond, Attempts: 4, Stall: 10 * time.Second}
	o.ensureDefaults()
	return o
}

func newTransfer(h *host, path string, want datasets.PublishedFile) *transfer {
	return &transfer{client: newClient(nil), address: h.URL + "/f", path: path, want: want, options: quick()}
}

func sameBytes(t *testing.T, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("%d bytes, other ones than the %d served", len(got), len(want))
	}
}
