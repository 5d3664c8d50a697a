package fetch

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"zerogcn/datasets"
	"zerogcn/internal/usage"
)

// transfer brings one file here.
type transfer struct {
	client  *http.Client
	address string
	path    string // of the finished file
	want    datasets.PublishedFile
	options *Options
}

// maxPause bounds the wait between two attempts, and what Retry-After may ask for.
const maxPause = 30 * time.Second

// limit returns the most bytes that the file may have. Sizes without a checksum are
// approximate, and a publisher may add to a file.
func (t *transfer) limit() int64 {
	if t.want.SHA256 != "" {
		return t.want.Size
	}
	return 2*t.want.Size + 64<<20
}

// run returns the SHA-256 of the file, in hexadecimal, once it is at its path. The
// bytes of an attempt that failed stay for the next, or for the next call.
func (t *transfer) run(ctx context.Context) (sum string, err error) {
	if _, err := os.Stat(t.path); err == nil {
		if sum, err = hashFile(ctx, t.path); err != nil || t.want.SHA256 == "" || sum == t.want.SHA256 {
			return sum, err
		}
		if err := os.Remove(t.path); err != nil { // damaged since
			return "", err
		}
	}
	p, err := openPartial(ctx, t.path, t.address)
	if err != nil {
		return "", err
	}
	open := true
	defer func() {
		if open {
			err = errors.Join(err, p.file.Close())
		}
	}()
	resumed := p.n > 0
	for failures := 0; ; {
		before := p.n
		err := t.attempt(ctx, p)
		if err == nil {
			sum = hex.EncodeToString(p.hash.Sum(nil))
			if t.want.SHA256 == "" || sum == t.want.SHA256 {
				break
			}
			if err := p.restart(version{URL: t.address, Length: -1}); err != nil {
				return "", err
			}
			fault := usage.Errorf("%s: the SHA-256 of what arrived is %s, and %s is published: the bytes were dropped; the server has another file", t.address, sum, t.want.SHA256)
			if !resumed {
				return "", fault
			}
			// The first bytes may have been of another version.
			resumed = false
			t.note(p, fault)
			continue
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if r, ok := errors.AsType[*refusal](err); ok {
			return "", fmt.Errorf("%s: %w", t.address, r.err)
		}
		resumed = resumed || p.n > 0
		if failures++; p.n > before {
			failures = 1
		}
		if failures >= t.options.Attempts {
			return "", fmt.Errorf("%s: gave up after %d attempts without progress, with %s here (%w): run it again to go on", t.address, failures, datasets.SizeText(p.n), err)
		}
		t.note(p, err)
		if err := sleep(ctx, t.pause(failures, err)); err != nil {
			return "", err
		}
	}
	open = false
	return sum, p.finish()
}

// note tells the listener about an attempt that failed.
func (t *transfer) note(p *partial, err error) {
	t.options.Listen(Event{Stage: Transfer, Name: t.want.Name(), Done: p.n, Total: p.version.Length, Note: fmt.Sprintf("%v: trying again", err)})
}

// pause returns the wait after the given number of failures in a row.
func (t *transfer) pause(failures int, err error) time.Duration {
	d := t.options.Pause << min(failures-1, 10)
	if s, ok := errors.AsType[*statusError](err); ok {
		d = max(d, s.retryAfter)
	}
	return min(d, maxPause)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// statusError is an answer that may be another one later.
type statusError struct {
	status     string
	retryAfter time.Duration
}

func (s *statusError) Error() string { return "the server says " + s.status }

func refuse(format string, args ...any) error { return &refusal{usage.Errorf(format, args...)} }

// attempt asks for what is missing and appends what arrives. Errors other than a
// refusal may pass.
func (t *transfer) attempt(ctx context.Context, p *partial) error {
	// Bytes of no known version can only be continued where a checksum tells in
	// the end whether that went well.
	if p.n > 0 && p.version.validator() == "" && t.want.SHA256 == "" {
		if err := p.restart(version{URL: t.address, Length: -1}); err != nil {
			return &refusal{err}
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.address, nil)
	if err != nil {
		return &refusal{err}
	}
	req.Header.Set("Accept-Encoding", "identity")
	if p.n > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", p.n))
		if v := p.version.validator(); v != "" {
			req.Header.Set("If-Range", v)
		}
	}
	stall := time.AfterFunc(t.options.Stall, func() {
		cancel(fmt.Errorf("no byte arrived for %v", t.options.Stall))
	})
	defer stall.Stop()
	resp, err := t.client.Do(req)
	if err != nil {
		return stalled(ctx, err)
	}
	defer resp.Body.Close()
	complete, err := t.begin(p, resp)
	if complete || err != nil {
		return err
	}
	return t.append(ctx, p, resp.Body, func() { stall.Reset(t.options.Stall) })
}

// stalled returns why a request of ours was cancelled, in place of that it was.
func stalled(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && ctx.Err() != nil {
		return cause
	}
	return err
}

// begin looks at the head of a response and prepares p for its body. complete
// says that nothing is missing.
func (t *transfer) begin(p *partial, r *http.Response) (complete bool, err error) {
	var v version
	switch r.StatusCode {
	case http.StatusOK: // the whole file: the first time, or because it changed, or as ranges are not served
		v = versionOf(t.address, r, r.ContentLength)
	case http.StatusPartialContent:
		first, total, ok := parseContentRange(r.Header.Get("Content-Range"))
		v = versionOf(t.address, r, total)
		if !ok || first != p.n || p.n == 0 || !v.continues(p.version) {
			return false, t.drop(p, fmt.Errorf("the server sends another range (%.60q) than bytes from %d on", r.Header.Get("Content-Range"), p.n))
		}
	case http.StatusRequestedRangeNotSatisfiable:
		_, total, ok := parseContentRange(r.Header.Get("Content-Range"))
		if ok && total == p.n && p.n > 0 {
			return true, nil // it broke off after the last byte
		}
		return false, t.drop(p, fmt.Errorf("the server has no bytes from %d on", p.n))
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		s, _ := strconv.Atoi(r.Header.Get("Retry-After"))
		return false, &statusError{r.Status, time.Duration(min(max(s, 0), 3600)) * time.Second}
	default:
		return false, refuse("the server says %.80s: has the file moved? Fetch it yourself and name it with -dataset", r.Status)
	}
	switch {
	case v.Length > t.limit():
		return false, refuse("the server announces %d bytes, and the file has about %d: refused", v.Length, t.want.Size)
	case v.Length >= 0 && t.want.SHA256 != "" && v.Length != t.want.Size:
		return false, refuse("the server announces %d bytes, and the file has %d: the server has another file", v.Length, t.want.Size)
	}
	if r.StatusCode == http.StatusOK {
		if err := p.restart(v); err != nil {
			return false, &refusal{err}
		}
	}
	return false, nil
}

// drop begins anew after an answer that does not fit the bytes here.
func (t *transfer) drop(p *partial, why error) error {
	if err := p.restart(version{URL: t.address, Length: -1}); err != nil {
		return &refusal{err}
	}
	return why
}

// continues reports whether v may be the version that old is. A server that
// ignores If-Range tells by its header.
func (v version) continues(old version) bool {
	return (old.ETag == "" || v.ETag == "" || v.ETag == old.ETag) &&
		(old.Length < 0 || v.Length < 0 || v.Length == old.Length)
}

// transferBytes is how much is read at once, and so how often listeners hear of it.
const transferBytes = 256 << 10

func (t *transfer) append(ctx context.Context, p *partial, body io.Reader, alive func()) error {
	buf := make([]byte, transferBytes)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			alive()
			if p.n+int64(n) > t.limit() {
				return refuse("more than %d bytes arrive, and the file has about %d: refused", t.limit(), t.want.Size)
			}
			if _, err := p.Write(buf[:n]); err != nil {
				return &refusal{err} // a full disk
			}
			t.options.Listen(Event{Stage: Transfer, Name: t.want.Name(), Done: p.n, Total: p.version.Length})
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return stalled(ctx, err)
		}
	}
	if p.version.Length >= 0 && p.n < p.version.Length {
		return fmt.Errorf("the transfer ended after %d of %d bytes: %w", p.n, p.version.Length, io.ErrUnexpectedEOF)
	}
	return nil
}

// parseContentRange reads "bytes FIRST-LAST/TOTAL" or "bytes */TOTAL". total is -1
// for "*", and first -1 where there is no range.
func parseContentRange(s string) (first, total int64, ok bool) {
	rest, ok := strings.CutPrefix(s, "bytes ")
	span, size, ok2 := strings.Cut(rest, "/")
	if !ok || !ok2 {
		return 0, 0, false
	}
	total = -1
	if size != "*" {
		n, err := strconv.ParseUint(size, 10, 63)
		if err != nil {
			return 0, 0, false
		}
		total = int64(n)
	}
	if span == "*" {
		return -1, total, total >= 0
	}
	a, b, ok := strings.Cut(span, "-")
	lo, err1 := strconv.ParseUint(a, 10, 63)
	hi, err2 := strconv.ParseUint(b, 10, 63)
	if !ok || err1 != nil || err2 != nil || lo > hi || total >= 0 && int64(hi) != total-1 {
		return 0, 0, false // also a range that ends before the file does, which nobody asked for
	}
	return int64(lo), total, true
}
