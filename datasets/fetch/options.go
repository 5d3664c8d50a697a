package fetch

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"zerogcn/internal/par"
	"zerogcn/internal/usage"
)

// Options say how Download works. The zero value is useful.
type Options struct {
	// Root is the folder that the set goes to, under its name. Empty means the
	// root of datasets.Open: $ZEROGCN_DATA, or ~/.cache/zerogcn.
	Root string
	// Mirror, an http or https address, is asked in place of the publishers:
	// MIRROR/HOST/PATH for what they have at https://HOST/PATH. Empty means
	// $ZEROGCN_MIRROR, or none where that is not set. Checksums are compared
	// all the same.
	Mirror string
	// Keep leaves the files as they were transferred in ROOT/.NAME.download.
	Keep bool
	// Attempts is how often in a row a transfer may break off without a byte of
	// progress. Zero means 8.
	Attempts int
	// Pause is the wait before the second attempt; it doubles from one to the
	// next, up to 30 s. Zero means 1 s.
	Pause time.Duration
	// Stall ends an attempt in which no byte arrives for so long. Zero means
	// one minute.
	Stall time.Duration
	// Transport performs the requests. Nil means one like
	// http.DefaultTransport.
	Transport http.RoundTripper
	// Listen is told how far the work is, several times a second, by one
	// goroutine at a time. Nil tells nobody.
	Listen func(Event)
	// Workers bounds the goroutines of the conversion. Zero means GOMAXPROCS.
	Workers par.Workers
}

// Stage is a part of a download.
type Stage string

// The stages, in their order; transfers and unpacking of several files follow
// each other.
const (
	Transfer   Stage = "transfer"
	Unpacking  Stage = "unpack"
	Converting Stage = "convert"
)

// Event says how far a stage is.
type Event struct {
	Stage Stage
	// Name is the file's, or the set's when it is converted.
	Name string
	// Done and Total are bytes. Total is -1 where it is not known, and both are
	// 0 where nothing is counted.
	Done, Total int64
	// Note, if not empty, is one line on something out of the ordinary: a
	// transfer that broke off and is tried again.
	Note string
}

// mirrorVariable names the environment variable behind Options.Mirror.
const mirrorVariable = "ZEROGCN_MIRROR"

func (o *Options) ensureDefaults() {
	if o.Mirror == "" {
		o.Mirror = os.Getenv(mirrorVariable)
	}
	if o.Attempts <= 0 {
		o.Attempts = 8
	}
	if o.Pause <= 0 {
		o.Pause = time.Second
	}
	if o.Stall <= 0 {
		o.Stall = time.Minute
	}
	if o.Listen == nil {
		o.Listen = func(Event) {}
	}
}

// address returns where to ask for a published file.
func (o *Options) address(published string) (string, error) {
	u, err := url.Parse(published)
	if err != nil {
		return "", fmt.Errorf("address %q: %w", published, err)
	}
	if o.Mirror == "" {
		return published, nil
	}
	m, err := url.Parse(o.Mirror)
	if err != nil || m.Scheme != "http" && m.Scheme != "https" || m.Host == "" {
		return "", usage.Errorf("mirror %q: want an address such as http://HOST/PATH (%s)", o.Mirror, mirrorVariable)
	}
	return strings.TrimSuffix(m.String(), "/") + "/" + u.Host + u.EscapedPath(), nil
}
