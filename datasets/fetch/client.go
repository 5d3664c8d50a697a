package fetch

import (
	"net"
	"net/http"
	"time"

	"zerogcn/internal/usage"
)

// maxRedirects is how many addresses in a row may point elsewhere.
const maxRedirects = 5

// newClient returns a client that follows redirects with care. It has no limit
// on the time of a transfer: see Options.Stall.
func newClient(t http.RoundTripper) *http.Client {
	if t == nil {
		t = &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			TLSHandshakeTimeout:   30 * time.Second,
			ResponseHeaderTimeout: time.Minute,
			ForceAttemptHTTP2:     true,
			DisableCompression:    true, // ranges are of the file, not of its encoding
		}
	}
	return &http.Client{Transport: t, CheckRedirect: checkRedirect}
}

// checkRedirect refuses what no publisher has reason to do. Its errors are not
// worth another attempt.
func checkRedirect(to *http.Request, via []*http.Request) error {
	from := via[len(via)-1].URL
	switch {
	case len(via) > maxRedirects:
		return &refusal{usage.Errorf("more than %d redirects in a row, the last from %s: a loop?", maxRedirects, from.Redacted())}
	case to.URL.Scheme != "http" && to.URL.Scheme != "https":
		return &refusal{usage.Errorf("%s redirects to a %s address: only http and https are followed", from.Redacted(), to.URL.Scheme)}
	case from.Scheme == "https" && to.URL.Scheme == "http":
		return &refusal{usage.Errorf("%s redirects from https to http: refused, as anyone on the way could change the file", from.Redacted())}
	}
	return nil
}

// refusal marks errors that another attempt would meet again.
type refusal struct{ err error }

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }
