package datasets

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
)

// PublishedSet is a set that the literature goes by, known by name, and where
// its publisher offers it. Package datasets/fetch transfers it.
type PublishedSet struct {
	Name, Describe string
	// Home is a page about the set, Licence what its publisher says about its
	// use.
	Home, Licence string
	// Files are all fetched into one folder; archives among them are unpacked.
	Files []PublishedFile
	// Disk is the room in bytes that the transfer, what it unpacks to and the
	// native folder take together. It bounds what an archive may unpack to.
	Disk int64
}

// PublishedFile is one file of a published set.
type PublishedFile struct {
	URL string
	// Size in bytes: exact where SHA256 is given, else about.
	Size int64
	// SHA256 in hexadecimal; empty where it is not known. It is then recorded
	// when the file is first used.
	SHA256 string
}

// Name returns the last element of the file's address.
func (f PublishedFile) Name() string { return f.URL[strings.LastIndexByte(f.URL, '/')+1:] }

// Bytes returns the size of the transfer, about.
func (p PublishedSet) Bytes() int64 {
	n := int64(0)
	for _, f := range p.Files {
		n += f.Size
	}
	return n
}

// Host returns the host that the set comes from.
func (p PublishedSet) Host() string {
	if len(p.Files) == 0 {
		return ""
	}
	u, err := url.Parse(p.Files[0].URL)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// Terms is one clause on size, host and licence, for whoever is to agree to a
// download.
func (p PublishedSet) Terms() string {
	return fmt.Sprintf("%s from %s, licence: %s", SizeText(p.Bytes()), p.Host(), p.Licence)
}

// SizeText writes a number of bytes with three digits and a decimal unit.
func SizeText(n int64) string {
	const units = "kMGTPE"
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	x, u := float64(n)/1000, 0
	for x >= 999.5 && u < len(units)-1 {
		x, u = x/1000, u+1
	}
	return fmt.Sprintf("%.3g %cB", x, units[u])
}

// ErrNotDownloaded is wrapped by the errors of Open and Find for the name of a
// published set that is not there.
var ErrNotDownloaded = errors.New("not downloaded")

// notDownloaded is the error for a published set that is not under the root.
type notDownloaded struct {
	set  PublishedSet
	root string
}

func (e *notDownloaded) Error() string {
	return fmt.Sprintf("dataset %s: not in %s: `dataset download -dataset %s` brings it (%s), as does train with -download; or set -root",
		e.set.Name, e.root, e.set.Name, e.set.Terms())
}

func (e *notDownloaded) Unwrap() error { return ErrNotDownloaded }

// RootFolder returns the folder in which names are looked for.
func (o Options) RootFolder() string { return o.root() }

// Published returns the published sets that are known by name.
func Published() []PublishedSet { return append([]PublishedSet(nil), published...) }

// FindPublished returns the published set of a name.
func FindPublished(name string) (PublishedSet, bool) {
	for _, p := range published {
		if p.Name == name {
			return p, true
		}
	}
	return PublishedSet{}, false
}

// IsGenerated reports whether a name is that of a set made on the spot.
func IsGenerated(name string) bool {
	_, _, ok := findGenerator(name)
	return ok
}

// Names returns the root folder that Open looks in, and the names there that
// are in a known format, ascending. A root that does not exist has none.
func Names(o Options) (root string, names []string, err error) {
	root = o.root()
	s, err := newSource(root)
	if errors.Is(err, fs.ErrNotExist) {
		return root, nil, nil
	}
	if err != nil {
		return root, nil, usageErrorf("%s: %w", root, err)
	}
	for _, n := range s.Names {
		if strings.HasPrefix(n, ".") {
			continue
		}
		set, err := newSource(s.File(n))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, os.ErrPermission) {
			continue
		}
		if err != nil {
			return root, nil, err
		}
		if _, err := recognise(set, ""); err == nil {
			names = append(names, n)
		}
	}
	return root, names, nil
}
