package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"net/http"
	"os"
	"strings"

	"zerogcn/internal/atomicfile"
)

// version is what tells two versions of a file at one address apart.
type version struct {
	URL          string `json:"url"`
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"last_modified,omitempty"`
	Length       int64  `json:"length"` // -1: not known
}

// validator returns what If-Range may compare: a strong entity tag, else the
// date, else nothing.
func (v version) validator() string {
	if v.ETag != "" && !strings.HasPrefix(v.ETag, "W/") {
		return v.ETag
	}
	return v.LastModified
}

// partial is a file under way: its first bytes, their hash, and the version that
// they are of.
type partial struct {
	path    string // of the finished file
	file    *os.File
	n       int64
	hash    hash.Hash
	version version
}

func partName(path string) string    { return path + ".part" }
func versionName(path string) string { return path + ".part.json" }

// openPartial opens what is there of a file, or begins it. Bytes whose version is
// not known, or that come from another address, are dropped.
func openPartial(ctx context.Context, path, address string) (p *partial, err error) {
	f, err := os.OpenFile(partName(path), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	p = &partial{path: path, file: f, hash: sha256.New()}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	text, err := os.ReadFile(versionName(path))
	if err != nil || json.Unmarshal(text, &p.version) != nil || p.version.URL != address {
		return p, p.restart(version{URL: address, Length: -1})
	}
	if p.n, err = io.Copy(p.hash, &contextReader{ctx, f}); err != nil {
		return nil, err
	}
	return p, nil
}

// restart drops all bytes and notes the version of those to come.
func (p *partial) restart(v version) error {
	if err := p.file.Truncate(0); err != nil {
		return err
	}
	if _, err := p.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	p.n, p.version = 0, v
	p.hash.Reset()
	return atomicfile.Write(versionName(p.path), 0o666, func(w io.Writer) error {
		return json.NewEncoder(w).Encode(v)
	})
}

// Write appends bytes.
func (p *partial) Write(b []byte) (int, error) {
	n, err := p.file.Write(b)
	p.hash.Write(b[:n])
	p.n += int64(n)
	return n, err
}

// finish gives the file its name. The partial is closed then.
func (p *partial) finish() error {
	if err := p.file.Sync(); err != nil {
		return errors.Join(err, p.file.Close())
	}
	if err := p.file.Close(); err != nil {
		return err
	}
	if err := os.Rename(partName(p.path), p.path); err != nil {
		return err
	}
	return os.Remove(versionName(p.path))
}

// versionOf reads the version from a response to a request for address.
func versionOf(address string, r *http.Response, length int64) version {
	return version{URL: address, ETag: r.Header.Get("ETag"), LastModified: r.Header.Get("Last-Modified"), Length: length}
}

// contextReader ends reading when its context is done.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c *contextReader) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(b)
}
